#include <gtest/gtest.h>

#include <numeric>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "data/prepare.h"
#include "data/prepare_check.h"
#include "data/principal.h"
#include "data/squash.h"
#include "ops/linalg.h"
#include "planted.h"
#include "temporary.h"

namespace lacuna {
namespace {

struct Case {
  Dataset data;
  Selection selection;
};

// Two views, the second sparse if asked; every third instance of view 0 is missing and holds NaN.
Case make_case(std::size_t n, std::size_t d, bool sparse,
               float garbage = std::numeric_limits<float>::quiet_NaN()) {
  Case c;
  c.data.name = "case";
  c.data.rows = n;
  Matrix<float> first = planted(n, d, 1), second = planted(n, d, 2);
  Matrix<std::uint8_t> present(n, 2);
  for (std::size_t i = 0; i < n; ++i) {
    present(i, 0) = i % 3 != 0;
    present(i, 1) = 1;
    for (std::size_t j = 0; j < d; ++j) {
      if (present(i, 0) == 0) first(i, j) = garbage;
      second(i, j) = second(i, j) > 4 ? std::floor(second(i, j)) : 0;
    }
  }
  View a, b;
  a.name = "real";
  a.features = Table<float>(std::move(first));
  b.name = "counts";
  if (sparse) {
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    Matrix<std::uint64_t> start(1, n + 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < d; ++j)
        if (second(i, j) != 0) index.push_back(static_cast<std::uint32_t>(j)), value.push_back(second(i, j));
      start(0, i + 1) = index.size();
    }
    Matrix<std::uint32_t> indices(1, index.size());
    Matrix<float> values(1, value.size());
    std::copy(index.begin(), index.end(), indices.data());
    std::copy(value.begin(), value.end(), values.data());
    b.features = Csr{std::move(start), std::move(indices), std::move(values), d};
  } else {
    b.features = Table<float>(std::move(second));
  }
  c.data.views = {std::move(a), std::move(b)};
  c.data.present = Table<std::uint8_t>(std::move(present));
  return c;
}

PrepareOptions of_kind(const std::string& kind, std::int64_t components = 8) {
  PrepareOptions options;
  options.kind = kind;
  options.components = components;
  return options;
}

Selection first_rows(const Dataset& data, std::size_t count) {
  Selection s;
  s.data = &data;
  for (std::size_t i = 0; i < count; ++i) s.rows.push_back(static_cast<std::uint32_t>(i));
  return s;
}

TEST(Prepare, ZscoreOfObservedTrainingInstances) {
  const Case c = make_case(60, 9, false);
  const Selection train = first_rows(c.data, 40);
  const Preparation p = Preparation::fit(train, of_kind("zscore"));
  const Items items = p.apply(train, false);
  for (std::size_t j = 0; j < 9; ++j) {
    double sum = 0, squares = 0, count = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      if (i % 3 == 0) {
        EXPECT_EQ(items.W(i, 0), 0);
        EXPECT_EQ(items.X[0](i, j), 0.f);
        continue;
      }
      sum += static_cast<double>(items.X[0](i, j));
      squares += std::pow(static_cast<double>(items.X[0](i, j)), 2);
      ++count;
    }
    EXPECT_NEAR(sum / count, 0, 1e-5);
    EXPECT_NEAR(squares / count, j == 4 ? 0 : 1, 1e-4);  // column 4 is constant
  }
}

