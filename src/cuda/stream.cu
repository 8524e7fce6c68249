// Linear layers whose weights stream through the multiprocessors: batches of at most 128 rows on compute capability 9.0.
#include "cuda/backward.cuh"
#include "cuda/forward.cuh"
#include "cuda/sheets.cuh"

namespace lacuna::cuda {
namespace {

constexpr std::size_t kMostRows = 128;

bool on_16_bytes(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }
bool even(const MatrixView<const float>& m) { return m.empty() || (on_16_bytes(m.data) && m.stride % 4 == 0); }

int terms_of(Precision precision) { return precision == Precision::f32 ? 3 : 1; }
int row_tiles_for(std::size_t rows) { return rows <= 80 ? 5 : rows <= 96 ? 6 : 8; }

template <int row_tiles, int terms>
void launch_forward(const Maps<1>& maps, const Jobs<ForwardPart>& parts, int blocks, float* partial, cudaStream_t stream) {
  constexpr auto kernel = stream_forward_kernel<row_tiles, terms>;
  constexpr int kBytes = ForwardLayout<row_tiles, terms>::bytes;
  static const cudaError_t allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LACUNA_CUDA(allowed);
  launch(kernel, blocks, kStreamThreads, kBytes, stream, maps, parts, partial);
}

template <int row_tiles, int planes, int terms>
void launch_backward(const Maps<planes>& maps, const Jobs<BackwardPart>& parts, int blocks, float* partial, cudaStream_t stream) {
  constexpr auto kernel = stream_backward_kernel<row_tiles, planes, terms>;
  constexpr int kBytes = BackwardLayout<row_tiles, planes, terms>::bytes;
  static const cudaError_t allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LACUNA_CUDA(allowed);
  launch(kernel, blocks, kStreamThreads, kBytes, stream, maps, parts, partial);
}

// The sheets of a matrix: those of its form, or new ones behind the others in scratch memory.
const Half* sheets_for(const MatrixView<const float>& m, const Form* form, int width, int terms, Order order, Half*& scratch,
                       SheetJobs& jobs) {
  if (const auto* made = static_cast<const SheetForm*>(form); made != nullptr && made->holds(m, width)) return made->sheets;
  const SheetJob sheet{m.data, scratch, int_of(m.rows), int_of(m.cols), int_of(m.stride), padded(int_of(m.rows)), width, terms,
                       0,      order};
  add_job(jobs, sheet, sheet_blocks(sheet));
  scratch += sheet_halves(m.cols, terms);
  return sheet.to;
}

}  // namespace

// How boxes of a matrix are fetched. Kept, because a network asks for the same ones again and again.
const CUtensorMap& CudaOps::weights_map(const MatrixView<const float>& W) const {
  const MapKey key{W.data, W.rows, W.cols, W.stride};
  const auto [at, is_new] = maps_.try_emplace(key);
  if (!is_new) return at->second;
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    LACUNA_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t sizes[] = {W.cols, W.rows}, strides[] = {W.stride * sizeof(float)};
  const cuuint32_t box[] = {kBoxCols, kBoxRows}, steps[] = {1, 1};
  const CUresult code =
      encode(&at->second, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(W.data), sizes, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS) fail_with("the driver makes no map of a matrix (cuTensorMapEncodeTiled)");
  return at->second;
}

bool CudaOps::streams(const ForwardJob<float>& j) const {
  const std::size_t most = precision_ == Precision::f32 ? 96 : kMostRows;
  return streaming_ && j.X.rows <= most && even(j.W) && !j.W.empty();
}
bool CudaOps::streams(const BackwardJob<float>& j) const {
  return streaming_ && j.dY.rows <= kMostRows && !j.W.value.empty() && even(j.W.value) && even(j.W.first) && even(j.W.second) && even(j.W.mean);
}

FormPointer CudaOps::step_form(std::size_t rows, std::size_t cols) const {
  if (!streaming_ || rows > kMostRows + 1) return nullptr;  // one row of a batch's may stand for missing instances
  auto form = std::make_unique<SheetForm>();
  const std::size_t halves = sheet_halves(cols, terms_of(precision_));
  form->memory = allocate(halves * sizeof(Half) + cols * sizeof(float));
  form->sheets = static_cast<Half*>(form->memory.get());
  form->sums = reinterpret_cast<float*>(form->sheets + halves);
  form->most = cols;
  return form;
}

void CudaOps::stream_forward(std::span<const ForwardJob<float>> list) const {
  const int terms = terms_of(precision_);
  std::size_t most = 0, halves = 0, tiles = 0;
  for (const auto& j : list) most = std::max(most, j.X.rows);
  if (most == 0) return;
  const int row_tiles = row_tiles_for(most), rows = row_tiles * 16;
  for (const auto& j : list) {
    halves += sheet_halves(j.X.cols, terms);
    tiles += static_cast<std::size_t>(blocks_for(j.W.cols, kBroad));
  }
  auto* half = static_cast<Half*>(halves_.take(halves * sizeof(Half), stream_, true));
  auto* counter = static_cast<int*>(counters_.take(tiles * sizeof(int), stream_, true));
  SheetJobs sheets{};
  Jobs<ForwardPart> parts{};
  Maps<1> maps;
  const Half* X = nullptr;
  const ForwardJob<float>* before = nullptr;
  for (const auto& j : list) {
    auto* const made = static_cast<SheetForm*>(j.Y_form);
    forget(made);
    if (j.X.rows == 0) continue;
    if (before == nullptr || before->X.data != j.X.data || before->X.rows != j.X.rows)  // channels read the same rows
      X = sheets_for(j.X, j.X_form, kDeep, terms, Order::plain, half, sheets);
    before = &j;
    if (made != nullptr) made->hold(j.Y, kDeep);
    const ForwardPart part{X,
                           made != nullptr ? made->sheets : nullptr,
                           j.W.data,
                           j.b.data,
                           j.Y.data,
                           int_of(j.W.stride),
                           int_of(j.Y.stride),
                           int_of(j.X.rows),
                           int_of(j.W.rows),
                           int_of(j.W.cols),
                           sheets_of(int_of(j.W.rows), kDeep),
                           sheets_of(int_of(j.W.rows), kDeep) + kForwardEnd,
                           j.relu,
                           even(j.Y),
                           drop_of(j.dropout, j.draws),
                           counter};
    counter += blocks_for(j.W.cols, kBroad);
    maps.map[parts.count][0] = weights_map(j.W);
    add_job(parts, part, part.span * blocks_for(j.W.cols, kBroad));
  }
  const int blocks = blocks_of(total(parts), kForwardEnd, multiprocessors_);
  auto* partial = static_cast<float*>(
      partial_.take(static_cast<std::size_t>(2 * blocks * rows) * kBroad * sizeof(float), stream_));
  prepare(sheets, BiasJobs{}, stream_);
  const auto go = [&]<int tiles_of_rows>() {
    if (terms == 1) return launch_forward<tiles_of_rows, 1>(maps, parts, blocks, partial, stream_);
    if constexpr (tiles_of_rows <= 6) launch_forward<tiles_of_rows, 3>(maps, parts, blocks, partial, stream_);
  };
  if (row_tiles == 5)
    go.template operator()<5>();
  else if (row_tiles == 6)
    go.template operator()<6>();
  else
    go.template operator()<8>();
}

void CudaOps::stream_backward(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  const int terms = terms_of(precision_);
  const bool mean = !list.front().W.mean.empty(), second = rule.optimiser != Optimiser::sgd;
  const int planes = 2 + (second ? 1 : 0) + (mean ? 1 : 0), width = planes == 2 && terms == 1 ? 64 : 32;
  std::size_t most = 0, halves = 0, owners = 0;
  for (const auto& j : list) most = std::max(most, j.dY.rows);
  const int row_tiles = row_tiles_for(most), rows = row_tiles * 16;
  for (const auto& j : list) {
    halves += sheet_halves(j.X.cols, terms) + sheet_halves(j.dY.cols, terms);
    owners += static_cast<std::size_t>(blocks_for(j.W.value.rows, kOwned));
  }
  auto* half = static_cast<Half*>(halves_.take(halves * sizeof(Half), stream_, true));
  auto* counter = static_cast<int*>(counters_.take(owners * sizeof(int), stream_, true));
  SheetJobs sheets{};
  BiasJobs biases{};
  Jobs<BackwardPart> parts{};
  const Half* X = nullptr;
  const BackwardJob<float>* before = nullptr;
  for (const auto& j : list) {
    if (before == nullptr || before->X.data != j.X.data || before->X.rows != j.X.rows)
      X = sheets_for(j.X, j.X_form, kDeep, terms, Order::plain, half, sheets);
    before = &j;
    const int own = blocks_for(j.W.value.rows, kOwned);
    const auto* const told = static_cast<const SheetForm*>(j.dY_form);
    const bool known = told != nullptr && told->holds(j.dY, width);
    const Half* const dY = sheets_for(j.dY, j.dY_form, width, terms, Order::columns, half, sheets);
    auto* const made = j.dX.empty() ? nullptr : static_cast<SheetForm*>(j.dX_form);
    if (made != nullptr) made->hold(j.dX, width);
    const BackwardPart part{X,
                            dY,
                            made != nullptr ? made->sheets : nullptr,
                            made != nullptr ? made->sums : nullptr,
                            known ? told->sums : nullptr,
                            j.X.data,
                            j.dX.empty() ? nullptr : j.dX.data,
                            learned(j.W, rule),
                            learned(j.b, rule),
                            int_of(j.X.stride),
                            int_of(j.dX.stride),
                            int_of(j.dY.rows),
                            int_of(j.W.value.rows),
                            int_of(j.W.value.cols),
                            sheets_of(int_of(j.W.value.cols), width),
                            sheets_of(int_of(j.W.value.cols), width) + (j.dX.empty() ? 0 : kBackwardEnd),
                            j.mask_by_input,
                            even(j.X) && even(j.dX),
                            j.dropout > 0 ? drop_of(j.dropout, {}).scale : 1.f,
                            j.dropout > 0 ? int_of(j.dropped) : 0,
                            counter};
    counter += own;
    add_job(parts, part, own * part.span);
    if (known) continue;
    const BiasJob bias = bias_job(j, rule);
    add_job(biases, bias, bias_blocks(bias));
  }
  const int blocks = blocks_of(total(parts), kBackwardEnd, multiprocessors_);
  auto* partial = static_cast<float*>(
      partial_.take(static_cast<std::size_t>(2 * blocks * rows) * kOwned * sizeof(float), stream_));
  prepare(sheets, biases, stream_);
  const auto with_maps = [&]<int tiles, int plane_count, int term_count>() {
    Maps<plane_count> maps;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const ParameterView<float>& W = list[k].W;
      maps.map[k][0] = weights_map(W.value);
      maps.map[k][1] = weights_map(W.first);
      if constexpr (plane_count > 2) maps.map[k][2] = weights_map(second ? W.second : W.mean);
      if constexpr (plane_count > 3) maps.map[k][3] = weights_map(W.mean);
    }
    launch_backward<tiles, plane_count, term_count>(maps, parts, blocks, partial, stream_);
  };
  const auto with_planes = [&]<int tiles, int term_count>() {
    if (planes == 2) return with_maps.template operator()<tiles, 2, term_count>();
    if (planes == 3) return with_maps.template operator()<tiles, 3, term_count>();
    with_maps.template operator()<tiles, 4, term_count>();
  };
  const auto go = [&]<int tiles>() {
    if (terms == 1) return with_planes.template operator()<tiles, 1>();
    with_planes.template operator()<tiles, 3>();
  };
  if (row_tiles == 5) return go.template operator()<5>();
  if (row_tiles == 6) return go.template operator()<6>();
  go.template operator()<8>();
}

}  // namespace lacuna::cuda
