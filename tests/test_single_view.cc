// DM2L and GLOCAL, and the wrapper that runs them per view.
#include <gtest/gtest.h>

#include "methods/adapt.h"
#include "methods/all.h"
#include "methods/clusters.h"
#include "methods/glocal.h"
#include "ops/linalg.h"
#include "small_items.h"

namespace lacuna {
namespace {

GlocalSolver glocal(const GlocalOptions& options, const Items& items) {
  Matrix<double> X(items.rows(), items.X[0].cols());
  for (std::size_t i = 0; i < X.values().size(); ++i)
    X.values()[i] = static_cast<double>(items.X[0].values()[i]);
  return GlocalSolver(std::move(X), items.Y, items.G, options, 1);
}

GlocalOptions strong_correlations() {
  GlocalOptions options;
  options.lambda_local = .5;
  options.lambda_global = 2;
  options.latent = 3;
  options.correlation = 2;
  return options;
}

TEST(Glocal, GradientsAgainstFiniteDifferences) {
  const Items items = small_items({}, 1);
  GlocalSolver solver = glocal(strong_correlations(), items);
  solver.update_W();
  const auto check = [&](Matrix<double>& at, const Matrix<double>& gradient) {
    for (std::size_t i = 0; i < at.values().size(); i += 3) {
      const double kept = at.values()[i], h = 1e-5;
      at.values()[i] = kept + h;
      const double up = solver.objective();
      at.values()[i] = kept - h;
      const double down = solver.objective();
      at.values()[i] = kept;
      EXPECT_NEAR((up - down) / (2 * h), gradient.values()[i], 1e-5 * (1 + std::abs(gradient.values()[i])));
    }
  };
  check(solver.V(), solver.gradient_V());
  check(solver.U(), solver.gradient_U());
  check(solver.W(), solver.gradient_W());
  for (std::size_t t = 0; t < solver.clusters(); ++t) check(solver.Z(t), solver.gradient_Z(t));
}

TEST(Glocal, EveryBlockSolvesItsProblemAndLowersTheObjective) {
  const Items items = small_items({}, 1);
  GlocalSolver solver = glocal(strong_correlations(), items);
  double value = solver.objective();
  const auto falls = [&](const char* block) {
    const double next = solver.objective();
    EXPECT_LE(next, value * (1 + 1e-12)) << block;
    value = next;
  };
  for (int round = 0; round < 8; ++round) {
    for (std::size_t t = 0; t < solver.clusters(); ++t) {
      solver.update_Z(t);
      falls("Z");
      for (std::size_t i = 0; i < 5; ++i) {
        double squares = 0;
        for (const double z : solver.Z(t).row(i)) squares += z * z;
        EXPECT_NEAR(squares, 1, 1e-12);
      }
    }
    solver.update_V();
    falls("V");
    for (const Matrix<double> D = solver.gradient_V(); const double g : D.values()) EXPECT_NEAR(g, 0, 1e-8);
    solver.update_U();
    falls("U");
    for (const Matrix<double> D = solver.gradient_U(); const double g : D.values()) EXPECT_NEAR(g, 0, 1e-4);
    solver.update_W();
    falls("W");
    for (const Matrix<double> D = solver.gradient_W(); const double g : D.values()) EXPECT_NEAR(g, 0, 1e-4);
  }
}

// k = 1, one label, one feature, no correlation: alternating scalar formulas once more.
TEST(Glocal, OneNumberByHand) {
  Items items;
  items.W = Matrix<std::uint8_t>(4, 1);
  items.Y = Matrix<float>(4, 1);
  items.G = Matrix<std::uint8_t>(4, 1);
  Matrix<float> X(4, 1);
  const double x[] = {1, -2, .5, 3}, y[] = {1, -1, 1, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    items.W(i, 0) = 1;
    items.G(i, 0) = i != 2;
    items.Y(i, 0) = y[i] > 0 && i != 2;
    X(i, 0) = static_cast<float>(x[i]);
  }
  items.X.push_back(std::move(X));
  GlocalOptions options;
  options.clusters = 1;
  GlocalSolver solver = glocal(options, items);
  solver.set_correlations(false);
  const double known = 3, lambda = known / 4, rV = .125 * known / 4, rU = .125 * known, rW = .125 * known;
  double u = solver.U()(0, 0), w = solver.W()(0, 0), v[4] = {};
  for (int round = 0; round < 6; ++round) {
    solver.update_V();
    solver.update_U();
    solver.update_W();
    double uv = 0, vv = 0, xv = 0, xx = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const double J = i != 2;
      v[i] = (J * u * y[i] + lambda * w * x[i]) / (J * u * u + lambda + rV);
      uv += J * v[i] * y[i];
      vv += J * v[i] * v[i];
      xv += x[i] * v[i];
      xx += x[i] * x[i];
    }
    u = uv / (vv + rU);
    w = lambda * xv / (lambda * xx + rW);
  }
  EXPECT_NEAR(solver.U()(0, 0), u, 1e-6);
  EXPECT_NEAR(solver.W()(0, 0), w, 1e-6);
}

TEST(Glocal, SupportsFitSaveLoadResumeAndGaps) {
  expect_gaps_are_not_read(make_glocal);
  expect_resume_gives_the_same_bits(make_glocal, 4);
  expect_save_and_load_keep_the_scores(make_glocal);
  expect_threads_do_not_matter(make_glocal);
  expect_better_than_prior(make_glocal, .05);
  expect_refused(make_glocal, "clusters", "0");
  expect_refused(make_glocal, "regular", "-1");
  const auto method = make_glocal();
  set_option(*method, "latent", "6");
  FitContext context;
  try {
    method->fit(small_items({}, 1), Items{}, context);
    ADD_FAILURE() << "a rank above the label count was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("from 1 to 5"), std::string::npos) << error.what();
  }
}

TEST(Dm2l, SupportsFitSaveLoadResumeAndGaps) {
  const MakeMethod make = [] {
    auto method = make_dm2l();
    set_option(*method, "iterations", "30");
    set_option(*method, "relative", "0");
    return method;
  };
  expect_gaps_are_not_read(make);
  expect_order_does_not_matter(make, 1e-3);
  expect_resume_gives_the_same_bits(make, 5);
  expect_resume_gives_the_same_bits(make, 45);  // in the second view: the first one's model comes back too
  expect_save_and_load_keep_the_scores(make);
  expect_threads_do_not_matter(make);
  expect_better_than_prior(make, .05);
  expect_refused(make, "lambda", "-.1");
  const MakeMethod radial = [&] {
    auto method = make();
    set_option(*method, "kernel", "radial");
    return method;
  };
  expect_save_and_load_keep_the_scores(radial);
  expect_better_than_prior(radial, .05);
}

TEST(PerView, KeepsTheBestViewOnValidation) {
  ItemsShape shape;
  shape.n = 120;
  Items train = small_items(shape, 1), val = small_items(shape, 2);
  Random random(3, Purpose::test);
  for (const std::size_t v : {0u, 2u})  // views 0 and 2 are noise, so view 1 must win
    for (Items* items : {&train, &val})
      for (float& x : items->X[v].values()) x = random.normal();
  FitContext context;
  const auto best = make_dm2l(), forced = make_dm2l(), other = make_dm2l();
  for (const auto& method : {best.get(), forced.get(), other.get()}) set_option(*method, "iterations", "20");
  set_option(*forced, "view", "1");
  set_option(*other, "view", "0");
  best->fit(train, val, context);
  forced->fit(train, val, context);
  other->fit(train, val, context);
  const Matrix<float> a = scores_of(*best, val, 5), b = scores_of(*forced, val, 5),
                      c = scores_of(*other, val, 5);
  expect_same(a, b);
  EXPECT_FALSE(std::equal(a.values().begin(), a.values().end(), c.values().begin()));
  const auto wrong = make_dm2l();
  set_option(*wrong, "view", "3");
  EXPECT_THROW(wrong->fit(train, val, context), Error);
}

TEST(Clusters, SeparatedGroupsAreFound) {
  Random random(3, Purpose::test);
  Matrix<double> X(60, 2);
  for (std::size_t i = 0; i < 60; ++i) {
    X(i, 0) = static_cast<double>(i % 3) * 10 + .5 * static_cast<double>(random.normal());
    X(i, 1) = .5 * static_cast<double>(random.normal());
  }
  const auto cluster = k_means(X, 3, 1);
  for (std::size_t i = 3; i < 60; ++i) EXPECT_EQ(cluster[i], cluster[i % 3]);
  EXPECT_NE(cluster[0], cluster[1]);
  EXPECT_NE(cluster[1], cluster[2]);
  const auto all = k_means(Matrix<double>(5, 2), 3, 1);  // equal rows: one cluster, numbered 0
  for (const auto k : all) EXPECT_EQ(k, 0u);
}

}  // namespace
}  // namespace lacuna