TEST(Prepare, LeakyFitsOnAllRowsAndHiddenInstances) {
  Case c = make_case(30, 4, false, 1e3f);
  Fold fold;
  fold.W = Matrix<std::uint8_t>(30, 2);
  for (std::size_t i = 0; i < 30; ++i) fold.W(i, 0) = fold.W(i, 1) = i % 2;
  Selection train = first_rows(c.data, 10);
  train.fold = &fold;
  PrepareOptions options = of_kind("zscore");
  options.leaky = true;
  const Preparation p = Preparation::fit(train, options);
  double sum = 0;
  const auto& table = std::get<Table<float>>(c.data.views[1].features);
  for (std::size_t i = 0; i < 30; ++i) sum += static_cast<double>(table(i, 1));
  EXPECT_NEAR(p.views()[1].shift(0, 1), sum / 30, 1e-5);
  options.leaky = false;
  sum = 0;
  for (std::size_t i = 1; i < 10; i += 2) sum += static_cast<double>(table(i, 1));
  EXPECT_NEAR(Preparation::fit(train, options).views()[1].shift(0, 1), sum / 5, 1e-5);
}

TEST(Prepare, MinmaxClampsNewRows) {
  const Case c = make_case(60, 5, false);
  const Selection train = first_rows(c.data, 20), all = first_rows(c.data, 60);
  const Items items = Preparation::fit(train, of_kind("minmax")).apply(all, false);
  float low = 1, high = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    low = std::min(low, items.X[1](i, 1));
    high = std::max(high, items.X[1](i, 1));
  }
  EXPECT_EQ(low, 0.f);
  EXPECT_NEAR(high, 1.f, 1e-6);
  for (const float x : items.X[1].values()) EXPECT_TRUE(x >= 0 && x <= 1);
}

// Power iteration with deflation on the covariance matrix: slow, plain, independent of the solver under test.
std::vector<double> plain_variances(const Matrix<float>& X, std::size_t count) {
  const std::size_t n = X.rows(), d = X.cols();
  std::vector<double> mean(d), C(d * d), result;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) mean[j] += static_cast<double>(X(i, j)) / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k)
        C[j * d + k] += (static_cast<double>(X(i, j)) - mean[j]) * (static_cast<double>(X(i, k)) - mean[k]) /
                        static_cast<double>(n);
  for (std::size_t r = 0; r < count; ++r) {
    std::vector<double> v(d, 1), next(d);
    double value = 0;
    for (std::size_t j = 0; j < d; ++j) v[j] += .01 * static_cast<double>(j * (r + 1) % 7);
    for (int step = 0; step < 4000; ++step) {
      value = 0;
      for (std::size_t j = 0; j < d; ++j) {
        next[j] = 0;
        for (std::size_t k = 0; k < d; ++k) next[j] += C[j * d + k] * v[k];
        value += next[j] * next[j];
      }
      value = std::sqrt(value);
      for (std::size_t j = 0; j < d; ++j) v[j] = next[j] / value;
    }
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k) C[j * d + k] -= value * v[j] * v[k];
    result.push_back(value);
  }
  return result;
}

TEST(Prepare, LogPcaFollowsTheRecipe) {
  const Case c = make_case(90, 20, false);
  const Selection all = first_rows(c.data, 90);
  const Preparation p = Preparation::fit(all, of_kind("log-pca", 6));
  const auto& map = p.views()[1];
  EXPECT_EQ(map.log_scale, 1);
  const auto& raw = std::get<Table<float>>(c.data.views[1].features);
  Matrix<float> logs(90, 20);
  for (std::size_t i = 0; i < 90; ++i)
    for (std::size_t j = 0; j < 20; ++j) logs(i, j) = std::log1p(raw(i, j));
  const std::vector<double> expected = plain_variances(logs, 6);
  double mean = 0;
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(map.variances[k], expected[k], 1e-4 * expected[0]);
    mean += expected[k] / 6;
  }
  const Items items = p.apply(all, false);
  double total = 0;
  for (std::size_t k = 0; k < 6; ++k) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 90; ++i) {
      sum += static_cast<double>(items.X[1](i, k));
      squares += std::pow(static_cast<double>(items.X[1](i, k)), 2);
    }
    EXPECT_NEAR(sum / 90, 0, 1e-4);
    EXPECT_NEAR(squares / 90, expected[k] / mean, 1e-3);
    total += squares / 90;
  }
  EXPECT_NEAR(total / 6, 1, 1e-4);
  for (std::size_t a = 0; a < 6; ++a)
    for (std::size_t b = 0; b < 6; ++b) {
      double dot = 0;
      for (std::size_t j = 0; j < 20; ++j)
        dot += static_cast<double>(map.directions(j, a)) * static_cast<double>(map.directions(j, b));
      EXPECT_NEAR(dot, a == b, 1e-5);
    }
}

