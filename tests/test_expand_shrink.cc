// The solver of DM2L and NAIM3L.
#include "methods/expand_shrink.h"

#include <gtest/gtest.h>

#include "methods/all.h"
#include "small_items.h"

namespace lacuna {
namespace {

std::vector<ExpandShrink::Block> blocks_of(const Items& items) {
  std::vector<ExpandShrink::Block> blocks(items.views());
  for (std::size_t v = 0; v < items.views(); ++v) {
    for (std::size_t i = 0; i < items.rows(); ++i)
      if (items.W(i, v)) blocks[v].rows.push_back(static_cast<std::uint32_t>(i));
    blocks[v].X = Matrix<double>(blocks[v].rows.size(), items.X[v].cols());
    for (std::size_t r = 0; r < blocks[v].rows.size(); ++r)
      for (std::size_t j = 0; j < items.X[v].cols(); ++j)
        blocks[v].X(r, j) = static_cast<double>(items.X[v](blocks[v].rows[r], j));
  }
  return blocks;
}

TEST(ExpandShrink, EachStepLowersTheAugmentedLagrangian) {
  const Items items = small_items({}, 1);
  for (const double lambda : {.1, 1.0, 3.0}) {
    ExpandShrinkOptions options;
    options.lambda = lambda;
    options.cut = 1e-9;
    options.random_start = true;
    ExpandShrink solver(blocks_of(items), items, options);
    solver.start(3);
    solver.update_predictions();
    for (int it = 0; it < 60; ++it) {
      const double before = solver.lagrangian();
      solver.update_subgradient();
      solver.update_A();
      const double middle = solver.lagrangian();
      EXPECT_LE(middle, before + 1e-7 * std::abs(before));
      solver.update_Z();
      EXPECT_LE(solver.lagrangian(), middle + 1e-7 * std::abs(middle));
      solver.update_multipliers();
    }
  }
}

TEST(ExpandShrink, TheLinearStepSolvesItsProblem) {
  const Items items = small_items({}, 1);
  for (const bool majorise : {true, false}) {
    ExpandShrinkOptions options;
    options.majorise = majorise;
    options.random_start = true;
    ExpandShrink solver(blocks_of(items), items, options);
    solver.start(1);
    solver.update_predictions();
    for (int it = 0; it < 3; ++it) {
      Matrix<double> old(0, 0);
      // Predictions before the step, from the factors.
      std::size_t rows = 0;
      const auto blocks = blocks_of(items);
      for (const auto& block : blocks) rows += block.X.rows();
      old = Matrix<double>(rows, 5);
      for (std::size_t v = 0, at = 0; v < blocks.size(); at += blocks[v].X.rows(), ++v)
        product(blocks[v].X, solver.A()[v], Transpose::none, false, old.view().slice(at, blocks[v].X.rows()));
      solver.update_subgradient();
      solver.update_A();
      for (const Matrix<double> D = solver.gradient_A(old); const double g : D.values())
        EXPECT_NEAR(g, 0, 1e-5);
      solver.update_Z();
      solver.update_multipliers();
    }
  }
}

// One view, one feature, one label: |X_k a|_* is the length of a vector, so the objective is a function of
// one number, ½Σ_known(x a - y)² + λ(|x_pos| - |x|)|a|, whose minimum is found by scanning.
TEST(ExpandShrink, OneNumberByScanning) {
  Items items;
  const std::vector<float> x = {1, 2, -1, .5f, 3, -2}, y = {1, 1, 0, 0, 1, 0};
  items.W = Matrix<std::uint8_t>(6, 1);
  items.Y = Matrix<float>(6, 1);
  items.G = Matrix<std::uint8_t>(6, 1);
  Matrix<float> X(6, 1);
  for (std::size_t i = 0; i < 6; ++i) {
    items.W(i, 0) = 1;
    items.G(i, 0) = i != 3;
    items.Y(i, 0) = items.G(i, 0) ? y[i] : 0;
    X(i, 0) = x[i];
  }
  items.X.push_back(std::move(X));
  ExpandShrinkOptions options;
  options.lambda = .7;
  options.iterations = 5000;
  options.tolerance = 1e-10;
  options.relative = 0;
  ExpandShrink solver(blocks_of(items), items, options);
  FitContext context;
  solver.solve("test", context);
  const double positive = std::sqrt(1. + 4 + 9), all = std::sqrt(1. + 4 + 1 + .25 + 9 + 4);
  double best = 0, least = 1e9;
  for (double a = -3; a <= 3; a += 1e-4) {
    double f = .7 * (positive - all) * std::abs(a);
    for (std::size_t i = 0; i < 6; ++i)
      if (i != 3) f += .5 * std::pow(static_cast<double>(x[i]) * a - (y[i] > 0 ? 1 : -1), 2);
    if (f < least) least = f, best = a;
  }
  EXPECT_NEAR(solver.A()[0](0, 0), best, 2e-4);
}

// As many rows and labels as the large image sets have in their stack: predictions of -1 alone have a singular value of
// √(42,000 x 260) = 3304, which is no divergence.
TEST(ExpandShrink, ManyRowsAreNoDivergence) {
  const std::size_t n = 42000, c = 260;
  Items items;
  items.W = Matrix<std::uint8_t>(n, 1);
  items.Y = Matrix<float>(n, c);
  items.G = Matrix<std::uint8_t>(n, c);
  Matrix<float> X(n, 1);
  Random random(3, Purpose::test);
  for (std::size_t i = 0; i < n; ++i) {
    items.W(i, 0) = 1;
    X(i, 0) = random.normal();
    if (i % 50 == 0) items.Y(i, i / 50 % c) = 1;
  }
  for (std::uint8_t& g : items.G.values()) g = 1;
  items.X.push_back(std::move(X));
  const auto method = make_naim3l();
  set_option(*method, "iterations", "3");
  ResumeContext context;
  ASSERT_NO_THROW(method->fit(items, Items{}, context));
  EXPECT_GT(context.history.back().losses.at("expand"), 3000) << "or the case shows nothing";
}

TEST(ExpandShrink, PredictionsThatRunAwayAreADivergence) {
  const auto method = make_naim3l();
  for (const auto& [name, value] :
       {std::pair{"mu", "1e-6"}, {"majorise", "false"}, {"random-start", "true"}, {"relative", "0"}})
    set_option(*method, name, value);
  FitContext context;
  try {
    method->fit(small_items({}, 1), Items{}, context);
    FAIL() << "a penalty of 1e-6 holds nothing back";
  } catch (const Diverged& error) {
    EXPECT_NE(std::string(error.what()).find("mu"), std::string::npos) << error.what();
  }
}

TEST(ExpandShrink, TheObjectiveFalls) {
  const Items items = small_items({}, 1);
  ResumeContext context;
  const auto method = make_naim3l();
  method->fit(items, Items{}, context);
  const auto total = [&](std::size_t i) { return context.history[i].losses.at("total"); };
  EXPECT_LT(total(context.history.size() - 1), .8 * total(0));
  for (std::size_t i = 10; i < context.history.size(); i += 10)
    EXPECT_LE(total(i), total(i - 10) * 1.001 + 1e-6);
}

TEST(Naim3l, SupportsFitSaveLoadResumeAndGaps) {
  expect_gaps_are_not_read(make_naim3l);
  expect_order_does_not_matter(make_naim3l, 1e-4);
  expect_resume_gives_the_same_bits(make_naim3l, 7);
  expect_save_and_load_keep_the_scores(make_naim3l);
  expect_threads_do_not_matter(make_naim3l);
  expect_better_than_prior(make_naim3l, .1);
  expect_refused(make_naim3l, "lambda", "-1");
  expect_refused(make_naim3l, "mu", "0");
  expect_refused(make_naim3l, "iterations", "0");
}

TEST(Naim3l, AnItemWithoutViewsGetsTheConstants) {
  const Items train = small_items({}, 1);
  FitContext context;
  const auto method = make_naim3l();
  method->fit(train, Items{}, context);
  Items none = small_items({}, 2);
  for (std::uint8_t& w : none.W.values()) w = 0;
  const Matrix<float> scores = scores_of(*method, none, 5);
  for (std::size_t i = 1; i < 40; ++i)
    for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(scores(i, j), scores(0, j));
}

}  // namespace
}  // namespace lacuna
