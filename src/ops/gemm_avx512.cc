// Products for CPUs with AVX-512, in f32.
#include <unistd.h>

#include "ops/gemm_pack512.h"

namespace lacuna {
namespace {

struct Avx512F32 : Avx512 {
  using Words = __m512;
  static constexpr std::size_t kRows = 14, kColumns = 32;
  static Words load_words(const std::uint32_t* p) { return _mm512_loadu_ps(p); }
  static Words broadcast_words(const std::uint32_t* p) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(*p)));
  }
  // By name: g++ chooses forms of it that need registers copied.
  static Vector dot(Vector sum, Words a, Words b) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
    return sum;
  }
  // One instruction less for a row, one load more. Intel's CPUs are short of instructions when the other
  // thread of the core is busy too; with all rows they would be short of loads.
  static constexpr std::size_t kFromMemory = 8;
  static Vector dot_memory(Vector sum, const std::uint32_t* a, Words b) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
    return sum;
  }
};

struct AsIs {
  static constexpr bool kAsIs = true;
  static constexpr std::size_t kGroup = 1;
  static __m512 round(__m512 x) { return x; }
  static __m512 across(const float* p, std::size_t, __mmask16 mask, std::size_t) {
    return _mm512_maskz_loadu_ps(mask, p);
  }
  static __m512 along(const float* p, std::size_t count) {
    return count >= 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(first16(count), p);
  }
};

// Rounded to bf16 (ties to even; NaN stays), kept as f32.
struct Rounded {
  static constexpr bool kAsIs = false;
  static constexpr std::size_t kGroup = 1;
  static __m512 round(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i near = _mm512_and_si512(up, _mm512_set1_epi32(static_cast<int>(0xffff0000)));
    return _mm512_mask_mov_ps(_mm512_castsi512_ps(near), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
  }
  static __m512 across(const float* p, std::size_t, __mmask16 mask, std::size_t) {
    return round(_mm512_maskz_loadu_ps(mask, p));
  }
  static __m512 along(const float* p, std::size_t count) {
    return round(_mm512_maskz_loadu_ps(first16(count), p));
  }
};

constexpr Kernels kF32 = make_kernels<Avx512F32, AsIs, Pack512<AsIs>>(1, 512);
// 256 rows of a tile's columns of W, 32 KB, stay in a nearest cache of 48 KB while all of X meets them; one
// of 32 KB holds neither these nor 512, and sums would only be stored more often.
constexpr Kernels kRoomyF32 = [] {
  Kernels k = kF32;
  k.depth = 256;
  return k;
}();
constexpr Kernels kBf16 = make_kernels<Avx512F32, Rounded, Pack512<Rounded>>(1, 512);

}  // namespace

const Kernels& avx512_kernels(Precision precision) {
  static const bool roomy = sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10;
  if (precision == Precision::f32) return roomy ? kRoomyF32 : kF32;
  return kBf16;
}

}  // namespace lacuna
