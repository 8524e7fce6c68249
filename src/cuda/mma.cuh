// Products of small tiles on tensor cores, and what feeds them from shared memory.
#pragma once

#include "cuda/common.cuh"

namespace lacuna::cuda {

using Half = __nv_bfloat16;

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}
__device__ inline void load_matrices(std::uint32_t (&r)[4], const Half* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const Half* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}
// C (16, 8) += A (16, 16) B (16, 8)
__device__ inline void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A number as `terms` bf16 numbers whose sum it is: one rounds it, three keep all of an f32. Takes the next of them
// off a pair of numbers.
__device__ inline std::uint32_t take_term(float& low, float& high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  low -= __low2float(both);
  high -= __high2float(both);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}
// Products of terms that count, small ones first: all of one; of three those of 2⁻²⁴ and more.
template <int terms>
constexpr int kProducts = terms == 1 ? 1 : 6;
template <int terms>
__device__ constexpr int left_term(int product) {
  constexpr int of[] = {0, 2, 1, 0, 1, 0};
  return terms == 1 ? 0 : of[product];
}
template <int terms>
__device__ constexpr int right_term(int product) {
  constexpr int of[] = {2, 0, 1, 1, 0, 0};
  return terms == 1 ? 0 : of[product];
}

}  // namespace lacuna::cuda
