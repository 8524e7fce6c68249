// Products for any x86-64 CPU (SSE2).
#include <emmintrin.h>

#include "ops/gemm_pack128.h"

namespace lacuna {
namespace {

struct Sse2 {
  using Vector = __m128;
  using Words = __m128;
  static constexpr std::size_t kLanes = 4, kRows = 4, kColumns = 8;

  static Vector set(float x) { return _mm_set1_ps(x); }
  static Vector load(const float* p) { return _mm_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm_storeu_ps(p, v); }
  static Vector load_some(const float* p, std::size_t count) {
    float part[kLanes] = {};
    std::memcpy(part, p, count * sizeof(float));
    return load(part);
  }
  static void store_some(float* p, Vector v, std::size_t count) {
    float part[kLanes];
    store(part, v);
    std::memcpy(p, part, count * sizeof(float));
  }
  static Words load_words(const std::uint32_t* p) { return load(reinterpret_cast<const float*>(p)); }
  static Words broadcast_words(const std::uint32_t* p) {
    float x;
    std::memcpy(&x, p, sizeof x);
    return set(x);
  }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static Vector dot(Vector sum, Words a, Words b) { return multiply_add(a, b, sum); }
  static Vector max(Vector a, Vector b) { return _mm_max_ps(a, b); }
  static Vector where_positive(Vector x, Vector v) { return _mm_and_ps(_mm_cmpgt_ps(x, set(0)), v); }
  static Vector root(Vector v) { return _mm_sqrt_ps(v); }
  static Vector quotient(Vector a, Vector b) { return a / b; }
};

constexpr Kernels kF32 = make_kernels<Sse2, AsIs, Pack128<AsIs>>(1, 256);
constexpr Kernels kBf16 = make_kernels<Sse2, Rounded, Pack128<Rounded>>(1, 256);

}  // namespace

const Kernels& plain_kernels(Precision precision) {
  return precision == Precision::f32 ? kF32 : kBf16;
}

}  // namespace lacuna