// Variances of the prepared coordinates of the counts, and the numbers that the recipe gives for them.
TEST(Prepare, RootPcaAndWhitening) {
  const Case c = make_case(90, 20, false);
  const Selection all = first_rows(c.data, 90);
  const auto& raw = std::get<Table<float>>(c.data.views[1].features);
  Matrix<float> roots(90, 20);
  for (std::size_t i = 0; i < 90; ++i)
    for (std::size_t j = 0; j < 20; ++j) roots(i, j) = std::pow(raw(i, j), .25f);
  const std::vector<double> variances = plain_variances(roots, 6);
  for (const double whiten : {0., .5, 1.}) {
    PrepareOptions options = of_kind("root-pca", 6);
    options.whiten = whiten;
    const Preparation p = Preparation::fit(all, options);
    EXPECT_EQ(p.views()[1].power, .25);
    Tensors file;
    p.save(file, "x.");
    const Items items = Preparation::load(file, "x.").apply(all, false);
    double mean = 0;
    for (const double variance : variances) mean += std::pow(variance, 1 - whiten) / 6;
    for (std::size_t k = 0; k < 6; ++k) {
      double squares = 0;
      for (std::size_t i = 0; i < 90; ++i) squares += std::pow(static_cast<double>(items.X[1](i, k)), 2) / 90;
      EXPECT_NEAR(squares, std::pow(variances[k], 1 - whiten) / mean, 2e-3) << whiten << " " << k;
    }
  }
}

// The coordinates of training rows reproduce the centred kernel that they come from.
TEST(Prepare, KernelCoordinatesHaveTheKernelAsInnerProduct) {
  const Matrix<float> Z = planted(40, 6, 8);
  const KernelMap map = KernelMap::fit(Z, 39, 1);
  EXPECT_EQ(map.anchors.rows(), 40u);
  Matrix<float> F(40, map.columns());
  map.apply(Z, F);
  double width = 0;
  const auto distance = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < 6; ++k) sum += std::pow(static_cast<double>(Z(i, k) - Z(j, k)), 2);
    return sum;
  };
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 40; ++j) width += distance(i, j) / 1600;
  EXPECT_NEAR(map.width, width, 1e-3 * width);
  std::vector<double> means(40);
  double mean = 0, trace = 0;
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 40; ++j) means[i] += std::exp(-distance(i, j) / width) / 40;
  for (const double m : means) mean += m / 40;
  for (std::size_t i = 0; i < 40; ++i) trace += (1 - 2 * means[i] + mean) / 40;
  const double scale = static_cast<double>(map.columns()) / trace;  // mean variance 1
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 40; ++j) {
      double dot = 0;
      for (std::size_t k = 0; k < map.columns(); ++k)
        dot += static_cast<double>(F(i, k)) * static_cast<double>(F(j, k));
      EXPECT_NEAR(dot, scale * (std::exp(-distance(i, j) / width) - means[i] - means[j] + mean),
                  5e-3 * scale);
    }
}

TEST(Prepare, KernelMapSurvivesAFileAndZeroesMissingRows) {
  const Case c = make_case(60, 12, true);
  const Selection train = first_rows(c.data, 40), all = first_rows(c.data, 60);
  for (const auto& [kind, width] : {std::pair("rbf-pca", 5u), std::pair("root-rbf-pca", 10u)}) {
    const Preparation p = Preparation::fit(train, of_kind(kind, 5));
    Tensors file;
    p.save(file, "x.");
    const Items a = p.apply(all, false), b = Preparation::load(file, "x.").apply(all, false);
    for (std::size_t v = 0; v < 2; ++v) {
      EXPECT_EQ(a.X[v].cols(), width);
      EXPECT_TRUE(std::ranges::equal(a.X[v].values(), b.X[v].values()));
    }
    for (std::size_t i = 0; i < 60; i += 3)
      for (const float x : a.X[0].row(i)) EXPECT_EQ(x, 0.f);
  }
}

