// Ops that pass every call on and note how long it took, so that a step can be taken apart without touching
// the network.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

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

class TimedOps final : public Ops<float> {
 public:
  TimedOps(std::unique_ptr<Ops<float>> inner, Precision precision, Ledger& ledger)
      : inner_(std::move(inner)), precision_(precision), ledger_(ledger) {}

  void gather(MatrixView<const float> source, std::span<const std::uint32_t> rows,
              std::span<const Fragment> hidden, Output out) const override {
    time("gather", [&] { inner_->gather(source, rows, hidden, out); });
  }
  void scale_rows(std::span<const float> factors, Output X) const override {
    time("elementwise", [&] { inner_->scale_rows(factors, X); });
  }
  void collect(Input stack, Slots slots, Share share, bool add, Output out) const override {
    time("fusion", [&] { inner_->collect(stack, slots, share, add, out); });
  }
  void spread(Input rows, Slots slots, Share share, bool add, Output stack) const override {
    time("fusion", [&] { inner_->spread(rows, slots, share, add, stack); });
  }
  void linear_forward(Input X, Input W, Input b, bool relu, Output Y) const override {
    auto& part = time("linear forward", [&] { inner_->linear_forward(X, W, b, relu, Y); });
    part.flops += 2. * static_cast<double>(X.rows) * static_cast<double>(W.size());
    part.bytes += 4. * static_cast<double>(W.size());
  }
  void linear_backward(Input X, Input dY, bool mask_by_input, const UpdateRule& rule, ParameterView<float> W,
                       ParameterView<float> b, Output dX) const override {
    auto& part = time("linear backward + update",
                      [&] { inner_->linear_backward(X, dY, mask_by_input, rule, W, b, dX); });
    // In f32 nothing is multiplied by the zeros of ReLU, backward.
    const bool gated = precision_ == Precision::f32 && mask_by_input && !dX.empty();
    part.flops += (dX.empty() ? 2. : 4.) * static_cast<double>(gated ? not_zero(X) : X.size()) *
                  static_cast<double>(W.value.cols);
    part.bytes += update_bytes(W);
  }
  void find_deviations(Input X, std::span<const Fragment> hidden, std::span<const float> background,
                       Deviations& few) const override {
    time("gather", [&] { inner_->find_deviations(X, hidden, background, few); });
  }
  void sparse_forward(const Deviations& X, Input W, Input b, bool relu, Output Y) const override {
    auto& part = time("sparse layers forward", [&] { inner_->sparse_forward(X, W, b, relu, Y); });
    part.flops += 2. * needed(X) * static_cast<double>(W.cols);
    part.bytes += 4. * static_cast<double>(W.size());
  }
  void sparse_backward(const Deviations& X, Input dY, const UpdateRule& rule, ParameterView<float> W,
                       ParameterView<float> b) const override {
    auto& part = time("sparse layers backward + update", [&] { inner_->sparse_backward(X, dY, rule, W, b); });
    part.flops += 2. * needed(X) * static_cast<double>(W.value.cols);
    part.bytes += update_bytes(W);
  }
  void batch_norm_forward(Input U, std::size_t missing, Input gamma, Input beta,
                          const BatchNormSettings& settings, Output running, Output saved,
                          Output Y) const override {
    time("norm", [&] { inner_->batch_norm_forward(U, missing, gamma, beta, settings, running, saved, Y); });
  }
  void batch_norm_backward(Input U, std::size_t missing, Input saved, const UpdateRule& rule,
                           ParameterView<float> gamma, ParameterView<float> beta, Output dY) const override {
    time("norm", [&] { inner_->batch_norm_backward(U, missing, saved, rule, gamma, beta, dY); });
  }
  void batch_norm_apply(Input U, Input gamma, Input beta, const BatchNormSettings& settings, Input running,
                        Output Y) const override {
    time("norm", [&] { inner_->batch_norm_apply(U, gamma, beta, settings, running, Y); });
  }
  void layer_norm_forward(Input U, Input gamma, Input beta, double epsilon, Output saved,
                          Output Y) const override {
    time("norm", [&] { inner_->layer_norm_forward(U, gamma, beta, epsilon, saved, Y); });
  }
  void layer_norm_backward(Input U, Input saved, const UpdateRule& rule, ParameterView<float> gamma,
                           ParameterView<float> beta, Output dY) const override {
    time("norm", [&] { inner_->layer_norm_backward(U, saved, rule, gamma, beta, dY); });
  }
  void dropout_forward(double rate, const Draws& draws, MatrixView<std::uint8_t> keep,
                       Output X) const override {
    time("dropout", [&] { inner_->dropout_forward(rate, draws, keep, X); });
  }
  void dropout_backward(double rate, MatrixView<const std::uint8_t> keep, Output dX) const override {
    time("dropout", [&] { inner_->dropout_backward(rate, keep, dX); });
  }
  void relu_forward(Input X, Output Y) const override {
    time("elementwise", [&] { inner_->relu_forward(X, Y); });
  }
  void relu_backward(Input X, Output dX) const override {
    time("elementwise", [&] { inner_->relu_backward(X, dX); });
  }
  void copy(Input X, bool add, Output Y) const override {
    time("elementwise", [&] { inner_->copy(X, add, Y); });
  }
  void zero(Output X) const override {
    time("elementwise", [&] { inner_->zero(X); });
  }
  void sigmoid(Input X, Output P) const override {
    time("elementwise", [&] { inner_->sigmoid(X, P); });
  }
  void gate_forward(Input S, Input O, Output Z) const override {
    time("fusion", [&] { inner_->gate_forward(S, O, Z); });
  }
  void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const override {
    time("fusion", [&] { inner_->gate_backward(S, O, dZ, dS, dO); });
  }
  double bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight,
             Output dlogits) override {
    return value("loss: classification",
                 [&] { return inner_->bce(logits, labels, settings, weight, dlogits); });
  }
  double guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight,
                    Output dlogits) override {
    return value("loss: guesses",
                 [&] { return inner_->guess_loss(logits, labels, guesses, weight, dlogits); });
  }
  double view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight,
                   Output view_logits) override {
    return value("loss: views", [&] {
      return inner_->view_loss(logits, labels, slots, teacher_share, weight, view_logits);
    });
  }
  double graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight,
                    Output dZ) override {
    return value("loss: graph", [&] { return inner_->graph_loss(Z, labels, settings, weight, dZ); });
  }
  double contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight,
                       Output dS, Output dO) override {
    return value("loss: contrast",
                 [&] { return inner_->contrast_loss(S, O, slots, settings, weight, dS, dO); });
  }
  double instance_loss(Input S, Slots slots, double tau, double weight, Output dS) override {
    return value("loss: instances", [&] { return inner_->instance_loss(S, slots, tau, weight, dS); });
  }
  double reconstruction_loss(Input X, std::size_t batch_rows, double weight, Output reconstruction) override {
    return value("loss: reconstruction",
                 [&] { return inner_->reconstruction_loss(X, batch_rows, weight, reconstruction); });
  }

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
  template <class F>
  double value(const char* name, F&& call) const {
    double result = 0;
    time(name, [&] { result = call(); });
    return result;
  }

  std::unique_ptr<Ops<float>> inner_;
  Precision precision_;
  Ledger& ledger_;
};

}  // namespace lacuna
