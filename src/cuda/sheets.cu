#include "cuda/sheets.cuh"

#include "cuda/backward.cuh"

namespace lacuna::cuda {
namespace {

constexpr int kThreads = 256, kPerThread = 16;

__device__ void cut(const SheetJob& job, int block) {
  const int groups = (job.cols + job.width - 1) / job.width * (job.width / kPerThread);
  const int at = block * kThreads + static_cast<int>(threadIdx.x), row = at / groups, col = at % groups * kPerThread;
  if (row >= job.padded_rows) return;
  float x[kPerThread] = {};
  if (row < job.rows) {
    const float* const from = job.from + static_cast<std::int64_t>(row) * job.stride + col;
    if (col + kPerThread <= job.cols && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
#pragma unroll
      for (int k = 0; k < kPerThread; k += 4)
        *reinterpret_cast<float4*>(x + k) = *reinterpret_cast<const float4*>(from + k);
    } else {
#pragma unroll
      for (int k = 0; k < kPerThread; ++k)
        if (col + k < job.cols) x[k] = from[k];
    }
  }
  if (job.order != Order::plain) {
    float y[kPerThread];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) y[k] = job.order == Order::columns ? x[column_at(k)] : x[row_at(k)];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) x[k] = y[k];
  }
  const int pitch = job.width + kSheetPad, sheet = job.padded_rows * pitch;
  Half* to = job.to + static_cast<std::int64_t>(col / job.width) * job.terms * sheet + row * pitch + col % job.width;
  for (int term = 0; term < job.terms; ++term, to += sheet) {
    std::uint32_t words[kPerThread / 2];
#pragma unroll
    for (int k = 0; k < kPerThread; k += 2) words[k / 2] = take_term(x[k], x[k + 1]);
#pragma unroll
    for (int k = 0; k < kPerThread / 2; k += 4)
      *reinterpret_cast<uint4*>(to + 2 * k) = make_uint4(words[k], words[k + 1], words[k + 2], words[k + 3]);
  }
}

// b's step with Σ_rows dY, 32 columns a block; eight warps take every eighth row, their sums are added in order.
__device__ void learn_bias(const BiasJob& job, int block) {
  __shared__ float sums[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = block * 32 + lane;
  float sum = 0;
  if (col < job.cols)
#pragma unroll 4
    for (int r = warp; r < job.rows; r += 8) sum += job.dY[static_cast<std::int64_t>(r) * job.stride + col];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || col >= job.cols) return;
  for (int w = 1; w < 8; ++w) sum += sums[w][lane];
  job.b.update(col, sum);
}

__global__ void prepare_kernel(const __grid_constant__ SheetJobs sheets, const __grid_constant__ BiasJobs biases) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const int cuts = sheets.first[sheets.count];
  if (block < cuts) {
    const SheetJob& job = sheets.find(block);
    cut(job, block);
  } else {
    block -= cuts;
    const BiasJob& job = biases.find(block);
    learn_bias(job, block);
  }
}

}  // namespace

int sheet_blocks(const SheetJob& job) {
  return blocks_for(static_cast<std::size_t>(job.padded_rows) * static_cast<std::size_t>(sheets_of(job.cols, job.width)) *
                        static_cast<std::size_t>(job.width / kPerThread),
                    kThreads);
}
int bias_blocks(const BiasJob& job) { return blocks_for(static_cast<std::size_t>(job.cols), 32); }

void prepare(const SheetJobs& sheets, const BiasJobs& biases, cudaStream_t stream) {
  const int blocks = total(sheets) + total(biases);
  if (blocks == 0) return;
  launch(prepare_kernel, blocks, kThreads, 0, stream, sheets, biases);
}

}  // namespace lacuna::cuda
