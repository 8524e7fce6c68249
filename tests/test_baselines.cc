// The everyday baselines: logistic regressions against their own conditions of optimality, ML-kNN against a naive one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "base/threads.h"
#include "methods/logistic.h"
#include "methods/method.h"

namespace lacuna {
namespace {

// Rows whose labels follow from their columns, half of the labels unknown, a third of the views missing.
Items made_up(std::size_t n, const std::vector<std::size_t>& columns, std::size_t labels,
              std::uint64_t seed) {
  Items items;
  Random random(seed, Purpose::test);
  items.W = Matrix<std::uint8_t>(n, columns.size());
  items.Y = Matrix<float>(n, labels);
  items.G = Matrix<std::uint8_t>(n, labels);
  for (const std::size_t d : columns) items.X.emplace_back(n, d);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t v = 0; v < columns.size(); ++v) {
      items.W(i, v) = v == i % columns.size() || random.below(3) > 0;
      for (float& x : items.X[v].row(i)) x = items.W(i, v) ? random.uniform(-1.7f, 1.7f) : 0.f;
    }
    for (std::size_t j = 0; j < labels; ++j) {
      float sum = random.uniform(-1.f, 1.f);
      for (const auto& X : items.X) sum += X(i, j % X.cols());
      items.G(i, j) = random.below(2) == 0;
      items.Y(i, j) = items.G(i, j) && sum > 0 ? 1.f : 0.f;
    }
  }
  return items;
}

Matrix<double> columns_of(const Items& items) {
  std::size_t width = 0;
  for (const auto& X : items.X) width += X.cols();
  Matrix<double> Z(items.rows(), width);
  for (std::size_t i = 0; i < items.rows(); ++i) {
    auto out = Z.row(i).begin();
    for (const auto& X : items.X) out = std::ranges::copy(X.row(i), out).out;
  }
  return Z;
}

double objective(const Matrix<double>& Z, const Items& items, double lambda, const Matrix<double>& W,
                 const Matrix<double>& b, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < W.rows(); ++k) sum += .5 * lambda * W(k, j) * W(k, j);
  for (std::size_t i = 0; i < Z.rows(); ++i) {
    if (!items.G(i, j)) continue;
    double margin = b(0, j);
    for (std::size_t k = 0; k < W.rows(); ++k) margin += Z(i, k) * W(k, j);
    sum += std::log1p(std::exp(items.Y(i, j) > 0 ? -margin : margin));
  }
  return sum;
}

TEST(Logistic, TheGradientOfTheObjectiveVanishes) {
  const Items items = made_up(90, {5, 7}, 4, 1);
  const Matrix<double> Z = columns_of(items);
  for (const double lambda : {.1, 1., 30.}) {
    LogisticRegressions all(Z, items.Y, items.G);
    EXPECT_LT(all.solve(lambda, 1e-9, 400), 400);
    for (std::size_t j = 0; j < 4; ++j) {
      const double known = 45, step = 1e-4;
      for (std::size_t k = 0; k < Z.cols(); ++k) {
        Matrix<double> up = all.weights(), down = all.weights();
        up(k, j) += step;
        down(k, j) -= step;
        const double slope = (objective(Z, items, lambda, up, all.bias(), j) -
                              objective(Z, items, lambda, down, all.bias(), j)) /
                             (2 * step);
        EXPECT_NEAR(slope / known, 0, 1e-6) << lambda << " " << j << " " << k;
      }
      Matrix<double> up = all.bias(), down = all.bias();
      up(0, j) += step;
      down(0, j) -= step;
      EXPECT_NEAR((objective(Z, items, lambda, all.weights(), up, j) -
                   objective(Z, items, lambda, all.weights(), down, j)) /
                      (2 * step),
                  0, 1e-5);
    }
  }
}

// The end of one strength is the start of the next, and where it began must not matter.
TEST(Logistic, WarmAndColdStartsMeet) {
  const Items items = made_up(60, {6}, 3, 2);
  const Matrix<double> Z = columns_of(items);
  LogisticRegressions warm(Z, items.Y, items.G), cold(Z, items.Y, items.G);
  warm.solve(100, 1e-10, 500);
  warm.solve(2, 1e-10, 500);
  cold.solve(2, 1e-10, 500);
  for (std::size_t k = 0; k < warm.weights().values().size(); ++k)
    EXPECT_NEAR(warm.weights().values()[k], cold.weights().values()[k], 1e-6);
}

