#include "data/label_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "base/threads.h"
#include "data/dataset.h"

namespace lacuna {
namespace {

// Labels that come in groups of three: those of a group share most of their rows.
Matrix<std::int8_t> grouped(std::size_t rows, std::size_t labels, std::uint64_t seed) {
  Random random(seed, Purpose::test, 1);
  Matrix<std::int8_t> Y(rows, labels);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0, group = 0; j < labels; ++j) {
      if (j % 3 == 0) group = random.below(3);
      Y(i, j) = random.uniform() < (group == 0 ? .7f : .1f);
    }
  return Y;
}

Matrix<std::int8_t> hidden(const Matrix<std::int8_t>& Y, float share, std::uint64_t seed) {
  Random random(seed, Purpose::test, 2);
  Matrix<std::int8_t> partly = Y;
  for (std::int8_t& y : partly.values())
    if (random.uniform() < share) y = kUnknown;
  return partly;
}

// The four counts by definition, for every label separately.
LabelPair counted(const Matrix<std::int8_t>& Y, std::size_t j, std::size_t k) {
  LabelPair pair;
  for (std::size_t i = 0; i < Y.rows(); ++i) {
    if (Y(i, j) == kUnknown || Y(i, k) == kUnknown) continue;
    ++pair.known;
    pair.first += Y(i, j) == 1;
    pair.second += Y(i, k) == 1;
    pair.both += Y(i, j) == 1 && Y(i, k) == 1;
  }
  return pair;
}

// Pearson's correlation of two columns without gaps.
double pearson(const Matrix<std::int8_t>& Y, std::size_t j, std::size_t k) {
  const auto n = static_cast<double>(Y.rows());
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < Y.rows(); ++i) {
    const double a = Y(i, j), b = Y(i, k);
    x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
  }
  return (xy / n - x / n * y / n) / std::sqrt((xx / n - x / n * x / n) * (yy / n - y / n * y / n));
}

TEST(LabelGraph, CountsPairsThatAreKnownTogether) {
  for (const std::size_t rows : {1u, 63u, 64u, 65u, 200u}) {
    const Matrix<std::int8_t> Y = hidden(grouped(rows, 7, rows), .4f, rows);
    const LabelGraph graph(Y);
    ASSERT_EQ(graph.labels(), 7u);
    for (std::size_t j = 0; j < 7; ++j)
      for (std::size_t k = 0; k < 7; ++k) {
        if (j == k) continue;
        const LabelPair is = graph.pair(j, k), wanted = counted(Y, j, k);
        EXPECT_EQ(is.known, wanted.known);
        EXPECT_EQ(is.first, wanted.first);
        EXPECT_EQ(is.second, wanted.second);
        EXPECT_EQ(is.both, wanted.both);
      }
  }
}

TEST(LabelGraph, CompleteLabelsGiveThePlainEstimate) {
  const Matrix<std::int8_t> Y = grouped(300, 9, 5);
  const LabelGraph graph(Y);
  for (std::size_t j = 0; j < 9; ++j)
    for (std::size_t k = 0; k < 9; ++k) {
      if (j == k) continue;
      EXPECT_NEAR(graph.pair(j, k).correlation(), pearson(Y, j, k), 1e-12);
    }
}

// The mean over many masks is the estimate of the complete labels, within its standard error.
TEST(LabelGraph, MasksAtRandomLeaveItUnbiased) {
  constexpr std::size_t kMasks = 400;
  const Matrix<std::int8_t> Y = grouped(400, 6, 11);
  const LabelGraph whole(Y);
  for (const auto& [j, k] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 5}, {3, 4}}) {
    double share = 0, share_square = 0, phi = 0, phi_square = 0;
    for (std::size_t mask = 0; mask < kMasks; ++mask) {
      const LabelPair pair = LabelGraph(hidden(Y, .5f, mask)).pair(j, k);
      const double s = static_cast<double>(pair.both) / pair.known, r = pair.correlation();
      share += s, share_square += s * s, phi += r, phi_square += r * r;
    }
    constexpr double n = kMasks;
    const auto error = [&](double sum, double square) {
      return std::sqrt((square / n - sum / n * sum / n) / (n - 1));
    };
    const LabelPair pair = whole.pair(j, k);
    EXPECT_NEAR(share / n, static_cast<double>(pair.both) / pair.known, 4 * error(share, share_square));
    EXPECT_NEAR(phi / n, pair.correlation(),
                4 * error(phi, phi_square) + 1e-3);  // a ratio: unbiased but for 1/n
  }
}

TEST(LabelGraph, PermutingLabelsPermutesIt) {
  const Matrix<std::int8_t> Y = hidden(grouped(250, 12, 3), .5f, 4);
  std::vector<std::size_t> to(12);
  std::iota(to.begin(), to.end(), std::size_t{0});
  Random(9, Purpose::test, 3).shuffle(to);
  Matrix<std::int8_t> moved(Y.rows(), Y.cols());
  for (std::size_t i = 0; i < Y.rows(); ++i)
    for (std::size_t j = 0; j < Y.cols(); ++j) moved(i, to[j]) = Y(i, j);
  const LabelGraph graph(Y), other(moved);
  EXPECT_NEAR(graph.spread(), other.spread(), 1e-12);
  for (std::size_t j = 0; j < 12; ++j) {
    EXPECT_EQ(graph.known(j), other.known(to[j]));
    EXPECT_EQ(graph.positives(j), other.positives(to[j]));
    for (std::size_t k = 0; k < 12; ++k) {
      if (j == k) continue;
      EXPECT_NEAR(graph.correlation(j, k), other.correlation(to[j], to[k]), 1e-12);
      EXPECT_NEAR(graph.log_odds_ratio(j, k), other.log_odds_ratio(to[j], to[k]), 1e-9);
      EXPECT_DOUBLE_EQ(graph.correlation(j, k), graph.correlation(k, j));
    }
  }
}

