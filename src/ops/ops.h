// The seam to the machine: everything that networks compute, as functions of whole matrices. No code above this
// header names an instruction set, a library or a device. It has three implementations: the naive reference (the
// ground truth of the tests, float and double), the CPU engine and the GPU engine.
//
// Conventions:
//   - matrices are row-major views (base/matrix.h) into memory of the engine (ops/engine.h), and so are lists of
//     rows, slots and labels: a network never looks inside;
//   - operations that all views and channels share take lists of jobs, which are independent of each other;
//   - the gradient of X is dX; "adds" means +=, otherwise outputs are overwritten; arguments do not alias unless
//     stated;
//   - the backward of a layer with parameters (linear, norms) updates them: there are no gradient buffers. With
//     plain SGD, momentum 0 and rate 1, the gradient is the old value minus the new one. Each parameter is used
//     once per step;
//   - a matrix may have no rows: parameters are then updated with gradient zero;
//   - losses write their value before weighting to the engine's memory, and multiply gradients by `weight`; a loss
//     over no entries is 0. One step at a time: an engine may use scratch memory of its own.
//
// The stack. A batch has b rows and m views, and many instances are missing. Only the present rows of each view
// exist, one below the other; those of all views form a stack (N, d). slots(i, v) of slots (b, m) is the stack row
// of view v of batch row i, or kNoRow. If batch norm must count missing instances (zero rows) too, the last row of
// a view's block stands for all of them: it is computed once and weighted by their number, which is exact.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/matrix.h"
#include "ops/engine.h"
#include "ops/kinds.h"
#include "ops/row_source.h"
#include "ops/update.h"

namespace lacuna {

constexpr std::int32_t kNoRow = -1;
using Slots = MatrixView<const std::int32_t>;  // (b, m)

// The labels of a batch: row i of the batch is row rows[i] of Y and G.
struct LabelRows {
  MatrixView<const float> Y;            // (n, c) 1 or 0, unknown = 0
  MatrixView<const std::uint8_t> G;     // (n, c) 1 = known
  std::span<const std::uint32_t> rows;  // b positions
  std::span<const float> weights = {};  // (c) weights of labels in classification losses; empty: 1
};

enum class Share { sum, mean };  // over the views that a row has

// The random numbers of a dropout are a pure function of these and of rows[r], the identity of row r.
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

enum class Activation { relu, leaky, sigmoid, centred };  // max(x, 0), max(x, x/10), σ(x), σ(x) - ½

// An engine's own representation of a matrix, in addition to it or instead of it: inputs as few deviations from a
// background, rows or weights packed for its products. Its contents are private to the engine; null if the engine
// does not use one.
class Form {
 public:
  virtual ~Form() = default;
};
using FormPointer = std::unique_ptr<Form>;

// out (r, d): rows of source (n, d) at the given positions, hidden fragments zeroed, times the row's factor. Rows
// of `out` beyond the positions are zeroed; a list of fragments has one for each of them too.
template <class T>
struct GatherJob {
  RowSource source;
  std::span<const std::uint32_t> rows;
  std::span<const Fragment> hidden = {};    // empty: nothing is hidden
  std::span<const float> factors = {};      // empty: as they are
  std::span<const float> background = {};   // (d) the most frequent value of each column, or empty: a hint
  MatrixView<T> out = {};
  Form* form = nullptr;                     // of `out`, from input_form()
  const Form* reader = nullptr;             // the form of the weights that will read it, if they no longer change
};

// Y = X W + b, then max(0, .) if relu, then dropout.   X (n, in), W (in, out), b (1, out), Y (n, out).
template <class T>
struct ForwardJob {
  MatrixView<const T> X;
  const Form* X_form = nullptr;
  MatrixView<const T> W, b;
  const Form* settled = nullptr;  // of W, from settle()
  bool relu = false;
  double dropout = 0;  // of the first draws.rows.size() rows
  Draws draws = {};
  MatrixView<T> Y = {};
  // From input_form(): only a forward reads Y, in this form, and Y itself may remain unwritten. From step_form(): in
  // addition to Y.
  Form* Y_form = nullptr;
};

// dX = (dY Wᵀ) ⊙ [X > 0 if mask_by_input] with the old W, times the factor by which dropout scaled the kept entries
// in the first `dropped` rows of X; not computed if dX is empty. Then W and b are updated.
template <class T>
struct BackwardJob {
  MatrixView<const T> X;
  const Form* X_form = nullptr;
  MatrixView<const T> dY;
  const Form* dY_form = nullptr;  // from step_form(), the dX_form of the job that wrote dY
  bool mask_by_input = false;  // X is the output of a ReLU
  double dropout = 0;          // and of a dropout after that; only together with mask_by_input
  std::size_t dropped = 0;
  ParameterView<T> W, b;
  MatrixView<T> dX = {};
  Form* dX_form = nullptr;  // from step_form(), in addition to dX
};

template <class T>
struct DropoutJob {
  Draws draws;
  MatrixView<T> X;
};

// Norms. Batch norm over the rows of one view, `missing` > 0: the last row stands for that many missing instances.
//   Y = γ (U - μ) / √(σ² + ε) + β, biased σ²; running (2, d) mean and unbiased variance move by `momentum`;
//   saved (2, d) receives μ and 1/√(σ² + ε) for the backward. No rows: nothing happens.
// Layer norm: each row to mean 0 and variance 1, then γ, β; saved (n, 2). Y may be U only if no backward follows.
template <class T>
struct NormForward {
  MatrixView<const T> U;
  MatrixView<const T> gamma, beta;
  MatrixView<T> saved, Y;
  MatrixView<T> running = {};  // of batch norm
  std::size_t missing = 0;
};
// dU in place of dY; the row that stands for `missing` instances carries the sum of their gradients (its own dY
// is 0).
template <class T>
struct NormBackward {
  MatrixView<const T> U, saved;
  ParameterView<T> gamma, beta;
  MatrixView<T> dY;
  std::size_t missing = 0;
};

// Σ (X̄ - X)² / (b d), eq. (2) for one view: X̄ (r, d) is replaced by its gradient.
template <class T>
struct ReconstructionJob {
  MatrixView<const T> X;
  MatrixView<T> reconstruction;
  double* value;
};

template <class T>
class Ops : public Engine {
 public:
  using Output = MatrixView<T>;
  using Input = MatrixView<const T>;
  using Reconstructions = std::span<const ReconstructionJob<T>>;