TEST(Logistic, ALabelOfOneClassOrWithoutKnownEntriesIsHarmless) {
  Items items = made_up(40, {4}, 3, 3);
  for (std::size_t i = 0; i < 40; ++i) {
    items.G(i, 0) = 0;
    items.G(i, 1) = 1;
    items.Y(i, 1) = 1;
  }
  const Matrix<double> Z = columns_of(items);
  LogisticRegressions all(Z, items.Y, items.G);
  all.solve(1, 1e-4, 500);
  double known = 0, positives = 0;
  for (std::size_t i = 0; i < items.G.values().size(); ++i)
    if (items.G.values()[i]) known += 1, positives += static_cast<double>(items.Y.values()[i]);
  for (const double w : all.weights().values()) EXPECT_TRUE(std::isfinite(w));
  EXPECT_EQ(all.bias()(0, 0), std::log((positives + .5) / (known - positives + .5)));
  EXPECT_GT(all.bias()(0, 1), 3);
  EXPECT_LT(all.bias()(0, 1), 100);
}

Matrix<float> scores_of(const std::string& method, const std::vector<Setting>& settings, const Items& train,
                        const Items& test) {
  auto made = make_method(method);
  Options options;
  made->declare(options);
  for (const auto& [name, value] : settings) options.set(name, value, "test");
  FitContext context;
  made->fit(train, Items{}, context);
  Matrix<float> scores(test.rows(), train.labels());
  made->predict(test, scores);
  return scores;
}

// With more columns than rows the method solves in the space of the rows; the solution is the same one.
TEST(Linear, WideDataAreSolvedInTheSpaceOfTheirRows) {
  Items items = made_up(30, {25, 40}, 3, 4);
  for (auto& w : items.W.values()) w = 1;  // no columns for gaps
  const Matrix<double> Z = columns_of(items);
  LogisticRegressions direct(Z, items.Y, items.G);
  direct.solve(2, 1e-9, 1000);
  const Matrix<float> scores = scores_of("linear", {{"lambda", "2"}}, items, items);
  for (std::size_t i = 0; i < 30; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double margin = direct.bias()(0, j);
      for (std::size_t k = 0; k < Z.cols(); ++k) margin += Z(i, k) * direct.weights()(k, j);
      EXPECT_NEAR(static_cast<double>(scores(i, j)), 1 / (1 + std::exp(-margin)), 2e-3);
    }
}

TEST(Linear, WhetherAViewIsThereIsAColumn) {
  Items items = made_up(80, {3, 3}, 1, 5);
  for (std::size_t i = 0; i < 80;
       ++i) {  // the label says whether the second view is there; values say nothing
    items.W(i, 0) = 1;
    items.W(i, 1) = i % 2 == 0;
    for (float& x : items.X[1].row(i)) x = 0;
    items.G(i, 0) = 1;
    items.Y(i, 0) = i % 2 == 0 ? 1.f : 0.f;
  }
  const Matrix<float> scores = scores_of("linear", {{"lambda", "0.1"}}, items, items);
  for (std::size_t i = 0; i < 80; ++i) EXPECT_EQ(scores(i, 0) > .5f, i % 2 == 0) << i;
}

TEST(Linear, RowsOnWhichNothingIsDefinedSelectNothing) {
  const Items train = made_up(60, {4, 3}, 1, 12);
  Items alike = made_up(9, {4, 3}, 1, 13), unknown = alike;
  std::ranges::fill(unknown.G.values(), std::uint8_t{0});
  for (Items* val : {&alike, &unknown}) {
    std::ranges::fill(val->Y.values(), 0.f);
    const auto method = make_method("linear"), usual = make_method("linear");
    FitContext context;
    method->fit(train, *val, context);
    usual->fit(train, {}, context);
    Matrix<float> scores(train.rows(), 1), expected(train.rows(), 1);
    method->predict(train, scores);
    usual->predict(train, expected);
    for (std::size_t i = 0; i < train.rows(); ++i) EXPECT_NEAR(scores(i, 0), expected(i, 0), 1e-3) << i;
  }
}

TEST(Baselines, UnknownLabelsDoNotMatter) {
  const Items train = made_up(70, {6, 9}, 4, 6), test = made_up(20, {6, 9}, 4, 7);
  Items other = train;
  for (std::size_t i = 0; i < other.Y.values().size(); ++i)
    if (!other.G.values()[i]) other.Y.values()[i] = 1;
  for (const char* method : {"linear", "mlknn"}) {
    const Matrix<float> a = scores_of(method, {}, train, test), b = scores_of(method, {}, other, test);
    EXPECT_TRUE(std::ranges::equal(a.values(), b.values())) << method;
  }
}

