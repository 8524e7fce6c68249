// Forward of linear layers with streaming weights: a unit is 64 rows and 128 columns of W.
#pragma once

#include "cuda/stream.cuh"

namespace lacuna::cuda {

constexpr int kForwardEnd = 6;  // units that ending a sum takes as long as

struct ForwardPart {
  const Half* X;  // sheets of kDeep columns
  Half* made;     // the same of Y, or null
  const float *W, *b;
  float* Y;
  int W_stride, Y_stride, rows, in, out;
  int length, span;  // units of a column of units, and the places that it takes
  bool relu, even;  // even: rows of Y begin on 16 bytes
  Drop drop;
  int* counters;
};

template <int row_tiles, int terms>
struct ForwardLayout {
  static constexpr int rows = row_tiles * 16, pitch = kBroad + 4;
  static constexpr int boxes = kBroad / kBoxCols, W = boxes * kBox, X_term = rows * kDeep * 2;
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
      init_barrier(empty + s, kComputing);
    }
    publish_barriers();
  }
  __syncthreads();

  if (warp == kComputing / 32) {  // loads
    using Units = Cursor<ForwardPart>;
    const auto load_weights = [&](const Units& u, int s) {
      if (lane == 0) arrive_and_expect(full + s, L::W + terms * padded(u.part().rows) * kDeep * 2);
      __syncwarp();
      if (lane < L::boxes)
        load_box(memory + s * L::W + lane * kBox, &maps.map[u.job][0], u.unit * kDeep, u.sum * kBroad + lane * kBoxCols,
                 full + s);
    };
    const auto load_sheets = [&](const Units& u, int s) {
      if (lane < terms && u.part().rows > 0)
        load_bulk(sheets + (s * terms + lane) * L::X_term,
                  u.part().X + (static_cast<std::int64_t>(u.unit) * terms + lane) * (kSheetRows * kDeep),
                  padded(u.part().rows) * kDeep * 2, full + s);
      __syncwarp();
    };
    Units u(jobs, share.begin, share.end), early = u;
    int count = 0;
    for (; !u.over() && count < L::stages; u.next()) load_weights(u, count++);
    in_order();
    for (int s = 0; s < count; ++s, early.next()) load_sheets(early, s);
    for (int s = 0, round = 0; !u.over(); u.next()) {
      wait_for(empty + s, round);
      load_weights(u, s);
      load_sheets(u, s);
      if (++s == L::stages) s = 0, ++round;
    }
    return;
  }

  in_order();
  const int quad = lane / 4, pair = lane % 4 * 2, warp_col = warp % 4 * 32, warp_k = warp / 4 * 32;
  int s = 0, round = 0, at = share.begin;
  for (int k; (k = first_unit(jobs, at, share.end)) >= 0;) {  // columns of units
    const ForwardPart& job = jobs.job[k];
    const int tile = (at - jobs.first[k]) / job.span, j0 = tile * kBroad;
    const int column_begin = jobs.first[k] + tile * job.span, column_end = column_begin + job.length;
    const int begin = at, end = min(share.end, column_end), eights = (job.rows + 7) / 8;
    at = column_begin + job.span;
    float y[2][row_tiles * 2][4] = {};
    for (int unit = begin; unit < end; ++unit) {
      const unsigned char* const box = memory + s * L::W + warp % 4 * kBox;
      wait_for(full + s, round);
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
                                     sheet_at(kDeep, n * 8 + lane % 8, warp_k + lane / 8 * 8));
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
      arrive(empty + s);
      if (++s == L::stages) s = 0, ++round;
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
    const int col = j0 + static_cast<int>(threadIdx.x) % kFours * 4;  // a thread's own, in all rows
    if (col >= (job.out + kDeep - 1) / kDeep * kDeep) continue;
    float bias[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) bias[c] = col + c < job.out ? job.b[col + c] : 0.f;
    constexpr int kAtOnce = row_tiles;  // rows whose parts are on their way together
    const int rows = job.made != nullptr ? padded(job.rows) : job.rows;
    for (int row = static_cast<int>(threadIdx.x) / kFours; row < rows; row += kAtOnce * kComputing / kFours) {
      float4 sum[kAtOnce];
      const int k = row * kFours + static_cast<int>(threadIdx.x) % kFours;
      add_parts(sum, sums + row * L::pitch + static_cast<int>(threadIdx.x) % kFours * 4, kComputing / kFours * L::pitch,
                parts + k, kPlace, job.rows * kFours - k, shared);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int r = row + u * (kComputing / kFours);
        if (r >= rows) break;
        float value[4] = {sum[u].x, sum[u].y, sum[u].z, sum[u].w};
        const bool there = r < job.rows, drops = r < job.drop.count;
        uint4 words = {};
        if (drops) words = job.drop.words(r, col / 8);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          value[c] += bias[c];
          if (job.relu) value[c] = fmaxf(value[c], 0.f);
          if (drops) value[c] = job.drop.apply(value[c], words, col + c);
          if (!there) value[c] = 0.f;
        }
        if (there) store_four(job.Y + static_cast<std::int64_t>(r) * job.Y_stride + col, value, job.out - col, job.even);
        if (job.made == nullptr) continue;
        Half* to = job.made + static_cast<std::int64_t>(col / kDeep) * terms * (kSheetRows * kDeep) + sheet_at(kDeep, r, col % kDeep);
#pragma unroll
        for (int term = 0; term < terms; ++term, to += kSheetRows * kDeep)
          *reinterpret_cast<uint2*>(to) = make_uint2(take_term(value[0], value[1]), take_term(value[2], value[3]));
      }
    }
  }
#endif
}

}  // namespace lacuna::cuda