// Coordinates of root-pca and of a Gaussian kernel in turn, each as it is alone.
TEST(Prepare, RootRbfHasLinearAndKernelCoordinatesInTurn) {
  const Case c = make_case(60, 12, true);
  const Selection train = first_rows(c.data, 40), all = first_rows(c.data, 60);
  const Preparation both = Preparation::fit(train, of_kind("root-rbf-pca", 5));
  const Items x = both.apply(all, false),
              linear = Preparation::fit(train, of_kind("root-pca", 5)).apply(all, false);
  for (std::size_t v = 0; v < 2; ++v) {
    const auto& map = both.views()[v];
    ASSERT_EQ(x.X[v].cols(), 10u);
    ASSERT_EQ(map.width(), 10u);
    EXPECT_EQ(map.sources()[1], map.directions.cols());
    std::vector<double> sums(5), squares(5);
    std::size_t rows = 0;
    for (std::size_t i = 0; i < 60; ++i) {
      for (std::size_t k = 0; k < 5; ++k)
        EXPECT_NEAR(x.X[v](i, 2 * k), linear.X[v](i, k), 1e-3) << v << " " << i;
      if (i >= 40 || x.W(i, v) == 0) continue;
      ++rows;
      for (std::size_t k = 0; k < 5; ++k) {
        const double y = static_cast<double>(x.X[v](i, 2 * k + 1));
        sums[k] += y;
        squares[k] += y * y;
      }
    }
    for (std::size_t k = 0; k < 5; ++k) {  // centred, in order of their variance
      EXPECT_NEAR(sums[k] / static_cast<double>(rows), 0, 1e-3);
      EXPECT_LE(squares[k], squares[k > 0 ? k - 1 : 0] * 1.001);
    }
    EXPECT_NEAR(std::accumulate(squares.begin(), squares.end(), 0.0) / static_cast<double>(5 * rows), 1,
                1e-2);
  }
}

// The fourth root is the same up to the final scale whatever the unit of a view, and keeps signs.
TEST(Prepare, RootPcaDoesNotDependOnUnits) {
  Case a = make_case(40, 6, false), b = a;
  Matrix<float> X(40, 6), scaled(40, 6);
  Random random(4, Purpose::test);
  for (std::size_t i = 0; i < X.values().size(); ++i) {
    X.values()[i] = std::copysign(random.normal(), i % 8 == 0 ? -1.f : 1.f);
    scaled.values()[i] = 4096 * X.values()[i];
  }
  a.data.views[1].features = Table<float>(std::move(X));
  b.data.views[1].features = Table<float>(std::move(scaled));
  const Selection x = first_rows(a.data, 40), y = first_rows(b.data, 40);
  const Items p = Preparation::fit(x, of_kind("root-pca", 4)).apply(x, false),
              q = Preparation::fit(y, of_kind("root-pca", 4)).apply(y, false);
  for (std::size_t i = 0; i < p.X[1].values().size(); ++i)
    EXPECT_NEAR(p.X[1].values()[i], q.X[1].values()[i], 1e-4);
}