// A coin's .5 would put a label that nobody knows before all rare ones.
TEST(Baselines, ALabelThatNoRowKnowsIsAsCommonAsLabelsAreTogether) {
  Items train = made_up(70, {6, 9}, 4, 14);
  double known = 0, positives = 0;
  for (std::size_t i = 0; i < train.rows(); ++i) {
    train.G(i, 2) = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      if (j != 2) train.Y(i, j) = i % 7 == 0 ? 1.f : 0.f;
      if (train.G(i, j)) known += 1, positives += static_cast<double>(train.Y(i, j));
    }
  }
  for (const char* method : {"linear", "mlknn"}) {
    const Matrix<float> scores = scores_of(method, {}, train, train);
    for (std::size_t i = 0; i < train.rows(); ++i)
      EXPECT_NEAR(static_cast<double>(scores(i, 2)), positives / known, .02) << method;
  }
}

TEST(Baselines, SameBitsForAnyNumberOfThreads) {
  const Items train = made_up(300, {40, 60}, 20, 8), test = made_up(100, {40, 60}, 20, 9);
  for (const char* method : {"linear", "mlknn"}) {
    set_threads(1);
    const Matrix<float> one = scores_of(method, {}, train, test);
    for (const int count : {2, 4}) {
      set_threads(count);
      const Matrix<float> more = scores_of(method, {}, train, test);
      EXPECT_TRUE(std::ranges::equal(one.values(), more.values())) << method << " " << count;
    }
  }
  set_threads(0);
}

TEST(Mlknn, CountsAsTheNaiveOneDoes) {
  const Items train = made_up(50, {4, 3}, 5, 10), test = made_up(30, {4, 3}, 5, 11);
  const std::size_t k = 7, n = train.rows();
  const double s = .5;
  const Matrix<float> scores = scores_of("mlknn", {{"neighbours", "7"}, {"smoothing", "0.5"}}, train, test);
  const auto nearest = [&](const Items& items, std::size_t i, bool own) {
    std::vector<std::pair<double, std::size_t>> far;
    for (std::size_t t = 0; t < n; ++t) {
      if (own && t == i) continue;
      double sum = 0;
      for (std::size_t v = 0; v < items.X.size(); ++v)
        for (std::size_t q = 0; q < items.X[v].cols(); ++q)
          sum += std::pow(static_cast<double>(items.X[v](i, q)) - static_cast<double>(train.X[v](t, q)), 2);
      far.emplace_back(sum, t);
    }
    std::ranges::sort(far);
    far.resize(k);
    return far;
  };
  const auto has = [&](std::size_t t, std::size_t j) { return train.G(t, j) && train.Y(t, j) > 0; };
  for (std::size_t j = 0; j < 5; ++j) {
    std::vector<double> with(k + 1), without(k + 1);
    for (std::size_t i = 0; i < n; ++i) {
      if (!train.G(i, j)) continue;
      std::size_t d = 0;
      for (const auto& [_, t] : nearest(train, i, true)) d += has(t, j);
      (has(i, j) ? with : without)[d] += 1;
    }
    const double positives = std::accumulate(with.begin(), with.end(), 0.),
                 negatives = std::accumulate(without.begin(), without.end(), 0.);
    const double prior = (s + positives) / (2 * s + positives + negatives);
    for (std::size_t i = 0; i < test.rows(); ++i) {
      std::size_t d = 0;
      for (const auto& [_, t] : nearest(test, i, false)) d += has(t, j);
      const double yes = prior * (s + with[d]) / (s * 8 + positives),
                   no = (1 - prior) * (s + without[d]) / (s * 8 + negatives);
      EXPECT_NEAR(static_cast<double>(scores(i, j)), yes / (yes + no), 1e-6) << i << " " << j;
    }
  }
}

TEST(Mlknn, FewerRowsThanNeighbours) {
  const Items train = made_up(4, {3}, 2, 12);
  const Matrix<float> scores = scores_of("mlknn", {}, train, train);
  for (const float score : scores.values()) EXPECT_TRUE(score > 0 && score < 1);
}

}  // namespace
}  // namespace lacuna
