#include "methods/ridge.h"

#include <algorithm>

#include "base/threads.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

// Targets that a thread adds at once.
constexpr std::size_t kRidgeGrain = 512;

void accumulate(const Matrix<float>& from, Matrix<double>& to) {
  parallel_for(to.rows(), 8, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < to.cols(); ++j) to(i, j) += static_cast<double>(from(i, j));
  });
}

}  // namespace

void RidgeSums::add(MatrixView<const float> A, MatrixView<const float> Y) {
  if (A.rows == 0) return;
  Matrix<float> AA(A.cols, A.cols), AY(A.cols, Y.cols);
  product(A, A, Transpose::left, false, AA);
  product(A, Y, Transpose::left, false, AY);
  accumulate(AA, AA_);
  accumulate(AY, AY_);
  rows_ += static_cast<double>(A.rows);
  square_ += ordered_sum(Y.rows, 64, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      for (const float y : Y.row(i)) sum += static_cast<double>(y) * static_cast<double>(y);
    return sum;
  });
}

double RidgeSums::scale() const {
  double trace = 0;
  for (std::size_t k = 0; k < AA_.rows(); ++k) trace += AA_(k, k);
  return std::max(trace / static_cast<double>(AA_.rows()), 1e-12);
}

Matrix<float> RidgeSums::solve(double penalty) const {
  Matrix<double> M = AA_, B = AY_;
  for (std::size_t k = 0; k < M.rows(); ++k) M(k, k) += penalty * scale();
  Cholesky(std::move(M), "the features' covariance").solve(B);
  return to_float(B);
}

// In the eigenvectors V of AᵀA, with values w: B = V diag(1 / (w + λ)) U, U = Vᵀ AᵀY, so that of the held rows
// Σ(y - ŷ)² = Σy² - 2 Σ_a <U_a, H_a> / (w_a + λ) + Σ_ab G_ab <U_a, U_b> / ((w_a + λ)(w_b + λ)).
std::vector<double> RidgeSums::errors(const RidgeSums& held, const std::vector<double>& penalties) const {
  const std::size_t p = AA_.rows(), d = AY_.cols();
  const Eigensystem pairs = symmetric_eigen(AA_);
  Matrix<double> U(p, d), H(p, d), half(p, p), G(p, p), UU(p, p);
  product(pairs.vectors, AY_, Transpose::left, false, U);
  product(pairs.vectors, held.AY_, Transpose::left, false, H);
  product(held.AA_, pairs.vectors, Transpose::none, false, half);
  product(pairs.vectors, std::as_const(half).view(), Transpose::left, false, G);
  gram_of_rows(std::as_const(U).view(), UU);
  std::vector<double> cross(p);
  for (std::size_t a = 0; a < p; ++a)
    cross[a] = ordered_sum(d, kRidgeGrain, [&](std::size_t begin, std::size_t end) {
      double sum = 0;
      for (std::size_t j = begin; j < end; ++j) sum += U(a, j) * H(a, j);
      return sum;
    });
  std::vector<double> errors;
  for (const double penalty : penalties) {
    std::vector<double> inverse(p);
    for (std::size_t a = 0; a < p; ++a) inverse[a] = 1 / (std::max(pairs.values[a], 0.) + penalty * scale());
    double error = held.square_;
    for (std::size_t a = 0; a < p; ++a) {
      error -= 2 * cross[a] * inverse[a];
      for (std::size_t b = 0; b < p; ++b) error += G(a, b) * UU(a, b) * inverse[a] * inverse[b];
    }
    errors.push_back(error);
  }
  return errors;
}

}  // namespace lacuna
