// Words of two bf16 numbers, for the AVX512-BF16 and AMX kernels. Internal linkage, see gemm_tiles.h.
#pragma once

#include "ops/gemm_pack512.h"

namespace lacuna {
namespace {

inline __m512bh as_pairs(__m512i words) {
  __m512bh pairs;
  __builtin_memcpy(&pairs, &words, sizeof pairs);
  return pairs;
}
inline __m512i as_words(__m512bh pairs) {
  __m512i words;
  __builtin_memcpy(&words, &pairs, sizeof words);
  return words;
}

struct Bf16Pairs {
  static constexpr bool kAsIs = false;
  static constexpr std::size_t kGroup = 2;

  static __m512 round(__m512 x) {
    const __m256bh narrow = _mm512_cvtneps_pbh(x);
    __m256i bits;
    __builtin_memcpy(&bits, &narrow, sizeof bits);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }

  // Word j: the numbers of column j in this row (low half) and the next (high half).
  static __m512 across(const float* p, std::size_t stride, __mmask16 mask, std::size_t left) {
    return across(_mm512_maskz_loadu_ps(mask, p),
                  left > 1 ? _mm512_maskz_loadu_ps(mask, p + stride) : _mm512_setzero_ps());
  }
  static __m512 across(__m512 low, __m512 high) {
    const __m512i halves =
        as_words(_mm512_cvtne2ps_pbh(high, low));  // 16 of the low row, then 16 of the high row
    alignas(64) static constexpr std::uint16_t kInterleave[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kInterleave), halves));
  }

  // Word j: the numbers 2j and 2j + 1 at p.
  static __m512 along(const float* p, std::size_t count) {
    if (count >= 32) [[likely]]
      return along(_mm512_loadu_ps(p), _mm512_loadu_ps(p + 16));
    return along(_mm512_maskz_loadu_ps(first16(count), p),
                 _mm512_maskz_loadu_ps(first16(count > 16 ? count - 16 : 0), p + 16));
  }
  static __m512 along(__m512 low, __m512 high) {
    return _mm512_castsi512_ps(as_words(_mm512_cvtne2ps_pbh(high, low)));
  }
};

// Kernels::direct with an instruction for two factors: eight rows of W at a time.
inline void direct_pairs(const float* X, std::size_t x_stride, const float* W, std::size_t w_stride,
                         std::size_t depth, float* Y, std::size_t y_stride, std::size_t m, std::size_t n) {
  const auto sweep = [&]<std::size_t kPairs>(std::size_t k) {
    const std::size_t left = depth - k;
    std::uint32_t x[kFewRows][kPairs];  // X is rounded already: the upper halves are all there is
    for (std::size_t r = 0; r < m; ++r)
      for (std::size_t p = 0; p < kPairs; ++p) {
        std::uint32_t low, high = 0;
        __builtin_memcpy(&low, X + r * x_stride + k + 2 * p, 4);
        if (2 * p + 1 < left) __builtin_memcpy(&high, X + r * x_stride + k + 2 * p + 1, 4);
        x[r][p] = low >> 16 | (high & 0xffff0000);
      }
    for (std::size_t j = 0; j < n; j += 16) {
      const __mmask16 mask = first16(n - j);
      __m512bh w[kPairs];
      for (std::size_t p = 0; p < kPairs; ++p)
        w[p] = as_pairs(_mm512_castps_si512(
            Bf16Pairs::across(W + (k + 2 * p) * w_stride + j, w_stride, mask, left - 2 * p)));
      for (std::size_t r = 0; r < m; ++r) {
        float* const y = Y + r * y_stride + j;
        __m512 sum = _mm512_maskz_loadu_ps(mask, y);
        for (std::size_t p = 0; p < kPairs; ++p)
          sum = _mm512_dpbf16_ps(sum, as_pairs(_mm512_set1_epi32(static_cast<int>(x[r][p]))), w[p]);
        _mm512_mask_storeu_ps(y, mask, sum);
      }
    }
  };
  std::size_t k = 0;
  for (; k + 8 <= depth; k += 8) sweep.template operator()<4>(k);
  for (; k < depth; k += 2) sweep.template operator()<1>(k);
}

}  // namespace
}  // namespace lacuna
