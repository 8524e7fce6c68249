// Backward of linear layers with streaming weights: a unit is a tile of 64 rows of W and of its state. dX = dY Wᵀ and
// dW = Xᵀ dY come from the same registers, and the optimiser's step is dW's epilogue, which writes the weights back.
#pragma once

#include "cuda/stream.cuh"

namespace lacuna::cuda {

constexpr int kOwned = 64;      // rows of W in a unit
constexpr int kBackwardEnd = 2;  // units that ending a sum takes as long as

struct BackwardPart {
  const Half *X, *dY;  // sheets of 64 columns in the order of row_at(), and as wide as a unit in that of column_at()
  const float* plain_X;
  float* dX;
  Learned W;
  int X_stride, dX_stride, rows, in, out;
  int length, span;  // units of a row of units, and the places that it takes
  bool mask, even;   // even: rows of X and dX begin on 16 bytes
  float scale;
  int scaled;  // rows
  int* counters;
};

// Of 16 columns of dY the one at a place: a lane, which has two neighbours of eight places, gets four neighbours.
__host__ __device__ inline int column_at(int place) { return place % 8 / 2 * 4 + place / 8 * 2 + place % 2; }

// Of 16 columns of X, which are rows of W, the one at a place: lanes that read at once read rows that are four apart.
__host__ __device__ inline int row_at(int place) { return place / 8 * 8 + place % 8 / 2 + place % 2 * 4; }

template <int row_tiles, int planes, int terms>
struct BackwardLayout {
  static constexpr int width = planes == 2 && terms == 1 ? 64 : 32, rows = row_tiles * 16, boxes = width / kBoxCols;
  static constexpr int weights = planes * boxes * kBox;
  static constexpr int dY_term = sheet_bytes(rows, width), X_term = sheet_bytes(rows, kOwned);
  static constexpr int stage = weights + terms * dY_term;
  static constexpr int sums_pitch = kOwned + 4, sums = rows * sums_pitch * 4;
  static constexpr int rest = terms * X_term + sums + kBarriers * 8;
  static constexpr int stages = (kStreamMemory - rest) / stage < 8 ? (kStreamMemory - rest) / stage : 8;
  static constexpr int bytes = stages * stage + rest;
  static_assert(stages >= 2);
};

template <int row_tiles, int planes, int terms>
__global__ void __launch_bounds__(kStreamThreads, 1)
    stream_backward_kernel(const __grid_constant__ Maps<planes> maps, const __grid_constant__ Jobs<BackwardPart> jobs,
                           float* partial) {
  using L = BackwardLayout<row_tiles, planes, terms>;
#if LACUNA_STREAMS
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned char *const sheets = memory + L::stages * L::weights, *const X_memory = memory + L::stages * L::stage;
  auto* const sums = reinterpret_cast<float*>(X_memory + terms * L::X_term);
  auto* const full = reinterpret_cast<std::uint64_t*>(memory + L::bytes) - kBarriers;
  std::uint64_t *const empty = full + L::stages, *const X_full = empty + L::stages, *const X_empty = X_full + 1;
  auto* const last = reinterpret_cast<int*>(X_empty + 1);
  const int units = jobs.first[jobs.count], blocks = static_cast<int>(gridDim.x), me = static_cast<int>(blockIdx.x);
  const auto share = share_of(me, blocks, units);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < L::stages; ++s) {
      init_barrier(full + s, 1);
      init_barrier(empty + s, kComputing);
    }
    init_barrier(X_full, 1);
    init_barrier(X_empty, kComputing);
    publish_barriers();
  }
  __syncthreads();

  if (warp == kComputing / 32) {  // loads
    const auto load_weights = [&](int at, int count) {
      const Place<BackwardPart> place(jobs, at);
      const int s = count % L::stages;
      if (lane == 0) arrive_and_expect(full + s, L::stage);
      __syncwarp();
      if (lane < planes * L::boxes)
        load_box(memory + s * L::weights + lane * kBox, &maps.map[&place.job - jobs.job][lane / L::boxes], place.sum * kOwned,
                 place.unit * L::width + lane % L::boxes * kBoxCols, full + s);
    };
    int row_begin = -1, rows = 0;  // where the row of units begins whose X is or will be there, and how many there have been
    const auto load_sheets = [&](int at, int count) {
      const Place<BackwardPart> place(jobs, at);
      const int s = count % L::stages;
      if (lane == 0)
        load_bulk(sheets + s * terms * L::dY_term, place.job.dY + static_cast<std::int64_t>(place.unit) * terms * (L::dY_term / 2),
                  terms * L::dY_term, full + s);
      if (at - place.unit == row_begin) return;
      row_begin = at - place.unit;
      if (lane == 0) {
        if (rows > 0) wait_for(X_empty, rows - 1);
        arrive_and_expect(X_full, terms * L::X_term);
        load_bulk(X_memory, place.job.X + static_cast<std::int64_t>(place.sum) * terms * (L::X_term / 2), terms * L::X_term,
                  X_full);
      }
      __syncwarp();
      ++rows;
    };
    const int begin = next_unit(jobs, share.begin, share.end);
    int at = begin, count = 0;
    for (; at < share.end && count < L::stages; at = next_unit(jobs, at + 1, share.end)) load_weights(at, count++);
    in_order();
    for (int early = begin, k = 0; k < count; early = next_unit(jobs, early + 1, share.end)) load_sheets(early, k++);
    for (; at < share.end; at = next_unit(jobs, at + 1, share.end), ++count) {
      wait_for(empty + count % L::stages, count / L::stages - 1);
      load_weights(at, count);
      load_sheets(at, count);
    }
    return;
  }

  in_order();
  constexpr int kHalf = L::width / 2, kGroups = kHalf / 16, kPitch = L::width + kSheetPad;
  const int quad = lane / 4, pair = lane % 4;
  const int i_tile = warp % 4 * 16, j_part = warp / 4 * kHalf, own_row = i_tile + row_at(quad);
  int unit = next_unit(jobs, share.begin, share.end), count = 0;
  for (int owner = 0; unit < share.end; ++owner) {  // rows of units
    const Place<BackwardPart> place(jobs, unit);
    const BackwardPart& job = place.job;
    const int own = place.sum, i0 = own * kOwned, row_begin = unit - place.unit, row_end = row_begin + job.length;
    const int begin = unit, end = min(share.end, row_end), tiles = (job.rows + 15) / 16, eights = (job.rows + 7) / 8;
    float* const state[4] = {job.W.w, job.W.m, planes == 4 || job.W.mean == nullptr ? job.W.v : job.W.mean, job.W.mean};

    std::uint32_t Xt[terms][row_tiles][4];  // Xᵀ of this warp's rows of W: the left factor of dW
    wait_for(X_full, owner);
#pragma unroll
    for (int term = 0; term < terms; ++term)
#pragma unroll
      for (int t = 0; t < row_tiles; ++t)
        load_matrices_transposed(Xt[term][t], reinterpret_cast<const Half*>(X_memory + term * L::X_term) +
                                                 (t * 16 + lane / 16 * 8 + lane % 8) * (kOwned + kSheetPad) + i_tile +
                                                 lane / 8 % 2 * 8);
    __syncwarp();
    arrive(X_empty);

    float dX[row_tiles * 2][4] = {};
    for (; unit < end; ++unit, ++count) {
      const int s = count % L::stages, j0 = (unit - row_begin) * L::width + j_part;
      const unsigned char* const weights = memory + s * L::weights;
      wait_for(full + s, count / L::stages);
      const auto four = [&](int p, int g, int h) {
        return swizzled(weights + (p * L::boxes + j_part / kBoxCols) * kBox, own_row + h * 8,
                        j_part % kBoxCols / 4 + g * 4 + pair);
      };
      float w[kGroups][2][4];
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int h = 0; h < 2; ++h) *reinterpret_cast<float4*>(w[g][h]) = *four(0, g, h);
      const auto sheet = [&](int term) {
        return reinterpret_cast<const Half*>(sheets + (s * terms + term) * L::dY_term) + j_part;
      };
      if (job.dX != nullptr) {
        std::uint32_t a[terms][kGroups][4];
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            float low = w[g][c % 2][c / 2 * 2], high = w[g][c % 2][c / 2 * 2 + 1];
#pragma unroll
            for (int term = 0; term < terms; ++term) a[term][g][c] = terms == 1 ? pack(low, high) : take_term(low, high);
          }
        // 16 rows of the batch at a time: 8 rows and 32 places of each of two fetches, or 16 and 16 of one.
#pragma unroll
        for (int n = 0; n < row_tiles * 2; n += 2) {
          if (n >= eights) break;
          std::uint32_t b[kGroups][terms][4];
#pragma unroll
          for (int k = 0; k < kGroups; ++k)
#pragma unroll
            for (int term = 0; term < terms; ++term)
              load_matrices(b[k][term], sheet(term) + (kGroups == 2
                                                           ? ((n + k) * 8 + lane % 8) * kPitch + lane / 8 * 8
                                                           : (n * 8 + lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 8));
#pragma unroll
          for (int product = 0; product < kProducts<terms>; ++product) {
            const auto& factor = a[left_term<terms>(product)];
            const int term = right_term<terms>(product);
            multiply(dX[n], factor[0], b[0][term][0], b[0][term][1]);
            multiply(dX[n + 1], factor[0], b[kGroups - 1][term][4 - 2 * kGroups], b[kGroups - 1][term][5 - 2 * kGroups]);
            if constexpr (kGroups == 2) {
              multiply(dX[n], factor[1], b[0][term][2], b[0][term][3]);
              multiply(dX[n + 1], factor[1], b[1][term][2], b[1][term][3]);
            }
          }
        }
      }
      float dW[kGroups][2][4] = {};
#pragma unroll
      for (int t = 0; t < row_tiles; ++t) {
        if (t >= tiles) break;
        std::uint32_t b[kGroups][terms][4];
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
#pragma unroll
          for (int term = 0; term < terms; ++term)
            load_matrices_transposed(
                b[g][term], sheet(term) + (t * 16 + lane / 8 % 2 * 8 + lane % 8) * kPitch + g * 16 + lane / 16 * 8);
#pragma unroll
        for (int product = 0; product < kProducts<terms>; ++product)
#pragma unroll
          for (int g = 0; g < kGroups; ++g) {
            const auto& rows = b[g][right_term<terms>(product)];
            multiply(dW[g][0], Xt[left_term<terms>(product)][t], rows[0], rows[1]);
            multiply(dW[g][1], Xt[left_term<terms>(product)][t], rows[2], rows[3]);
          }
      }
      float others[kGroups][2][3][4];
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int p = 1; p < planes; ++p) *reinterpret_cast<float4*>(others[g][h][p - 1]) = *four(p, g, h);
      __syncwarp();
      arrive(empty + s);
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int i = i0 + own_row + h * 8, j = j0 + g * 16 + pair * 4;
          auto& rest = others[g][h];
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const float gradient = dW[g][c / 2][h * 2 + c % 2];
            if (job.W.step.optimiser == Optimiser::sgd) {
              job.W.step.sgd(gradient, w[g][h][c], rest[0][c]);
              if (planes == 3) rest[1][c] += job.W.step.rest_average * (w[g][h][c] - rest[1][c]);
            } else if (planes >= 3) {
              job.W.step.adam(gradient, w[g][h][c], rest[0][c], rest[1][c]);
              if (planes == 4) rest[2][c] += job.W.step.rest_average * (w[g][h][c] - rest[2][c]);
            }
          }
          if (i >= job.in || j >= job.out) continue;
          const std::int64_t to = static_cast<std::int64_t>(i) * job.W.stride + j;
