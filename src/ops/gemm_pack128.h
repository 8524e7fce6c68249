// Packing with 128-bit registers, for the instruction sets below AVX-512. Internal linkage, see gemm_tiles.h.
#pragma once

#include <emmintrin.h>

#include <cstring>

#include "ops/gemm_tiles.h"

namespace lacuna {
namespace {

// What a packed word holds: the number itself ...
struct AsIs {
  static constexpr bool kAsIs = true;
  template <class V>
  static V round(V x) {
    return x;
  }
};

// ... or the number rounded to bf16 (ties to even; NaN stays), kept as f32 for machines without bf16
// products.
struct Rounded {
  static constexpr bool kAsIs = false;
  static float round(float x) { return _mm_cvtss_f32(round(_mm_set_ss(x))); }
  static __m128 round(__m128 x) {
    const __m128i bits = _mm_castps_si128(x), one = _mm_set1_epi32(1);
    const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), one);
    const __m128i up = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
    const __m128 near = _mm_castsi128_ps(_mm_and_si128(up, _mm_set1_epi32(static_cast<int>(0xffff0000))));
    const __m128 nan = _mm_cmpunord_ps(x, x);
    return _mm_or_ps(_mm_and_ps(nan, x), _mm_andnot_ps(nan, near));
  }
};

template <class Elements>
struct Pack128 {
  template <std::size_t kPitch>
  static void across(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                     std::uint32_t* panel) {
    for (std::size_t k = 0; k < depth; ++k, source += stride, panel += kPitch) {
      float row[kPitch] = {};
      std::size_t c = 0;
      for (; c + 4 <= width; c += 4) _mm_storeu_ps(row + c, Elements::round(_mm_loadu_ps(source + c)));
      for (; c < width; ++c) row[c] = Elements::round(source[c]);
      std::memcpy(panel, row, sizeof row);
    }
  }

  template <std::size_t kPitch>
  static void along(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                    std::uint32_t* panel) {
    const auto put = [&](std::size_t k, std::size_t i, float x) {
      std::memcpy(panel + k * kPitch + i, &x, sizeof x);
    };
    std::size_t i = 0;
    for (; i + 4 <= width; i += 4) {
      const float* row = source + i * stride;
      std::size_t k = 0;
      for (; k + 4 <= depth; k += 4) {
        __m128 r[4];
        for (std::size_t j = 0; j < 4; ++j) r[j] = Elements::round(_mm_loadu_ps(row + j * stride + k));
        _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
        for (std::size_t j = 0; j < 4; ++j)
          _mm_storeu_ps(reinterpret_cast<float*>(panel + (k + j) * kPitch + i), r[j]);
      }
      for (; k < depth; ++k)
        for (std::size_t j = 0; j < 4; ++j) put(k, i + j, Elements::round(row[j * stride + k]));
    }
    for (; i < width; ++i)
      for (std::size_t k = 0; k < depth; ++k) put(k, i, Elements::round(source[i * stride + k]));
    for (; i < kPitch; ++i)
      for (std::size_t k = 0; k < depth; ++k) put(k, i, 0);
  }
};

}  // namespace
}  // namespace lacuna
