// What the kernels of linear layers share that serve any device and any batch: a block takes tiles through shared memory,
// a few stages ahead, and all of its threads load as well as compute. X and dY are rounded to bf16 before, as one sheet
// each, whose padding needs no care.
#pragma once

#include "cuda/sheets.cuh"

namespace lacuna::cuda {

constexpr int kTileThreads = 256;
constexpr int kPad = 128;      // columns of a sheet are a multiple of this, rows of 16
constexpr int kSheetPad = 8;  // halves after each row of it

inline int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

// All of a matrix as one sheet.
inline SheetJob whole_sheet(const MatrixView<const float>& from, Half* to, int rows) {
  const int width = round_up(int_of(from.cols), kPad);
  return {from.data, to, int_of(from.rows), int_of(from.cols), int_of(from.stride), round_up(rows, 16), width, 1,
          width + kSheetPad, Order::plain};
}
inline std::size_t whole_sheet_halves(const MatrixView<const float>& from, int rows) {
  return static_cast<std::size_t>(round_up(rows, 16)) * static_cast<std::size_t>(round_up(int_of(from.cols), kPad) + kSheetPad);
}

__device__ inline void copy_async16(void* to, const void* from, int bytes) {  // the rest of 16 is zeroed
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ inline void copy_async4(void* to, const void* from, int bytes) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;\n"); }
template <int most>
__device__ inline void wait_until() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(most));
}

// Four floats of a row, as many of them as there are (`left` columns); aligned: rows begin on 16 bytes.
__device__ inline void copy_four(float* to, const float* from, int left, bool aligned, const float* some) {
  if (aligned) {
    const int bytes = left >= 4 ? 16 : left > 0 ? 4 * left : 0;
    copy_async16(to, bytes > 0 ? from : some, bytes);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) copy_async4(to + k, k < left ? from + k : some, k < left ? 4 : 0);
  }
}

// Whether this block is the last of `parts` to come here; the counter is then zero again.
__device__ inline bool comes_last(int* counter, int parts) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == parts - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

}  // namespace lacuna::cuda
