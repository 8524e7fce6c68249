#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "checks.h"
#include "data/bootstrap.h"
#include "data/dataset.h"
#include "data/metrics.h"
#include "metrics_reference.h"

namespace lacuna {
namespace {

template <class T>
Matrix<T> matrix(std::initializer_list<std::initializer_list<T>> rows) {
  Matrix<T> m(rows.size(), rows.begin()->size());
  std::size_t i = 0;
  for (const auto& row : rows) std::copy(row.begin(), row.end(), m.row(i++).begin());
  return m;
}

struct Expected {
  double ap, hl, rl, auc, oe, cov;
};

void expect_losses(const Metrics& m, const Expected& e) {
  EXPECT_NEAR(m.ap, e.ap, 5e-8);
  EXPECT_NEAR(1 - m.hl, e.hl, 5e-8);
  EXPECT_NEAR(1 - m.rl, e.rl, 5e-8);
  EXPECT_NEAR(m.auc, e.auc, 5e-8);
  EXPECT_NEAR(1 - m.oe, e.oe, 5e-8);
  EXPECT_NEAR(1 - m.cov, e.cov, 5e-8);
}

void expect_known_answer(const Matrix<float>& S, const Matrix<std::int8_t>& Y, const Expected& e) {
  expect_losses(evaluate(S, Y), e);
  expect_losses(evaluate_reference(S, Y), e);
}

// Answers of an independent program that follows the definitions of docs/metrics.md.
TEST(Metrics, KnownAnswers) {
  expect_known_answer(matrix<float>({{.1f, .2f, .1f, .4f, .8f, .9f}, {.1f, .2f, .1f, .4f, .8f, .9f}}),
                      matrix<std::int8_t>({{1, 0, 1, 0, 0, 1}, {1, 1, 0, 1, 0, 0}}),
                      {.5388889, .6666667, .7222222, .3166667, .5, .8333333});
  const auto S = matrix<float>({{.9f, .1f, .4f, .3f},
                                {.2f, .7f, .6f, .1f},
                                {.5f, .5f, .5f, .5f},
                                {.3f, .2f, .8f, .9f},
                                {.6f, .2f, .1f, .3f},
                                {.4f, .6f, .7f, .8f}});
  const auto Y = matrix<std::int8_t>(
      {{1, 0, 1, 0}, {0, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}});
  expect_losses(evaluate(S.view().top(4), Y.view().top(4)), {.9583333, .3125, .25, .9, .25, .1875});
  expect_losses(evaluate_reference(S.view().top(4), Y.view().top(4)), {.9583333, .3125, .25, .9, .25, .1875});
  expect_known_answer(S, Y, {.8055556, .2916667, .1666667, .7961538, .3333333, .2083333});
  expect_known_answer(matrix<float>({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}),
                      matrix<std::int8_t>({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}), {1, 0, 0, 1, 0, 0});
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-10;
}

bool same(const Metrics& a, const Metrics& b) {
  const auto x = a.values(), y = b.values();
  return std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) { return same(p, q); });
}

struct Case {
  Matrix<float> S;
  Matrix<std::int8_t> Y;
};

// Few distinct scores (ties), unknown labels, rows that are empty, full or unknown altogether.
Case draw_case(std::uint64_t seed, std::size_t n, std::size_t c) {
  Random random(seed, Purpose::test);
  Case k{Matrix<float>(n, c), Matrix<std::int8_t>(n, c)};
  const auto levels = 1 + random.below(12);
  const float unknown = random.uniform() < .3f ? 0.f : random.uniform();
  for (std::size_t i = 0; i < n; ++i) {
    const auto kind = random.below(8);
    const float share = kind == 0 ? 0.f : kind == 1 ? 1.f : random.uniform();
    for (std::size_t j = 0; j < c; ++j) {
      k.S(i, j) =
          static_cast<float>(random.below(levels)) / static_cast<float>(levels) - (levels > 9 ? .5f : 0.f);
      if (k.S(i, j) == 0 && random.below(2) == 0) k.S(i, j) = -0.f;
      k.Y(i, j) = random.uniform() < share ? 1 : 0;
      if (kind == 2 || random.uniform() < unknown * unknown) k.Y(i, j) = kUnknown;
    }
  }
  return k;
}

RC_GTEST_PROP(MetricsProperty, FastFormIsTheDefinition, (std::uint64_t seed)) {
  Random random(seed, Purpose::test, 1);
  const Case k = draw_case(seed, random.below(14), 1 + random.below(random.below(2) == 0 ? 14 : 60));
  RC_ASSERT(same(evaluate(k.S, k.Y), evaluate_reference(k.S, k.Y)));
  Matrix<std::uint8_t> decided(k.S.rows(), k.S.cols());
  for (auto& d : decided.values()) d = random.below(2) == 1;
  RC_ASSERT(same(evaluate(k.S, k.Y, decided), evaluate_reference(k.S, k.Y, decided)));
  RC_ASSERT(same(evaluate(k.S, k.Y, {}, .25), evaluate_reference(k.S, k.Y, {}, .25)));
}

