// LVSL: view-specific labels. Each view has labels P_v of its own. They are close to its kernel machine, smooth on its
// neighbour graph, and close to ỸC, the labels after a low-rank correlation.
//
//   Σ_v θ_v[ ½|K_v W_v - P_v|² + ½λ3 tr(P_vᵀL_vP_v) ] + ½λ1 Σ_v tr(W_vᵀK_vW_v) + ½λ4 Σ_v |P_v - ỸC|² +
//   λ5|C|_* with the weights θ_v (sum 1) in closed form, spread by λ2
//
// The kernel is used as Φ_vΦ_vᵀ on landmarks (methods/kernels.h): with w = ΦᵀW the machine is w = (θΦᵀΦ +
// λ1)⁻¹θΦᵀP. If a view has at most `landmarks` distinct rows, all of them are landmarks, and the kernel is exact.
// Filled rows are all equal and count once. Memory: 8 n L bytes per view.
#pragma once

#include <cstdint>
#include <vector>

#include "methods/clusters.h"
#include "methods/kernels.h"
#include "nn/fit.h"

namespace lacuna {

struct LvslOptions {
  double lambda1 = .1, lambda2 = 1e5, lambda3 = 1e-3, lambda4 = 100, lambda5 = 1e-3;
  double width = .4;  // κ of exp(-|x-x'|²/(2κ²))
  std::int64_t neighbours = 10, landmarks = 2000;
  std::int64_t iterations = 5;  // the authors run 30; validation AP does not change after 4 (docs/methods.md)
  double tolerance = 1e-5;
  bool random_start = false;  // P ~ U(0, 1) as the authors; false: P = Y
  bool transposed = false;    // the released program's ΣPᵀỸ in place of ΣỸᵀP
};

class LvslSolver {
 public:
  // rows: per view (n, d_v), of length 1 or zero. Y (n, c), 0 or 1.
  LvslSolver(const std::vector<Matrix<float>>& rows, MatrixView<const float> Y, const LvslOptions& options,
             std::uint64_t seed);
  void solve(FitContext& context);

  // The steps of an iteration in their order, for solve() and the tests.
  void update_machine(std::size_t v);      // w_v, F_v = Φ_v w_v
  void update_view_labels(std::size_t v);  // P_v
  void update_correlation();               // Z, C, the multiplier and its penalty
  void update_weights();                   // θ
  double objective() const;

  std::size_t views() const { return forms_.size(); }
  const std::vector<Nystroem>& forms() const { return forms_; }
  const std::vector<Graph>& graphs() const { return graphs_; }
  const std::vector<Matrix<double>>& machines() const { return w_; }  // (L, c)
  const std::vector<Matrix<double>>& fitted() const { return F_; }    // (n, c)
  const std::vector<Matrix<double>>& view_labels() const { return P_; }
  const Matrix<double>& correlation() const { return C_; }
  const Matrix<double>& low_rank() const { return Z_; }
  const Matrix<double>& multiplier() const { return Gamma_; }
  double penalty() const { return scalars_(0, 0); }
  double theta(std::size_t v) const { return theta_(0, v); }

 private:
  void spread_labels();  // YC_
  LvslOptions options_;
  std::vector<Nystroem> forms_;
  std::vector<Graph> graphs_;
  std::vector<Matrix<double>> gram_;  // Φ_vᵀΦ_v
  Matrix<double> Y_, YtY_, YC_;
  std::vector<Matrix<double>> w_, F_, P_;
  Matrix<double> C_, Z_, Gamma_, theta_, scalars_;
  double low_rank_norm_ = 0;
};

}  // namespace lacuna
