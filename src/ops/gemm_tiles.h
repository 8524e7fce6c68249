// The kernels of gemm_kernels.h, written once over a description `S` of an instruction set and compiled by
// each gemm_<isa>.cc with its own flags. Everything has internal linkage, so that no other file can pick up
// code that its machine cannot run.
//
// S gives Vector (kLanes floats), Words (what one load of panel words yields), load, store, their partial
// forms, load_words, broadcast_words, dot (dot_memory, where the first kFromMemory rows of a tile should take
// their factor from memory in the multiplying instruction itself), multiply_add, set, max, where_positive,
// root, quotient (within a rounding or two); and kRows x kColumns, the shape of a tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/gemm_kernels.h"
#include "ops/sparse_kernels.h"

namespace lacuna {
namespace {

// The sums of a tile go to C (M, n) as `end` says.
template <class S, std::size_t M, std::size_t kVectors>
[[gnu::always_inline]] inline void end_tile(const typename S::Vector (&sum)[M][kVectors], float* C,
                                            std::size_t stride, std::size_t n, const TileEnd& end) {
  if (n == kVectors * S::kLanes && !end.accumulate && end.bias == nullptr && !end.relu) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < M; ++i, C += stride)
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) S::store(C + v * S::kLanes, sum[i][v]);
    return;
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < M; ++i, C += stride)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) {
      if (n <= v * S::kLanes) continue;
      float* c = C + v * S::kLanes;
      const std::size_t rest = n - v * S::kLanes;
      typename S::Vector y = sum[i][v];
      if (rest >= S::kLanes) {
        if (end.accumulate) y += S::load(c);
        if (end.bias != nullptr) y += S::load(end.bias + v * S::kLanes);
        if (end.relu) y = S::max(y, S::set(0));
        S::store(c, y);
      } else {
        if (end.accumulate) y += S::load_some(c, rest);
        if (end.bias != nullptr) y += S::load_some(end.bias + v * S::kLanes, rest);
        if (end.relu) y = S::max(y, S::set(0));
        S::store_some(c, y, rest);
      }
    }
}

// A step of a tile: the sums of row i get the word of row i, at `left`, times b.
template <class S, std::size_t M, std::size_t kVectors>
[[gnu::always_inline]] inline void multiply_row(const std::uint32_t* left,
                                                const typename S::Words (&b)[kVectors],
                                                typename S::Vector (&sum)[M][kVectors]) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < M; ++i) {
    if constexpr (requires { S::kFromMemory; }) {
      if (i < S::kFromMemory) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = S::dot_memory(sum[i][v], left + i, b[v]);
        continue;
      }
    }
    const typename S::Words a = S::broadcast_words(left + i);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = S::dot(sum[i][v], a, b[v]);
  }
}

// The sums of a tile with M rows stay in registers while the panels stream by.
template <class S, std::size_t M, std::size_t kVectors>
[[gnu::always_inline]] inline void sum_panels(const PanelPair& panels, Ahead& ahead,
                                              typename S::Vector (&sum)[M][kVectors]) {
  const std::uint32_t *left = panels.left, *right = panels.right;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = S::set(0);
  const auto step = [&](std::size_t g) __attribute__((always_inline)) {
    typename S::Words b[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) b[v] = S::load_words(right + g * S::kColumns + v * S::kLanes);
    multiply_row<S>(left + g * S::kRows, b, sum);
  };
  std::size_t g = panels.words;
  for (; g >= Ahead::kTurn; g -= Ahead::kTurn) {
    ahead.fetch();
#pragma GCC unroll 1
    for (std::size_t s = 0; s < Ahead::kTurn; s += 2, left += 2 * S::kRows, right += 2 * S::kColumns) {
      step(0);
      step(1);
    }
  }
  if (g != 0) ahead.fetch();
  for (std::size_t s = 0; s < g; ++s) step(s);
}

template <class S, std::size_t M, std::size_t kVectors>
void fixed_tile(const PanelPair& panels, float* C, std::size_t stride, std::size_t n, const TileEnd& end,
                Ahead& ahead) {
  typename S::Vector sum[M][kVectors];
  sum_panels<S>(panels, ahead, sum);
  end_tile<S>(sum, C, stride, n, end);
}

