// Backward of linear layers by tiles: a block owns 32 rows of W and a part of its columns. dX = dY Wᵀ and dW = Xᵀ dY come
// from the same tile of W in shared memory, and the optimiser's step is dW's epilogue.
#include "cuda/tiles.cuh"

namespace lacuna::cuda {
namespace {

// A tile of W: 32 rows of 256 bytes. Wider ones are better for the memory, lower ones cost more reads of dY.
constexpr int kOwned = 32, kWide = 64, kBackwardStages = 3, kPStride = kWide + 8;
constexpr int kPlane = kOwned * kPStride * 4;  // bytes of a tile of W, of m, ...
// Eight warps share dX by eight rows of W and, if there are fewer than eight of these, by rows of the batch; and dW by
// sixteen rows and sixteen columns of W.
constexpr int kRowGroups = kOwned / 8, kBatchGroups = 8 / kRowGroups, kOwnedTiles = kOwned / 16;

struct BackwardPart {
  const Half *X, *dY;  // (padded rows, X_pitch), (padded rows, Y_pitch)
  const float* plain_X;
  float* dX;
  Learned W;
  int X_pitch, Y_pitch, X_stride, dX_stride, rows, in, out;
  int splits, width;  // width: columns of a split
  bool mask, aligned, paired;
  float scale;
  int scaled;  // rows
  float* partial;
  int* counters;
};

template <int row_tiles, int planes>
constexpr int kBackwardStage = planes * kPlane + row_tiles * 16 * kPStride * 2;

template <int row_tiles, int planes>
__global__ void __launch_bounds__(kTileThreads, row_tiles <= 8 ? 2 : 1)
    backward_kernel(const __grid_constant__ Jobs<BackwardPart> jobs) {
  in_order();
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kStage = kBackwardStage<row_tiles, planes>;
  int block = static_cast<int>(blockIdx.x);
  const BackwardPart& job = jobs.find(block);
  const int split = block % job.splits, own = block / job.splits, i0 = own * kOwned;
  const int begin = split * job.width, end = min(job.out, begin + job.width);
  const int steps = (end - begin + kWide - 1) / kWide;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane / 4, pair = lane % 4 * 2;
  const int tiles = (job.rows + 15) / 16, i_tile = warp % kOwnedTiles * 16, j_part = warp / kOwnedTiles * 16;
  const int own_rows = warp % kRowGroups * 8, own_batch = warp / kRowGroups;
  constexpr int kSums = (row_tiles + kBatchGroups - 1) / kBatchGroups;
  float* const state[4] = {job.W.w, job.W.m, planes == 4 || job.W.mean == nullptr ? job.W.v : job.W.mean, job.W.mean};

  const auto load = [&](int step) {
    if (step < steps) {
      unsigned char* stage = memory + step % kBackwardStages * kStage;
      const int j0 = begin + step * kWide;
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        auto* plane = reinterpret_cast<float*>(stage + p * kPlane);
#pragma unroll
        for (int c = 0; c < kOwned * kWide / 4 / kTileThreads; ++c) {
          const int chunk = c * kTileThreads + static_cast<int>(threadIdx.x), i = chunk / (kWide / 4),
                    j = chunk % (kWide / 4) * 4;
          copy_four(plane + i * kPStride + j, state[p] + static_cast<std::int64_t>(i0 + i) * job.W.stride + j0 + j,
                    i0 + i < job.in ? end - j0 - j : 0, job.aligned, state[p]);
        }
      }
      auto* dY = reinterpret_cast<Half*>(stage + planes * kPlane);
      for (int chunk = static_cast<int>(threadIdx.x); chunk < tiles * 16 * (kWide / 8); chunk += kTileThreads) {
        const int r = chunk / (kWide / 8), j = chunk % (kWide / 8) * 8;
        copy_async16(dY + r * kPStride + j, job.dY + static_cast<std::int64_t>(r) * job.Y_pitch + j0 + j, 16);
      }
    }
    commit();
  };

#pragma unroll
  for (int s = 0; s < kBackwardStages - 1; ++s) load(s);

