// The CPU implementation of ops/ops.h: float, threads with fixed splits (the same bits for any number of
// threads), loops that compilers vectorise, products from ops/gemm.h. Nothing here allocates after the first
// calls of a size.
#pragma once

#include "ops/ops.h"

namespace lacuna {

class CpuLosses : public Ops<float> {
 public:
  double bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight,
             Output dlogits) override;
  double guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight,
                    Output dlogits) override;
  double view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight,
                   Output view_logits) override;
  double graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight,
                    Output dZ) override;
  double contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight,
                       Output dS, Output dO) override;
  double instance_loss(Input S, Slots slots, double tau, double weight, Output dS) override;
  double reconstruction_loss(Input X, std::size_t batch_rows, double weight, Output reconstruction) override;
};

class CpuOps final : public CpuLosses {
 public:
  explicit CpuOps(Precision precision) : precision_(precision) {}

  void gather(MatrixView<const float> source, std::span<const std::uint32_t> rows,
              std::span<const Fragment> hidden, Output out) const override;
  void scale_rows(std::span<const float> factors, Output X) const override;
  void collect(Input stack, Slots slots, Share share, bool add, Output out) const override;
  void spread(Input rows, Slots slots, Share share, bool add, Output stack) const override;
  void linear_forward(Input X, Input W, Input b, bool relu, Output Y) const override;
  void linear_backward(Input X, Input dY, bool mask_by_input, const UpdateRule& rule, ParameterView<float> W,
                       ParameterView<float> b, Output dX) const override;
  PackedWeights pack(Input W) const override;
  void pack_rows(Input X, PackedRows& packed) const override;
  void packed_forward(Input X, const PackedRows* packed, const PackedWeights& W, Input b, bool relu, Output Y,
                      PackedRows* next) const override;
  void find_deviations(Input X, std::span<const Fragment> hidden, std::span<const float> background,
                       Deviations& few) const override;
  void sparse_forward(const Deviations& X, Input W, Input b, bool relu, Output Y) const override;
  void sparse_backward(const Deviations& X, Input dY, const UpdateRule& rule, ParameterView<float> W,
                       ParameterView<float> b) const override;
  void batch_norm_forward(Input U, std::size_t missing, Input gamma, Input beta,
                          const BatchNormSettings& settings, Output running, Output saved,
                          Output Y) const override;
  void batch_norm_backward(Input U, std::size_t missing, Input saved, const UpdateRule& rule,
                           ParameterView<float> gamma, ParameterView<float> beta, Output dY) const override;
  void batch_norm_apply(Input U, Input gamma, Input beta, const BatchNormSettings& settings, Input running,
                        Output Y) const override;
  void layer_norm_forward(Input U, Input gamma, Input beta, double epsilon, Output saved,
                          Output Y) const override;
  void layer_norm_backward(Input U, Input saved, const UpdateRule& rule, ParameterView<float> gamma,
                           ParameterView<float> beta, Output dY) const override;
  void dropout_forward(double rate, const Draws& draws, MatrixView<std::uint8_t> keep,
                       Output X) const override;
  void dropout_backward(double rate, MatrixView<const std::uint8_t> keep, Output dX) const override;
  void relu_forward(Input X, Output Y) const override;
  void relu_backward(Input X, Output dX) const override;
  void copy(Input X, bool add, Output Y) const override;
  void zero(Output X) const override;
  void sigmoid(Input X, Output P) const override;
  void gate_forward(Input S, Input O, Output Z) const override;
  void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const override;

 private:
  Precision precision_;
};

// Memory of the calling thread for the duration of one function; it grows and is kept. Each use in a function
// takes a number of its own.
template <class T, int number>
T* scratch(std::size_t count) {
  thread_local Matrix<T> memory;
  if (memory.cols() < count) memory = Matrix<T>(1, count);
  return memory.data();
}

// Rows of a chunk: about 16 thousand elements, whatever the number of threads.
inline std::size_t row_grain(std::size_t cols) {
  return cols >= 16384 ? 1 : 16384 / (cols == 0 ? 1 : cols);
}

}  // namespace lacuna
