// What the kernels of losses share: labels of a batch, and how the parts of a value are added. A block takes a row and
// leaves its part; the block that comes last adds the parts in their order.
#pragma once

#include <algorithm>

#include "cuda/common.cuh"

namespace lacuna::cuda {

constexpr int kThreads = 256;

// Threads for a row, so that most rows take each of them once.
inline int threads_for(std::size_t cols) { return std::clamp(blocks_for(cols, 32) * 32, 64, 512); }
__device__ inline std::int64_t place(int row, int stride) { return static_cast<std::int64_t>(row) * stride; }

// How the parts of a loss become its value.
struct Report {
  double* parts;
  int* counter;
  double* value;
  int count;  // of parts
};
__device__ inline void report(const Report& r, int own, double part, double factor) {
  __shared__ bool last;
  __shared__ double shared[33];
  if (threadIdx.x == 0) {
    r.parts[own] = part;
    __threadfence();
    last = atomicAdd(r.counter, 1) == r.count - 1;
    if (last) *r.counter = 0;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  double sum = 0;
  for (int k = static_cast<int>(threadIdx.x); k < r.count; k += static_cast<int>(blockDim.x)) sum += __ldcg(&r.parts[k]);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *r.value = factor * sum;
}

struct Labels {
  const float* Y;
  const std::uint8_t* G;
  const std::uint32_t* rows;
  int Y_stride, G_stride, count, cols;
  const float* weights;  // of labels, or null
  __device__ float weight(int j) const { return weights != nullptr ? weights[j] : 1.f; }
  __device__ const float* y(int i) const { return Y + place(static_cast<int>(rows[i]), Y_stride); }
  __device__ const std::uint8_t* g(int i) const { return G + place(static_cast<int>(rows[i]), G_stride); }
};
inline Labels labels_of(const LabelRows& l) {
  return {l.Y.data, l.G.data, l.rows.data(), int_of(l.Y.stride), int_of(l.G.stride), int_of(l.rows.size()), int_of(l.G.cols),
          l.weights.empty() ? nullptr : l.weights.data()};
}

// Parts and a counter of one loss.
inline Report report_to(DeviceScratch& parts, DeviceScratch& counters, cudaStream_t stream, std::size_t count, double* value) {
  return {static_cast<double*>(parts.take(count * sizeof(double), stream)),
          static_cast<int*>(counters.take(sizeof(int), stream, true)), value, int_of(count)};
}

}  // namespace lacuna::cuda