  // ---- forms ----
  virtual FormPointer input_form(std::size_t rows, std::size_t cols) const = 0;  // upper bounds
  virtual FormPointer settle(Input W) const = 0;  // the form of weights that no longer change
  // The form of a matrix that layers pass to each other in a step, in addition to it; only these layers may write it.
  virtual FormPointer step_form(std::size_t, std::size_t) const { return nullptr; }

  // ---- rows ----
  virtual void gather(std::span<const GatherJob<T>> jobs) const = 0;
  // out (b, d): sum or mean over each row's slots of the stack (N, d). A row without views gives 0. Eq. (3).
  virtual void collect(Input stack, Slots slots, Share share, bool add, Output out) const = 0;
  // The adjoint: stack (N, d) at each slot of row i gets rows(i), times 1/k_i if mean. Other stack rows do not
  // change.
  virtual void spread(Input rows, Slots slots, Share share, bool add, Output stack) const = 0;

  // ---- layers ----
  virtual void linear_forward(std::span<const ForwardJob<T>> jobs) const = 0;
  virtual void linear_backward(std::span<const BackwardJob<T>> jobs, const UpdateRule& rule) const = 0;

  virtual void batch_norm_forward(std::span<const NormForward<T>> jobs,
                                  const BatchNormSettings& settings) const = 0;
  virtual void batch_norm_backward(std::span<const NormBackward<T>> jobs, const UpdateRule& rule) const = 0;
  // With running statistics; Y may be U.
  virtual void batch_norm_apply(std::span<const NormForward<T>> jobs,
                                const BatchNormSettings& settings) const = 0;
  virtual void layer_norm_forward(std::span<const NormForward<T>> jobs, double epsilon) const = 0;
  virtual void layer_norm_backward(std::span<const NormBackward<T>> jobs, const UpdateRule& rule) const = 0;

  // X <- X keep / (1 - rate) in place, where `draws` determine keep; the backward draws the same again.
  virtual void dropout(double rate, std::span<const DropoutJob<T>> jobs) const = 0;

  // Y = f(X), element by element; Y may be X. dX <- dX f'(X), computed from Y; for relu and leaky X may be passed
  // instead.
  virtual void activate_forward(Activation f, Input X, Output Y) const = 0;
  virtual void activate_backward(Activation f, Input Y, Output dX) const = 0;
  virtual void copy(Input X, bool add, Output Y) const = 0;  // Y = X, or Y += X
  virtual void zero(Output X) const = 0;

  // Z = σ(O) ⊙ S, eq. (4).
  virtual void gate_forward(Input S, Input O, Output Z) const = 0;
  virtual void gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const = 0;

  // ---- losses: value and gradient in one call ----
#define LACUNA_LOSS(name, parameters, arguments) virtual void name parameters const = 0;
#include "ops/loss_list.h"
};

template <class T>
std::unique_ptr<Ops<T>> make_reference_ops();  // T = float, double
std::unique_ptr<Ops<float>> make_cpu_ops(Precision precision);

// Cosines between all rows of A (r, d): C (r, r); those of a zero row are 0. In the host's memory.
template <class T>
void cosines(MatrixView<const T> A, MatrixView<T> C);

}  // namespace lacuna
