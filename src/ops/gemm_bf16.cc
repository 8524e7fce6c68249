// Products for CPUs with AVX512-BF16: an instruction multiplies pairs of bf16 and adds both products to an
// f32.
#include "ops/gemm_pairs512.h"

namespace lacuna {
namespace {

struct Avx512Bf16 : Avx512 {
  using Words = __m512bh;
  static constexpr std::size_t kRows = 14, kColumns = 32;
  static Words load_words(const std::uint32_t* p) { return as_pairs(_mm512_loadu_si512(p)); }
  static Words broadcast_words(const std::uint32_t* p) {
    return as_pairs(_mm512_set1_epi32(static_cast<int>(*p)));
  }
  static Vector dot(Vector sum, Words a, Words b) { return _mm512_dpbf16_ps(sum, a, b); }
};

constexpr Kernels kKernels = [] {
  Kernels k = make_kernels<Avx512Bf16, Bf16Pairs, Pack512<Bf16Pairs>>(2, 512);
  k.direct = direct_pairs;
  return k;
}();

}  // namespace

const Kernels& bf16_kernels() {
  return kKernels;
}

}  // namespace lacuna