// Where both signs are common 0 is the middle of the values; their root would keep little but the sign.
TEST(Prepare, RootPcaTakesNoRootOfTwoSidedViews) {
  Case c = make_case(40, 6, false);
  const Selection rows = first_rows(c.data, 40);
  for (const std::size_t every : {2, 4, 5, 40}) {  // every so many values are negative
    Matrix<float> X(40, 6);
    Random random(6, Purpose::test);
    for (std::size_t i = 0; i < X.values().size(); ++i)
      X.values()[i] = std::copysign(random.uniform(.1f, 5), i % every == 0 ? -1.f : 1.f);
    c.data.views[1].features = Table<float>(std::move(X));
    const Preparation fitted = Preparation::fit(rows, of_kind("root-pca", 4));
    EXPECT_EQ(fitted.views()[1].power, every <= 4 ? 0 : .25) << every;
    if (every > 4) continue;
    const Items p = fitted.apply(rows, false),
                q = Preparation::fit(rows, of_kind("pca", 4)).apply(rows, false);
    EXPECT_TRUE(std::ranges::equal(p.X[1].values(), q.X[1].values()));
  }
}

TEST(Prepare, SmallValuesUseTheSteeperLogarithm) {
  Case c = make_case(30, 4, false);
  Matrix<float> X(30, 4);
  Random random(5, Purpose::test);
  for (float& x : X.values()) x = random.uniform(-1, 1);
  c.data.views[1].features = Table<float>(std::move(X));
  EXPECT_EQ(Preparation::fit(first_rows(c.data, 30), of_kind("log-pca")).views()[1].log_scale, 100);
}

TEST(Prepare, SparseEqualsDense) {
  for (const std::size_t d : {7u, 120u}) {
    const Case dense = make_case(80, d, false), sparse = make_case(80, d, true);
    for (const char* kind : {"zscore", "minmax", "pca", "log-pca", "root-pca", "rbf-pca", "root-rbf-pca"}) {
      const Selection a = first_rows(dense.data, 80), b = first_rows(sparse.data, 80);
      const Items x = Preparation::fit(a, of_kind(kind)).apply(a, false),
                  y = Preparation::fit(b, of_kind(kind)).apply(b, false);
      ASSERT_EQ(x.X[1].cols(), y.X[1].cols());
      for (std::size_t i = 0; i < x.X[1].values().size(); ++i)
        ASSERT_NEAR(x.X[1].values()[i], y.X[1].values()[i], 2e-4) << kind << " " << i;
    }
  }
}

// A value beyond all measure saturates: its square would be no 32-bit number.
TEST(Prepare, HugeValuesAreBounded) {
  for (const bool sparse : {false, true})
    for (const char* kind :
         {"none", "zscore", "minmax", "pca", "log-pca", "root-pca", "rbf-pca", "root-rbf-pca"}) {
      const auto prepared = [&](float huge) {
        Case c = make_case(80, 12, sparse);
        const Preparation p = Preparation::fit(first_rows(c.data, 60), of_kind(kind));
        auto& features = c.data.views[1].features;
        Matrix<float> values;
        if (sparse) {
          auto& csr = std::get<Csr>(features);
          values = Matrix<float>(1, csr.value.cols());
          values.copy_from(csr.value.view());
          EXPECT_GE(csr.start(0, 71) - csr.start(0, 70), 2u);
          values(0, csr.start(0, 70)) = huge;
          values(0, csr.start(0, 70) + 1) = -huge;
          csr.value = Table<float>(std::move(values));
        } else {
          values = Matrix<float>(80, 12);
          values.copy_from(std::get<Table<float>>(features).view());
          values(70, 1) = huge;
          values(70, 2) = -huge;
          features = Table<float>(std::move(values));
        }
        const Items items = p.apply(first_rows(c.data, 80), false);
        const auto row = items.X[1].row(70);
        return std::vector<float>(row.begin(), row.end());
      };
      const std::vector<float> large = prepared(1e18f), larger = prepared(1e20f), largest = prepared(3e38f);
      float most = 0;
      for (const std::vector<float>* row : {&large, &larger, &largest})
        for (const float x : *row) {
          EXPECT_LE(std::abs(x), kMostPrepared) << kind;  // and is a number
          most = std::max(most, std::abs(x));
        }
      EXPECT_GT(most, 0) << kind;
      if (std::string(kind).starts_with("log") || std::string(kind).starts_with("root"))
        continue;  // they go on growing
      EXPECT_EQ(large, larger) << kind;
      EXPECT_EQ(large, largest) << kind;
    }
}

