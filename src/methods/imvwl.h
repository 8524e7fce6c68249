// iMVWL: a shared non-negative representation of incomplete views, with a predictor of weak labels in it.
// Reconstructed: neither program nor equations were available, only descriptions.
//
//   Σ_v |D_v (X_v - V U_vᵀ)|² + α|G ⊙ (V H B - Y)|² + β|B|_* + ρ|H|²     V >= 0, U_v >= 0, D_v = present rows
//   of view v
//
// V (n, r) representation, U_v (d_v, r) bases, H (r, c) predictor, B (c, c) label correlation. Every block
// update lowers the objective.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "data/items.h"
#include "nn/fit.h"

namespace lacuna {

struct ImvwlOptions {
  double alpha = .1, beta = .01, rho = 1e-3;
  std::int64_t rank = 0;  // r; 0 = min(100, smallest view, rows)
  std::int64_t rounds = 20;
  double tolerance = 1e-4;
  bool rescale_each = false;  // bases of length 1 after every round; false: only at the start
};

class ImvwlSolver {
 public:
  ImvwlSolver(const Items& items, const ImvwlOptions& options, std::uint64_t seed);
  void solve(FitContext& context);

  void update_bases();                    // U_v: multiplicative
  void update_representation();           // V: projected gradient steps
  void update_predictor(int steps = 10);  // H: steps of conjugate gradients
  void update_correlation();              // B: proximal steps
  void rescale();  // columns of U to length 1; V and H so that the fit is unchanged (ρ|H|² may change)
  double objective() const;

  Matrix<double> gradient_V() const;
  Matrix<double> gradient_H() const;
  Matrix<double> gradient_B() const;  // of the smooth part

  Matrix<double>& V() { return V_; }
  Matrix<double>& H() { return H_; }
  Matrix<double>& B() { return B_; }
  const std::vector<Matrix<double>>& bases() const { return U_; }

 private:
  Matrix<double> label_error(const Matrix<double>& HB) const;  // G ⊙ (V HB - Y)
  void project_views();                                        // X_vU_v and U_vᵀU_v
  const Items& items_;
  ImvwlOptions options_;
  std::vector<Matrix<float>> X_;                  // observed rows of each view
  std::vector<std::vector<std::uint32_t>> rows_;  // and which they are
  double squares_ = 0;                            // Σ_v |D_v X_v|²
  std::vector<Matrix<double>> U_, XU_, UU_;       // (d_v, r), (n_v, r), (r, r)
  Matrix<double> V_, H_, B_;
  double correlation_norm_ = 0;
};

// V >= 0 (n, r) for the present views of rows, with the bases fixed: `steps` accelerated projected gradient steps from
// V = 0.
Matrix<double> represent(const Items& items, const std::vector<Matrix<float>>& bases, int steps);

}  // namespace lacuna
