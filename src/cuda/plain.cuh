// A product of f32 numbers by tiles, each of its sums in one register from end to end.
#pragma once

#include "cuda/common.cuh"

namespace lacuna::cuda {

// A tile (64, 64) of a product over `depth`: each of 256 threads has 4 x 4 of it. left(i, k), right(k, j).
template <class Left, class Right>
__device__ inline void plain_product(int depth, Left&& left, Right&& right, float (&sums)[4][4]) {
  __shared__ float A[16][65], B[16][65];
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  for (int k0 = 0; k0 < depth; k0 += 16) {
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < 16 * 64; at += 256) {
      const int k = at / 64, i = at % 64;
      A[k][i] = k0 + k < depth ? left(i, k0 + k) : 0.f;
      B[k][i] = k0 + k < depth ? right(k0 + k, i) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k)
#pragma unroll
      for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[a][c] = fmaf(A[k][ty + 16 * a], B[k][tx + 16 * c], sums[a][c]);
  }
}

}  // namespace lacuna::cuda
