// Ridge regression Y ≈ A B of many columns at once, from sums over rows: rows come in blocks and are not stored. The
// error on other rows follows from their sums, for any number of penalties at the cost of one decomposition.
//   A (n, p)  features     Y (n, d)  targets     B (p, d) = (AᵀA + λI)⁻¹ AᵀY
#pragma once

#include <vector>

#include "base/matrix.h"

namespace lacuna {

class RidgeSums {
 public:
  RidgeSums(std::size_t features, std::size_t targets) : AA_(features, features), AY_(features, targets) {}
  void add(MatrixView<const float> A, MatrixView<const float> Y);  // rows of both
  double rows() const { return rows_; }
  double square() const { return square_; }  // Σ y²

  // λ as a multiple of the mean of the diagonal of AᵀA.
  Matrix<float> solve(double penalty) const;
  // Σ (y - ŷ)² over the rows of `held`, one value per penalty.
  std::vector<double> errors(const RidgeSums& held, const std::vector<double>& penalties) const;

 private:
  double scale() const;
  Matrix<double> AA_, AY_;
  double rows_ = 0, square_ = 0;
};

}  // namespace lacuna
