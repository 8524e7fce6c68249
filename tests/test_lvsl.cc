#include "methods/lvsl.h"

#include <gtest/gtest.h>

#include "methods/all.h"
#include "methods/descent.h"
#include "small_items.h"

namespace lacuna {
namespace {

struct Fixture {
  Items items = small_items({}, 1);
  std::vector<Matrix<float>> rows;
  LvslOptions options;
  Fixture() {
    for (const auto& X : items.X) rows.push_back(unit_rows(X));
    options.lambda3 = .3;
    options.lambda4 = 2;
    options.lambda2 = 500;
  }
};

// The kernel machine W = (θK + λ1)⁻¹θP, with K by its definition: (θK + λ1) W = θP where KW = F.
TEST(Lvsl, EachStepSolvesItsProblem) {
  Fixture f;
  LvslSolver solver(f.rows, f.items.Y, f.options, 1);
  const std::size_t n = 40, c = 5;
  for (int it = 0; it < 4; ++it) {
    for (std::size_t v = 0; v < 3; ++v) {
      const Matrix<double> P = solver.view_labels()[v];
      solver.update_machine(v);
      const double theta = solver.theta(v);
      // θKW + λ1W = θP, so W = θ(P - F)/λ1 and F = KW.
      Matrix<double> K(n, n), W = P, F(n, c);
      radial_kernel(f.rows[v], 2 * f.options.width * f.options.width, K);
      add_scaled(-1, solver.fitted()[v], W);
      for (double& w : W.values()) w *= theta / f.options.lambda1;
      product(K, W, Transpose::none, false, F);
      for (std::size_t i = 0; i < n * c; ++i)
        EXPECT_NEAR(F.values()[i], solver.fitted()[v].values()[i], 1e-4);

      solver.update_view_labels(v);
      Matrix<double> smooth(n, c), YC(n, c), Y(n, c);
      for (std::size_t i = 0; i < n * c; ++i) Y.values()[i] = static_cast<double>(f.items.Y.values()[i]);
      product(Y, solver.correlation(), Transpose::none, false, YC);
      const Matrix<double>& now = solver.view_labels()[v];
      solver.graphs()[v].laplacian(now, smooth);
      for (std::size_t i = 0; i < n * c; ++i)
        EXPECT_NEAR(theta * (now.values()[i] - solver.fitted()[v].values()[i]) +
                        theta * f.options.lambda3 * smooth.values()[i] +
                        f.options.lambda4 * (now.values()[i] - YC.values()[i]),
                    0, 1e-7);
    }
    const Matrix<double> multiplier = solver.multiplier();
    const double penalty = solver.penalty();
    solver.update_correlation();
    // λ4 Σ_v Ỹᵀ(ỸC - P_v) + Γ + ν(C - Z) = 0
    Matrix<double> Y(n, c), error(n, c), D(c, c);
    for (std::size_t i = 0; i < n * c; ++i) Y.values()[i] = static_cast<double>(f.items.Y.values()[i]);
    for (std::size_t v = 0; v < 3; ++v) {
      product(Y, solver.correlation(), Transpose::none, false, error);
      add_scaled(-1, solver.view_labels()[v], error);
      product(Y, error, Transpose::left, true, D);
    }
    for (double& d : D.values()) d *= f.options.lambda4;
    for (std::size_t i = 0; i < c * c; ++i)
      EXPECT_NEAR(D.values()[i] + multiplier.values()[i] +
                      penalty * (solver.correlation().values()[i] - solver.low_rank().values()[i]),
                  0, 1e-8);
    solver.update_weights();
    EXPECT_NEAR(solver.theta(0) + solver.theta(1) + solver.theta(2), 1, 1e-12);
  }
}

// Machine and view labels descend for fixed C and θ.
TEST(Lvsl, BlocksLowerTheObjective) {
  Fixture f;
  LvslSolver solver(f.rows, f.items.Y, f.options, 1);
  for (std::size_t v = 0; v < 3; ++v) solver.update_machine(v);
  double before = solver.objective();
  for (int it = 0; it < 5; ++it)
    for (std::size_t v = 0; v < 3; ++v) {
      solver.update_view_labels(v);
      EXPECT_LE(solver.objective(), before + 1e-9);
      solver.update_machine(v);
      EXPECT_LE(solver.objective(), before + 1e-9);
      before = solver.objective();
    }
}

TEST(Lvsl, GraphByDefinition) {
  Fixture f;
  const Matrix<float>& X = f.rows[0];
  const Graph graph = nearest_graph(X, 4);
  const auto squared = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < X.cols(); ++k)
      sum += std::pow(static_cast<double>(X(i, k)) - static_cast<double>(X(j, k)), 2);
    return sum;
  };
  const auto zero = [&](std::size_t i) { return squared(i, i) == 0 && X(i, 0) == 0 && X(i, 1) == 0; };
  const auto chose = [&](std::size_t i, std::size_t j) {
    std::size_t nearer = 0;
    for (std::size_t l = 0; l < X.rows(); ++l)
      nearer += l != i && l != j && !zero(l) && squared(i, l) < squared(i, j);
    return !zero(i) && !zero(j) && nearer < 3;
  };
  Matrix<double> S(40, 40);
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t e = graph.start[i]; e < graph.start[i + 1]; ++e)
      S(i, graph.neighbour[e]) = graph.weight[e];
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 40; ++j) {
      if (i == j) continue;
      EXPECT_NEAR(S(i, j), chose(i, j) || chose(j, i) ? std::exp(-squared(i, j) / 2) : 0, 1e-5)
          << i << " " << j;
      EXPECT_NEAR(S(i, j), S(j, i), 1e-6);
    }
}

TEST(Lvsl, SupportsFitSaveLoadResumeAndGaps) {
  expect_gaps_are_not_read(make_lvsl);
  expect_order_does_not_matter(make_lvsl, 1e-3);
  expect_resume_gives_the_same_bits(make_lvsl, 3);
  expect_save_and_load_keep_the_scores(make_lvsl);
  expect_threads_do_not_matter(make_lvsl);
  expect_better_than_prior(make_lvsl, .1);
  expect_refused(make_lvsl, "neighbours", "0");
  expect_refused(make_lvsl, "lambda3", "-1");
  expect_refused(make_lvsl, "width", "0");
}

}  // namespace
}  // namespace lacuna