// Views that are mostly zero say what their zeros have become, whatever the rows; others do not.
TEST(Prepare, SaysWhatTheZerosHaveBecome) {
  Case c = make_case(80, 300, false);
  Matrix<float> counts(80, 300);
  for (std::size_t i = 0; i < 80; ++i) {
    c.data.views[1].copy_row(i, counts.row(i));
    for (std::size_t j = 0; j < 300; ++j)
      if ((7 * i + 3 * j) % 5 != 0) counts(i, j) = 0;
  }
  c.data.views[1].features = Table<float>(std::move(counts));
  const Selection all = first_rows(c.data, 80), some = first_rows(c.data, 5);
  for (const char* kind : {"none", "zscore", "minmax"}) {
    const Preparation preparation = Preparation::fit(all, of_kind(kind));
    const Items items = preparation.apply(all, false);
    EXPECT_TRUE(items.background(0).empty()) << kind;
    const auto background = items.background(1);
    ASSERT_EQ(background.size(), 300u) << kind;
    std::size_t zeros = 0;
    Matrix<float> raw(1, 300);
    for (std::size_t i = 0; i < 80; ++i) {
      c.data.views[1].copy_row(i, raw.row(0));
      for (std::size_t j = 0; j < 300; ++j)
        if (raw(0, j) == 0) {
          ++zeros;
          ASSERT_EQ(items.X[1](i, j), background[j]) << kind;
        }
    }
    EXPECT_GT(zeros, 80u * 300u * 3 / 4);
    EXPECT_TRUE(std::ranges::equal(preparation.apply(some, false).background(1), background)) << kind;
  }
  EXPECT_TRUE(Preparation::fit(all, of_kind("pca")).apply(all, false).background(1).empty());
}

TEST(Prepare, SquashOfManyValuesHasTheBitsOfEach) {
  Random random(12, Purpose::test);
  std::vector<float> values(133);
  for (float& x : values) x = 9 * random.normal();
  values[7] = 0;
  for (const Squash squash : {Squash{}, Squash{100, 0}, Squash{0, .25f}, Squash{0, .5f}}) {
    std::vector<float> many = values;
    squash.apply(many);
    for (std::size_t i = 0; i < many.size(); ++i) EXPECT_EQ(many[i], squash(values[i])) << i;
  }
}

TEST(Prepare, MissingInstancesHaveNoInfluence) {
  for (const char* kind :
       {"none", "zscore", "minmax", "pca", "log-pca", "root-pca", "rbf-pca", "root-rbf-pca", "auto"}) {
    const Case a = make_case(50, 12, false), b = make_case(50, 12, false, 1e30f);
    const Selection x = first_rows(a.data, 50), y = first_rows(b.data, 50);
    const Items p = Preparation::fit(x, of_kind(kind)).apply(x, false),
                q = Preparation::fit(y, of_kind(kind)).apply(y, false);
    for (std::size_t v = 0; v < 2; ++v)
      EXPECT_TRUE(std::equal(p.X[v].values().begin(), p.X[v].values().end(), q.X[v].values().begin()))
          << kind;
  }
}

TEST(Prepare, SameBitsForAnyThreads) {
  const Case c = make_case(500, 400, false);
  const Selection all = first_rows(c.data, 500);
  SharedMatrix<float> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    const Items items = Preparation::fit(all, of_kind("log-pca")).apply(all, false);
    if (first.empty()) first = items.X[0];
    EXPECT_TRUE(std::equal(first.values().begin(), first.values().end(), items.X[0].values().begin()));
  }
  set_threads(0);
}

