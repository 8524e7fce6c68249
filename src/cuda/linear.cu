// Linear layers on tensor cores: factors in bf16, sums in f32, weights and their state in f32. A step of a wide
// network is bound by the bytes of its weights, so both passes read each weight once:
//   forward   a block owns 128 columns of W and a part of its depth, and takes 128 rows of X through them;
//   backward  a block owns 32 rows of W and a part of its columns. dX = dY Wᵀ and dW = Xᵀ dY come from the same tile
//             of W in shared memory, and the optimiser's step is dW's epilogue.
// Parts are added in a fixed order by the block that comes last: the same bits in every run. X and dY are rounded
// to bf16 once, before, into padded scratch memory, so that tiles of them have no edges.
#include "cuda/common.cuh"

namespace lacuna::cuda {
namespace {

using Half = __nv_bfloat16;
constexpr int kThreads = 256;
constexpr int kPad = 128;  // columns of scratch are a multiple of this, rows of 16

int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

// ---- rounding to bf16, and biases ----

struct HalfJob {
  const float* from;
  Half* to;
  int rows, cols, stride, padded_rows, padded_cols;
};
struct BiasJob {
  const float* dY;
  int rows, cols, stride;
  Learned b;
};
constexpr int kPerThread = 8, kPerBlock = kThreads * kPerThread;

__device__ void convert(const HalfJob& job, int block) {
  const int at = (block * kThreads + static_cast<int>(threadIdx.x)) * kPerThread;
  const int row = at / job.padded_cols, col = at % job.padded_cols;
  if (row >= job.padded_rows) return;
  Half values[kPerThread];
  const float* from = job.from + static_cast<std::int64_t>(row) * job.stride + col;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j)
    values[j] = __float2bfloat16_rn(row < job.rows && col + j < job.cols ? from[j] : 0.f);
  *reinterpret_cast<uint4*>(job.to + at) = *reinterpret_cast<const uint4*>(values);
}

// b's step with Σ_rows dY, 32 columns a block; eight warps take every eighth row, their sums are added in order.
__device__ void learn_bias(const BiasJob& job, int block) {
  __shared__ float sums[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = block * 32 + lane;
  float sum = 0;
  if (col < job.cols)
    for (int r = warp; r < job.rows; r += 8) sum += job.dY[static_cast<std::int64_t>(r) * job.stride + col];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || col >= job.cols) return;
  for (int w = 1; w < 8; ++w) sum += sums[w][lane];
  job.b.update(col, sum);
}

__global__ void prepare_kernel(const __grid_constant__ Jobs<HalfJob, 2 * kMostJobs> halves, const __grid_constant__ Jobs<BiasJob> biases,
                               int half_blocks) {
  int block = static_cast<int>(blockIdx.x);
  if (block < half_blocks) {
    const HalfJob& job = halves.find(block);
    convert(job, block);
  } else {
    block -= half_blocks;
    const BiasJob& job = biases.find(block);
    learn_bias(job, block);
  }
}

template <class Job, int most>
void add_job(Jobs<Job, most>& jobs, const Job& job, int blocks) {
  if (blocks == 0) return;
  jobs.job[jobs.count] = job;
  jobs.first[jobs.count + 1] = jobs.first[jobs.count] + blocks;
  ++jobs.count;
}
template <class Job, int most>
int total(const Jobs<Job, most>& jobs) {
  return jobs.first[jobs.count];
}

// ---- pieces of the two products ----

__device__ void copy_async16(void* to, const void* from, int bytes) {  // the rest of 16 is zeroed
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ void copy_async4(void* to, const void* from, int bytes) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ void commit() { asm volatile("cp.async.commit_group;\n"); }
template <int most>
__device__ void wait_until() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(most));
}

// Four floats of a row, as many of them as there are (`left` columns); aligned: rows begin on 16 bytes.
__device__ void copy_four(float* to, const float* from, int left, bool aligned, const float* some) {
  if (aligned) {
    const int bytes = left >= 4 ? 16 : left > 0 ? 4 * left : 0;
    copy_async16(to, bytes > 0 ? from : some, bytes);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) copy_async4(to + k, k < left ? from + k : some, k < left ? 4 : 0);
  }
}