TEST(LabelGraph, RowsInAnyOrderAndAnyThreadsGiveTheSameBits) {
  const Matrix<std::int8_t> Y = hidden(grouped(500, 20, 6), .3f, 7);
  Matrix<std::int8_t> turned(Y.rows(), Y.cols());
  for (std::size_t i = 0; i < Y.rows(); ++i)
    std::ranges::copy(Y.row(i), turned.row(Y.rows() - 1 - i).begin());
  set_threads(1);
  const LabelGraph one(Y);
  set_threads(4);
  const LabelGraph four(turned);
  set_threads(0);
  for (std::size_t k = 1; k < 20; ++k)
    for (std::size_t j = 0; j < k; ++j) EXPECT_EQ(one.correlation(j, k), four.correlation(j, k));
}

TEST(LabelGraph, FewCountsAreShrunkTowardsIndependence) {
  // Labels 0 and 1 are always together, on one row; 2 and 3 as well, on many.
  Matrix<std::int8_t> Y(400, 4);
  Y(0, 0) = Y(0, 1) = 1;
  for (std::size_t i = 0; i < 120; ++i) Y(i, 2) = Y(i, 3) = 1;
  const LabelGraph graph(Y);
  EXPECT_DOUBLE_EQ(graph.pair(0, 1).correlation(), 1);
  EXPECT_DOUBLE_EQ(graph.pair(2, 3).correlation(), 1);
  EXPECT_LT(graph.correlation(0, 1), .1);
  EXPECT_GT(graph.correlation(2, 3), .9);
  EXPECT_LT(graph.log_odds_ratio(0, 1), graph.log_odds_ratio(2, 3));
}

TEST(LabelGraph, IndependentLabelsHaveNoTies) {
  Random random(2, Purpose::test, 4);
  Matrix<std::int8_t> Y(2000, 15);
  for (std::int8_t& y : Y.values()) y = random.uniform() < .3f;
  const LabelGraph graph(Y);
  double largest = 0;
  for (std::size_t k = 1; k < 15; ++k)
    for (std::size_t j = 0; j < k; ++j) largest = std::max(largest, std::abs(graph.correlation(j, k)));
  EXPECT_LT(largest, .02);
}

TEST(LabelGraph, LabelsThatSayNothingAreAlone) {
  Matrix<std::int8_t> Y = grouped(100, 6, 8);
  for (std::size_t i = 0; i < 100; ++i) {
    Y(i, 0) = 0;         // never
    Y(i, 1) = 1;         // always
    Y(i, 2) = kUnknown;  // nobody knows
  }
  const LabelGraph graph(Y);
  for (const std::size_t j : {0u, 1u, 2u})
    for (std::size_t k = 0; k < 6; ++k) {
      if (j == k) continue;
      EXPECT_EQ(graph.correlation(j, k), 0);
      EXPECT_EQ(graph.log_odds_ratio(j, k), 0);
    }
  EXPECT_EQ(graph.pair(2, 3).known, 0u);
  EXPECT_EQ(LabelGraph(Matrix<std::int8_t>(0, 3)).correlation(0, 2), 0);
  EXPECT_EQ(LabelGraph().labels(), 0u);
}

TEST(LabelGraph, EveryCouplingIsFinite) {
  Matrix<std::int8_t> Y(50, 3);  // 0 and 1 exclude each other, 2 is 0
  for (std::size_t i = 0; i < 25; ++i) Y(i, 0) = Y(i, 2) = 1;
  for (std::size_t i = 25; i < 50; ++i) Y(i, 1) = 1;
  const LabelGraph graph(Y);
  EXPECT_LT(graph.log_odds_ratio(0, 1), -1);
  EXPECT_GT(graph.log_odds_ratio(0, 2), 1);
  for (std::size_t j = 0; j < 3; ++j)
    for (std::size_t k = 0; k < 3; ++k) EXPECT_TRUE(j == k || std::isfinite(graph.log_odds_ratio(j, k)));
}

TEST(LabelForest, HasEveryLabelOnceAndOnlyTies) {
  const Matrix<std::int8_t> Y = hidden(grouped(2000, 31, 12), .4f, 13);
  const LabelGraph graph(Y);
  const LabelForest forest = strongest_ties(graph, .2);
  ASSERT_EQ(forest.nodes.size(), 31u);
  std::vector<int> met(31);
  std::vector<std::size_t> above;
  std::size_t alone = 0, roots = 0;
  for (const auto& node : forest.nodes) {
    ++met[node.label];
    ASSERT_LE(node.depth, above.size());
    above.resize(node.depth);
    roots += node.depth == 0;
    if (node.depth > 0) {
      EXPECT_EQ(node.tie, graph.correlation(above.back(), node.label));
      EXPECT_GE(node.tie, .2);
    }
    above.push_back(node.label);
  }
  for (const int times : met) EXPECT_EQ(times, 1);
  for (std::size_t t = forest.nodes.size(); t-- > 0 && forest.nodes[t].depth == 0;) ++alone;
  EXPECT_EQ(forest.single, alone);
  EXPECT_EQ(roots, 11u);  // ten groups of three, and one label
}

}  // namespace
}  // namespace lacuna
