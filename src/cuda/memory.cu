// Memory, transfers and the order of work.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "base/random.h"
#include "cuda/common.cuh"
#include "ops/scalar.h"

namespace lacuna::cuda {

bool launches_overlap = true;

namespace {

// After these every call fails, to the end of the process: the context is gone, or the device, or the server that shares it.
bool is_lost(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorNoDevice:
    case cudaErrorContained:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsClientTerminated:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  const std::string said = std::string(cudaGetErrorName(code)) + ": " + cudaGetErrorString(code);
  if (is_lost(code))
    lose_with(("the GPU was lost (" + said + "); what the last checkpoint holds is safe: go on with --resume, or with --device cpu")
                  .c_str());
  fail_with(("the GPU reports " + said + ", from " + what).c_str());
}

// Memory that was given back and serves again, of one engine: asking the driver takes longer than a short prediction.
// What follows in the engine's stream comes after all that used it before.
class Returned {
 public:
  ~Returned() { drop(); }
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(bytes);
    if (at == blocks_.end()) return nullptr;
    void* const memory = at->second;
    blocks_.erase(at);
    return memory;
  }
  void put(std::size_t bytes, void* memory) {
    const std::lock_guard lock(mutex_);
    blocks_.emplace(bytes, memory);
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    for (const auto& [bytes, memory] : blocks_) cudaFree(memory);
    blocks_.clear();
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, void*> blocks_;
};

namespace {

std::string gigabytes(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

void* device_memory(std::size_t bytes, Returned* returned = nullptr) {
  void* memory = nullptr;
  cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation && returned != nullptr) {
    returned->drop();
    code = cudaMalloc(&memory, bytes);
  }
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail_with(("the GPU has " + gigabytes(free) + " of its " + gigabytes(total) + " free, " + gigabytes(bytes) +
               " more are needed; take a smaller --batch or --width, or --device cpu")
                  .c_str());
  }
  LACUNA_CUDA(code);
  return memory;
}

}  // namespace

DeviceScratch::~DeviceScratch() { cudaFree(memory_); }

void* DeviceScratch::take(std::size_t bytes, cudaStream_t stream, bool zeroed) {
  if (bytes <= size_) return memory_;
  LACUNA_CUDA(cudaStreamSynchronize(stream));
  cudaFree(memory_);
  memory_ = nullptr;
  size_ = 0;
  const std::size_t size = bytes + bytes / 4;
  memory_ = device_memory(size);
  size_ = size;
  if (zeroed) LACUNA_CUDA(cudaMemsetAsync(memory_, 0, size, stream));
  return memory_;
}

CudaOps::CudaOps(int device, Precision precision)
    : device_(device), precision_(precision), returned_(std::make_shared<Returned>()) {
  LACUNA_CUDA(cudaSetDevice(device));
  LACUNA_CUDA(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device));
  int major = 0;
  LACUNA_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major < 9) launches_overlap = false;
  streaming_ = major >= 9;
  LACUNA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  for (auto& staging : staging_) {
    LACUNA_CUDA(cudaMallocHost(reinterpret_cast<void**>(&staging.memory), kStagingBytes));
    LACUNA_CUDA(cudaEventCreateWithFlags(&staging.free, cudaEventDisableTiming));
  }
  for (auto& mark : marks_) LACUNA_CUDA(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming));
}

CudaOps::~CudaOps() {
  cudaStreamSynchronize(stream_);
  for (auto& staging : staging_) {
    cudaFreeHost(staging.memory);
    cudaEventDestroy(staging.free);
  }
  for (auto& mark : marks_) cudaEventDestroy(mark);
  cudaStreamDestroy(stream_);
}