  // Xᵀ of this warp's rows of W, for all of the step: the left factor of dW.
  std::uint32_t x[row_tiles][4];
#pragma unroll
  for (int t = 0; t < row_tiles; ++t)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + i_tile + quad + c % 2 * 8, r = t * 16 + pair + c / 2 * 8;
      const auto* at = reinterpret_cast<const std::uint16_t*>(job.X) + static_cast<std::int64_t>(r) * job.X_pitch + i;
      const bool there = t < tiles && i < job.X_pitch - kSheetPad;
      const std::uint32_t low = there ? at[0] : 0, high = there ? at[job.X_pitch] : 0;
      x[t][c] = low | high << 16;
    }

  float dX[kSums][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_until<kBackwardStages - 2>();
    __syncthreads();
    load(step + kBackwardStages - 1);
    const unsigned char* stage = memory + step % kBackwardStages * kStage;
    const auto* W = reinterpret_cast<const float*>(stage);
    const auto* dY = reinterpret_cast<const Half*>(stage + planes * kPlane);
    const int j0 = begin + step * kWide;
    if (job.dX != nullptr) {
#pragma unroll
      for (int k = 0; k < kWide; k += 16) {
        const float* w = W + (own_rows + quad) * kPStride + k + pair;
        const float2 low = *reinterpret_cast<const float2*>(w), high = *reinterpret_cast<const float2*>(w + 8);
        const std::uint32_t b0 = pack(low.x, low.y), b1 = pack(high.x, high.y);
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
          const int t = s * kBatchGroups + own_batch;
          if (t >= tiles) break;
          std::uint32_t a[4];
          load_matrices(a, dY + (t * 16 + lane % 16) * kPStride + k + lane / 16 * 8);
          multiply(dX[s], a, b0, b1);
        }
      }
    }
    float dW[2][4] = {};
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
      if (t >= tiles) break;
      std::uint32_t b[4];
      load_matrices_transposed(b, dY + (t * 16 + lane / 8 % 2 * 8 + lane % 8) * kPStride + j_part + lane / 16 * 8);
      multiply(dW[0], x[t], b[0], b[1]);
      multiply(dW[1], x[t], b[2], b[3]);
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = i_tile + quad + half * 8, j = j_part + n * 8 + pair;
        if (i0 + i >= job.in || j0 + j >= end) continue;
        float value[4][2];
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const float2 both = *reinterpret_cast<const float2*>(
              reinterpret_cast<const float*>(stage + p * kPlane) + i * kPStride + j);
          value[p][0] = both.x;
          value[p][1] = both.y;
        }
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float g = dW[n][half * 2 + c];
          if (job.W.step.optimiser == Optimiser::sgd) {
            job.W.step.sgd(g, value[0][c], value[1][c]);
            if (planes == 3) value[2][c] += job.W.step.rest_average * (value[0][c] - value[2][c]);
          } else if (planes >= 3) {
            job.W.step.adam(g, value[0][c], value[1][c], value[2][c]);
            if (planes == 4) value[3][c] += job.W.step.rest_average * (value[0][c] - value[3][c]);
          }
        }
        const std::int64_t at = static_cast<std::int64_t>(i0 + i) * job.W.stride + j0 + j;
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          if (job.paired && j0 + j + 1 < end) {
            *reinterpret_cast<float2*>(state[p] + at) = make_float2(value[p][0], value[p][1]);
          } else {
            state[p][at] = value[p][0];
            if (j0 + j + 1 < end) state[p][at + 1] = value[p][1];
          }
        }
      }
  }
  if (job.dX == nullptr) return;

  // As above: through shared memory, then in short loops.
  wait_until<0>();
  __syncthreads();
  constexpr int kSheet = kOwned + 8;
  auto* const sheet = reinterpret_cast<float*>(memory);  // (rows, kSheet)
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    const int t = s * kBatchGroups + own_batch;
    if (t >= tiles) break;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(sheet + (t * 16 + quad + half * 8) * kSheet + own_rows + pair) =
          make_float2(dX[s][half * 2], dX[s][half * 2 + 1]);
  }
  __syncthreads();
  constexpr int kFours = kOwned / 4;
  const int count = job.rows * kFours, most = row_tiles * 16 * kFours;
  float4* const partial = reinterpret_cast<float4*>(job.partial) + static_cast<std::int64_t>(own) * job.splits * most;
  if (job.splits > 1) {
    for (int at = static_cast<int>(threadIdx.x); at < count; at += kTileThreads)
      partial[split * most + at] = *reinterpret_cast<const float4*>(sheet + at / kFours * kSheet + at % kFours * 4);
    if (!comes_last(job.counters + own, job.splits)) return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < count; at += kTileThreads) {
    const int row = at / kFours, i = i0 + at % kFours * 4;
    if (i >= job.in) continue;
    float4 sum = *reinterpret_cast<const float4*>(sheet + row * kSheet + at % kFours * 4);
    if (job.splits > 1) {
      sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
      for (int s = 0; s < job.splits; ++s) {
        const float4 part = __ldcg(&partial[s * most + at]);
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
    }
    const float value[4] = {sum.x, sum.y, sum.z, sum.w};
    const float* x = job.plain_X + static_cast<std::int64_t>(row) * job.X_stride + i;
    float* const to = job.dX + static_cast<std::int64_t>(row) * job.dX_stride + i;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (i + c >= job.in) break;
      const float kept = job.mask && !(x[c] > 0) ? 0.f : value[c];
      to[c] = row < job.scaled ? kept * job.scale : kept;
    }
  }
}

}  // namespace