__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}
__device__ void load_matrices(std::uint32_t (&r)[4], const Half* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ void load_matrices_transposed(std::uint32_t (&r)[4], const Half* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
// C (16, 8) += A (16, 16) B (16, 8)
__device__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Whether this block is the last of `parts` to come here; the counter is then zero again.
__device__ bool comes_last(int* counter, int parts) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == parts - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// ---- forward ----

constexpr int kRows = 128, kColumns = 128, kDepth = 32, kForwardStages = 4;
constexpr int kWStride = kColumns + 4, kXStride = kDepth + 8;
constexpr int kForwardStage = kDepth * kWStride * 4 + kRows * kXStride * 2;  // bytes

struct ForwardPart {
  const Half* X;  // (padded rows, pitch)
  const float *W, *b;
  float* Y;
  int pitch, W_stride, Y_stride, rows, in, out;
  int row_tiles, splits, depth;  // depth: of a split, in columns of X
  bool relu, aligned;
  Drop drop;
  float* partial;
  int* counters;
};

__global__ void __launch_bounds__(kThreads, 2) forward_kernel(const __grid_constant__ Jobs<ForwardPart> jobs) {
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
      for (int c = 0; c < kDepth * kColumns / 4 / kThreads; ++c) {
        const int chunk = c * kThreads + static_cast<int>(threadIdx.x), k = chunk / (kColumns / 4),
                  j = chunk % (kColumns / 4) * 4;
        copy_four(W + k * kWStride + j, job.W + static_cast<std::int64_t>(k0 + k) * job.W_stride + col0 + j,
                  k0 + k < end ? job.out - col0 - j : 0, job.aligned, job.W);
      }
#pragma unroll
      for (int c = 0; c < kRows * kDepth / 8 / kThreads; ++c) {
        const int chunk = c * kThreads + static_cast<int>(threadIdx.x), r = chunk / (kDepth / 8),
                  j = chunk % (kDepth / 8) * 8;
        const bool there = r < rows && k0 + j < job.pitch;
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
    for (int at = static_cast<int>(threadIdx.x); at < rows * kFours; at += kThreads)
      partial[split * kRows * kFours + at] =
          *reinterpret_cast<const float4*>(sheet + at / kFours * kWStride + at % kFours * 4);
    if (!comes_last(job.counters + place, job.splits)) return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < rows * kFours; at += kThreads) {
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

// ---- backward ----

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
__global__ void __launch_bounds__(kThreads, row_tiles <= 8 ? 2 : 1)
    backward_kernel(const __grid_constant__ Jobs<BackwardPart> jobs) {
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
        for (int c = 0; c < kOwned * kWide / 4 / kThreads; ++c) {
          const int chunk = c * kThreads + static_cast<int>(threadIdx.x), i = chunk / (kWide / 4),
                    j = chunk % (kWide / 4) * 4;
          copy_four(plane + i * kPStride + j, state[p] + static_cast<std::int64_t>(i0 + i) * job.W.stride + j0 + j,
                    i0 + i < job.in ? end - j0 - j : 0, job.aligned, state[p]);
        }
      }
      auto* dY = reinterpret_cast<Half*>(stage + planes * kPlane);
      for (int chunk = static_cast<int>(threadIdx.x); chunk < tiles * 16 * (kWide / 8); chunk += kThreads) {
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
      const bool there = t < tiles && i < job.X_pitch;
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
    for (int at = static_cast<int>(threadIdx.x); at < count; at += kThreads)
      partial[split * most + at] = *reinterpret_cast<const float4*>(sheet + at / kFours * kSheet + at % kFours * 4);
    if (!comes_last(job.counters + own, job.splits)) return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < count; at += kThreads) {
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

// ---- f32, and batches of more rows than the tiles above hold ----

// A tile (64, 64) of a product over `depth`: each of 256 threads has 4 x 4 of it. left(i, k), right(k, j).
template <class Left, class Right>
__device__ void plain_product(int depth, Left&& left, Right&& right, float (&sums)[4][4]) {
  __shared__ float A[16][65], B[16][65];
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  for (int k0 = 0; k0 < depth; k0 += 16) {
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < 16 * 64; at += kThreads) {
      const int k = at / 64, i = at % 64;
      A[k][i] = k0 + k < depth ? left(i, k0 + k) : 0.f;
      B[k][i] = k0 + k < depth ? right(k0 + k, i) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k)
#pragma unroll
      for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[a][c] = fmaf(A[k][ty + 16 * a], B[k][tx + 16 * c], sums[a][c]);
  }
}

struct PlainForward {
  const float *X, *W, *b;
  float* Y;
  int X_stride, W_stride, Y_stride, rows, in, out, columns;
  bool relu;
  Drop drop;
};
__global__ void plain_forward_kernel(const __grid_constant__ Jobs<PlainForward> jobs) {
  int block = static_cast<int>(blockIdx.x);
  const PlainForward& job = jobs.find(block);
  const int i0 = block / job.columns * 64, j0 = block % job.columns * 64;
  float sums[4][4] = {};
  plain_product(
      job.in,
      [&](int i, int k) { return i0 + i < job.rows ? job.X[static_cast<std::int64_t>(i0 + i) * job.X_stride + k] : 0.f; },
      [&](int k, int j) { return j0 + j < job.out ? job.W[static_cast<std::int64_t>(k) * job.W_stride + j0 + j] : 0.f; },
      sums);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, j = j0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i >= job.rows || j >= job.out) continue;
      float y = sums[a][c] + job.b[j];
      if (job.relu) y = fmaxf(y, 0.f);
      if (i < job.drop.count) y = job.drop.apply(y, job.drop.words(i, j / 8), j);
      job.Y[static_cast<std::int64_t>(i) * job.Y_stride + j] = y;
    }
}

struct PlainBackward {
  const float *X, *dY;
  float* dX;
  Learned W;
  int X_stride, Y_stride, dX_stride, rows, in, out, columns;
  bool mask;
  float scale;
  int scaled;
};
__global__ void plain_input_kernel(const __grid_constant__ Jobs<PlainBackward> jobs) {
  int block = static_cast<int>(blockIdx.x);
  const PlainBackward& job = jobs.find(block);
  const int i0 = block / job.columns * 64, j0 = block % job.columns * 64;
  float sums[4][4] = {};
  plain_product(
      job.out,
      [&](int i, int k) { return i0 + i < job.rows ? job.dY[static_cast<std::int64_t>(i0 + i) * job.Y_stride + k] : 0.f; },
      [&](int k, int j) { return j0 + j < job.in ? job.W.w[static_cast<std::int64_t>(j0 + j) * job.W.stride + k] : 0.f; },
      sums);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, j = j0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i >= job.rows || j >= job.in) continue;
      float value = sums[a][c];
      if (job.mask && !(job.X[static_cast<std::int64_t>(i) * job.X_stride + j] > 0)) value = 0;
      if (i < job.scaled) value *= job.scale;
      job.dX[static_cast<std::int64_t>(i) * job.dX_stride + j] = value;
    }
}
__global__ void plain_weight_kernel(const __grid_constant__ Jobs<PlainBackward> jobs) {
  int block = static_cast<int>(blockIdx.x);
  const PlainBackward& job = jobs.find(block);
  const int i0 = block / job.columns * 64, j0 = block % job.columns * 64;
  float sums[4][4] = {};
  plain_product(
      job.rows,
      [&](int i, int k) { return i0 + i < job.in ? job.X[static_cast<std::int64_t>(k) * job.X_stride + i0 + i] : 0.f; },
      [&](int k, int j) { return j0 + j < job.out ? job.dY[static_cast<std::int64_t>(k) * job.Y_stride + j0 + j] : 0.f; },
      sums);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, j = j0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i < job.in && j < job.out) job.W.update(static_cast<std::int64_t>(i) * job.W.stride + j, sums[a][c]);
    }
}

