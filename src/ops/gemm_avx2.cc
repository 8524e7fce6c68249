// Products for CPUs with AVX2 and FMA.
#include <immintrin.h>

#include "ops/gemm_pack128.h"

namespace lacuna {
namespace {

struct Avx2 {
  using Vector = __m256;
  using Words = __m256;
  static constexpr std::size_t kLanes = 8, kRows = 6, kColumns = 16;

  static Vector set(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static __m256i first(std::size_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
  static Vector load_some(const float* p, std::size_t count) { return _mm256_maskload_ps(p, first(count)); }
  static void store_some(float* p, Vector v, std::size_t count) { _mm256_maskstore_ps(p, first(count), v); }
  static Words load_words(const std::uint32_t* p) { return load(reinterpret_cast<const float*>(p)); }
  static Words broadcast_words(const std::uint32_t* p) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(p));
  }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector dot(Vector sum, Words a, Words b) { return multiply_add(a, b, sum); }
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector where_positive(Vector x, Vector v) {
    return _mm256_and_ps(_mm256_cmp_ps(x, set(0), _CMP_GT_OQ), v);
  }
  static Vector root(Vector v) { return _mm256_sqrt_ps(v); }
  static Vector quotient(Vector a, Vector b) { return a / b; }
};

struct Rounded256 : Rounded {
  using Rounded::round;
  static __m256 round(__m256 x) {
    return _mm256_set_m128(Rounded::round(_mm256_extractf128_ps(x, 1)),
                           Rounded::round(_mm256_castps256_ps128(x)));
  }
};

constexpr Kernels kF32 = make_kernels<Avx2, AsIs, Pack128<AsIs>>(1, 256);
constexpr Kernels kBf16 = make_kernels<Avx2, Rounded256, Pack128<Rounded256>>(1, 256);

}  // namespace

const Kernels& avx2_kernels(Precision precision) {
  return precision == Precision::f32 ? kF32 : kBf16;
}

}  // namespace lacuna
