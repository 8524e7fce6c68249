// Forward of linear layers with streaming weights: a unit is 64 rows and 128 columns of W.
#pragma once

#include "cuda/stream.cuh"

namespace lacuna::cuda {

constexpr int kDeep = 64, kBroad = 128;

struct ForwardPart {
  const Half* X;  // sheets of 64 columns
  const float *W, *b;
  float* Y;
  int W_stride, Y_stride, rows, in, out;
  int deep;  // units of a column of units
  bool relu;
  Drop drop;
  int* counters;
};

template <int row_tiles, int terms>
struct ForwardLayout {
  static constexpr int rows = row_tiles * 16, pitch = kBroad + 4;
  static constexpr int boxes = kBroad / kBoxCols, W = boxes * kBox, X_term = sheet_bytes(rows, kDeep);
  static constexpr int stage = W + terms * X_term;
  static constexpr int sums = rows * pitch * 4, rest = sums + kBarriers * 8;
  static constexpr int stages = (kStreamMemory - rest) / stage < 8 ? (kStreamMemory - rest) / stage : 8;
  static constexpr int bytes = stages * stage + rest;
  static_assert(stages >= 2);
};

template <int row_tiles, int terms>
__global__ void __launch_bounds__(kStreamThreads, 1)
    stream_forward_kernel(const __grid_constant__ Maps<1> maps, const __grid_constant__ Jobs<ForwardPart> jobs,
                          float* partial) {
  using L = ForwardLayout<row_tiles, terms>;
#if LACUNA_STREAMS
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned char* const sheets = memory + L::stages * L::W;
  auto* const sums = reinterpret_cast<float*>(memory + L::stages * L::stage);
  auto* const full = reinterpret_cast<std::uint64_t*>(memory + L::bytes) - kBarriers;
  std::uint64_t* const empty = full + L::stages;
  auto* const last = reinterpret_cast<int*>(empty + L::stages);
  const int units = jobs.first[jobs.count], blocks = static_cast<int>(gridDim.x), me = static_cast<int>(blockIdx.x);
  const auto share = share_of(me, blocks, units);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < L::stages; ++s) {
      init_barrier(full + s, 1);
      init_barrier(empty + s, kComputing / 32);
    }
    publish_barriers();
  }
  __syncthreads();

  if (warp == kComputing / 32) {  // loads
    const auto load_weights = [&](int unit) {
      int at = unit;
      const ForwardPart& job = jobs.find(at);
      const int s = (unit - share.begin) % L::stages;
      if (lane == 0) arrive_and_expect(full + s, L::stage);
      __syncwarp();
      if (lane < L::boxes)
        load_box(memory + s * L::W + lane * kBox, &maps.map[&job - jobs.job][0], at % job.deep * kDeep,
                 at / job.deep * kBroad + lane * kBoxCols, full + s);
    };
    const auto load_sheets = [&](int unit) {
      int at = unit;
      const ForwardPart& job = jobs.find(at);
      const int s = (unit - share.begin) % L::stages;
      if (lane == 0)
        load_bulk(sheets + s * terms * L::X_term, job.X + static_cast<std::int64_t>(at % job.deep) * terms * (L::X_term / 2),
                  terms * L::X_term, full + s);
      __syncwarp();
    };
    const int first = min(share.end, share.begin + L::stages);
    for (int unit = share.begin; unit < first; ++unit) load_weights(unit);
    in_order();
    for (int unit = share.begin; unit < first; ++unit) load_sheets(unit);
    for (int unit = first; unit < share.end; ++unit) {
      const int count = unit - share.begin;
      wait_for(empty + count % L::stages, count / L::stages - 1);
      load_weights(unit);
      load_sheets(unit);
    }
    return;
  }

  in_order();
  const int quad = lane / 4, pair = lane % 4 * 2, warp_col = warp % 4 * 32, warp_k = warp / 4 * 32;
  int unit = share.begin, count = 0;
  while (unit < share.end) {  // columns of units
    int at = unit;
    const ForwardPart& job = jobs.find(at);
    const int tile = at / job.deep, j0 = tile * kBroad, column_begin = unit - at % job.deep, column_end = column_begin + job.deep;
    const int begin = unit, end = min(share.end, column_end), eights = (job.rows + 7) / 8;
    float y[2][row_tiles * 2][4] = {};
    for (; unit < end; ++unit, ++count) {
      const int s = count % L::stages;
      const unsigned char* const box = memory + s * L::W + warp % 4 * kBox;
      wait_for(full + s, count / L::stages);
      // A lane has columns 4 quad ... + 3; two of them make a tile of 16.
      std::uint32_t a[2][terms][2][4];
#pragma unroll
      for (int kt = 0; kt < 2; ++kt) {
        float w[4][4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const int k = kt * 16 + pair + r % 2 + r / 2 * 8;
          *reinterpret_cast<float4*>(w[r]) = *swizzled(box, warp_k + k, quad);
        }
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            float low = w[c / 2 * 2][m * 2 + c % 2], high = w[c / 2 * 2 + 1][m * 2 + c % 2];
#pragma unroll
            for (int term = 0; term < terms; ++term) a[kt][term][m][c] = terms == 1 ? pack(low, high) : take_term(low, high);
          }
      }
#pragma unroll
      for (int n = 0; n < row_tiles * 2; ++n) {
        if (n >= eights) break;
        std::uint32_t b[terms][4];
#pragma unroll
        for (int term = 0; term < terms; ++term)
          load_matrices(b[term], reinterpret_cast<const Half*>(sheets + (s * terms + term) * L::X_term) +
                                     (n * 8 + lane % 8) * (kDeep + kSheetPad) + warp_k + lane / 8 * 8);
#pragma unroll
        for (int product = 0; product < kProducts<terms>; ++product)
#pragma unroll
          for (int kt = 0; kt < 2; ++kt)
#pragma unroll
            for (int m = 0; m < 2; ++m)
              multiply(y[m][n], a[kt][left_term<terms>(product)][m], b[right_term<terms>(product)][kt * 2],
                       b[right_term<terms>(product)][kt * 2 + 1]);
      }
      __syncwarp();
      if (lane == 0) arrive(empty + s);
    }

    // The two halves of the depth are added in shared memory, then the parts of other blocks in their order.
    const auto at_sums = [&](int n, int e) {
      return reinterpret_cast<float4*>(sums + (n * 8 + pair + e) * L::pitch + warp_col + quad * 4);
    };
    wait_for_computing();
    if (warp >= 4)
