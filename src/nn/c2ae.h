// C2AE (AAAI 2017), for one view: features and labels are embedded into one space, and labels are decoded
// from it.
//   A = Fx(X), E = Fe(label code), P = Fd(E); scores of new items are Fd(Fx(x))
//   L = ‖A-E‖² + λ(‖AᵀA-I‖² + ‖EᵀE-I‖²)
//       + α Σ_i 1/(|P_i||N_i|) Σ_{j∈P_i, l∈N_i} exp(-μ(P_ij - P_il)) / μ  (+ ½ decay ‖W‖²)
// with P_i, N_i the known positives and negatives of row i. The ranking term reaches Fe and Fd, never Fx.
// Hidden layers are leaky ReLU (slope .1); Fx and Fe end in σ(.) - ½, Fd in σ(.).
#pragma once

#include <memory>
#include <vector>

#include "base/options.h"
#include "nn/network.h"
#include "nn/parameters.h"

namespace lacuna {

struct C2aeOptions {
  double reduction = .8;  // width of the common space, as a share of the number of labels
  std::int64_t hidden = 512;
  double orthogonal = .5;   // λ
  double alpha = .5;        // α
  double margin = 5;        // μ
  double rate_decay = .98;  // factor on the learning rate an epoch
  double squares = .9;      // decay of the mean square of the gradient
  bool complete = false;    // every label is known: the label code is 0 and 1 (not a setting; the data say it)
  void declare(Options& options);
};

template <class T>
class C2aeNetwork final : public BasicNetwork<T> {
 public:
  C2aeNetwork(const C2aeOptions& options, const NetworkShape& shape, std::uint64_t seed);

  // Gradients are divided by their running root mean square before momentum; so `second` is always kept.
  void keep(OptimiserState state) override { parameters_.keep(*ops_, {.second = true, .mean = state.mean}); }
  // Of the rule: rate, momentum, weight decay, average and step. The optimiser's kind is this network's own,
  // unless the rule has rate 1 and momentum 0: then gradients are subtracted as they are, for gradient
  // checks.
  Losses step(const Batch& batch, const UpdateRule& rule) override;
  void predict(const Items& items, MatrixView<T> scores) const override;
  void visit(typename BasicNetwork<T>::Visitor visitor) override { parameters_.visit(visitor); }
  void visit_buffers(typename BasicNetwork<T>::BufferVisitor) override {}
  std::uint64_t parameters() const override { return parameters_.count(false); }
  std::uint64_t parameters_for_prediction() const override { return parameters_.count(true); }

 private:
  enum class Activation { leaky, sigmoid, centred };
  struct Layer {
    std::uint32_t W, b;
    std::size_t in, out;
    Activation activation;
  };
  using Path = std::vector<Layer>;
  using Outputs = std::vector<Matrix<T>>;  // of each layer, sized for the largest batch

  Path add_path(const std::string& name, const std::vector<std::size_t>& widths, Activation last,
                bool for_prediction);
  void initialise(const Path& path, std::uint64_t seed);
  MatrixView<const T> forward(const Path& path, MatrixView<const T> X, Outputs& outputs, bool averaged) const;
  // dY is destroyed; dX is written unless it is empty.
  void backward(const Path& path, MatrixView<const T> X, const Outputs& outputs, MatrixView<T> dY,
                const UpdateRule& rule, double rate, MatrixView<T> dX);
  void update(std::uint32_t id, MatrixView<const T> gradient, const UpdateRule& rule, double rate);
  // Adds the gradient of λ‖AᵀA-I‖² and returns its value.
  double add_orthogonal(MatrixView<const T> A, MatrixView<T> dA);
  void reserve(std::size_t rows);

  C2aeOptions options_;
  NetworkShape shape_;
  std::size_t width_;  // of the common space
  std::unique_ptr<Ops<T>> ops_;
  Parameters<T> parameters_;
  Path features_, labels_, decoder_;

  std::size_t capacity_ = 0;
  Matrix<T> X_, code_, dA_, dE_, dP_, gram_, gradient_, bias_, scratch_[2];
  Outputs A_, E_, P_;
};

}  // namespace lacuna
