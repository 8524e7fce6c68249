// Two small solvers on matrices: conjugate gradients for linear equations, steepest descent with Armijo's
// rule.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/matrix.h"
#include "base/threads.h"

namespace lacuna {

inline double inner_product(const Matrix<double>& A, const Matrix<double>& B) {
  return ordered_sum(A.values().size(), 16384, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += A.values()[i] * B.values()[i];
    return sum;
  });
}

// A += factor * B
inline void add_scaled(double factor, const Matrix<double>& B, Matrix<double>& A) {
  parallel_for(A.values().size(), 16384, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) A.values()[i] += factor * B.values()[i];
  });
}

// Solves H(X) = B from the X given, H symmetric positive definite in the Frobenius product: apply(X, HX).
// Ends when |H(X) - B| <= tolerance |B|, or after `limit` steps; every step lowers ½<X, H(X)> - <B, X>.
// Returns the steps.
inline int conjugate_gradient(FunctionRef<void(const Matrix<double>&, Matrix<double>&)> apply,
                              const Matrix<double>& B, double tolerance, int limit, Matrix<double>& X) {
  Matrix<double> residual = B, image(B.rows(), B.cols());
  apply(X, image);
  add_scaled(-1, image, residual);
  Matrix<double> direction = residual;
  double squared = inner_product(residual, residual);
  const double goal = tolerance * tolerance * inner_product(B, B);
  int step = 0;
  for (; step < limit && squared > goal; ++step) {
    apply(direction, image);
    const double curvature = inner_product(direction, image);
    if (!(curvature > 0)) break;
    const double length = squared / curvature;
    add_scaled(length, direction, X);
    add_scaled(-length, image, residual);
    const double next = inner_product(residual, residual);
    for (double& d : direction.values()) d *= next / squared;
    add_scaled(1, residual, direction);
    squared = next;
  }
  return step;
}

// Steepest descent with backtracking. cost(X); gradient(X, D), tangent if X lies on a surface; retract(X) moves
// X back onto it. The first trial step is 1/|gradient|; later ones follow from the last decrease. A step is
// halved up to 25 times, until the decrease is 1e-4 of the expected one. Ends after `limit` steps, or when three
// steps in a row change the cost by less than 1e-5 of it. Never raises the cost, and returns it.
inline double armijo_descent(FunctionRef<double(const Matrix<double>&)> cost,
                             FunctionRef<void(const Matrix<double>&, Matrix<double>&)> gradient,
                             FunctionRef<void(Matrix<double>&)> retract, int limit, Matrix<double>& X) {
  Matrix<double> D(X.rows(), X.cols());
  double value = cost(X), before = value;
  for (int step = 0, still = 0; step < limit && still < 3; ++step) {
    gradient(X, D);
    const double squared = inner_product(D, D);
    if (!(squared > 1e-20)) break;
    double length = 1 / std::sqrt(squared);
    if (step > 0 && before > value) length = 4 * (before - value) / squared;
    bool moved = false;
    for (int attempt = 0; attempt < 25; ++attempt, length *= .5) {
      Matrix<double> next = X;
      add_scaled(-length, D, next);
      retract(next);
      const double trial = cost(next);
      if (trial <= value - 1e-4 * length * squared) {
        before = value;
        still = value - trial < 1e-5 * std::abs(value) ? still + 1 : 0;
        value = trial;
        X.swap(next);
        moved = true;
        break;
      }
    }
    if (!moved) break;
  }
  return value;
}

}  // namespace lacuna
