// What all kernels share: checks of the driver's answers, the launch stream, small device functions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "cuda/cuda_ops.h"

namespace lacuna::cuda {

[[noreturn]] void fail_with(const char* message);  // throws lacuna::Error
[[noreturn]] void lose_with(const char* message);  // throws lacuna::DeviceLost
// Fails with what the driver says; a lost device says how to go on.
void check(cudaError_t code, const char* what);
#define LACUNA_CUDA(call) ::lacuna::cuda::check((call), #call)

inline int int_of(std::size_t x) { return static_cast<int>(x); }

constexpr int kMostJobs = 12;  // of one launch, whose parameters stay below 4 KB; longer lists take several

// A job list in a kernel's parameters, with the first block of each job.
template <class Job, int most = kMostJobs>
struct Jobs {
  Job job[most];
  int first[most + 1];
  int count;
  // Which job a block works on; `block` becomes its number within the job.
  __device__ const Job& find(int& block) const {
    int k = 0;
    while (k + 1 < count && block >= first[k + 1]) ++k;
    block -= first[k];
    return job[k];
  }
};

// launch(jobs, blocks): calls f for as many jobs as one launch takes. blocks_of(job) says how many blocks it needs.
template <class Job, class List, class Make, class Blocks, class Launch>
void in_launches(const List& list, Make&& make, Blocks&& blocks_of, Launch&& launch) {
  Jobs<Job> jobs;
  jobs.count = 0;
  jobs.first[0] = 0;
  const auto flush = [&] {
    if (jobs.count > 0 && jobs.first[jobs.count] > 0) launch(jobs, jobs.first[jobs.count]);
    jobs.count = 0;
  };
  for (const auto& each : list) {
    const Job job = make(each);
    const int blocks = blocks_of(job);
    if (blocks == 0) continue;
    jobs.job[jobs.count] = job;
    jobs.first[jobs.count + 1] = jobs.first[jobs.count] + blocks;
    if (++jobs.count == kMostJobs) flush();
  }
  flush();
}

inline int blocks_for(std::size_t work, std::size_t per_block) {
  return static_cast<int>((work + per_block - 1) / per_block);
}

// Launches of a stream overlap where the device can do that: the next one may begin while this one ends. So every kernel
// first waits for the one before it, and only then lets the next one begin: what came before that one is over.
extern bool launches_overlap;
__device__ inline void in_order() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;\n");
#endif
}
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int blocks, int threads, std::size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = launches_overlap ? 1 : 0;
  LACUNA_CUDA(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

__device__ inline float sigmoid_of(float x) {
  const float u = expf(-fabsf(x)), lower = u / (1.f + u);
  return x > 0 ? 1.f - lower : lower;
}
__device__ inline float softplus_of(float x) { return fmaxf(x, 0.f) + log1pf(expf(-fabsf(x))); }

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) x += __shfl_xor_sync(0xffffffffu, x, half);
  return x;
}
__device__ inline double warp_sum(double x) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) x += __shfl_xor_sync(0xffffffffu, x, half);
  return x;
}
// Over a block of up to 1024 threads, the same in all of them; `shared` has 33 places.
template <class T>
__device__ T block_sum(T x, T* shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  if (threadIdx.x == 0) {
    T sum = 0;
    for (int w = 0; w < warps; ++w) sum += shared[w];
    shared[32] = sum;
  }
  __syncthreads();
  return shared[32];
}

// Philox 4x32, ten rounds: the draws of base/random.h.
__device__ inline uint4 philox(uint4 c, std::uint32_t key0, std::uint32_t key1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    const std::uint32_t high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = make_uint4(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

// Dropout of ops/scalar.h: what is drawn for a row and eight columns.
struct Drop {
  float scale = 1;  // 1: no dropout
  std::uint32_t threshold = 0, key0 = 0, key1 = 0, step = 0, purpose = 0;
  const std::uint32_t* rows = nullptr;
  int count = 0;  // of rows that it acts on
  __device__ uint4 words(int row, int block) const {
    return philox(make_uint4(static_cast<std::uint32_t>(block), step, rows[row], purpose), key0, key1);
  }
  __device__ static std::uint32_t bits(const uint4& words, int j) {
    const int pair = (j % 8) / 2;
    const std::uint32_t word = pair == 0 ? words.x : pair == 1 ? words.y : pair == 2 ? words.z : words.w;
    return (word >> (16 * (j % 2))) & 0xFFFFu;
  }
  __device__ float apply(float x, const uint4& words, int j) const {
    return bits(words, j) >= threshold ? x * scale : 0.f;
  }
};
Drop drop_of(double rate, const Draws& draws);

// The coefficients of a step (ops/update.h), as a kernel takes them.
struct Step {
  Optimiser optimiser;
  float rate, momentum, epsilon, coupled_decay, shrink, rest1, rest2, rest_average, corrected_rate, corrected_root;

  __device__ void sgd(float gradient, float& x, float& first) const {
    first = momentum * first + (gradient + coupled_decay * x);
    x -= rate * first;
  }
  // Of the optimisers with two numbers of state: adam, adamw, or rmsprop.
  __device__ void adam(float gradient, float& x, float& first, float& second) const {
    const float g = coupled_decay * x + gradient;
    second += rest2 * (g * g - second);
    if (optimiser == Optimiser::rmsprop) {
      first = momentum * first - rate * (g / (sqrtf(second) + epsilon));
      x += first;
      return;
    }
    first += rest1 * (g - first);
    x = shrink * x - corrected_rate * (first / (corrected_root * sqrtf(second) + epsilon));
  }
};

// A parameter with its optimiser's state. v is null with sgd, mean without averaging.
struct Learned {
  float *w, *m, *v, *mean;
  int stride;
  Step step;
  __device__ void update(std::int64_t at, float gradient) const {
    float x = w[at], first = m[at];
    if (step.optimiser == Optimiser::sgd) {
      step.sgd(gradient, x, first);
    } else {
      float second = v[at];
      step.adam(gradient, x, first, second);
      v[at] = second;
    }
    w[at] = x;
    m[at] = first;
    if (mean != nullptr) mean[at] += step.rest_average * (x - mean[at]);
  }
};
Learned learned(const ParameterView<float>& p, const UpdateRule& rule);

}  // namespace lacuna::cuda