// Threads take a view each, or share each: one result.
TEST(Prepare, SeveralFormsAtTheSameTimeHaveTheBitsOfOneAfterTheOther) {
  const Case c = make_case(200, 90, false);
  const Selection all = first_rows(c.data, 200);
  std::vector<PrepareOptions> forms;
  for (const char* kind : {"root-pca", "auto", "zscore", "rbf-pca", "root-rbf-pca", "log-pca"})
    forms.push_back(of_kind(kind));
  forms.push_back(of_kind("log-pca"));
  forms.back().components = 40;
  for (const int count : {1, 3, 64}) {
    set_threads(count);
    const std::vector<Preparation> together = Preparation::fit(all, forms, one_rank());
    ASSERT_EQ(together.size(), forms.size());
    for (std::size_t f = 0; f < forms.size(); ++f) {
      Tensors a, b;
      together[f].save(a, "");
      const Preparation alone = Preparation::fit(all, forms[f]);
      alone.save(b, "");
      EXPECT_TRUE(a.text() == b.text()) << count << " threads, form " << f;
    }
  }
  set_threads(0);
}

TEST(Prepare, SaveAndLoad) {
  const Case c = make_case(40, 10, true);
  const Selection all = first_rows(c.data, 40);
  PrepareOptions options = of_kind("log-pca", 4);
  options.per_view = {"real=auto"};
  options.components = 10;
  const Preparation p = Preparation::fit(all, options);
  const TemporaryDirectory folder;
  const std::string path = folder / "preparation";
  Tensors out;
  p.save(out, "prepare.");
  out.write(path);
  const Preparation q = Preparation::load(Tensors::read(path), "prepare.");
  EXPECT_EQ(q.views()[0].reason, p.views()[0].reason);
  EXPECT_EQ(q.views()[0].kind, "zscore");
  const Items x = p.apply(all, false), y = q.apply(all, false);
  for (std::size_t v = 0; v < 2; ++v)
    EXPECT_TRUE(std::equal(x.X[v].values().begin(), x.X[v].values().end(), y.X[v].values().begin()));
  // A model's view that the data lacks is missing everywhere.
  const Items lacking = q.apply(all, {1, -1}, false);
  EXPECT_EQ(lacking.X[1].cols(), y.X[1].cols());
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(lacking.W(i, 1), 0);
}

TEST(Prepare, AdviceLooksAtTheValues) {
  const Case c = make_case(60, 12, true);
  const Selection all = first_rows(c.data, 60);
  EXPECT_EQ(advise_preparation(all, 0).kind, "zscore");
  EXPECT_EQ(advise_preparation(all, 1).kind, "log-pca");
  EXPECT_NE(advise_preparation(all, 1).reason.find("counts"), std::string::npos);
  EXPECT_EQ(advise_preparation(all, 0, 4).kind, "log-pca");
  Case unit = make_case(60, 12, false);
  Matrix<float> X(60, 12);
  Random random(9, Purpose::test);
  for (std::size_t i = 0; i < 60; ++i) {
    float squares = 0;
    for (float& x : X.row(i)) x = random.normal(), squares += x * x;
    for (float& x : X.row(i)) x /= std::sqrt(squares);
  }
  unit.data.views[1].features = Table<float>(std::move(X));
  EXPECT_EQ(advise_preparation(first_rows(unit.data, 60), 1, 4).kind, "pca");
}