#pragma unroll
          for (int p = 0; p < planes; ++p) {
            const float(&values)[4] = p == 0 ? w[g][h] : rest[p - 1];
            if (j + 3 < job.out) {
              *reinterpret_cast<float4*>(state[p] + to) = *reinterpret_cast<const float4*>(values);
            } else {
#pragma unroll
              for (int c = 0; c < 3; ++c)
                if (j + c < job.out) state[p][to + c] = values[c];
            }
          }
        }
    }
    if (unit == row_end) unit = row_begin + job.span;
    if (job.dX == nullptr) continue;

    // The two halves of the columns are added in shared memory, then the parts of other blocks in their order.
    const auto at_sums = [&](int n, int c) {
      return sums + (n * 8 + pair * 2 + c % 2) * L::sums_pitch + own_row + c / 2 * 8;
    };
    wait_for_computing();
    if (warp >= 4)
#pragma unroll
      for (int n = 0; n < row_tiles * 2; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) *at_sums(n, c) = dX[n][c];
    wait_for_computing();
    if (warp < 4)
#pragma unroll
      for (int n = 0; n < row_tiles * 2; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) *at_sums(n, c) += dX[n][c];
    wait_for_computing();
    constexpr int kFours = kOwned / 4, kPlace = L::rows * kFours;
    auto* const parts = reinterpret_cast<float4*>(partial);
    const SharedSum shared(row_begin, row_end, blocks, units);
    if (shared.parts > 1) {
      const std::int64_t mine = static_cast<std::int64_t>(2 * me + (share.begin < begin ? 1 : 0)) * kPlace;
      for (int k = static_cast<int>(threadIdx.x); k < job.rows * kFours; k += kComputing)
        parts[mine + k] = *reinterpret_cast<const float4*>(sums + k / kFours * L::sums_pitch + k % kFours * 4);
      if (!computing_come_last(job.counters + own, shared.parts, last)) continue;
    }
    const int i = i0 + static_cast<int>(threadIdx.x) % kFours * 4;  // a thread's own, in all rows
    if (i >= job.in) continue;
    constexpr int kStep = kComputing / kFours, kAtOnce = (row_tiles + 1) / 2;  // rows whose parts are on their way together
    for (int first = static_cast<int>(threadIdx.x) / kFours; first < job.rows; first += kAtOnce * kStep) {
      float x[kAtOnce][4];
      if (job.mask)
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u)
          if (first + u * kStep < job.rows)
            load_four(x[u], job.plain_X + static_cast<std::int64_t>(first + u * kStep) * job.X_stride + i, job.in - i,
                      job.even);
      float4 sum[kAtOnce];
      const int k = first * kFours + static_cast<int>(threadIdx.x) % kFours;
      add_parts(sum, sums + first * L::sums_pitch + k % kFours * 4, kStep * L::sums_pitch, parts + k, kPlace,
                job.rows * kFours - k, shared);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int row = first + u * kStep;
        if (row >= job.rows) break;
        float value[4] = {sum[u].x, sum[u].y, sum[u].z, sum[u].w};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (job.mask && !(x[u][c] > 0)) value[c] = 0.f;
          if (row < job.scaled) value[c] *= job.scale;
        }
        store_four(job.dX + static_cast<std::int64_t>(row) * job.dX_stride + i, value, job.in - i, job.even);
      }
    }
  }
#endif
}

}  // namespace lacuna::cuda
