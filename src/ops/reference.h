// The naive implementation of ops/ops.h: one loop after the other, as in the equations. The ground truth of the tests.
#pragma once

#include "ops/ops.h"

namespace lacuna {

template <class T>
class ReferenceLosses : public OnHost<Ops<T>> {
 public:
  using Input = MatrixView<const T>;
  using Output = MatrixView<T>;
  using Reconstructions = std::span<const ReconstructionJob<T>>;

#define LACUNA_LOSS(name, parameters, arguments) void name parameters const override;
#include "ops/loss_list.h"
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
