// Backward of linear layers with streaming weights: a unit is a tile of 64 rows of W and of its state. dX = dY Wᵀ and
// dW = Xᵀ dY come from the same registers, and the optimiser's step is dW's epilogue, which writes the weights back.
#pragma once

#include "cuda/stream.cuh"

namespace lacuna::cuda {

constexpr int kOwned = 64;      // rows of W in a unit
constexpr int kBackwardEnd = 4;  // units that ending a sum takes as long as

struct BackwardPart {
  const Half *X, *dY;  // sheets of 64 columns, and as wide as a unit in the order of column_at()
  Half* made;          // those of dX, or null
  float* made_sums;    // of the columns of dX
  const float* sums;   // of those of dY, from which b learns here; or null
  const float* plain_X;
  float* dX;
  Learned W, b;
  int X_stride, dX_stride, rows, in, out;
  int length, span;  // units of a row of units, and the places that it takes
  bool mask, even;   // even: rows of X and dX begin on 16 bytes
  float scale;
  int scaled;  // rows
  int* counters;
};

// Of 16 columns of dY the one at a place: a lane, which has two neighbours of eight places, gets four neighbours.
__host__ __device__ inline int column_at(int place) { return place % 8 / 2 * 4 + place / 8 * 2 + place % 2; }

template <int row_tiles, int planes, int terms>
struct BackwardLayout {
  static constexpr int width = planes == 2 && terms == 1 ? 64 : 32, rows = row_tiles * 16, boxes = width / kBoxCols;
  static constexpr int weights = planes * boxes * kBox;
  static constexpr int dY_term = rows * width * 2, X_term = rows * kOwned * 2;
  static constexpr int X_places = terms == 1 ? 2 : 1;  // of X for a row of units and the next one
  static constexpr int stage = weights + terms * dY_term;
  static constexpr int sums_pitch = kOwned + 4, sums = rows * sums_pitch * 4;
  static constexpr int rest = X_places * terms * X_term + sums + kBarriers * 8;
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
  auto* const sums = reinterpret_cast<float*>(X_memory + L::X_places * terms * L::X_term);
  auto* const full = reinterpret_cast<std::uint64_t*>(memory + L::bytes) - kBarriers;
  std::uint64_t *const empty = full + L::stages, *const X_full = empty + L::stages, *const X_empty = X_full + L::X_places;
  auto* const last = reinterpret_cast<int*>(X_empty + L::X_places);
  const int units = jobs.first[jobs.count], blocks = static_cast<int>(gridDim.x), me = static_cast<int>(blockIdx.x);
  const auto share = share_of(me, blocks, units);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < L::stages; ++s) {
      init_barrier(full + s, 1);
      init_barrier(empty + s, kComputing + L::boxes);
    }
    for (int p = 0; p < L::X_places; ++p) {
      init_barrier(X_full + p, 1);
      init_barrier(X_empty + p, kComputing);
    }
    publish_barriers();
  }
  __syncthreads();

  if (warp == kComputing / 32) {  // loads
    using Units = Cursor<BackwardPart>;
    const auto load_weights = [&](const Units& u, int s) {
      if (lane == 0) arrive_and_expect(full + s, L::weights + terms * padded(u.part().rows) * L::width * 2);
      __syncwarp();
      if (lane < planes * L::boxes)
        load_box(memory + s * L::weights + lane * kBox, &maps.map[u.job][lane / L::boxes], u.sum * kOwned,
                 u.unit * L::width + lane % L::boxes * kBoxCols, full + s);
    };
    int row_begin = -1, rows = 0;  // where the row of units begins whose X is or will be there, and how many there have been
    const auto load_sheets = [&](const Units& u, int s) {
      const int there = padded(u.part().rows);
      if (lane < terms && there > 0)
        load_bulk(sheets + (s * terms + lane) * L::dY_term,
                  u.part().dY + (static_cast<std::int64_t>(u.unit) * terms + lane) * (kSheetRows * L::width), there * L::width * 2,
                  full + s);
      __syncwarp();
      if (u.sum_begin() == row_begin) return;
      row_begin = u.sum_begin();
      const int place = rows % L::X_places;
      if (rows >= L::X_places) wait_for(X_empty + place, rows / L::X_places - 1);
      if (lane == 0) arrive_and_expect(X_full + place, terms * there * kOwned * 2);
      __syncwarp();
      if (lane < terms && there > 0)
        load_bulk(X_memory + (place * terms + lane) * L::X_term,
                  u.part().X + (static_cast<std::int64_t>(u.sum) * terms + lane) * (kSheetRows * kOwned), there * kOwned * 2,
                  X_full + place);
      __syncwarp();
      ++rows;
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
  constexpr int kHalf = L::width / 2, kGroups = kHalf / 16;
  const int quad = lane / 4, pair = lane % 4;
  const int i_tile = warp % 4 * 16, j_part = warp / 4 * kHalf, own_row = i_tile + quad;
  for (int k = 0, c = me * kComputing + static_cast<int>(threadIdx.x); k < jobs.count; ++k) {
    const BackwardPart& job = jobs.job[k];
    if (job.sums == nullptr) continue;
    for (; c < job.out; c += blocks * kComputing) job.b.update(c, __ldcg(job.sums + c));
    c -= job.out;
  }
  // The warps whose weights lie in one box; one of their threads stores it.
  constexpr int kTogether = kComputing / L::boxes;
  const int box = j_part / kBoxCols;
  const bool stores = static_cast<int>(threadIdx.x) % kTogether == 0;
  const bool odd = kGroups == 2 && quad % 2 != 0;  // such lanes take the two groups the other way round, for the banks' sake
  int s = 0, round = 0, at = share.begin, stored = -1;  // stored: the stage whose boxes are on their way
  for (int owner = 0, k; (k = first_unit(jobs, at, share.end)) >= 0; ++owner) {  // rows of units
    const BackwardPart& job = jobs.job[k];
    const int own = (at - jobs.first[k]) / job.span, i0 = own * kOwned;
    const int row_begin = jobs.first[k] + own * job.span, row_end = row_begin + job.length;
    const int begin = at, end = min(share.end, row_end), tiles = (job.rows + 15) / 16, eights = (job.rows + 7) / 8;
    at = row_begin + job.span;
    const int X_place = owner % L::X_places;
    wait_for(X_full + X_place, owner / L::X_places);
    float dX[row_tiles * 2][4] = {};
    for (int unit = begin; unit < end; ++unit) {
      unsigned char* const weights = memory + s * L::weights;
      wait_for(full + s, round);
      const auto four = [&](int p, int g, int h) {
        return const_cast<float4*>(swizzled(weights + (p * L::boxes + box) * kBox, own_row + h * 8,
                                            j_part % kBoxCols / 4 + (g ^ static_cast<int>(odd)) * 4 + pair));
      };
      float w[kGroups][2][4];
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int h = 0; h < 2; ++h) *reinterpret_cast<float4*>(w[g][h]) = *four(0, g, h);
      const auto sheet = [&](int term) {
        return reinterpret_cast<const Half*>(sheets + (s * terms + term) * L::dY_term);
      };
      const auto at = [&](int row, int col) { return sheet_at(L::width, row, j_part + col); };
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
        if constexpr (kGroups == 2) {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const std::uint32_t first = a[0][0][c], second = a[0][1][c];
            a[0][0][c] = odd ? second : first;
            a[0][1][c] = odd ? first : second;
          }
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
              load_matrices(b[k][term], sheet(term) + (kGroups == 2 ? at((n + k) * 8 + lane % 8, lane / 8 * 8)
                                                                    : at(n * 8 + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8)));
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
        std::uint32_t Xt[terms][4], b[kGroups][terms][4];  // Xᵀ of this warp's rows of W is the left factor
#pragma unroll
        for (int term = 0; term < terms; ++term)
          load_matrices_transposed(Xt[term], reinterpret_cast<const Half*>(X_memory + (X_place * terms + term) * L::X_term) +
                                                 sheet_at(kOwned, t * 16 + lane / 16 * 8 + lane % 8, i_tile + lane / 8 % 2 * 8));
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
#pragma unroll
          for (int term = 0; term < terms; ++term)
            load_matrices_transposed(b[g][term], sheet(term) + at(t * 16 + lane / 8 % 2 * 8 + lane % 8, g * 16 + lane / 16 * 8));
#pragma unroll
        for (int product = 0; product < kProducts<terms>; ++product)
#pragma unroll
          for (int g = 0; g < kGroups; ++g) {
            const auto& rows = b[g][right_term<terms>(product)];
            multiply(dW[g][0], Xt[left_term<terms>(product)], rows[0], rows[1]);
            multiply(dW[g][1], Xt[left_term<terms>(product)], rows[2], rows[3]);
          }
      }
      float others[kGroups][2][3][4];
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int p = 1; p < planes; ++p) *reinterpret_cast<float4*>(others[g][h][p - 1]) = *four(p, g, h);
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          auto& rest = others[g][h];
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const float gradient = odd ? dW[kGroups - 1 - g][c / 2][h * 2 + c % 2] : dW[g][c / 2][h * 2 + c % 2];
            if (job.W.step.optimiser == Optimiser::sgd) {
              job.W.step.sgd(gradient, w[g][h][c], rest[0][c]);
              if (planes == 3) rest[1][c] += job.W.step.rest_average * (w[g][h][c] - rest[1][c]);
            } else if (planes >= 3) {
              job.W.step.adam(gradient, w[g][h][c], rest[0][c], rest[1][c]);
              if (planes == 4) rest[2][c] += job.W.step.rest_average * (w[g][h][c] - rest[2][c]);
            }
          }
          *four(0, g, h) = *reinterpret_cast<const float4*>(w[g][h]);
