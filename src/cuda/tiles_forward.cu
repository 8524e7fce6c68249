// Forward of linear layers by tiles: a block owns 128 columns of W and a part of its depth, and takes 128 rows of X
// through them. Parts are added in a fixed order by the block that comes last.
#include "cuda/tiles.cuh"

namespace lacuna::cuda {
namespace {

bool on_16_bytes(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

constexpr int kRows = 128, kColumns = 128, kDepth = 32, kForwardStages = 4;
constexpr int kWStride = kColumns + 4, kXStride = kDepth + 8;
constexpr int kForwardStage = kDepth * kWStride * 4 + kRows * kXStride * 2;  // bytes

struct ForwardPart {
  const Half* X;  // a sheet: (padded rows, pitch)
  const float *W, *b;
  float* Y;
  int pitch, W_stride, Y_stride, rows, in, out;
  int row_tiles, splits, depth;  // depth: of a split, in columns of X
  bool relu, aligned;
  Drop drop;
  float* partial;
  int* counters;
};

__global__ void __launch_bounds__(kTileThreads, 2) forward_kernel(const __grid_constant__ Jobs<ForwardPart> jobs) {
  in_order();
  extern __shared__ __align__(16) unsigned char memory[];
  int block = static_cast<int>(blockIdx.x);
  const ForwardPart& job = jobs.find(block);
  const int row_tile = block % job.row_tiles, split = block / job.row_tiles % job.splits,
            tile = block / job.row_tiles / job.splits;
  const int row0 = row_tile * kRows, col0 = tile * kColumns, rows = min(kRows, job.rows - row0);
  const int begin = split * job.depth, end = min(job.in, begin + job.depth);
  const int steps = (end - begin + kDepth - 1) / kDepth;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 64;
  const int quad = lane / 4, pair = lane % 4 * 2;

  const auto load = [&](int step) {
    if (step < steps) {
      unsigned char* stage = memory + step % kForwardStages * kForwardStage;
      auto* W = reinterpret_cast<float*>(stage);
      auto* X = reinterpret_cast<Half*>(stage + kDepth * kWStride * 4);
      const int k0 = begin + step * kDepth;
#pragma unroll
      for (int c = 0; c < kDepth * kColumns / 4 / kTileThreads; ++c) {
        const int chunk = c * kTileThreads + static_cast<int>(threadIdx.x), k = chunk / (kColumns / 4),
                  j = chunk % (kColumns / 4) * 4;
        copy_four(W + k * kWStride + j, job.W + static_cast<std::int64_t>(k0 + k) * job.W_stride + col0 + j,
                  k0 + k < end ? job.out - col0 - j : 0, job.aligned, job.W);
      }
#pragma unroll
      for (int c = 0; c < kRows * kDepth / 8 / kTileThreads; ++c) {
        const int chunk = c * kTileThreads + static_cast<int>(threadIdx.x), r = chunk / (kDepth / 8),
                  j = chunk % (kDepth / 8) * 8;
        const bool there = r < rows && k0 + j < job.pitch - kSheetPad;
        copy_async16(X + r * kXStride + j,
                     job.X + (there ? static_cast<std::int64_t>(row0 + r) * job.pitch + k0 + j : 0), there ? 16 : 0);
      }
    }
    commit();
  };

  float sums[2][8][4] = {};
  const int tiles = warp_row >= rows ? 0 : warp_row + 16 >= rows ? 1 : 2;
#pragma unroll
  for (int s = 0; s < kForwardStages - 1; ++s) load(s);
  for (int step = 0; step < steps; ++step) {
    wait_until<kForwardStages - 2>();
    __syncthreads();
    load(step + kForwardStages - 1);
    if (tiles == 0) continue;
    const unsigned char* stage = memory + step % kForwardStages * kForwardStage;
    const auto* W = reinterpret_cast<const float*>(stage);
    const auto* X = reinterpret_cast<const Half*>(stage + kDepth * kWStride * 4);
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      std::uint32_t a[2][4];
      load_matrices(a[0], X + (warp_row + lane % 16) * kXStride + k + lane / 16 * 8);
      if (tiles == 2) load_matrices(a[1], X + (warp_row + 16 + lane % 16) * kXStride + k + lane / 16 * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float* w = W + (k + pair) * kWStride + warp_col + j * 8 + quad;
        const std::uint32_t b0 = pack(w[0], w[kWStride]), b1 = pack(w[8 * kWStride], w[9 * kWStride]);
        multiply(sums[0][j], a[0], b0, b1);
        if (tiles == 2) multiply(sums[1][j], a[1], b0, b1);
      }
    }
  }

  // The tile goes through shared memory, and from here on in short loops: code that runs once costs as much to fetch
  // as to run.
  wait_until<0>();
  __syncthreads();
  auto* const sheet = reinterpret_cast<float*>(memory);  // (128, kWStride)
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(sheet + (warp_row + t * 16 + quad + half * 8) * kWStride + warp_col + j * 8 + pair) =
            make_float2(sums[t][j][half * 2], sums[t][j][half * 2 + 1]);
  __syncthreads();
  constexpr int kFours = kColumns / 4;
  const std::int64_t place = static_cast<std::int64_t>(tile) * job.row_tiles + row_tile;
  float4* const partial = reinterpret_cast<float4*>(job.partial) + place * job.splits * kRows * kFours;
  if (job.splits > 1) {
    for (int at = static_cast<int>(threadIdx.x); at < rows * kFours; at += kTileThreads)
      partial[split * kRows * kFours + at] =
          *reinterpret_cast<const float4*>(sheet + at / kFours * kWStride + at % kFours * 4);
    if (!comes_last(job.counters + place, job.splits)) return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < rows * kFours; at += kTileThreads) {
    const int row = at / kFours, col = col0 + at % kFours * 4;
    if (col >= job.out) continue;
    float4 sum = *reinterpret_cast<const float4*>(sheet + row * kWStride + at % kFours * 4);
    if (job.splits > 1) {
      sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
      for (int s = 0; s < job.splits; ++s) {
        const float4 part = __ldcg(&partial[s * kRows * kFours + at]);
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
    }
    float y[4] = {sum.x, sum.y, sum.z, sum.w};
    uint4 words = {};
    const bool drops = row0 + row < job.drop.count;
    if (drops) words = job.drop.words(row0 + row, col / 8);
    float* const to = job.Y + static_cast<std::int64_t>(row0 + row) * job.Y_stride + col;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (col + c >= job.out) break;
      y[c] += job.b[col + c];
      if (job.relu) y[c] = fmaxf(y[c], 0.f);
      if (drops) y[c] = job.drop.apply(y[c], words, col + c);
      to[c] = y[c];
    }
  }
}

}  // namespace

void CudaOps::forward_bf16(std::span<const ForwardJob<float>> list) const {
  // Work of all jobs in columns of X times tiles of Y; a block takes about the same of it, whatever the job.
  std::size_t halves = 0, work = 0;
  for (const auto& j : list) {
    if (j.X.rows == 0) continue;
    halves += whole_sheet_halves(j.X, int_of(j.X.rows));
    work += static_cast<std::size_t>(blocks_for(j.X.rows, kRows)) * static_cast<std::size_t>(blocks_for(j.W.cols, kColumns)) * j.X.cols;
  }
  if (work == 0) return;
  const std::size_t share = work / (static_cast<std::size_t>(multiprocessors_) * 4);
  const int depth = std::max(256, round_up(int_of(share), kDepth));
  auto* half = static_cast<Half*>(halves_.take(halves * sizeof(Half), stream_, true));

  SheetJobs rounding{};
  Jobs<ForwardPart> parts{};
  std::size_t sums = 0, counters = 0;
  const Half* last_half = nullptr;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto& j = list[at];
    if (j.X.rows == 0) continue;
    const bool same = at > 0 && list[at - 1].X.data == j.X.data && list[at - 1].X.rows == j.X.rows && last_half != nullptr;
    if (!same) {  // two channels of a view read the same rows
      const SheetJob sheet = whole_sheet(j.X, half, int_of(j.X.rows));
      add_job(rounding, sheet, sheet_blocks(sheet));
      last_half = half;
      half += whole_sheet_halves(j.X, int_of(j.X.rows));
    }
    ForwardPart part{};
    part.X = last_half;
    part.W = j.W.data;
    part.b = j.b.data;
    part.Y = j.Y.data;
    part.pitch = round_up(int_of(j.X.cols), kPad) + kSheetPad;
    part.W_stride = int_of(j.W.stride);
    part.Y_stride = int_of(j.Y.stride);
    part.rows = int_of(j.X.rows);
    part.in = int_of(j.W.rows);
    part.out = int_of(j.W.cols);
    part.row_tiles = blocks_for(j.X.rows, kRows);
    part.splits = std::min(16, blocks_for(j.W.rows, static_cast<std::size_t>(depth)));
    part.depth = round_up(blocks_for(j.W.rows, static_cast<std::size_t>(part.splits)), kDepth);
    part.splits = blocks_for(j.W.rows, static_cast<std::size_t>(part.depth));
    part.relu = j.relu;
    part.aligned = on_16_bytes(j.W.data) && j.W.stride % 4 == 0;
    part.drop = drop_of(j.dropout, j.draws);
    const int places = part.row_tiles * blocks_for(j.W.cols, kColumns);
    if (part.splits > 1) {
      sums += static_cast<std::size_t>(places * part.splits) * kRows * kColumns;
      counters += static_cast<std::size_t>(places);
    }
    add_job(parts, part, places * part.splits);
  }
  auto* partial = static_cast<float*>(partial_.take(sums * sizeof(float), stream_));
  auto* counter = static_cast<int*>(counters_.take(counters * sizeof(int), stream_, true));
  for (int k = 0; k < parts.count; ++k) {
    ForwardPart& part = parts.job[k];
    if (part.splits == 1) continue;
    const auto places = static_cast<std::size_t>(part.row_tiles * blocks_for(static_cast<std::size_t>(part.out), kColumns));
    part.partial = partial;
    part.counters = counter;
    partial += places * static_cast<std::size_t>(part.splits) * kRows * kColumns;
    counter += places;
  }
  prepare(rounding, {}, stream_);
  constexpr int kBytes = kForwardStage * kForwardStages;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LACUNA_CUDA(allowed);
  launch(forward_kernel, total(parts), kTileThreads, kBytes, stream_, parts);
}

}  // namespace lacuna::cuda
