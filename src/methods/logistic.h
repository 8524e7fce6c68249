// Regularised logistic regressions of many labels at once, on the entries that are known:
//
//   min over w_j, b_j   Σ_{i: G_ij = 1} log(1 + exp(-y_ij (w_jᵀz_i + b_j))) + ½ λ ‖w_j‖²      y = ±1
//
// The labels share the rows Z, so every iteration of all of them together is two products. Each label has its own
// search direction (L-BFGS) and its own step, which is exact: along a line only the margins ZW change.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

class LogisticRegressions {
 public:
  // Z (n, p), labels Y (n, c) of 0 and 1 where G is 1. All must outlive it.
  LogisticRegressions(MatrixView<const double> Z, MatrixView<const float> Y,
                      MatrixView<const std::uint8_t> G);

  // Continues where the last call ended (at first from 0; a label that no row knows is as common as all labels
  // together), until the largest gradient of each label is at most `tolerance` times the number of its known entries,
  // or for `limit` iterations. Returns the number of iterations.
  int solve(double lambda, double tolerance, int limit);

  const Matrix<double>& weights() const { return W_; }  // (p, c)
  const Matrix<double>& bias() const { return b_; }     // (1, c)
  // After the last solve: for each label the largest entry of its gradient, divided by its number of known entries.
  const Matrix<double>& slopes() const { return slopes_; }  // (1, c)

 private:
  void gradient(double lambda);
  void choose_directions();
  void advance(double lambda);

  MatrixView<const double> Z_;
  MatrixView<const float> Y_;
  MatrixView<const std::uint8_t> G_;
  Matrix<double> known_;             // (1, c) how many
  Matrix<double> W_, b_, margins_;   // (p, c), (1, c), (n, c)
  Matrix<double> g_, gb_, d_, db_;   // gradient and direction
  Matrix<double> residual_, along_;  // (n, c) derivative of the loss by margin; ZD
  Matrix<double> slopes_;
  // The last few steps and changes of the gradient, of W and b together (p + 1, c); `used_` of them.
  std::vector<Matrix<double>> steps_, changes_;
  Matrix<double> last_;  // gradient before the step (p + 1, c)
  int used_ = 0, next_ = 0;
};

}  // namespace lacuna