std::shared_ptr<void> CudaOps::allocate(std::size_t bytes) const {
  LACUNA_CUDA(cudaSetDevice(device_));
  counted_ = {};
  void* memory = returned_->take(bytes);
  if (memory == nullptr) memory = device_memory(bytes, returned_.get());
  std::shared_ptr<void> owner(memory, [to = std::weak_ptr(returned_), bytes](void* p) {
    if (const auto returned = to.lock()) return returned->put(bytes, p);
    cudaFree(p);
  });
  LACUNA_CUDA(cudaMemsetAsync(memory, 0, bytes, stream_));
  return owner;
}

std::shared_ptr<void> CudaOps::allocate_mapped(std::size_t bytes) const {
  void* memory = nullptr;
  LACUNA_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  std::memset(memory, 0, bytes);
  return {memory, [](void* p) { cudaFreeHost(p); }};  // one address space: the device uses the same address
}

// Short lists go through pinned memory and are not waited for.
void CudaOps::upload(ByteRows<const std::byte> host, ByteRows<std::byte> to, std::size_t width, std::size_t rows) const {
  LACUNA_CUDA(cudaSetDevice(device_));
  counted_ = {};
  if (width * rows <= kStagingBytes) {
    Staging& staging = staging_[next_staging_++ % kStagings];
    LACUNA_CUDA(cudaEventSynchronize(staging.free));
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(staging.memory + r * width, host.data + r * host.stride, width);
    if (rows == 1 || to.stride == width) {
      LACUNA_CUDA(cudaMemcpyAsync(to.data, staging.memory, width * rows, cudaMemcpyHostToDevice, stream_));
    } else {
      LACUNA_CUDA(cudaMemcpy2DAsync(to.data, to.stride, staging.memory, width, width, rows, cudaMemcpyHostToDevice,
                                    stream_));
    }
    LACUNA_CUDA(cudaEventRecord(staging.free, stream_));
    return;
  }
  LACUNA_CUDA(cudaMemcpy2DAsync(to.data, rows == 1 ? width : to.stride, host.data, rows == 1 ? width : host.stride,
                                width, rows, cudaMemcpyHostToDevice, stream_));
  LACUNA_CUDA(cudaStreamSynchronize(stream_));
}

void CudaOps::download(ByteRows<const std::byte> from, ByteRows<std::byte> host, std::size_t width,
                       std::size_t rows) const {
  LACUNA_CUDA(cudaSetDevice(device_));
  LACUNA_CUDA(cudaMemcpy2DAsync(host.data, rows == 1 ? width : host.stride, from.data, rows == 1 ? width : from.stride,
                                width, rows, cudaMemcpyDeviceToHost, stream_));
  LACUNA_CUDA(cudaStreamSynchronize(stream_));
}

void CudaOps::duplicate(ByteRows<const std::byte> from, ByteRows<std::byte> to, std::size_t width,
                        std::size_t rows) const {
  LACUNA_CUDA(cudaSetDevice(device_));
  LACUNA_CUDA(cudaMemcpy2DAsync(to.data, rows == 1 ? width : to.stride, from.data, rows == 1 ? width : from.stride, width,
                                rows, cudaMemcpyDeviceToDevice, stream_));
}

// What is free, but for a part that steps and predictions may need. LACUNA_GPU_DATA sets a limit, in bytes.
std::size_t CudaOps::room() const {
  LACUNA_CUDA(cudaSetDevice(device_));
  std::size_t free = 0, total = 0;
  LACUNA_CUDA(cudaMemGetInfo(&free, &total));
  const std::size_t kept = total / 8, room = free > kept ? free - kept : 0;
  const char* limit = std::getenv("LACUNA_GPU_DATA");
  return limit == nullptr ? room : std::min(room, static_cast<std::size_t>(std::strtoull(limit, nullptr, 10)));
}

std::unique_lock<std::mutex> CudaOps::turn() const {
  std::unique_lock lock(turn_);
  LACUNA_CUDA(cudaSetDevice(device_));  // of the calling thread
  return lock;
}

std::uint64_t CudaOps::mark() const {
  LACUNA_CUDA(cudaEventRecord(marks_[marked_ % kMarks], stream_));
  return marked_++;
}