template <class S, std::size_t M = S::kRows>
void tile(const PanelPair& panels, float* C, std::size_t stride, std::size_t m, std::size_t n,
          const TileEnd& end, Ahead& ahead) {
  if constexpr (M > 1)
    if (m < M) return tile<S, M - 1>(panels, C, stride, m, n, end, ahead);
  if (n <= S::kLanes)
    fixed_tile<S, M, 1>(panels, C, stride, n, end, ahead);
  else
    fixed_tile<S, M, S::kColumns / S::kLanes>(panels, C, stride, n, end, ahead);
}

// C (M, n) = A (M, depth) B (depth, n), both where they lie; kWhole: n fills all vectors; kPacked: A is
// packed after all, and rows of B begin with cache lines. C is asked for in the first steps if it is added
// to, then what comes after this tile.
template <class S, std::size_t M, std::size_t kVectors, bool kWhole, bool kPacked>
void fixed_lying_tile(const LyingTile& t, std::size_t n, const TileEnd& end, RowsAhead& ahead) {
  constexpr std::size_t kPointers = (M + 2) / 3;
  typename S::Vector sum[M][kVectors];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = S::set(0);
  const float* a[kPointers];  // every third row: the address of the others is one addition
  for (std::size_t p = 0; p < kPointers; ++p) a[p] = t.A + 3 * p * t.a_stride;
  const std::uint32_t* panel = t.panel;
  const float* b_row = t.B;
  const auto step = [&](std::size_t at) __attribute__((always_inline)) {
    typename S::Vector b[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v)
      b[v] = kWhole || v + 1 < kVectors ? S::load(b_row + v * S::kLanes)
                                        : S::load_some(b_row + v * S::kLanes, n - v * S::kLanes);
    b_row += t.b_stride;
    if constexpr (kPacked) return multiply_row<S>(panel + at * S::kRows, b, sum);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < M; ++i) {
      const typename S::Vector x = S::set(a[i / 3][i % 3 * t.a_stride + at]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = S::multiply_add(x, b[v], sum[i][v]);
    }
  };
  const auto go_on = [&](std::size_t steps) __attribute__((always_inline)) {
    if constexpr (kPacked) {
      panel += steps * S::kRows;
      return;
    }
#pragma GCC unroll 8
    for (std::size_t p = 0; p < kPointers; ++p) {
      a[p] += steps;
      asm("" : "+r"(a[p]));  // g++ would keep the pointers in a vector register and take them out again
    }
  };
  std::size_t k = 0;
  if (end.accumulate)
    for (; k < M && k < t.depth; ++k) {
      ask_for_row<S::kColumns, 3, false>(t.C + k * t.c_stride);
      step(0);
      go_on(1);
    }
  RowsAhead next = ahead;
  for (; kWhole && k + Ahead::kTurn <= t.depth; k += Ahead::kTurn) {
    next.ask<S::kColumns, kPacked>();
#pragma GCC unroll 1
    for (std::size_t s = 0; s < Ahead::kTurn; s += 2) {
      step(0);
      step(1);
      go_on(2);
    }
  }
  for (; k < t.depth; ++k) {
    step(0);
    go_on(1);
  }
  ahead = next;
  end_tile<S>(sum, t.C, t.c_stride, n, end);
}

template <class S, std::size_t M = S::kRows>
void lying_tile(const LyingTile& t, std::size_t m, std::size_t n, const TileEnd& end, RowsAhead& ahead) {
  constexpr std::size_t kVectors = S::kColumns / S::kLanes;
  static_assert(kVectors == 2);
  if constexpr (M > 1)
    if (m < M) return lying_tile<S, M - 1>(t, m, n, end, ahead);
  if (n == S::kColumns && t.panel != nullptr)
    fixed_lying_tile<S, M, 2, true, true>(t, n, end, ahead);
  else if (n == S::kColumns)
    fixed_lying_tile<S, M, 2, true, false>(t, n, end, ahead);
  else if (n > S::kLanes)
    fixed_lying_tile<S, M, 2, false, false>(t, n, end, ahead);
  else
    fixed_lying_tile<S, M, 1, false, false>(t, n, end, ahead);
}