#pragma unroll
      for (int n = 0; n < row_tiles * 2; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) *at_sums(n, e) = make_float4(y[0][n][e], y[0][n][2 + e], y[1][n][e], y[1][n][2 + e]);
    wait_for_computing();
    if (warp < 4)
#pragma unroll
      for (int n = 0; n < row_tiles * 2; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float4 other = *at_sums(n, e);
          *at_sums(n, e) = make_float4(y[0][n][e] + other.x, y[0][n][2 + e] + other.y, y[1][n][e] + other.z,
                                       y[1][n][2 + e] + other.w);
        }
    wait_for_computing();
    constexpr int kFours = kBroad / 4, kPlace = L::rows * kFours;
    auto* const parts = reinterpret_cast<float4*>(partial);
    const SharedSum shared(column_begin, column_end, blocks, units);
    if (shared.parts > 1) {
      const std::int64_t mine = static_cast<std::int64_t>(2 * me + (share.begin < begin ? 1 : 0)) * kPlace;
      for (int k = static_cast<int>(threadIdx.x); k < job.rows * kFours; k += kComputing)
        parts[mine + k] = *reinterpret_cast<const float4*>(sums + k / kFours * L::pitch + k % kFours * 4);
      if (!computing_come_last(job.counters + tile, shared.parts, last)) continue;
    }
    for (int k = static_cast<int>(threadIdx.x); k < job.rows * kFours; k += kComputing) {
      const int row = k / kFours, col = j0 + k % kFours * 4;
      if (col >= job.out) continue;
      float4 sum = *reinterpret_cast<const float4*>(sums + row * L::pitch + k % kFours * 4);
      if (shared.parts > 1) {
        sum = make_float4(0, 0, 0, 0);
        for (int part = 0; part < shared.parts; ++part) {
          const float4 more = __ldcg(&parts[static_cast<std::int64_t>(shared.place(part)) * kPlace + k]);
          sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
      }
      float value[4] = {sum.x, sum.y, sum.z, sum.w};
      uint4 words = {};
      const bool drops = row < job.drop.count;
      if (drops) words = job.drop.words(row, col / 8);
      float* const to = job.Y + static_cast<std::int64_t>(row) * job.Y_stride + col;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (col + c >= job.out) break;
        value[c] += job.b[col + c];
        if (job.relu) value[c] = fmaxf(value[c], 0.f);
        if (drops) value[c] = job.drop.apply(value[c], words, col + c);
        to[c] = value[c];
      }
    }
  }
#endif
}

}  // namespace lacuna::cuda
