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
    for (int k = 0; k < kPerThread; ++k) y[k] = x[column_at(k)];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) x[k] = y[k];
  }
  const int sheet = job.pitch > 0 ? job.padded_rows * job.pitch : kSheetRows * job.width;
  Half* to = job.to + static_cast<std::int64_t>(col / job.width) * job.terms * sheet;
  for (int term = 0; term < job.terms; ++term, to += sheet) {
#pragma unroll
    for (int k = 0; k < kPerThread; k += 8) {
      const int c = col % job.width + k, at = job.pitch > 0 ? row * job.pitch + c : sheet_at(job.width, row, c);
      std::uint32_t words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) words[w] = take_term(x[k + 2 * w], x[k + 2 * w + 1]);
      *reinterpret_cast<uint4*>(to + at) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

// b's step with Σ_rows dY, 32 columns a block; eight warps take every eighth row, their sums are added in order.
__device__ void learn_bias(const BiasJob& job, int block) {
  __shared__ float sums[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = block * 32 + lane;
  float sum = 0;
  constexpr int kSome = 16;  // rows that are fetched together
  for (int r0 = warp; r0 < job.rows && col < job.cols; r0 += 8 * kSome) {
    float x[kSome];
#pragma unroll
    for (int k = 0; k < kSome; ++k)
      x[k] = r0 + 8 * k < job.rows ? job.dY[static_cast<std::int64_t>(r0 + 8 * k) * job.stride + col] : 0.f;
#pragma unroll
    for (int k = 0; k < kSome; ++k) sum += x[k];
  }
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