// Four rows of W at a time, so that Y is read and written once for four steps of the sum.
template <class S, class Elements>
void direct(const float* X, std::size_t x_stride, const float* W, std::size_t w_stride, std::size_t depth,
            float* Y, std::size_t y_stride, std::size_t m, std::size_t n) {
  const auto sweep = [&]<std::size_t kSteps>(std::size_t k) {
    const auto column = [&](auto load, auto load_y, auto store_y, std::size_t j) {
      typename S::Vector w[kSteps];
      for (std::size_t s = 0; s < kSteps; ++s) w[s] = Elements::round(load(W + (k + s) * w_stride + j));
      for (std::size_t r = 0; r < m; ++r) {
        float* y = Y + r * y_stride + j;
        typename S::Vector sum = load_y(y);
        for (std::size_t s = 0; s < kSteps; ++s)
          sum = S::multiply_add(S::set(X[r * x_stride + k + s]), w[s], sum);
        store_y(y, sum);
      }
    };
    std::size_t j = 0;
    for (; j + S::kLanes <= n; j += S::kLanes) column(S::load, S::load, S::store, j);
    if (const std::size_t rest = n - j; rest != 0) {
      const auto load = [rest](const float* p) { return S::load_some(p, rest); };
      column(
          load, load, [rest](float* p, typename S::Vector v) { S::store_some(p, v, rest); }, j);
    }
  };
  std::size_t k = 0;
  for (; k + 4 <= depth; k += 4) sweep.template operator()<4>(k);
  for (; k < depth; ++k) sweep.template operator()<1>(k);
}

template <class S, class Elements>
void round(const float* from, std::size_t n, float* to) {
  std::size_t j = 0;
  for (; j + S::kLanes <= n; j += S::kLanes) S::store(to + j, Elements::round(S::load(from + j)));
  if (const std::size_t rest = n - j; rest != 0)
    S::store_some(to + j, Elements::round(S::load_some(from + j, rest)), rest);
}

template <class S>
void finish(float* Y, std::size_t stride, std::size_t m, std::size_t n, const float* bias, bool relu) {
  for (std::size_t j = 0; j < n; j += S::kLanes) {
    const std::size_t count = n - j < S::kLanes ? n - j : S::kLanes;
    const typename S::Vector b = bias == nullptr ? S::set(0) : S::load_some(bias + j, count);
    for (std::size_t i = 0; i < m; ++i) {
      float* y = Y + i * stride + j;
      const bool whole = count == S::kLanes;
      typename S::Vector v = (whole ? S::load(y) : S::load_some(y, count)) + b;
      if (relu) v = S::max(v, S::set(0));
      if (whole)
        S::store(y, v);
      else
        S::store_some(y, v, count);
    }
  }
}

template <class S>
void keep(const float* from, std::size_t from_stride, const float* X, std::size_t x_stride, std::size_t m,
          std::size_t n, float* out, std::size_t out_stride) {
  for (std::size_t i = 0; i < m; ++i, from += from_stride, out += out_stride) {
    std::size_t j = 0;
    for (; j + S::kLanes <= n; j += S::kLanes) {
      const typename S::Vector v = S::load(from + j);
      S::store(out + j, X == nullptr ? v : S::where_positive(S::load(X + i * x_stride + j), v));
    }
    if (const std::size_t rest = n - j; rest != 0) {
      const typename S::Vector v = S::load_some(from + j, rest);
      S::store_some(out + j,
                    X == nullptr ? v : S::where_positive(S::load_some(X + i * x_stride + j, rest), v), rest);
    }
  }
}

enum class Formula { sgd, adam, rmsprop };

template <class S, Formula kFormula, bool kMean>
void update_rows(const UpdateCoefficients<float>& coefficients, const float* gradient, std::size_t stride,
                 std::size_t m, std::size_t n, const Kernels::Parameters& p) {
  using Vector = typename S::Vector;
  constexpr bool kSgd = kFormula == Formula::sgd;
  const UpdateCoefficients<float> k = coefficients;  // a copy of its own, which no store can change
  for (std::size_t i = 0; i < m; ++i) {
    const float* const gradients = gradient + i * stride;
    float* const values = p.value + i * p.value_stride;
    float* const firsts = p.first + i * p.first_stride;
    float* const seconds = kSgd ? nullptr : p.second + i * p.second_stride;
    float* const means = kMean ? p.mean + i * p.mean_stride : nullptr;
    const auto column = [&](auto load, auto store, std::size_t j) {
      const Vector g = load(gradients + j);
      Vector w = load(values + j), first = load(firsts + j), second, mean;
      if constexpr (!kSgd) second = load(seconds + j);
      if constexpr (kMean) mean = load(means + j);
      if constexpr (kSgd) {
        sgd_update(k, g, w, first);
      } else {
        if constexpr (kFormula == Formula::adam)
          adam_update(k, g, w, first, second, S::root, S::quotient);
        else
          rmsprop_update(k, g, w, first, second, S::root, S::quotient);
        store(seconds + j, second);
      }
      store(values + j, w);
      store(firsts + j, first);
      if constexpr (kMean) {
        average_update(k, w, mean);
        store(means + j, mean);
      }
    };
    std::size_t j = 0;
    for (; j + S::kLanes <= n; j += S::kLanes) column(S::load, S::store, j);
    if (const std::size_t rest = n - j; rest != 0)
      column([rest](const float* q) { return S::load_some(q, rest); },
             [rest](float* q, Vector v) { S::store_some(q, v, rest); }, j);
  }
}