// Views that say nothing, or less than they could, are named.
TEST(Prepare, ViewsThatAreLostAreRemarkedOn) {
  const auto remarks = [](float first, float others, const std::vector<std::string>& kinds) {
    Dataset data;
    data.rows = 60;
    Matrix<float> values = planted(60, 12, 3);
    for (std::size_t i = 0; i < values.rows(); ++i)
      for (std::size_t j = 0; j < values.cols(); ++j)
        values(i, j) = (values(i, j) - 5) * (j == 0 ? first : others);
    data.views.push_back({"v", Table<float>(std::move(values)), {}, ""});
    std::vector<PrepareOptions> forms;
    for (const auto& kind : kinds) forms.emplace_back().kind = kind;
    const Selection all = select_all(data);
    const std::vector<Preparation> fitted = Preparation::fit(all, forms, one_rank());
    for (const Preparation& one : fitted) {
      const Items prepared = one.apply(all, false);
      for (const float x : std::as_const(prepared.X[0]).values()) EXPECT_TRUE(std::isfinite(x));
    }
    const auto found = check_preparations(fitted, all);
    return found.empty() ? std::string() : found[0];
  };
  EXPECT_EQ(remarks(1, 1, {"root-pca"}), "");
  EXPECT_EQ(remarks(10, 1, {"root-pca"}), "");
  EXPECT_EQ(remarks(1000, 1, {"root-pca"}), "");  // columns are put on one scale
  EXPECT_EQ(remarks(1, 1e-40f, {"pca"}), "");     // and the scale of a column that hardly varies is finite
  EXPECT_NE(remarks(1e30f, 1e30f, {"root-pca"}).find("too large or too small"), std::string::npos);
  EXPECT_NE(remarks(0, 0, {"root-pca"}).find("is the same in all training rows"), std::string::npos);
  EXPECT_NE(remarks(0, 0, {"zscore"}).find("is the same in all training rows"), std::string::npos);
}

// A column in another unit does not hide the others, whatever its factor; columns of alike variance stay as they are.
TEST(Prepare, UnitsOfAFewColumnsAreTakenAway) {
  for (const bool sparse : {false, true})
    for (const bool passes : {false, true}) {
      const auto fit = [&](float factor, Items& prepared) {
        Case c = make_case(80, 30, sparse);
        View& view = c.data.views[1];
        const auto scaled = [&](std::size_t j, float x) { return j < 2 ? x * factor : x; };
        if (sparse) {
          auto& csr = std::get<Csr>(view.features);
          Matrix<float> values(1, csr.value.cols());
          for (std::size_t p = 0; p < values.cols(); ++p)
            values(0, p) = scaled(csr.index(0, p), csr.value(0, p));
          csr.value = Table<float>(std::move(values));
        } else {
          Matrix<float> values(80, 30);
          for (std::size_t i = 0; i < 80; ++i) {
            view.copy_row(i, values.row(i));
            for (std::size_t j = 0; j < 30; ++j) values(i, j) = scaled(j, values(i, j));
          }
          view.features = Table<float>(std::move(values));
        }
        PrepareOptions options = of_kind("pca", 6);
        if (passes) options.most_bytes = 0;
        const Selection all = first_rows(c.data, 80);
        const Preparation p = Preparation::fit(all, options);
        prepared = p.apply(all, false);
        float largest = 0, least = std::numeric_limits<float>::infinity();
        for (const float s : p.views()[1].scale.values())
          if (s != 0) largest = std::max(largest, s), least = std::min(least, s);
        return std::pair(least, largest);
      };
      Items plain, metres, millimetres;
      EXPECT_EQ(fit(1, plain), std::pair(1.f, 1.f));
      const auto [least, largest] = fit(1024, metres);
      EXPECT_LT(least, .01f * largest);
      fit(1024 * 1024, millimetres);
      const auto a = std::as_const(metres.X[1]).values(), b = std::as_const(millimetres.X[1]).values();
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3f) << sparse << passes << i;
    }
}

TEST(Prepare, ErrorsNameTheNearest) {
  const Case c = make_case(20, 3, false);
  const auto message = [&](const PrepareOptions& options) -> std::string {
    try {
      Preparation::fit(first_rows(c.data, 20), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(of_kind("zcore")).find("did you mean 'zscore'"), std::string::npos);
  PrepareOptions options;
  options.per_view = {"count=none"};
  EXPECT_NE(message(options).find("did you mean 'counts'"), std::string::npos);
  options.per_view = {"counts"};
  EXPECT_NE(message(options).find("name=kind"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
