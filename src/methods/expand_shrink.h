// The solver of DM2L and NAIM3L: high rank of all predictions, low rank of the predictions that share a label.
//
//   min_A  ½|P ⊙ (XA - Y)|² + λ( Σ_k |X_k A|_* - |XA|_* )
//
// X is block-diagonal (one block per view; DM2L has one), Y is ±1, P marks known labels, X_k are the rows whose
// label k is known to be positive. The concave part is linearised at the current A; ADMM splits the others:
//   1. S = U₊V₊ᵀ, the sub-gradient of |XA|_*                              (singular values with σ² >= cut)
//   2. A minimises the augmented Lagrangian, the masked square replaced by its majoriser at the old A
//      (|P ⊙ E|² <= |E|²), or linearised without one as the authors do
//   3. Z_k = SVT(X_k A + Λ_k/μ, λ/μ),  Λ_k += μ(X_k A - Z_k)
// With the majoriser, steps 1 and 2 and the update of Z never raise the augmented Lagrangian.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/matrix.h"
#include "base/options.h"
#include "data/items.h"
#include "methods/method.h"
#include "nn/fit.h"
#include "ops/linalg.h"

namespace lacuna {

struct ExpandShrinkOptions {
  double lambda = .4;       // weight of the rank terms
  double mu = 5;            // penalty of the splitting
  double cut = .005;        // singular values with a smaller square have no part in the sub-gradient
  double tolerance = 1e-4;  // stop when no entry changes by more than this,
  double relative = 5e-5;   // or when the objective changes by a smaller share in three iterations in a row
  std::int64_t iterations = 200;
  bool majorise = true;       // false: the authors' linearised step
  bool random_start = false;  // true: A ~ U(-1, 1), as the authors; false: A = 0
  void declare(Options& options);
};

// The estimated cost of a solve; `constants` columns are added to each view.
Cost expand_shrink_cost(const FitSize& size, std::size_t constants, const ExpandShrinkOptions& options);

class ExpandShrink {
 public:
  // One view of the stack: features of the rows that have it (with whatever constant column the method adds),
  // and which rows of the items they are.
  struct Block {
    Matrix<double> X;
    std::vector<std::uint32_t> rows;
  };
  ExpandShrink(std::vector<Block> blocks, const Items& labels, const ExpandShrinkOptions& options);

  void solve(const std::string& method, FitContext& context);

  // The parts of an iteration, for solve() and the tests.
  void start(std::uint64_t seed);
  void update_predictions();  // F = X A
  void update_subgradient();  // S at F
  double update_A();          // returns the largest change of an entry, and updates F
  double update_Z();          // the same for Z
  void update_multipliers();
  double data_term() const;   // ½|P ⊙ (F - Y)|²
  double lagrangian() const;  // augmented, with the exact |F|_*; costs an eigenproblem
  Matrix<double> gradient_A(
      const Matrix<double>& old_predictions) const;  // of step 2's problem, at the current A

  const std::vector<Matrix<double>>& A() const { return A_; }  // per block (d_v, c)

 private:
  std::size_t rows() const { return F_.rows(); }
  std::vector<Block> blocks_;
  ExpandShrinkOptions options_;
  std::vector<std::size_t> first_;        // first row of each block in the stack
  Matrix<double> Y_;                      // (N, c), 0 where unknown
  Matrix<std::uint8_t> P_;                // (N, c)
  std::vector<std::size_t> class_start_;  // rows of Z of class k: class_start_[k]..class_start_[k+1]
  std::vector<std::uint32_t> member_;     // (R) row of the stack of each row of Z
  std::vector<std::size_t> row_start_;    // positions in Z of each row of the stack
  std::vector<std::uint32_t> position_;
  std::vector<Cholesky> factor_;  // per block: μQ + XᵀX or μQ, + δI
  std::vector<Matrix<double>> A_;
  Matrix<double> F_, S_, Z_, multipliers_, right_;
  std::vector<double> z_norms_;  // |Z_k|_*
  NuclearNorm predictions_norm_;
  // Memory of update_Z, one piece for each thread, kept: the system would zero fresh memory for every class. Matrices,
  // because their alignment is always the same: the bits of a product may depend on it.
  struct Scratch {
    Matrix<double> point, next;
  };
  std::mutex scratch_mutex_;
  std::vector<Scratch> scratch_;
};

}  // namespace lacuna