void CudaOps::wait(std::uint64_t mark) const {
  LACUNA_CUDA(cudaEventSynchronize(marks_[mark % kMarks]));  // a later mark on the same event is later work
}

Drop drop_of(double rate, const Draws& draws) {
  Drop drop;
  if (rate == 0) return drop;
  const auto key = seed_key(dropout_seed(draws));
  drop.scale = static_cast<float>(dropout_scale(rate));
  drop.threshold = dropout_threshold(rate);
  drop.key0 = key[0];
  drop.key1 = key[1];
  drop.step = draws.step;
  drop.purpose = static_cast<std::uint32_t>(Purpose::dropout);
  drop.rows = draws.rows.data();
  drop.count = static_cast<int>(draws.rows.size());
  return drop;
}

Learned learned(const ParameterView<float>& p, const UpdateRule& rule) {
  const UpdateCoefficients<float> k(rule, p.decay);
  return {p.value.data,
          p.first.data,
          p.second.empty() ? nullptr : p.second.data,
          p.mean.empty() ? nullptr : p.mean.data,
          static_cast<int>(p.value.stride),
          {k.optimiser, k.rate, k.momentum, k.epsilon, k.coupled_decay, k.shrink, k.rest1, k.rest2, k.rest_average,
           k.corrected_rate, k.corrected_root}};
}

namespace {

__global__ void product_rate_kernel(float* out) {  // bf16 tensor cores, from registers
  float c[8][4] = {};
  std::uint32_t a[4] = {threadIdx.x, threadIdx.x + 1, 3, 4};
  for (int k = 0; k < 4096; ++k)
#pragma unroll
    for (auto& sums : c)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[0]), "r"(a[1]));
  float sum = 0;
  for (auto& sums : c) sum += sums[0] + sums[1] + sums[2] + sums[3];
  if (sum == 1.2345f) *out = sum;
}

template <class F>
double best_seconds(F&& work) {
  cudaEvent_t begin, end;
  LACUNA_CUDA(cudaEventCreate(&begin));
  LACUNA_CUDA(cudaEventCreate(&end));
  double best = 1e300;
  for (int k = 0; k < 4; ++k) {
    LACUNA_CUDA(cudaEventRecord(begin));
    work();
    LACUNA_CUDA(cudaEventRecord(end));
    LACUNA_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    LACUNA_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (k > 0) best = std::min(best, static_cast<double>(ms) * 1e-3);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

}  // namespace
}  // namespace lacuna::cuda

extern "C" __attribute__((visibility("default"))) lacuna::Ops<float>* lacuna_cuda_make(int device, int precision) {
  return new lacuna::cuda::CudaOps(device, static_cast<lacuna::Precision>(precision));
}

extern "C" __attribute__((visibility("default"))) void lacuna_cuda_measure(int device, double* copy, double* product,
                                                                          std::size_t* free_memory) {
  using namespace lacuna::cuda;
  LACUNA_CUDA(cudaSetDevice(device));
  std::size_t total = 0;
  LACUNA_CUDA(cudaMemGetInfo(free_memory, &total));
  const std::size_t bytes = std::min<std::size_t>(1 << 30, *free_memory / 4);
  char* memory = static_cast<char*>(device_memory(2 * bytes));
  *copy = 2. * static_cast<double>(bytes) /
          best_seconds([&] { LACUNA_CUDA(cudaMemcpyAsync(memory + bytes, memory, bytes, cudaMemcpyDeviceToDevice)); });
  int units = 0;
  LACUNA_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device));
  const double flops = 2. * 16 * 8 * 16 * 8 * 4096 * 8 * 2 * units;  // a warp's, 8 warps, 2 blocks a unit
  *product = flops / best_seconds([&] {
               product_rate_kernel<<<2 * units, 256>>>(reinterpret_cast<float*>(memory));
               LACUNA_CUDA(cudaGetLastError());
             });
  cudaFree(memory);
}