int int_of(std::size_t x) { return static_cast<int>(x); }
bool on_16_bytes(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

// So many rows the kernel above holds at once.
constexpr int kMostBackwardRows = 256;

}  // namespace

void CudaOps::forward_f32(std::span<const ForwardJob<float>> list) const {
  in_launches<PlainForward>(
      list,
      [](const ForwardJob<float>& j) {
        return PlainForward{j.X.data,          j.W.data,         j.b.data,         j.Y.data,
                            int_of(j.X.stride), int_of(j.W.stride), int_of(j.Y.stride), int_of(j.X.rows),
                            int_of(j.W.rows),   int_of(j.W.cols), blocks_for(j.W.cols, 64),
                            j.relu,            drop_of(j.dropout, j.draws)};
      },
      [](const PlainForward& j) { return blocks_for(static_cast<std::size_t>(j.rows), 64) * j.columns; },
      [&](const Jobs<PlainForward>& jobs, int blocks) {
        plain_forward_kernel<<<blocks, kThreads, 0, stream_>>>(jobs);
        LACUNA_CUDA(cudaGetLastError());
      });
}

void CudaOps::backward_f32(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  const auto make = [&](const BackwardJob<float>& j, int columns) {
    return PlainBackward{j.X.data,
                         j.dY.data,
                         j.dX.data,
                         learned(j.W, rule),
                         int_of(j.X.stride),
                         int_of(j.dY.stride),
                         int_of(j.dX.stride),
                         int_of(j.dY.rows),
                         int_of(j.W.value.rows),
                         int_of(j.W.value.cols),
                         columns,
                         j.mask_by_input,
                         j.dropout > 0 ? drop_of(j.dropout, {}).scale : 1.f,
                         j.dropout > 0 ? int_of(j.dropped) : 0};
  };
  in_launches<PlainBackward>(
      list, [&](const BackwardJob<float>& j) { return make(j, blocks_for(j.W.value.rows, 64)); },
      [](const PlainBackward& j) {
        return j.dX == nullptr ? 0 : blocks_for(static_cast<std::size_t>(j.rows), 64) * j.columns;
      },
      [&](const Jobs<PlainBackward>& jobs, int blocks) {
        plain_input_kernel<<<blocks, kThreads, 0, stream_>>>(jobs);
        LACUNA_CUDA(cudaGetLastError());
      });
  in_launches<PlainBackward>(
      list, [&](const BackwardJob<float>& j) { return make(j, blocks_for(j.W.value.cols, 64)); },
      [](const PlainBackward& j) { return blocks_for(static_cast<std::size_t>(j.in), 64) * j.columns; },
      [&](const Jobs<PlainBackward>& jobs, int blocks) {
        plain_weight_kernel<<<blocks, kThreads, 0, stream_>>>(jobs);
        LACUNA_CUDA(cudaGetLastError());
      });
}

