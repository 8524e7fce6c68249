// GLOCAL: global and local label correlation, one view. Rows are items here (in the paper, columns are):
//   X (n, d) features, Y (n, c) labels ±1, J (n, c) 1 = known, U (c, k) label basis, V (n, k) latent labels,
//   W (d, k), Z_t (c, k2) with rows of length 1 for every cluster t of the items: Z_tZ_tᵀ takes the place
//   of the Laplacian.
//
//   ½|J⊙(Y - VUᵀ)|² + ½λ|V - XW|² + ½λ_V|V|² + ½λ_U|U|² + ½λ_W|W|²
//     + ½Σ_t tr(Z_tᵀ U B_t Uᵀ Z_t),   B_t = λ_G β_t FᵀF + λ_L F_tᵀF_t,  F = XW, β_t = n_t/n
//
// Every block update lowers the objective: V by an exact solve of each row, U and W by conjugate gradients, Z_t by
// descent with Armijo's rule, where the gradient is projected to rows of length 1.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "nn/fit.h"

namespace lacuna {

struct GlocalOptions {
  double lambda = 1, lambda_local = 1e-5, lambda_global = 1e-3, regular = .125;
  std::int64_t latent = 0;       // k; 0 = min(50, c)
  std::int64_t correlation = 0;  // k2; 0 = min(20, c)
  std::int64_t clusters = 3, rounds = 15;
  double tolerance = 1e-6;
};

class GlocalSolver {
 public:
  // Settings are checked against c: Exit::usage with the allowed range.
  GlocalSolver(Matrix<double> X, MatrixView<const float> Y, MatrixView<const std::uint8_t> G,
               const GlocalOptions& options, std::uint64_t seed);
  void solve(FitContext& context);

  void update_Z(std::size_t t);
  void update_V();
  void update_U();
  void update_W();
  double objective() const;
  void set_correlations(bool on) { correlations_ = on; }  // off: only the first line of the objective

  // Gradients of the objective at the current point, for the tests.
  Matrix<double> gradient_V() const;
  Matrix<double> gradient_U() const;
  Matrix<double> gradient_W() const;
  Matrix<double> gradient_Z(std::size_t t) const;

  std::size_t clusters() const { return Z_.size(); }
  Matrix<double>& U() { return U_; }
  Matrix<double>& V() { return V_; }
  Matrix<double>& W() { return W_; }
  Matrix<double>& Z(std::size_t t) { return Z_[t]; }
  double fit_term() const;  // ½|J⊙(Y - VUᵀ)|² + ½λ|V - XW|²

 private:
  Matrix<double> error() const;           // J ⊙ (VUᵀ - Y)
  Matrix<double> features() const;        // F = XW
  Matrix<double> B(std::size_t t) const;  // (k, k)
  void add_correlation_U(const Matrix<double>& U, const std::vector<Matrix<double>>& Bs,
                         Matrix<double>& out) const;

  Matrix<double> X_, Y_;
  Matrix<std::uint8_t> J_;
  std::uint64_t seed_;
  GlocalOptions options_;
  double lambda_, local_, global_, regular_V_, regular_U_,
      regular_W_;  // rescaled by the number of known labels
  bool correlations_ = true;
  Matrix<double> XtX_;
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<Matrix<double>> XtX_local_, Z_;
  Matrix<double> U_, V_, W_;
};

}  // namespace lacuna