template <class S>
void update(const UpdateCoefficients<float>& k, const float* gradient, std::size_t stride, std::size_t m,
            std::size_t n, const Kernels::Parameters& p) {
  const auto rows = [&]<Formula kFormula>() {
    if (p.mean == nullptr)
      update_rows<S, kFormula, false>(k, gradient, stride, m, n, p);
    else
      update_rows<S, kFormula, true>(k, gradient, stride, m, n, p);
  };
  if (k.optimiser == Optimiser::sgd)
    rows.template operator()<Formula::sgd>();
  else if (k.optimiser == Optimiser::rmsprop)
    rows.template operator()<Formula::rmsprop>();
  else
    rows.template operator()<Formula::adam>();
}

// SGD with momentum, of M rows of whole vectors, with the sums still in registers.
template <class S, std::size_t M>
void fixed_sgd_tile(const PanelPair& panels, const UpdateCoefficients<float>& coefficients,
                    const Kernels::Parameters& p, Ahead& ahead) {
  constexpr std::size_t kVectors = S::kColumns / S::kLanes;
  using Vector = typename S::Vector;
  const UpdateCoefficients<float> k = coefficients;
  Vector sum[M][kVectors];
  sum_panels<S>(panels, ahead, sum);
  float *values = p.value, *firsts = p.first;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < M; ++i, values += p.value_stride, firsts += p.first_stride)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) {
      Vector w = S::load(values + v * S::kLanes), first = S::load(firsts + v * S::kLanes);
      sgd_update(k, sum[i][v], w, first);
      S::store(values + v * S::kLanes, w);
      S::store(firsts + v * S::kLanes, first);
    }
}

template <class S, std::size_t M = S::kRows>
void sgd_tile(const PanelPair& panels, const UpdateCoefficients<float>& k, const Kernels::Parameters& p,
              std::size_t m, std::size_t n, Ahead& ahead) {
  if constexpr (M > 1)
    if (m < M) return sgd_tile<S, M - 1>(panels, k, p, m, n, ahead);
  if (n == S::kColumns) return fixed_sgd_tile<S, M>(panels, k, p, ahead);
  float gradient[M * S::kColumns];
  tile<S, M>(panels, gradient, S::kColumns, M, n, {}, ahead);
  update_rows<S, Formula::sgd, false>(k, gradient, S::kColumns, M, n, p);
}

template <class S, class Elements>
constexpr decltype(Kernels::lying_tile) lying_tile_of() {
  if constexpr (Elements::kAsIs) return lying_tile<S>;
  return nullptr;
}

// The table of an instruction set whose left and right panels look alike; `Pack` gives across<pitch> and
// along<pitch>.
template <class S, class Elements, class Pack>
constexpr Kernels make_kernels(std::size_t factors, std::size_t depth) {
  return {.factors = factors,
          .words = 1,
          .rows = S::kRows,
          .columns = S::kColumns,
          .side = 1,
          .depth = depth,
          .packed_depth = kAllDepth,
          .inputs = 32,
          .outputs = depth,
          .weights_left = false,
          .left_across = Pack::template across<S::kRows>,
          .left_along = Pack::template along<S::kRows>,
          .right_across = Pack::template across<S::kColumns>,
          .right_along = Pack::template along<S::kColumns>,
          .tile = tile<S>,
          .sgd_tile = sgd_tile<S>,
          .lying_tile = lying_tile_of<S, Elements>(),
          .direct = direct<S, Elements>,
          .finish = finish<S>,
          .keep = keep<S>,
          .update = update<S>,
          .round = round<S, Elements>,
          .scatter = scatter<S, Elements>,
          .gate = gate<S>,
          .combine = combine<S>};
}

}  // namespace
}  // namespace lacuna
