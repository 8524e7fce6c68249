// Principal directions (data/principal.h): the iterative solver, and tables without a Gram matrix.
#include "data/principal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/threads.h"
#include "ops/linalg.h"
#include "planted.h"

namespace lacuna {
namespace {

void subtract_means(Matrix<float>& X) {
  for (std::size_t j = 0; j < X.cols(); ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < X.rows(); ++i)
      mean += static_cast<double>(X(i, j)) / static_cast<double>(X.rows());
    for (std::size_t i = 0; i < X.rows(); ++i) X(i, j) -= static_cast<float>(mean);
  }
}

// Above kDirectSize the iterative solver works; its variances are those of the direct one on the other Gram
// matrix.
TEST(Principal, IterativeSolverReachesItsResidual) {
  const std::size_t n = 420, d = 450;
  Matrix<float> X = planted(n, d, 3);
  subtract_means(X);
  const Principal iterative = principal_directions(X, 12, 1);
  EXPECT_GT(iterative.residual, 0);
  EXPECT_LE(iterative.residual, kResidual);
  const Principal other_seed = principal_directions(X, 12, 2);
  for (std::size_t k = 0; k < 12; ++k) {
    EXPECT_NEAR(iterative.variances[k], other_seed.variances[k], 1e-6 * iterative.variances[k]);
    // The variance along the direction is the eigenvalue.
    double variance = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double dot = 0;
      for (std::size_t j = 0; j < d; ++j)
        dot += static_cast<double>(X(i, j)) * static_cast<double>(iterative.directions(j, k));
      variance += dot * dot / static_cast<double>(n);
    }
    EXPECT_NEAR(variance, iterative.variances[k], 1e-4 * iterative.variances[k]);
  }
}

// A large table (here: every one) has no Gram matrix; the spectrum falls as slowly as that of histograms does (a power law). What the
// directions explain is measured, not believed.
TEST(Principal, LargeTablesExplainNearlyAsMuchAsTheFullEigensystem) {
  const std::size_t n = 1500, d = 600, K = 24;
  Random random(11, Purpose::test);
  Matrix<float> X(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) X(i, j) = random.normal() / std::pow(static_cast<float>(j + 1), .6f);
  subtract_means(X);
  Matrix<double> gram(d, d);
  gram_of_columns(X, gram);
  const Eigensystem all = symmetric_eigen(gram);
  Principal first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    const Principal some = principal_directions(X, K, 1, 0);
    if (count == 1) first = some;
    ASSERT_TRUE(std::ranges::equal(first.directions.values(), some.directions.values())) << count;
  }
  set_threads(0);
  Matrix<float> Z(n, K);
  product(X, first.directions, Transpose::none, false, Z);
  double explained = 0, best = 0;
  for (const float z : Z.values()) explained += static_cast<double>(z) * static_cast<double>(z);
  for (std::size_t k = 0; k < K; ++k) best += all.values[k];
  EXPECT_LE(explained, best * (1 + 1e-5));
  EXPECT_GE(explained, .998 * best);
  for (std::size_t k = 0; k < K / 4; ++k)  // the leading ones are exact
    EXPECT_NEAR(first.variances[k] * static_cast<double>(n), all.values[k], 1e-3 * all.values[k]) << k;
  for (std::size_t a = 0; a < K; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (std::size_t j = 0; j < d; ++j)
        dot += static_cast<double>(first.directions(j, a)) * static_cast<double>(first.directions(j, b));
      EXPECT_NEAR(dot, a == b, 1e-5);
    }
}

}  // namespace
}  // namespace lacuna