RC_GTEST_PROP(MetricsProperty, OrderOfRowsDoesNotMatter, (std::uint64_t seed)) {
  const Case k = draw_case(seed, 9, 6);
  const auto order = Random(seed, Purpose::test, 2).permutation(9);
  Case moved{Matrix<float>(9, 6), Matrix<std::int8_t>(9, 6)};
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t j = 0; j < 6; ++j) moved.S(i, j) = k.S(order[i], j), moved.Y(i, j) = k.Y(order[i], j);
  RC_ASSERT(same(evaluate(k.S, k.Y), evaluate(moved.S, moved.Y)));
}

// Without ties the order of the labels does not matter either, and neither does any rising map of a row's
// scores.
RC_GTEST_PROP(MetricsProperty, OrderOfLabelsDoesNotMatterWithoutTies, (std::uint64_t seed)) {
  Case k = draw_case(seed, 7, 8);
  Random random(seed, Purpose::test, 3);
  for (auto& s : k.S.values()) s = random.uniform() - .5f;
  const auto order = random.permutation(8);
  Case moved{Matrix<float>(7, 8), Matrix<std::int8_t>(7, 8)};
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 8; ++j) moved.S(i, j) = k.S(i, order[j]), moved.Y(i, j) = k.Y(i, order[j]);
  RC_ASSERT(same(evaluate(k.S, k.Y), evaluate(moved.S, moved.Y)));
}

// A label that is unknown leaves the sums as if its cell were not there.
RC_GTEST_PROP(MetricsProperty, UnknownLabelsAreAsIfAbsent, (std::uint64_t seed)) {
  const Case k = draw_case(seed, 8, 5);
  Case wider{Matrix<float>(8, 9), Matrix<std::int8_t>(8, 9)};
  Random random(seed, Purpose::test, 4);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 9; ++j) {
      const bool extra = j % 2 == 1;
      wider.S(i, j) = extra ? random.uniform(-2.f, 2.f) : k.S(i, j / 2);
      wider.Y(i, j) = extra ? kUnknown : k.Y(i, j / 2);
    }
  RC_ASSERT(same(evaluate(k.S, k.Y), evaluate(wider.S, wider.Y)));
}

RC_GTEST_PROP(MetricsProperty, PrecisionsOfRowsAreThoseOfEachRowAlone, (std::uint64_t seed)) {
  const Case k = draw_case(seed, 9, 2 + seed % 20);
  const auto rows = row_average_precisions(k.S, k.Y);
  RC_ASSERT(rows.size() == 9u);
  double sum = 0, known = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const double alone = evaluate_reference(k.S.view().slice(i, 1), k.Y.view().slice(i, 1)).ap;
    RC_ASSERT(same(rows[i], alone));
    if (!std::isnan(rows[i])) sum += rows[i], ++known;
  }
  RC_ASSERT(same(sum / known, evaluate(k.S, k.Y).ap));
}

RC_GTEST_PROP(MetricsProperty, LabelsByDefinition, (std::uint64_t seed)) {
  const Case k = draw_case(seed, 12, 4);
  const auto labels = evaluate_labels(k.S, k.Y);
  for (std::size_t j = 0; j < 4; ++j) {
    double P = 0, known = 0, ap = 0, won = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      known += k.Y(i, j) != kUnknown;
      P += k.Y(i, j) == 1;
    }
    for (std::size_t i = 0; i < 12; ++i) {
      if (k.Y(i, j) != 1) continue;
      double reach = 0, hits = 0;  // cells with at least this score
      for (std::size_t l = 0; l < 12; ++l) {
        if (k.Y(l, j) == kUnknown) continue;
        reach += k.S(l, j) >= k.S(i, j);
        hits += k.S(l, j) >= k.S(i, j) && k.Y(l, j) == 1;
        if (k.Y(l, j) == 0) won += k.S(i, j) > k.S(l, j) ? 1 : k.S(i, j) == k.S(l, j) ? .5 : 0;
      }
      ap += hits / reach;
    }
    RC_ASSERT(static_cast<double>(labels[j].positives) == P);
    RC_ASSERT(static_cast<double>(labels[j].known) == known);
    RC_ASSERT(same(labels[j].ap, P > 0 ? ap / P : std::nan("")));
    RC_ASSERT(same(labels[j].auc, P > 0 && P < known ? won / P / (known - P) : std::nan("")));
    RC_ASSERT(std::isnan(labels[j].f1) == (P == 0));
  }
}

