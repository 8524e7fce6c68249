// The seam to the machine: everything that networks compute, as coarse functions of whole matrices. Above
// this header nobody names an instruction set, a library or a device. Three kinds of implementation fit
// behind it: the naive reference (the tests' truth, float and double), the CPU one, and a device one.
//
// Conventions:
//   - row-major views (base/matrix.h); memory belongs to the caller and may be the device's: a network never
//     looks inside;
//   - the gradient of X is dX; "adds" means +=, otherwise outputs are overwritten; nothing aliases unless
//     said;
//   - a function that owns parameters (linear, norms) updates them inside its backward: no gradient buffers
//     exist. With plain SGD, momentum 0 and rate 1 the gradient is old minus new. Each parameter is used
//     once in a step;
//   - a matrix may have no rows: parameters are then updated with gradient zero;
//   - losses return the value before weighting, gradients are times `weight`; a loss of nothing is 0.
//
// The stack. A batch has b rows and m views, and about half of the instances are missing. Per view only the
// present rows exist, one below the other; all views together form a stack (N, d). slots (b, m) tells where:
// slots(i, v) is the stack row of view v of batch row i, or kNoRow. Where batch norm must count missing
// instances (zero rows) too, the last row of a view's block stands for all of them: it is computed once and
// weighted by their number, which is exact.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/matrix.h"
#include "ops/gemm.h"
#include "ops/sparse.h"
#include "ops/update.h"

namespace lacuna {

constexpr std::int32_t kNoRow = -1;
using Slots = MatrixView<const std::int32_t>;  // (b, m)

// The labels of a batch: row i of the batch is row rows[i] of Y and G.
struct LabelRows {
  MatrixView<const float> Y;            // (n, c) 1 or 0, unknown = 0
  MatrixView<const std::uint8_t> G;     // (n, c) 1 = known
  std::span<const std::uint32_t> rows;  // b positions
};

enum class Share { sum, mean };  // over the views that a row has

// Which random numbers a dropout draws: a pure function of these and of rows[r], the identity of row r.
struct Draws {
  std::uint64_t seed = 1;
  std::uint32_t step = 0, layer = 0;
  std::span<const std::uint32_t> rows;
};

struct BatchNormSettings {
  double epsilon = 1e-5, momentum = .1;
};

enum class BceForm { logarithm, softplus };
enum class BceDivisor { known, all };
struct BceSettings {
  BceForm form = BceForm::softplus;        // logarithm: |Y ln(P+ε) + (1-Y) ln(1-P+ε)|
  BceDivisor divisor = BceDivisor::known;  // known: ΣG of the batch; all: b c
  double epsilon = 1e-5;
};

struct GraphSettings {
  double eta = 100;       // η of eq. (5)
  bool normalise = true;  // rows of Z to length 1 first
  bool pairwise = false;  // eq. (6), twice the trace form of eq. (7)
};

enum class ContrastCount { views, pairs };  // N of eq. (1): k, or k² as printed
enum class ContrastPositives {
  others,
  self
};  // shared-shared pairs of the denominator: v ≠ u, or v = u as printed
struct ContrastSettings {
  Share share = Share::sum;  // over the rows with at least two views
  double factor = .5, epsilon = 1e-6;
  ContrastCount count = ContrastCount::views;
  ContrastPositives positives = ContrastPositives::others;
};

template <class T>
class Ops {
 public:
  using Output = MatrixView<T>;
  using Input = MatrixView<const T>;
  virtual ~Ops() = default;

  // ---- rows ----
  // out (r, d): rows of source (n, d) at the given positions, hidden fragments zeroed (none if `hidden` is
  // empty).
  virtual void gather(MatrixView<const float> source, std::span<const std::uint32_t> rows,
                      std::span<const Fragment> hidden, Output out) const = 0;
  // X <- row r of X times factors[r].
  virtual void scale_rows(std::span<const float> factors, Output X) const = 0;
  // out (b, d): sum or mean over each row's slots of the stack (N, d). A row without views gives 0. Eq. (3).
  virtual void collect(Input stack, Slots slots, Share share, bool add, Output out) const = 0;
  // The adjoint: stack (N, d) at each slot of row i gets rows(i), times 1/k_i if mean. Other stack rows are
  // left alone.
  virtual void spread(Input rows, Slots slots, Share share, bool add, Output stack) const = 0;

  // ---- layers ----
  // Y = X W + b, then max(0, .) if relu.   X (n, in), W (in, out), b (1, out), Y (n, out).
  virtual void linear_forward(Input X, Input W, Input b, bool relu, Output Y) const = 0;
  // dX = (dY Wᵀ) ⊙ [X > 0 if mask_by_input], with the old W, not computed if dX is empty; then W and b are
  // updated.
  virtual void linear_backward(Input X, Input dY, bool mask_by_input, const UpdateRule& rule,
                               ParameterView<T> W, ParameterView<T> b, Output dX) const = 0;

