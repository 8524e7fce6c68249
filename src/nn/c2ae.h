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
#include "nn/layers.h"
#include "nn/network.h"
#include "nn/parameters.h"
#include "nn/tally.h"
#include "ops/ops.h"

namespace lacuna {

struct C2aeOptions {
  double reduction = .8;  // width of the common space, as a share of the number of labels
  std::int64_t hidden = 512;
  double orthogonal = .5;   // λ
  double alpha = .5;        // α
  double margin = 5;        // μ
  double rate_decay = .98;  // factor on the learning rate per epoch
  bool complete = false;  // every label is known: the label code is 0 and 1 (not a setting; the data say it)
  void declare(Options& options);
};

template <class T>
class C2aeNetwork final : public BasicNetwork<T> {
 public:
  C2aeNetwork(const C2aeOptions& options, const NetworkShape& shape, std::uint64_t seed,
              std::unique_ptr<Ops<T>> ops);

  void keep(OptimiserState state) override { parameters_.keep(*ops_, state); }
  Losses step(const Batch& batch, const UpdateRule& rule) override;
  void start(const Batch& batch, const UpdateRule& rule) override;
  Losses finish() override { return tally_.read(); }
  const Engine& engine() const override { return *ops_; }
  void predict(const Items& items, MatrixView<T> scores) const override;
  void settle() override { parameters_.settle(*ops_); }
  void visit(typename BasicNetwork<T>::Visitor visitor) override { parameters_.visit(visitor); }
  void visit_buffers(typename BasicNetwork<T>::BufferVisitor) override {}
  std::uint64_t parameters() const override { return parameters_.count(false); }
  std::uint64_t parameters_for_prediction() const override { return parameters_.count(true); }

 private:
  using Path = std::vector<Linear<T>>;     // with a leaky ReLU between two of them
  using Outputs = std::vector<Buffer<T>>;  // of each layer, after its activation; of the last one before

  Path add_path(const std::string& name, const std::vector<std::size_t>& widths, bool for_prediction);
  void initialise(const Path& path, std::uint64_t seed);
  Outputs outputs(const Path& path, std::size_t rows) const;
  // The output of the last layer, in `outputs`.
  MatrixView<T> forward(const Path& path, MatrixView<const T> X, const Form* X_form, bool learning,
                        Outputs& outputs) const;
  // dX is written unless it is empty.
  void backward(const Path& path, MatrixView<const T> X, const Form* X_form, const Outputs& outputs,
                MatrixView<const T> dY, const UpdateRule& rule, MatrixView<T> dX);
  void reserve(const Items& items, std::size_t rows);
  // The label codes of all rows, in the engine's memory.
  RowSource codes(const Items& items);

  C2aeOptions options_;
  NetworkShape shape_;
  std::size_t width_;  // of the common space
  std::unique_ptr<Ops<T>> ops_;
  Parameters<T> parameters_;
  Path features_, labels_, decoder_;

  // Everything a step writes besides parameters.
  std::size_t capacity_ = 0;
  Parcel parcel_;
  Buffer<T> X_, code_, dA_, dE_, dlogits_;
  FormPointer X_form_;
  Outputs A_, E_, P_;
  PingPong<T> scratch_;
  Tally tally_;
  EngineMatrix<float> codes_;  // (n, c)
  const Items* coded_ = nullptr;
};

}  // namespace lacuna
