// The naive implementation of ops/ops.h: one loop after the other, as the equations stand. The tests' truth.
#pragma once

#include "ops/ops.h"

namespace lacuna {

template <class T>
class ReferenceLosses : public OnHost<Ops<T>> {
 public:
  using Input = MatrixView<const T>;
  using Output = MatrixView<T>;

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
  void reconstruction_loss(std::span<const ReconstructionJob<T>> jobs, std::size_t batch_rows,
                           double weight) const override;
  void ranking_loss(Input logits, const LabelRows& labels, double margin, double weight, Output dlogits,
                    double* value) const override;
  void agreement_loss(Input A, Input E, double orthogonal, double weight, Output dA, Output dE,
                      double* value) const override;
};

template <class T>
class ReferenceOps final : public ReferenceLosses<T> {
 public:
  using Input = MatrixView<const T>;
  using Output = MatrixView<T>;

  FormPointer input_form(std::size_t, std::size_t) const override { return nullptr; }
  FormPointer settle(Input) const override { return nullptr; }
  void gather(std::span<const GatherJob<T>> jobs) const override;
  void collect(Input stack, Slots slots, Share share, bool add, Output out) const override;
  void spread(Input rows, Slots slots, Share share, bool add, Output stack) const override;

  void linear_forward(std::span<const ForwardJob<T>> jobs) const override;
  void linear_backward(std::span<const BackwardJob<T>> jobs, const UpdateRule& rule) const override;
  void batch_norm_forward(std::span<const NormForward<T>> jobs,
                          const BatchNormSettings& settings) const override;
  void batch_norm_backward(std::span<const NormBackward<T>> jobs, const UpdateRule& rule) const override;
  void batch_norm_apply(std::span<const NormForward<T>> jobs, const BatchNormSettings& settings) const override;
  void layer_norm_forward(std::span<const NormForward<T>> jobs, double epsilon) const override;
  void layer_norm_backward(std::span<const NormBackward<T>> jobs, const UpdateRule& rule) const override;
  void dropout(double rate, std::span<const DropoutJob<T>> jobs) const override;
  void activate_forward(Activation f, Input X, Output Y) const override;
  void activate_backward(Activation f, Input Y, Output dX) const override;
  void copy(Input X, bool add, Output Y) const override;
  void zero(Output X) const override;
  void gate_forward(Input S, Input O, Output Z) const override;
  void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const override;
};

}  // namespace lacuna