  // Two other forms of a layer, for who has a use for them; the reference has not. A first layer whose inputs
  // are mostly a background (ops/sparse.h): `few` becomes X (n, d), or stays empty where that does not pay.
  virtual void find_deviations(Input, std::span<const Fragment>, std::span<const float>, Deviations&) const {}
  virtual void sparse_forward(const Deviations&, Input, Input, bool, Output) const {}
  virtual void sparse_backward(const Deviations&, Input, const UpdateRule&, ParameterView<T>,
                               ParameterView<T>) const {}
  // And weights that no longer change, packed once; or empty. X may have been packed too (`packed`, if not
  // null), here or by the layer before, and Y can be for the next layer (`next`, if not null).
  virtual PackedWeights pack(Input) const { return {}; }
  virtual void pack_rows(Input, PackedRows&) const {}
  virtual void packed_forward(Input /*X*/, const PackedRows* /*packed*/, const PackedWeights& /*W*/,
                              Input /*b*/, bool /*relu*/, Output /*Y*/, PackedRows* /*next*/) const {}

  // Batch norm over the rows of one view. `missing` > 0: the last row stands for so many missing instances.
  //   Y = γ (U - μ) / √(σ² + ε) + β, biased σ²; running (2, d) mean and unbiased variance move by `momentum`;
  //   saved (2, d) receives μ and 1/√(σ² + ε) for the backward. No rows: nothing happens.
  virtual void batch_norm_forward(Input U, std::size_t missing, Input gamma, Input beta,
                                  const BatchNormSettings& settings, Output running, Output saved,
                                  Output Y) const = 0;
  // dU in place of dY; the row that stands for `missing` instances carries the sum of their gradients (its
  // own dY is 0).
  virtual void batch_norm_backward(Input U, std::size_t missing, Input saved, const UpdateRule& rule,
                                   ParameterView<T> gamma, ParameterView<T> beta, Output dY) const = 0;
  // With running statistics; Y may be U.
  virtual void batch_norm_apply(Input U, Input gamma, Input beta, const BatchNormSettings& settings,
                                Input running, Output Y) const = 0;

  // Each row to mean 0 and variance 1, then γ, β.  saved (n, 2) receives μ and 1/√(σ² + ε). Y may be U only
  // if no backward follows.
  virtual void layer_norm_forward(Input U, Input gamma, Input beta, double epsilon, Output saved,
                                  Output Y) const = 0;
  virtual void layer_norm_backward(Input U, Input saved, const UpdateRule& rule, ParameterView<T> gamma,
                                   ParameterView<T> beta, Output dY) const = 0;  // dU in place of dY

  // X <- X keep / (1 - rate) in place; keep (n, d) is drawn here and serves the backward.
  virtual void dropout_forward(double rate, const Draws& draws, MatrixView<std::uint8_t> keep,
                               Output X) const = 0;
  virtual void dropout_backward(double rate, MatrixView<const std::uint8_t> keep, Output dX) const = 0;

  virtual void relu_forward(Input X, Output Y) const = 0;    // Y may be X
  virtual void relu_backward(Input X, Output dX) const = 0;  // dX <- dX [X > 0]; X may be the output
  virtual void copy(Input X, bool add, Output Y) const = 0;  // Y = X, or Y += X
  virtual void zero(Output X) const = 0;
  virtual void sigmoid(Input X, MatrixView<T> P) const = 0;  // P may be X

  // Z = σ(O) ⊙ S, eq. (4).
  virtual void gate_forward(Input S, Input O, Output Z) const = 0;
  virtual void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const = 0;

  // ---- losses: value and gradient in one call. They use scratch memory of this object: one call at a time.
  // ---- Masked binary cross-entropy, eq. (10): logits (b, c); dlogits is written.
  virtual double bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight,
                     Output dlogits) = 0;
  // Sum over the unknown entries of bce(logit, guess), guesses (n, c) held constant, over the number of KNOWN
  // entries of the batch: weight 1 gives an unknown entry the say of a known one. Adds to dlogits.
  virtual double guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight,
                            Output dlogits) = 0;
  // Mean over (row, view, class) of share·bce(view logit, σ(logit) held constant) + (1-share)·bce(view logit,
  // Y) G / mean(G). view_logits (N, c) are replaced by their gradient; stack rows without a slot get 0.
  virtual double view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share,
                           double weight, Output view_logits) = 0;
  // Weak label-guided graph, eq. (5)-(7): Z (b, d); adds to dZ.
  virtual double graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight,
                            Output dZ) = 0;
  // Cross-channel contrast, eq. (1): stacks S, O (N, d); adds to dS, dO.
  virtual double contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight,
                               Output dS, Output dO) = 0;
  // Instance contrast between two views of the same rows (DICNet): every pair of views, cross-entropy of
  // cosines / τ with the same row's other view as target, self-similarity replaced by 0; adds to dS.
  virtual double instance_loss(Input S, Slots slots, double tau, double weight, Output dS) = 0;
  // Σ (X̄ - X)² / (b d), eq. (2) for one view: X̄ (r, d) is replaced by its gradient.
  virtual double reconstruction_loss(Input X, std::size_t batch_rows, double weight,
                                     Output reconstruction) = 0;
};

template <class T>
std::unique_ptr<Ops<T>> make_reference_ops();  // T = float, double
std::unique_ptr<Ops<float>> make_cpu_ops(Precision precision);

// Cosines between all rows of A (r, d): C (r, r); a zero row is at 0 to everything.
template <class T>
void cosines(MatrixView<const T> A, MatrixView<T> C);

}  // namespace lacuna