void CudaOps::linear_forward(std::span<const ForwardJob<float>> list) const {
  if (precision_ == Precision::f32) return forward_f32(list);
  while (!list.empty()) {
    const auto part = list.first(std::min<std::size_t>(list.size(), kMostJobs));
    forward_bf16(part);
    list = list.subspan(part.size());
  }
}

void CudaOps::forward_bf16(std::span<const ForwardJob<float>> list) const {
  // Work of all jobs in columns of X times tiles of Y; a block takes about the same of it, whatever the job.
  std::size_t halves = 0, work = 0;
  for (const auto& j : list) {
    if (j.X.rows == 0) continue;
    halves += static_cast<std::size_t>(round_up(int_of(j.X.rows), 16)) * static_cast<std::size_t>(round_up(int_of(j.X.cols), kPad));
    work += static_cast<std::size_t>(blocks_for(j.X.rows, kRows)) * static_cast<std::size_t>(blocks_for(j.W.cols, kColumns)) * j.X.cols;
  }
  if (work == 0) return;
  const std::size_t share = work / (static_cast<std::size_t>(multiprocessors_) * 4);
  const int depth = std::max(256, round_up(int_of(share), kDepth));
  auto* half = static_cast<Half*>(halves_.take(halves * sizeof(Half), stream_));

  Jobs<HalfJob, 2 * kMostJobs> rounding{};
  Jobs<BiasJob> biases{};
  Jobs<ForwardPart> parts{};
  std::size_t sums = 0, counters = 0;
  const Half* last_half = nullptr;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto& j = list[at];
    if (j.X.rows == 0) continue;
    const int rows = round_up(int_of(j.X.rows), 16), cols = round_up(int_of(j.X.cols), kPad);
    const bool same = at > 0 && list[at - 1].X.data == j.X.data && list[at - 1].X.rows == j.X.rows && last_half != nullptr;
    if (!same) {  // two channels of a view read the same rows
      add_job(rounding, {j.X.data, half, int_of(j.X.rows), int_of(j.X.cols), int_of(j.X.stride), rows, cols},
              blocks_for(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols), kPerBlock));
      last_half = half;
      half += static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    }
    ForwardPart part{};
    part.X = last_half;
    part.W = j.W.data;
    part.b = j.b.data;
    part.Y = j.Y.data;
    part.pitch = cols;
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
  prepare_kernel<<<total(rounding), kThreads, 0, stream_>>>(rounding, biases, total(rounding));
  constexpr int kBytes = kForwardStage * kForwardStages;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LACUNA_CUDA(allowed);
  forward_kernel<<<total(parts), kThreads, kBytes, stream_>>>(parts);
  LACUNA_CUDA(cudaGetLastError());
}