namespace {

template <int row_tiles, int planes>
void launch_backward(const Jobs<BackwardPart>& parts, cudaStream_t stream) {
  constexpr int kBytes = kBackwardStage<row_tiles, planes> * kBackwardStages;
  static const cudaError_t allowed = cudaFuncSetAttribute(backward_kernel<row_tiles, planes>,
                                                          cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LACUNA_CUDA(allowed);
  launch(backward_kernel<row_tiles, planes>, total(parts), kTileThreads, kBytes, stream, parts);
}
template <int row_tiles>
void launch_backward(const Jobs<BackwardPart>& parts, int planes, cudaStream_t stream) {
  if (planes == 2) return launch_backward<row_tiles, 2>(parts, stream);
  if (planes == 3) return launch_backward<row_tiles, 3>(parts, stream);
  launch_backward<row_tiles, 4>(parts, stream);
}

}  // namespace

void CudaOps::backward_bf16(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  std::size_t halves = 0, work = 0;
  int most = 0;
  for (const auto& j : list) {
    halves += whole_sheet_halves(j.X, int_of(j.dY.rows)) + whole_sheet_halves(j.dY, int_of(j.dY.rows));
    work += static_cast<std::size_t>(blocks_for(j.W.value.rows, kOwned)) * j.W.value.cols;
    most = std::max(most, int_of(j.dY.rows));
  }
  const std::size_t share = work / (static_cast<std::size_t>(multiprocessors_) * 8);
  const int width = std::max(128, round_up(int_of(share), kWide));
  const int row_tiles = most <= 64 ? 4 : most <= 80 ? 5 : most <= 96 ? 6 : most <= 128 ? 8 : 16;
  auto* half = static_cast<Half*>(halves_.take(halves * sizeof(Half), stream_, true));

  SheetJobs rounding{};
  BiasJobs biases{};
  Jobs<BackwardPart> parts{};
  std::size_t sums = 0, counters = 0;
  const Half* last_X = nullptr;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto& j = list[at];
    const auto round = [&](const MatrixView<const float>& from) {
      const SheetJob sheet = whole_sheet(from, half, int_of(j.dY.rows));
      add_job(rounding, sheet, sheet_blocks(sheet));
      const Half* to = half;
      half += whole_sheet_halves(from, int_of(j.dY.rows));
      return to;
    };
    const bool same = at > 0 && list[at - 1].X.data == j.X.data && list[at - 1].X.rows == j.X.rows;
    if (!same) last_X = round(j.X);
    BackwardPart part{};
    part.X = last_X;
    part.dY = round(j.dY);
    part.plain_X = j.X.data;
    part.dX = j.dX.empty() ? nullptr : j.dX.data;
    part.W = learned(j.W, rule);
    part.X_pitch = round_up(int_of(j.X.cols), kPad) + kSheetPad;
    part.Y_pitch = round_up(int_of(j.dY.cols), kPad) + kSheetPad;
    part.X_stride = int_of(j.X.stride);
    part.dX_stride = int_of(j.dX.stride);
    part.rows = int_of(j.dY.rows);
    part.in = int_of(j.W.value.rows);
    part.out = int_of(j.W.value.cols);
    part.splits = std::min(32, blocks_for(j.W.value.cols, static_cast<std::size_t>(width)));
    part.width = round_up(blocks_for(j.W.value.cols, static_cast<std::size_t>(part.splits)), kWide);
    part.splits = blocks_for(j.W.value.cols, static_cast<std::size_t>(part.width));
    part.mask = j.mask_by_input;
    const auto even = [&](int unit) {
      if (part.W.stride % unit != 0) return false;
      for (const float* state : {part.W.w, part.W.m, part.W.v, part.W.mean})
        if (reinterpret_cast<std::uintptr_t>(state) % (4 * static_cast<std::uintptr_t>(unit)) != 0) return false;
      return true;
    };
    part.aligned = even(4);
    part.paired = even(2);
    part.scale = j.dropout > 0 ? drop_of(j.dropout, {}).scale : 1.f;
    part.scaled = j.dropout > 0 ? int_of(j.dropped) : 0;
    const int owners = blocks_for(j.W.value.rows, kOwned);
    if (part.splits > 1 && part.dX != nullptr) {
      sums += static_cast<std::size_t>(owners * part.splits * row_tiles) * 16 * kOwned;
      counters += static_cast<std::size_t>(owners);
    }
    add_job(parts, part, owners * part.splits);
    const BiasJob bias = bias_job(j, rule);
    add_job(biases, bias, bias_blocks(bias));
  }
  auto* partial = static_cast<float*>(partial_.take(sums * sizeof(float), stream_));
  auto* counter = static_cast<int*>(counters_.take(counters * sizeof(int), stream_, true));
  for (int k = 0; k < parts.count; ++k) {
    BackwardPart& part = parts.job[k];
    if (part.splits == 1 || part.dX == nullptr) continue;
    const auto owners = static_cast<std::size_t>(blocks_for(static_cast<std::size_t>(part.in), kOwned));
    part.partial = partial;
    part.counters = counter;
    partial += owners * static_cast<std::size_t>(part.splits * row_tiles) * 16 * kOwned;
    counter += owners;
  }
  prepare(rounding, biases, stream_);
  const bool mean = parts.job[0].W.mean != nullptr, second = rule.optimiser != Optimiser::sgd;
  const int planes = 2 + (second ? 1 : 0) + (mean ? 1 : 0);
  if (row_tiles == 4) return launch_backward<4>(parts, planes, stream_);
  if (row_tiles == 5) return launch_backward<5>(parts, planes, stream_);
  if (row_tiles == 6) return launch_backward<6>(parts, planes, stream_);
  if (row_tiles == 8) return launch_backward<8>(parts, planes, stream_);
  launch_backward<16>(parts, planes, stream_);
}

}  // namespace lacuna::cuda
