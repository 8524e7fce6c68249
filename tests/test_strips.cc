// Passes over tables of more rows than memory holds.
#include "data/strips.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "data/moments.h"
#include "data/prepare.h"
#include "data/principal.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

// A spectrum that falls as slowly as that of histograms does.
Matrix<float> falling(std::size_t n, std::size_t d) {
  Random random(11, Purpose::test);
  Matrix<float> X(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      X(i, j) = 2 + random.normal() / std::pow(static_cast<float>(j + 1), .6f);
  return X;
}

View view_of(Matrix<float> X) {
  View view;
  view.name = "view";
  view.features = std::move(X);
  return view;
}

std::vector<std::uint32_t> counted(std::size_t n) {
  std::vector<std::uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

TEST(Strips, SlabsCoverEveryRowOnceInOrder) {
  const View view = view_of(Matrix<float>(1200, 20000));  // 96 MB: three slabs
  std::vector<std::uint32_t> rows = counted(1200);
  Random(1, Purpose::test).shuffle(rows);
  std::size_t at = 0, slabs = 0;
  for_slabs(view, rows, [&](std::size_t first, std::size_t count) {
    EXPECT_EQ(first, at);
    EXPECT_LE(count * 20000 * sizeof(float), std::size_t{32} << 20);
    at += count;
    ++slabs;
  });
  EXPECT_EQ(at, 1200u);
  EXPECT_EQ(slabs, 3u);
}

TEST(Strips, OfAViewAreItsRowsSquashedAndCentred) {
  const View view = view_of(falling(5000, 7));
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 4999; i > 10; i -= 2) rows.push_back(i);
  const std::vector<float> shift = {1, 2, 3, 4, 5, 6, 7}, scale = {1, 2, 1, 0, 1, 1, 3};
  const Squash squash{0, .25f};
  std::size_t at = 0;
  ViewStrips(view, rows, squash, shift, scale).each([&](std::size_t begin, MatrixView<const float> strip) {
    ASSERT_EQ(begin, at);
    for (std::size_t i = 0; i < strip.rows; ++i)
      for (std::size_t j = 0; j < 7; ++j)
        ASSERT_EQ(strip(i, j),
                  (squash(std::get<Table<float>>(view.features)(rows[at + i], j)) - shift[j]) * scale[j]);
    at += strip.rows;
  });
  EXPECT_EQ(at, rows.size());
}

TEST(Strips, MomentsOfManySlabsAreThoseOfAllRows) {
  Matrix<float> X(1000, 20000);
  Random random(3, Purpose::test);
  for (float& x : X.values()) x = random.uniform();
  const View view = view_of(X);
  const std::vector<std::uint32_t> rows = counted(1000);
  const Moments m = moments(view, rows);
  for (std::size_t j = 0; j < 20000; j += 1999) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 1000; ++i) sum += static_cast<double>(X(i, j));
    for (std::size_t i = 0; i < 1000; ++i) squares += std::pow(static_cast<double>(X(i, j)) - sum / 1000, 2);
    EXPECT_EQ(m.mean[j], sum / 1000);
    EXPECT_EQ(m.deviation[j], std::sqrt(squares / 1000));
  }
}

// Both solvers, and both shapes; what is found is measured, not believed.
TEST(Strips, DirectionsFoundInPassesExplainNearlyAsMuchAsTheBest) {
  struct Case {
    std::size_t n, d;
    double gram_work;
  };
  const std::size_t K = 16;
  for (const auto& [n, d, gram_work] :
       {Case{5000, 500, 0}, {5000, 500, 1e12}, {400, 700, 0}, {300, 350, 1e12}}) {
    Matrix<float> X = falling(n, d);
    const View view = view_of(X);
    const std::vector<std::uint32_t> rows = counted(n);
    const Moments m = moments(ViewStrips(view, rows, {}));
    std::vector<float> shift(d), scale(d, 1.f);
    for (std::size_t j = 0; j < d; ++j) shift[j] = static_cast<float>(m.mean[j]);
    const ViewStrips strips(view, rows, {}, shift, scale);
    const Principal found = principal_directions(strips, K, 1, gram_work);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < d; ++j) X(i, j) -= shift[j];
    Matrix<double> gram(d, d);
    gram_of_columns(X, gram);
    const Eigensystem all = symmetric_eigen(gram);
    Matrix<float> Z(n, found.directions.cols());
    product(X, found.directions, Transpose::none, false, Z);
    double explained = 0, best = 0;
    for (const float z : Z.values()) explained += static_cast<double>(z) * static_cast<double>(z);
    for (std::size_t k = 0; k < K; ++k) best += all.values[k];
    EXPECT_GE(explained, .998 * best) << n << " x " << d;
    EXPECT_LE(explained, 1.00001 * best) << n << " x " << d;
    set_threads(3);
    const auto again = principal_directions(strips, K, 1, gram_work);
    EXPECT_TRUE(std::ranges::equal(again.directions.values(), found.directions.values()));
    set_threads(0);
  }
}

TEST(Strips, APreparationInPassesIsNearlyThatInMemory) {
  Dataset data;
  data.name = "falling";
  data.rows = 3000;
  data.views.push_back(view_of(falling(3000, 60)));
  const Selection all = select_all(data);
  for (const char* kind : {"zscore", "minmax", "pca", "log-pca", "root-pca", "rbf-pca", "root-rbf-pca"}) {
    PrepareOptions options;
    options.kind = kind;
    options.components = 12;
    const Items whole = Preparation::fit(all, options).apply(all, false);
    options.most_bytes = 0;
    const Items passes = Preparation::fit(all, options).apply(all, false);
    ASSERT_EQ(whole.X[0].cols(), passes.X[0].cols()) << kind;
    double difference = 0, squares = 0;
    for (std::size_t i = 0; i < std::as_const(whole.X[0]).values().size(); ++i) {
      const double a = static_cast<double>(std::as_const(whole.X[0]).values()[i]),
                   b = static_cast<double>(std::as_const(passes.X[0]).values()[i]);
      difference += (a - b) * (a - b);
      squares += a * a;
    }
    EXPECT_LE(difference, 1e-8 * squares) << kind;
  }
}

}  // namespace
}  // namespace lacuna