#pragma unroll
          for (int p = 1; p < planes; ++p) *four(p, g, h) = *reinterpret_cast<const float4*>(rest[p - 1]);
        }
      // New weights leave from where the old ones arrived. A stage is free when all have read it and what left it is gone.
      show_to_copies();
      arrive(empty + s);
      asm volatile("bar.sync %0, %1;\n" ::"r"(2 + box), "n"(kTogether) : "memory");
      if (stores) {
#pragma unroll
        for (int p = 0; p < planes; ++p)
          store_box(&maps.map[k][p], i0, (unit - row_begin) * L::width + box * kBoxCols, weights + (p * L::boxes + box) * kBox);
        end_stores();
        if (stored >= 0) {
          wait_for_stores_read<1>();
          arrive(empty + stored);
        }
        stored = s;
      }
      if (++s == L::stages) s = 0, ++round;
    }
    __syncwarp();
    arrive(X_empty + X_place);
    if (stores && stored >= 0) {
      wait_for_stores_read<0>();
      arrive(empty + stored);
      stored = -1;
    }
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
    constexpr int kStep = kComputing / kFours, kAtOnce = (row_tiles + 1) / 2;  // rows whose parts are on their way together
    const int rows = job.made != nullptr ? padded(job.rows) : job.rows;
    float4 all = make_float4(0, 0, 0, 0);
    for (int first = static_cast<int>(threadIdx.x) / kFours; first < rows; first += kAtOnce * kStep) {
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
        if (row >= rows) break;
        const bool there = row < job.rows;
        float value[4] = {sum[u].x, sum[u].y, sum[u].z, sum[u].w};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (!there || i + c >= job.in || (job.mask && !(x[u][c] > 0))) value[c] = 0.f;
          if (row < job.scaled) value[c] *= job.scale;
        }
        if (there) store_four(job.dX + static_cast<std::int64_t>(row) * job.dX_stride + i, value, job.in - i, job.even);
        if (job.made == nullptr) continue;
        all.x += value[0], all.y += value[1], all.z += value[2], all.w += value[3];
        // Columns 4a ... + 3 of 16 lie at places 2a, 2a + 1 and eight behind: column_at().
        Half* to = job.made + static_cast<std::int64_t>(i / L::width) * terms * (kSheetRows * L::width);
        const int place = i % L::width / 16 * 16 + i % 16 / 2;
#pragma unroll
        for (int term = 0; term < terms; ++term, to += kSheetRows * L::width) {
          *reinterpret_cast<std::uint32_t*>(to + sheet_at(L::width, row, place)) = take_term(value[0], value[1]);
          *reinterpret_cast<std::uint32_t*>(to + sheet_at(L::width, row, place + 8)) = take_term(value[2], value[3]);
        }
      }
    }
    if (job.made == nullptr) continue;
    wait_for_computing();
    *reinterpret_cast<float4*>(sums + threadIdx.x * 4) = all;
    wait_for_computing();
    if (threadIdx.x < kOwned && i0 + static_cast<int>(threadIdx.x) < job.in) {
      float sum = 0;
#pragma unroll
      for (int g = 0; g < kStep; ++g) sum += sums[g * kOwned + static_cast<int>(threadIdx.x)];
      job.made_sums[i0 + static_cast<int>(threadIdx.x)] = sum;
    }
  }
  if (stores) wait_for_stores();
#endif
}

}  // namespace lacuna::cuda
