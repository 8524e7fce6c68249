// AVX-512: the vector operations and the packing shared by the f32, bf16 and AMX kernels. Internal linkage,
// see gemm_tiles.h.
#pragma once

#include <immintrin.h>

#include "ops/gemm_tiles.h"

namespace lacuna {
namespace {

inline __mmask16 first16(std::size_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1u);
}

struct Avx512 {
  using Vector = __m512;
  static constexpr std::size_t kLanes = 16;

  static Vector set(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static Vector load_some(const float* p, std::size_t count) {
    return _mm512_maskz_loadu_ps(first16(count), p);
  }
  static void store_some(float* p, Vector v, std::size_t count) {
    _mm512_mask_storeu_ps(p, first16(count), v);
  }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector where_positive(Vector x, Vector v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(0), _CMP_GT_OQ), v);
  }
  static Vector root(Vector v) { return _mm512_sqrt_ps(v); }
  // An estimate of 1 / b, made better by a step of Newton's: the divider, busy with roots, would take longer.
  static Vector quotient(Vector a, Vector b) {
    const Vector estimate = _mm512_rcp14_ps(b), error = _mm512_fnmadd_ps(b, estimate, set(1));
    return a * _mm512_fmadd_ps(estimate, error, estimate);
  }
};

// rows[i] lane j <-> rows[j] lane i.
inline void transpose16(__m512 (&rows)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  __m512 u[16];  // u[4i + c], 128-bit lane L: column 4L + c of rows 4i .. 4i + 3
  const auto pair = [](__m512 a, __m512 b, bool high) {
    const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
    return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(x, y) : _mm512_unpacklo_pd(x, y));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    u[i] = pair(t[i], t[i + 2], false);
    u[i + 1] = pair(t[i], t[i + 2], true);
    u[i + 2] = pair(t[i + 1], t[i + 3], false);
    u[i + 3] = pair(t[i + 1], t[i + 3], true);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 even0 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88),
                 odd0 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xdd);
    const __m512 even1 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
    const __m512 odd1 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_f32x4(even0, even1, 0x88);
    rows[4 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
    rows[8 + c] = _mm512_shuffle_f32x4(even0, even1, 0xdd);
    rows[12 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0xdd);
  }
}

// Elements says what a word is: kGroup numbers; across(p, stride, mask, left) makes words of the columns at
// p, `left` rows remaining; along(p, count) makes 16 words of the up to 16 * kGroup numbers at p.
template <class Elements>
struct Pack512 {
  template <std::size_t kPitch>
  static void across(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                     std::uint32_t* panel) {
    for (std::size_t k = 0; k < depth; k += Elements::kGroup, panel += kPitch)
#pragma GCC unroll 4
      for (std::size_t c = 0; c < kPitch; c += 16) {
        const __mmask16 mask = first16(width > c ? width - c : 0);
        const __m512 words = Elements::across(source + k * stride + c, stride, mask, depth - k);
        _mm512_mask_storeu_ps(panel + c, first16(kPitch - c), words);
      }
  }

  template <std::size_t kPitch>
  static void along(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                    std::uint32_t* panel) {
    const std::size_t groups = (depth + Elements::kGroup - 1) / Elements::kGroup;
    for (std::size_t i = 0; i < kPitch; i += 16) {
      const std::size_t rows = width > i ? (width - i < 16 ? width - i : 16) : 0;
      for (std::size_t g = 0; g < groups; g += 16) {
        const std::size_t k = g * Elements::kGroup;
        __m512 block[16];
        for (std::size_t r = 0; r < 16; ++r)
          block[r] =
              r < rows ? Elements::along(source + (i + r) * stride + k, depth - k) : _mm512_setzero_ps();
        transpose16(block);
        const std::size_t count = groups - g < 16 ? groups - g : 16;
        for (std::size_t j = 0; j < count; ++j)
          _mm512_mask_storeu_ps(panel + (g + j) * kPitch + i, first16(kPitch - i), block[j]);
      }
    }
  }
};

}  // namespace
}  // namespace lacuna
