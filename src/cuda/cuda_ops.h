// The engine of NVIDIA's GPUs behind ops/ops.h, in a shared library of its own (docs/cuda.md). All work of an
// engine goes through one stream, in order; nothing here waits for it but download() and wait().
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <vector>

#include "ops/ops.h"

namespace lacuna::cuda {

// Device memory that grows and is kept; what it held is lost when it grows.
class DeviceScratch {
 public:
  ~DeviceScratch();
  void* take(std::size_t bytes, cudaStream_t stream, bool zeroed = false);

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

class Returned;

class CudaOps final : public Ops<float> {
 public:
  CudaOps(int device, Precision precision);
  ~CudaOps() override;

  std::shared_ptr<void> allocate(std::size_t bytes) const override;
  void upload(ByteRows<const std::byte> host, ByteRows<std::byte> to, std::size_t width, std::size_t rows) const override;
  void download(ByteRows<const std::byte> from, ByteRows<std::byte> host, std::size_t width,
                std::size_t rows) const override;
  void duplicate(ByteRows<const std::byte> from, ByteRows<std::byte> to, std::size_t width,
                 std::size_t rows) const override;
  int place() const override { return device_ + 1; }
  std::uint64_t mark() const override;
  void wait(std::uint64_t mark) const override;
  std::shared_ptr<void> allocate_mapped(std::size_t bytes) const override;
  std::size_t room() const override;
  std::size_t steps_ahead() const override { return 2; }
  Blocks blocks() const override { return {8192, false, true}; }
  std::unique_lock<std::mutex> turn() const override;

  FormPointer input_form(std::size_t rows, std::size_t cols) const override { return step_form(rows, cols); }
  FormPointer settle(Input) const override { return nullptr; }
  FormPointer step_form(std::size_t rows, std::size_t cols) const override;  // sheets (cuda/sheets.cuh)
  void gather(std::span<const GatherJob<float>> jobs) const override;
  void collect(Input stack, Slots slots, Share share, bool add, Output out) const override;
  void spread(Input rows, Slots slots, Share share, bool add, Output stack) const override;
  void linear_forward(std::span<const ForwardJob<float>> jobs) const override;
  void linear_backward(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const override;
  void batch_norm_forward(std::span<const NormForward<float>> jobs, const BatchNormSettings& settings) const override;
  void batch_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const override;
  void batch_norm_apply(std::span<const NormForward<float>> jobs, const BatchNormSettings& settings) const override;
  void layer_norm_forward(std::span<const NormForward<float>> jobs, double epsilon) const override;
  void layer_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const override;
  void dropout(double rate, std::span<const DropoutJob<float>> jobs) const override;
  void activate_forward(Activation f, Input X, Output Y) const override;
  void activate_backward(Activation f, Input Y, Output dX) const override;
  void copy(Input X, bool add, Output Y) const override;
  void zero(Output X) const override;
  void gate_forward(Input S, Input O, Output Z) const override;
  void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const override;
#define LACUNA_LOSS(name, parameters, arguments) void name parameters const override;
#include "ops/loss_list.h"

 private:
  const double* known_count(const LabelRows& labels) const;  // on the device
  double* slot_counts(Slots slots) const;                     // instances, rows with two views or more
  void forward_bf16(std::span<const ForwardJob<float>> jobs) const;
  void backward_bf16(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const;
  // Whether a layer's weights can stream through the multiprocessors (cuda/stream.cuh), and those that can.
  bool streams(const ForwardJob<float>& job) const;
  bool streams(const BackwardJob<float>& job) const;
  const CUtensorMap& weights_map(const MatrixView<const float>& W) const;
  void stream_forward(std::span<const ForwardJob<float>> jobs) const;
  void stream_backward(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const;
  void forward_f32(std::span<const ForwardJob<float>> jobs) const;
  void backward_f32(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const;

  mutable std::mutex turn_;
  int device_, multiprocessors_ = 0;
  bool streaming_ = false;
  Precision precision_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<Returned> returned_;
  mutable DeviceScratch halves_, partial_, counters_, parts_, rows_, counts_, squares_, units_;
  struct MapKey {
    const float* data;
    std::size_t rows, cols, stride;
    auto operator<=>(const MapKey&) const = default;
  };
  mutable std::map<MapKey, CUtensorMap> maps_;
  struct Counted {
    const void *rows = nullptr, *G = nullptr;
    std::size_t count = 0;
    const double* known = nullptr;
    bool operator==(const Counted&) const = default;
  };
  mutable Counted counted_;  // whose known labels have been counted since the last upload

  // Pinned memory for uploads, used in turn; an event says when a piece is free again.
  struct Staging {
    std::byte* memory = nullptr;
    cudaEvent_t free = nullptr;
  };
  static constexpr std::size_t kStagings = 8, kStagingBytes = 256 << 10;
  mutable Staging staging_[kStagings];
  mutable std::size_t next_staging_ = 0;
  static constexpr std::size_t kMarks = 4;
  mutable cudaEvent_t marks_[kMarks] = {};
  mutable std::uint64_t marked_ = 0;
};

}  // namespace lacuna::cuda
