// Ops that pass every call on and note how long it took, so that a step can be taken apart without touching
// the network.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ops/cpu.h"
#include "ops/gemm_kernels.h"
#include "ops/ops.h"
#include "ops/peaks.h"

namespace lacuna {

struct Ledger {
  struct Part {
    double seconds = 0, flops = 0,
           bytes = 0;  // bytes of weights and optimiser state, each counted once a pass
    std::size_t calls = 0;
  };
  std::map<std::string, Part> parts;
  double seconds() const {
    double sum = 0;
    for (const auto& [name, part] : parts) sum += part.seconds;
    return sum;
  }
  double flops() const {
    double sum = 0;
    for (const auto& [name, part] : parts) sum += part.flops;
    return sum;
  }
  double bytes() const {
    double sum = 0;
    for (const auto& [name, part] : parts) sum += part.bytes;
    return sum;
  }
};

class TimedOps final : public OnHost<Ops<float>> {
 public:
  TimedOps(std::unique_ptr<Ops<float>> inner, Precision precision, Ledger& ledger)
      : inner_(std::move(inner)), precision_(precision), ledger_(ledger) {}

  FormPointer input_form(std::size_t rows, std::size_t cols) const override { return inner_->input_form(rows, cols); }
  FormPointer settle(Input W) const override { return inner_->settle(W); }
  void gather(std::span<const GatherJob<float>> jobs) const override {
    time("gather", [&] { inner_->gather(jobs); });
  }
  void collect(Input stack, Slots slots, Share share, bool add, Output out) const override {
    time("fusion", [&] { inner_->collect(stack, slots, share, add, out); });
  }
  void spread(Input rows, Slots slots, Share share, bool add, Output stack) const override {
    time("fusion", [&] { inner_->spread(rows, slots, share, add, stack); });
  }
  // Job by job: with the form that the CPU's engine has found for the inputs of a layer, its cost differs.
  void linear_forward(std::span<const ForwardJob<float>> jobs) const override {
    for (const auto& job : jobs) {
      const Deviations* few = deviations(job.X_form);
      auto& part = time(few != nullptr ? "sparse layers forward" : "linear forward",
                        [&] { inner_->linear_forward({&job, 1}); });
      part.flops += 2. * (few != nullptr ? needed(*few) : static_cast<double>(job.X.size())) *
                    static_cast<double>(job.W.cols);
      part.bytes += 4. * static_cast<double>(job.W.size());
    }
  }
  void linear_backward(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const override {
    for (const auto& job : jobs) {
      const Deviations* few = job.dX.empty() ? deviations(job.X_form) : nullptr;
      auto& part = time(few != nullptr ? "sparse layers backward + update" : "linear backward + update",
                        [&] { inner_->linear_backward({&job, 1}, rule); });
      // In f32 nothing is multiplied by the zeros of ReLU, backward.
      const bool gated = precision_ == Precision::f32 && job.mask_by_input && !job.dX.empty();
      const double terms = few != nullptr ? needed(*few) : static_cast<double>(gated ? not_zero(job.X) : job.X.size());
      part.flops += (job.dX.empty() ? 2. : 4.) * terms * static_cast<double>(job.W.value.cols);
      part.bytes += update_bytes(job.W);
    }
  }
  void batch_norm_forward(std::span<const NormForward<float>> jobs, const BatchNormSettings& settings) const override {
    time("norm", [&] { inner_->batch_norm_forward(jobs, settings); });
  }
  void batch_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const override {
    time("norm", [&] { inner_->batch_norm_backward(jobs, rule); });
  }
  void batch_norm_apply(std::span<const NormForward<float>> jobs, const BatchNormSettings& settings) const override {
    time("norm", [&] { inner_->batch_norm_apply(jobs, settings); });
  }
  void layer_norm_forward(std::span<const NormForward<float>> jobs, double epsilon) const override {
    time("norm", [&] { inner_->layer_norm_forward(jobs, epsilon); });
  }
  void layer_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const override {
    time("norm", [&] { inner_->layer_norm_backward(jobs, rule); });
  }
  void dropout(double rate, std::span<const DropoutJob<float>> jobs) const override {
    time("dropout", [&] { inner_->dropout(rate, jobs); });
  }
  void activate_forward(Activation f, Input X, Output Y) const override {
    time("elementwise", [&] { inner_->activate_forward(f, X, Y); });
  }
  void activate_backward(Activation f, Input Y, Output dX) const override {
    time("elementwise", [&] { inner_->activate_backward(f, Y, dX); });
  }
  void copy(Input X, bool add, Output Y) const override {
    time("elementwise", [&] { inner_->copy(X, add, Y); });
  }
  void zero(Output X) const override {
    time("elementwise", [&] { inner_->zero(X); });
  }
  void gate_forward(Input S, Input O, Output Z) const override {
    time("fusion", [&] { inner_->gate_forward(S, O, Z); });
  }
  void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const override {
    time("fusion", [&] { inner_->gate_backward(S, O, dZ, dS, dO); });
  }
#define LACUNA_LOSS(name, parameters, arguments)             \
  void name parameters const override {                      \
    time("loss: " #name, [&] { inner_->name arguments; });   \
  }
#include "ops/loss_list.h"

 private:
  static double update_bytes(const ParameterView<float>& W) {
    const int arrays = 2 + (W.second.empty() ? 0 : 1) + (W.mean.empty() ? 0 : 1);
    return 8. * arrays * static_cast<double>(W.value.size());
  }
  // Multiplications for each output: deviations, and one row for the background.
  static double needed(const Deviations& X) { return static_cast<double>(X.count() + X.columns().cols); }
  template <class F>
  Ledger::Part& time(const char* name, F&& call) const {
    const double start = clock_seconds();
    call();
    auto& part = ledger_.parts[name];
    part.seconds += clock_seconds() - start;
    ++part.calls;
    return part;
  }
  static const Deviations* deviations(const Form* form) {
    const auto* rows = static_cast<const CpuRows*>(form);
    return rows != nullptr && !rows->few.empty() ? &rows->few : nullptr;
  }

  std::unique_ptr<Ops<float>> inner_;
  Precision precision_;
  Ledger& ledger_;
};

}  // namespace lacuna