namespace {

template <int row_tiles, int planes>
void launch_backward(const Jobs<BackwardPart>& parts, cudaStream_t stream) {
  constexpr int kBytes = kBackwardStage<row_tiles, planes> * kBackwardStages;
  static const cudaError_t allowed = cudaFuncSetAttribute(backward_kernel<row_tiles, planes>,
                                                          cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  LACUNA_CUDA(allowed);
  backward_kernel<row_tiles, planes><<<total(parts), kThreads, kBytes, stream>>>(parts);
  LACUNA_CUDA(cudaGetLastError());
}
template <int row_tiles>
void launch_backward(const Jobs<BackwardPart>& parts, int planes, cudaStream_t stream) {
  if (planes == 2) return launch_backward<row_tiles, 2>(parts, stream);
  if (planes == 3) return launch_backward<row_tiles, 3>(parts, stream);
  launch_backward<row_tiles, 4>(parts, stream);
}

}  // namespace

void CudaOps::linear_backward(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  // Biases of layers that do not go through the tiles are learned here.
  const auto learn_biases = [&](std::span<const BackwardJob<float>> jobs) {
    Jobs<HalfJob, 2 * kMostJobs> none{};
    in_launches<BiasJob>(
        jobs,
        [&](const BackwardJob<float>& j) {
          return BiasJob{j.dY.data, int_of(j.dY.rows), int_of(j.dY.cols), int_of(j.dY.stride), learned(j.b, rule)};
        },
        [](const BiasJob& j) { return blocks_for(static_cast<std::size_t>(j.cols), 32); },
        [&](const Jobs<BiasJob>& biases, int blocks) {
          prepare_kernel<<<blocks, kThreads, 0, stream_>>>(none, biases, 0);
          LACUNA_CUDA(cudaGetLastError());
        });
  };
  std::size_t most = 0;
  for (const auto& j : list) most = std::max(most, j.dY.rows);
  if (precision_ == Precision::f32 || most > kMostBackwardRows) {
    learn_biases(list);
    return backward_f32(list, rule);
  }
  while (!list.empty()) {
    const auto part = list.first(std::min<std::size_t>(list.size(), kMostJobs));
    backward_bf16(part, rule);
    list = list.subspan(part.size());
  }
}

void CudaOps::backward_bf16(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  std::size_t halves = 0, work = 0;
  int most = 0;
  for (const auto& j : list) {
    const auto rows = static_cast<std::size_t>(round_up(int_of(j.dY.rows), 16));
    halves += rows * static_cast<std::size_t>(round_up(int_of(j.X.cols), kPad) + round_up(int_of(j.dY.cols), kPad));
    work += static_cast<std::size_t>(blocks_for(j.W.value.rows, kOwned)) * j.W.value.cols;
    most = std::max(most, int_of(j.dY.rows));
  }
  const std::size_t share = work / (static_cast<std::size_t>(multiprocessors_) * 8);
  const int width = std::max(128, round_up(int_of(share), kWide));
  const int row_tiles = most <= 64 ? 4 : most <= 80 ? 5 : most <= 96 ? 6 : most <= 128 ? 8 : 16;
  auto* half = static_cast<Half*>(halves_.take(halves * sizeof(Half), stream_));

  Jobs<HalfJob, 2 * kMostJobs> rounding{};
  Jobs<BiasJob> biases{};
  Jobs<BackwardPart> parts{};
  std::size_t sums = 0, counters = 0;
  const Half* last_X = nullptr;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto& j = list[at];
    const int rows = round_up(int_of(j.dY.rows), 16);
    const auto round = [&](const MatrixView<const float>& from) {
      const int cols = round_up(int_of(from.cols), kPad);
      add_job(rounding, {from.data, half, int_of(from.rows), int_of(from.cols), int_of(from.stride), rows, cols},
              blocks_for(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols), kPerBlock));
      const Half* to = half;
      half += static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
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
    part.X_pitch = round_up(int_of(j.X.cols), kPad);
    part.Y_pitch = round_up(int_of(j.dY.cols), kPad);
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
    add_job(biases, {j.dY.data, int_of(j.dY.rows), int_of(j.dY.cols), int_of(j.dY.stride), learned(j.b, rule)},
            blocks_for(j.dY.cols, 32));
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
  prepare_kernel<<<total(rounding) + total(biases), kThreads, 0, stream_>>>(rounding, biases, total(rounding));
  LACUNA_CUDA(cudaGetLastError());
  const bool mean = parts.job[0].W.mean != nullptr, second = rule.optimiser != Optimiser::sgd;
  const int planes = 2 + (second ? 1 : 0) + (mean ? 1 : 0);
  if (row_tiles == 4) return launch_backward<4>(parts, planes, stream_);
  if (row_tiles == 5) return launch_backward<5>(parts, planes, stream_);
  if (row_tiles == 6) return launch_backward<6>(parts, planes, stream_);
  if (row_tiles == 8) return launch_backward<8>(parts, planes, stream_);
  launch_backward<16>(parts, planes, stream_);
}

}  // namespace lacuna::cuda