TEST(Metrics, SameBitsForAnyNumberOfThreads) {
  const Case k = draw_case(5, 3000, 40);
  set_threads(1);
  const auto one = evaluate(k.S, k.Y).values();
  for (int count : {2, 3, 8}) {
    set_threads(count);
    EXPECT_EQ(evaluate(k.S, k.Y).values(), one);
  }
  set_threads(0);
}

// A single label ranks the items; the last two share the lowest place. Nothing beyond the last one is read: the items fill
// their memory, so the address sanitizer would see it.
TEST(Metrics, ASingleLabelRanksTheItems) {
  const auto S = matrix<float>({{.9f}, {.2f}, {.6f}, {.4f}, {.2f}});
  const auto Y = matrix<std::int8_t>({{1}, {1}, {0}, {1}, {0}});
  expect_known_answer(S, Y, {(1 + 2. / 3 + 3. / 5) / 3, .6, .5, 3.5 / 6, 0, .8});
}

TEST(Metrics, NothingKnownIsUndefined) {
  const Matrix<float> S(2, 3);
  Matrix<std::int8_t> Y(2, 3);
  for (auto& y : Y.values()) y = kUnknown;
  for (double value : evaluate(S, Y).values()) EXPECT_TRUE(std::isnan(value));
  EXPECT_TRUE(std::isnan(evaluate(Matrix<float>(0, 3), Matrix<std::int8_t>(0, 3)).ap));
}

TEST(Metrics, NoPositiveOrNoNegativeHasNoAuc) {
  const auto S = matrix<float>({{.9f, .1f, .4f}, {.2f, .7f, .6f}});
  for (const int value : {0, 1}) {
    Matrix<std::int8_t> Y(2, 3);
    for (auto& y : Y.values()) y = static_cast<std::int8_t>(value);
    EXPECT_TRUE(std::isnan(evaluate(S, Y).auc)) << value;
    EXPECT_TRUE(std::isnan(evaluate_reference(S, Y).auc)) << value;
  }
}

TEST(Metrics, RefusesNaNWithItsPlace) {
  Matrix<float> S(300, 4);
  S(217, 3) = std::numeric_limits<float>::quiet_NaN();
  Matrix<std::int8_t> Y(300, 4);
  Y(217, 3) = kUnknown;
  const auto text = message_of([&] { evaluate(S, Y); }, Exit::data);
  EXPECT_NE(text.find("row 217, label 3"), std::string::npos) << text;
  message_of([&] { evaluate_labels(S, Y); }, Exit::data);
}

TEST(Metrics, InfinityRanksAsAnyOtherScore) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto Y = matrix<std::int8_t>({{1, 0, 0}, {0, 1, 0}});
  EXPECT_TRUE(same(evaluate(matrix<float>({{inf, 0, -inf}, {1, -inf, inf}}), Y),
                   evaluate(matrix<float>({{2, 0, -2}, {1, -2, 2}}), Y)));
}

TEST(Metrics, RefusesOtherShapesWithBothNumbers) {
  const auto text =
      message_of([] { evaluate(Matrix<float>(3, 4), Matrix<std::int8_t>(3, 5)); }, Exit::mismatch);
  EXPECT_NE(text.find("3 x 4"), std::string::npos) << text;
  EXPECT_NE(text.find("3 x 5"), std::string::npos) << text;
}

// Five frequent labels that are always found and a hundred that occur once and never are: a resample lacks a third of
// the rare ones.
TEST(Metrics, MacroFiguresLieWithinTheirIntervals) {
  constexpr std::size_t kRows = 100, kLabels = 105;
  Matrix<float> scores(kRows, kLabels);
  Matrix<std::int8_t> truth(kRows, kLabels);
  Matrix<std::uint8_t> decided(kRows, kLabels);
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kLabels; ++j) {
      truth(i, j) = j < 5 ? (i + j) % 2 : i + 5 == j;
      decided(i, j) = j < 5 && truth(i, j) == 1;
      scores(i, j) = decided(i, j) ? 1.f : static_cast<float>((i * 37 + j) % 100) / 200;
    }
  const std::vector<double> values = evaluate(scores, truth, decided).values();
  const MetricIntervals bootstrap = bootstrap_metrics(scores, truth, decided);
  for (std::size_t k = 0; k < values.size(); ++k) {
    EXPECT_LE(bootstrap.intervals[k].low, values[k] + 1e-12) << metric_names()[k];
    EXPECT_GE(bootstrap.intervals[k].high, values[k] - 1e-12) << metric_names()[k];
  }
}

TEST(Metrics, Names) {
  Metrics m;
  m.cov = .25;
  EXPECT_EQ(m.by_name("1-Cov"), .25);
  EXPECT_EQ(m.values().size(), metric_names().size());
  const auto text = message_of([&] { m.by_name("1-COV"); }, Exit::usage);
  EXPECT_NE(text.find("1-Cov"), std::string::npos) << text;
}

}  // namespace
}  // namespace lacuna
