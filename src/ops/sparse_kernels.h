// The inner loops of layers that leave zeros out, over the description `S` of an instruction set: two of a
// first layer from sparse inputs (sparse.h), one of layers whose input has been through ReLU (gemm_gated.cc).
// Internal linkage, see gemm_tiles.h.
#pragma once

#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

// Y (rows, kSparseStrip) += X W for n columns of W: a row of W stays in registers while it meets the entries
// of its column, and a strip of Y in the nearest cache.
template <class S, class Elements, bool kWhole>
void scatter_strip(const SparseColumns& X, const float* W, std::size_t stride, std::size_t n, float* Y) {
  constexpr std::size_t kVectors = kSparseStrip / S::kLanes, kSoon = 64;  // rows of W asked for ahead
  using Vector = typename S::Vector;
  Vector sum[kVectors];  // of β W over the columns so far
#pragma GCC unroll 16
  for (std::size_t v = 0; v < kVectors; ++v) sum[v] = S::set(0);
  const SparseColumns::Border *border = X.borders, *const borders_end = border + X.border_count;
  for (std::size_t j = 0;; ++j, W += stride) {
    for (; border != borders_end && border->column == j; ++border) {
      float* const y = Y + border->row * kSparseStrip;
      const Vector sign = S::set(border->shown ? -1.f : 1.f);
      for (std::size_t v = 0; v < kVectors; ++v)
        S::store(y + v * S::kLanes, S::multiply_add(sign, sum[v], S::load(y + v * S::kLanes)));
    }
    if (j == X.cols) return;
    if (j + kSoon < X.cols) ask_for_row<kSparseStrip, 2, kWhole>(W + kSoon * stride);
    Vector w[kVectors];
    const Vector background = S::set(X.background[j]);
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = v * S::kLanes;
      w[v] = Elements::round(kWhole || at + S::kLanes <= n ? S::load(W + at)
                                                           : S::load_some(W + at, at < n ? n - at : 0));
      sum[v] = S::multiply_add(background, w[v], sum[v]);
    }
    const SparseColumns::Entry *entry = X.entries + X.runs[j].begin, *const end = X.entries + X.runs[j].end;
    for (; entry != end; ++entry) {
      float* const y = Y + entry->row * kSparseStrip;
      const Vector x = S::set(entry->value);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < kVectors; ++v)
        S::store(y + v * S::kLanes, S::multiply_add(x, w[v], S::load(y + v * S::kLanes)));
    }
  }
}

template <class S, class Elements>
void scatter(const SparseColumns& X, const float* W, std::size_t stride, std::size_t n, float* Y) {
  if (n == kSparseStrip)
    scatter_strip<S, Elements, true>(X, W, stride, n, Y);
  else
    scatter_strip<S, Elements, false>(X, W, stride, n, Y);
}

// The gradient of row j of W: out (n) = β(j) shown + Σ over the entries of column j of value dY(row).
template <class S>
void combine(const SparseColumns& X, std::size_t j, const float* shown, const float* dY, std::size_t stride,
             std::size_t n, float* out) {
  using Vector = typename S::Vector;
  constexpr std::size_t kVectors = 8, kWidth = kVectors * S::kLanes;
  const SparseColumns::Entry *const begin = X.entries + X.runs[j].begin, *const end =
                                                                             X.entries + X.runs[j].end;
  const Vector background = S::set(X.background[j]);
  std::size_t c = 0;
  for (; c + kWidth <= n; c += kWidth) {
    Vector sum[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v)
      sum[v] = S::multiply_add(background, S::load(shown + c + v * S::kLanes), S::set(0));
    for (const SparseColumns::Entry* entry = begin; entry != end; ++entry) {
      const float* const dy = dY + entry->row * stride + c;
      const Vector x = S::set(entry->value);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v)
        sum[v] = S::multiply_add(x, S::load(dy + v * S::kLanes), sum[v]);
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) S::store(out + c + v * S::kLanes, sum[v]);
  }
  const auto column = [&](auto load, auto store) {
    Vector sum = S::multiply_add(background, load(shown + c), S::set(0));
    for (const SparseColumns::Entry* entry = begin; entry != end; ++entry)
      sum = S::multiply_add(S::set(entry->value), load(dY + entry->row * stride + c), sum);
    store(out + c, sum);
  };
  for (; c + S::kLanes <= n; c += S::kLanes) column(S::load, S::store);
  if (const std::size_t rest = n - c; rest != 0)
    column([rest](const float* p) { return S::load_some(p, rest); },
           [rest](float* p, Vector v) { S::store_some(p, v, rest); });
}

// See Kernels::gate. As many vectors at a time as there are registers for W and for its gradient.
template <class S>
void gate(const SparseColumns::Entry* entries, std::size_t count, const float* W, const float* dY,
          float* gradient, float* sums) {
  using Vector = typename S::Vector;
  constexpr std::size_t kVectors = S::kLanes == 16 ? 8 : 4, kWidth = kVectors * S::kLanes;
  static_assert(kGateStrip % kWidth == 0 && kGateLanes % S::kLanes == 0);
  for (std::size_t c = 0; c < kGateStrip; c += kWidth) {
    Vector w[kVectors], g[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      w[v] = S::load(W + c + v * S::kLanes);
      g[v] = S::set(0);
    }
    for (std::size_t e = 0; e < count; ++e) {
      const float* const y = dY + entries[e].row * kGateStrip + c;
      const Vector x = S::set(entries[e].value);
      Vector even = S::load(sums + e * kGateLanes), odd = S::set(0);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; v += 2) {
        Vector first = S::load(y + v * S::kLanes), second = S::load(y + (v + 1) * S::kLanes);
        asm("" : "+v"(first), "+v"(second));  // g++ would load them twice
        g[v] = S::multiply_add(x, first, g[v]);
        even = S::multiply_add(w[v], first, even);
        g[v + 1] = S::multiply_add(x, second, g[v + 1]);
        odd = S::multiply_add(w[v + 1], second, odd);
      }
      S::store(sums + e * kGateLanes, even + odd);
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) S::store(gradient + c + v * S::kLanes, g[v]);
  }
}

}  // namespace
}  // namespace lacuna
