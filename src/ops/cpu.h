// The CPU implementation of ops/ops.h: float, threads with fixed splits (the same bits for any number of
// threads), loops that compilers vectorise, products from ops/gemm.h. Nothing allocates memory after the first
// calls with the largest sizes.
#pragma once

#include "ops/gemm.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/sparse.h"

namespace lacuna {

// The losses that are faster than the naive loop; all others are inherited from the reference.
class CpuLosses : public ReferenceLosses<float> {
 public:
  void bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight, Output dlogits,
           double* value) const override;
  void guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight, Output dlogits,
                  double* value) const override;
  void view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight,
                 Output view_logits, double* value) const override;
  void graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight, Output dZ,
                  double* value) const override;
  void contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight,
                     Output dS, Output dO, double* value) const override;
  void instance_loss(Input S, Slots slots, double tau, double weight, Output dS, double* value) const override;
  void reconstruction_loss(std::span<const ReconstructionJob<float>> jobs, std::size_t batch_rows,
                           double weight) const override;
  void ranking_loss(Input logits, const LabelRows& labels, double margin, double weight, Output dlogits,
                    double* value) const override;
  void agreement_loss(Input A, Input E, double orthogonal, double weight, Output dA, Output dE,
                      double* value) const override;
};

// Another form of a layer's inputs: their deviations from a background if these are few, or packed for products
// with packed weights; in the latter case the plain ones may be absent.
struct CpuRows final : Form {
  std::size_t most_rows = 0, cols = 0;
  Deviations few;
  PackedRows packed;
  bool is_packed = false;
  void clear() {
    few.clear();
    is_packed = false;
  }
};
struct CpuWeights final : Form {
  explicit CpuWeights(MatrixView<const float> W) : packed(W) {}
  PackedWeights packed;
};

class CpuOps : public CpuLosses {
 public:
  explicit CpuOps(Precision precision) : precision_(precision) {}

  FormPointer input_form(std::size_t rows, std::size_t cols) const override;
  FormPointer settle(Input W) const override;
  void gather(std::span<const GatherJob<float>> jobs) const override;
  void collect(Input stack, Slots slots, Share share, bool add, Output out) const override;
  void spread(Input rows, Slots slots, Share share, bool add, Output stack) const override;
  void linear_forward(std::span<const ForwardJob<float>> jobs) const override;
  void linear_backward(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const override;
  void batch_norm_forward(std::span<const NormForward<float>> jobs,
                          const BatchNormSettings& settings) const override;
  void batch_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const override;
  void batch_norm_apply(std::span<const NormForward<float>> jobs,
                        const BatchNormSettings& settings) const override;
  void layer_norm_forward(std::span<const NormForward<float>> jobs, double epsilon) const override;
  void layer_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const override;
  void dropout(double rate, std::span<const DropoutJob<float>> jobs) const override;
  void activate_forward(Activation f, Input X, Output Y) const override;
  void activate_backward(Activation f, Input Y, Output dX) const override;
  void copy(Input X, bool add, Output Y) const override;
  void zero(Output X) const override;
  void gate_forward(Input S, Input O, Output Z) const override;
  void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const override;

 private:
  Precision precision_;
};

// Scratch memory of the calling thread for the duration of one function; it grows and is kept. Each use in a
// function has a number of its own.
template <class T, int number>
T* scratch(std::size_t count) {
  thread_local Matrix<T> memory;
  if (memory.cols() < count) memory = Matrix<T>(1, count);
  return memory.data();
}

// Rows of a chunk: about 16 thousand elements, for any number of threads.
inline std::size_t row_grain(std::size_t cols) {
  return cols >= 16384 ? 1 : 16384 / (cols == 0 ? 1 : cols);
}

}  // namespace lacuna
