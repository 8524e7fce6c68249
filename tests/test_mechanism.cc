// Gaps that chance alone does not make: rates stay exact, own gaps are respected, and what is hidden depends on
// values or on groups.
#include "data/mechanism.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/options.h"
#include "data/folds.h"

namespace lacuna {
namespace {

// View "a" of two columns, "b" and "c" of one; every fifth item has no "a".
Dataset some_data(std::size_t n) {
  Random random(1, Purpose::test);
  Dataset data;
  data.name = "some";
  data.rows = n;
  for (const auto& [name, columns] : {std::pair{"a", 2}, {"b", 1}, {"c", 1}}) {
    Matrix<float> X(n, static_cast<std::size_t>(columns));
    for (float& x : X.values()) x = 1000 + random.normal();
    data.views.push_back({name, Table<float>(std::move(X)), {}});
  }
  Matrix<std::uint8_t> W(n, 3);
  for (std::size_t i = 0; i < n; ++i) W(i, 0) = i % 5 != 0, W(i, 1) = W(i, 2) = 1;
  data.present = std::move(W);
  Matrix<std::int8_t> Y(n, 1);
  for (std::size_t i = 0; i < n; ++i) Y(i, 0) = i % 2;
  data.labels = std::move(Y);
  data.label_names = {"even"};
  return data;
}

double mean_gap(const Dataset& data, const Fold& fold, std::size_t v, std::size_t column) {
  double sum[2] = {0, 0}, count[2] = {0, 0};
  std::vector<float> row(data.views[v].columns());
  for (std::size_t i = 0; i < data.rows; ++i) {
    if (!data.has(i, v)) continue;
    data.views[v].copy_row(i, row);
    sum[fold.W(i, v)] += static_cast<double>(row[column]);
    ++count[fold.W(i, v)];
  }
  return std::abs(sum[0] / count[0] - sum[1] / count[1]);
}

TEST(Mechanism, NotAtRandomHidesByValueAtExactRates) {
  const Dataset data = some_data(2000);
  MaskOptions options;
  options.repeats = 1;
  const Folds chance = make_folds(data, options);
  options.mechanism = "mnar";
  const Folds folds = make_folds(data, options);
  std::size_t kept[3] = {0, 0, 0};
  for (std::size_t i = 0; i < data.rows; ++i) {
    std::size_t left = 0;
    for (std::size_t v = 0; v < 3; ++v) {
      kept[v] += folds.folds[0].W(i, v), left += folds.folds[0].W(i, v);
      EXPECT_TRUE(folds.folds[0].W(i, v) == 0 || data.has(i, v));
    }
    EXPECT_GE(left, 1u);
  }
  EXPECT_EQ(kept[0], 800u);
  EXPECT_EQ(kept[1], 1000u);
  EXPECT_EQ(kept[2], 1000u);
  EXPECT_GT(mean_gap(data, folds.folds[0], 1, 0), .7);
  EXPECT_LT(mean_gap(data, chance.folds[0], 1, 0), .2);
  options.strength = 0;
  EXPECT_LT(mean_gap(data, make_folds(data, options).folds[0], 1, 0), .2);
}

TEST(Mechanism, PatternsHaveExactSharesAndLeaveEverybodySomething) {
  const Dataset data = some_data(200);
  MaskOptions options;
  options.repeats = 1;
  options.mechanism = "pattern";
  options.patterns = {"b+c=.5", "b=.25", "a=.25"};
  const Folds folds = make_folds(data, options);
  std::map<int, int> found;
  for (std::size_t i = 0; i < data.rows; ++i)
    ++found[folds.folds[0].W(i, 0) * 4 + folds.folds[0].W(i, 1) * 2 + folds.folds[0].W(i, 2)];
  EXPECT_EQ(found[2], 50);              // b alone
  EXPECT_EQ(found[3] + found[4], 150);  // those without a took the next pattern, b and c
  EXPECT_GE(found[3], 100);
  EXPECT_EQ(found[0], 0);
}

// The definition, step by step, with the same draws: a direction, columns of deviation 1, projections of mean 0 and
// deviation 1, exponential times.
std::vector<std::uint32_t> order_by_definition(const Dataset& data, std::size_t v, double strength,
                                               const std::vector<std::uint32_t>& rows, Random& random) {
  const std::size_t d = data.views[v].columns();
  const auto n = static_cast<double>(rows.size());
  std::vector<float> row(d);
  const auto values = [&](std::size_t j) {
    std::vector<double> column;
    for (const auto i : rows) {
      data.views[v].copy_row(i, row);
      column.push_back(static_cast<double>(row[j]));
    }
    return column;
  };
  const auto standardise = [&](std::vector<double>& column) {
    double mean = 0, spread = 0;
    for (const double x : column) mean += x / n;
    for (const double x : column) spread += (x - mean) * (x - mean) / n;
    for (double& x : column) x = spread > 1e-9 ? (x - mean) / std::sqrt(spread) : 0;
  };
  std::vector<double> direction(d), z(rows.size());
  for (double& x : direction) x = static_cast<double>(random.normal());
  for (std::size_t j = 0; j < d; ++j) {
    auto column = values(j);
    standardise(column);
    for (std::size_t k = 0; k < z.size(); ++k) z[k] += direction[j] * column[k];
  }
  standardise(z);
  std::vector<std::pair<double, std::uint32_t>> times;
  for (std::size_t k = 0; k < rows.size(); ++k)
    times.emplace_back(-std::log(1 - random.uniform_double()) / std::exp(strength * z[k]), rows[k]);
  std::ranges::sort(times);
  std::vector<std::uint32_t> order;
  for (const auto& [time, i] : times) order.push_back(i);
  return order;
}

// One view per kind: columns of very different scales and places, a constant column among others, rows that do not
// differ at all.
TEST(Mechanism, TheOrderIsThatOfTheDefinition) {
  constexpr std::size_t kRows = 60;
  Dataset data;
  data.rows = kRows;
  Random values(3, Purpose::test);
  for (const std::size_t columns : {4, 3, 2}) {
    Matrix<float> X(kRows, columns);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        const float scale = j == 0 ? 50.f : j == 1 ? .02f : 1.f;
        X(i, j) = columns == 2 || (columns == 3 && j == 1) ? 7.f : scale * values.normal() + scale;
      }
    data.views.push_back({"v" + std::to_string(columns), Table<float>(std::move(X)), {}});
  }
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < kRows; ++i)
    if (i % 4 != 1) rows.push_back(i);
  for (std::size_t v = 0; v < data.views.size(); ++v)
    for (const double strength : {0., .5, 2., -1.}) {
      Random first(9, Purpose::test), second(9, Purpose::test);
      auto order = rows;
      draw_by_value(data, v, strength, order, first);
      EXPECT_EQ(order, order_by_definition(data, v, strength, rows, second)) << v << ' ' << strength;
      EXPECT_EQ(first.bits(), second.bits());  // no draw more, no draw less
    }
  std::vector<std::uint32_t> none;
  Random first(9, Purpose::test), second(9, Purpose::test);
  draw_by_value(data, 0, 1, none, first);
  EXPECT_EQ(first.bits(), second.bits());
}

// A heavy row comes early: with strength 1 a row that lies three deviations out, against nine that lie close together, is
// first e^(10/3) times as often as each of them.
TEST(Mechanism, ARowOfGreatWeightIsDrawnFirst) {
  Dataset data;
  data.rows = 10;
  Matrix<float> X(10, 1);
  X(4, 0) = 1;
  data.views.push_back({"v", Table<float>(std::move(X)), {}});
  int first = 0, last = 0;
  for (std::uint32_t draw = 0; draw < 2000; ++draw) {
    Random random(5, Purpose::test, draw);
    const bool up = Random(random).normal() > 0;  // the direction that the draw will take
    std::vector<std::uint32_t> rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    draw_by_value(data, 0, 1, rows, random);
    first += up && rows.front() == 4;
    last += !up && rows.back() == 4;
  }
  const double weight = std::exp(10. / 3);  // z is 3 for the one, -1/3 for the others
  EXPECT_NEAR(first / 1000., weight / (weight + 9), .06);
  EXPECT_GT(last, 700);
}

// Which rows get which pattern: rows in a shuffled order, shares by rounded sums, the last pattern takes the rest.
TEST(Mechanism, PatternsAreDealtToShuffledRows) {
  Dataset data = some_data(11);
  data.present = {};
  const std::vector<Pattern> patterns = {{{0, 2}, .3}, {{1}, .3}, {{2}, .4}};
  std::vector<std::uint32_t> rows = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, shuffled = rows;
  Random first(2, Purpose::test), second(2, Purpose::test);
  Matrix<std::uint8_t> W(11, 3), expected(11, 3);
  draw_patterns(data, patterns, rows, first, W);
  second.shuffle(shuffled);
  EXPECT_NE(shuffled, rows);
  for (std::size_t k = 0; k < shuffled.size(); ++k)
    for (const auto v : patterns[k < 3 ? 0 : k < 6 ? 1 : 2].views) expected(shuffled[k], v) = 1;
  for (std::size_t i = 0; i < 11; ++i)
    for (std::size_t v = 0; v < 3; ++v) EXPECT_EQ(W(i, v), expected(i, v)) << i << ' ' << v;
  // Shares of which the sums are rounded up beyond the rows do no harm.
  Matrix<std::uint8_t> once_more(11, 3);
  draw_patterns(data, {{{0}, .9}, {{1}, .3}, {{2}, .1}}, rows, first, once_more);
  std::size_t kept[3] = {0, 0, 0};
  for (std::size_t i = 0; i < 11; ++i)
    for (std::size_t v = 0; v < 3; ++v) kept[v] += once_more(i, v);
  EXPECT_EQ(kept[0], 9u);
  EXPECT_EQ(kept[1], 1u);
  EXPECT_EQ(kept[2], 0u);
}

// Who has none of the pattern's views takes the next pattern, in a circle; who fits no pattern keeps what there is.
TEST(Mechanism, WhoDoesNotFitTakesTheNextPattern) {
  Dataset data = some_data(4);
  Matrix<std::uint8_t> present(4, 3);
  present(0, 0) = 1;                  // a alone
  present(1, 1) = 1;                  // b alone
  present(2, 2) = 1;                  // c alone
  present(3, 0) = present(3, 1) = 1;  // a and b
  data.present = std::move(present);
  const auto kept = [&](const std::vector<Pattern>& patterns, std::uint32_t i) {
    Random random(1, Purpose::test);
    Matrix<std::uint8_t> W(4, 3);
    draw_patterns(data, patterns, {i}, random, W);
    std::size_t others = 0;
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t v = 0; v < 3; ++v) others += k != i && W(k, v) != 0;
    EXPECT_EQ(others, 0u);
    return std::string(1, W(i, 0) ? 'a' : '-') + (W(i, 1) ? 'b' : '-') + (W(i, 2) ? 'c' : '-');
  };
  // One row: the first pattern of which the share rounds to it.
  const std::vector<Pattern> from_a = {{{0}, 1}, {{1}, 0}}, from_b = {{{0}, 0}, {{1}, 1}};
  EXPECT_EQ(kept(from_a, 0), "a--");
  EXPECT_EQ(kept(from_a, 1), "-b-");
  EXPECT_EQ(kept(from_a, 2), "--c");  // fits none
  EXPECT_EQ(kept(from_a, 3), "a--");
  EXPECT_EQ(kept(from_b, 0), "a--");  // past the end, the first again
  EXPECT_EQ(kept(from_b, 1), "-b-");
  EXPECT_EQ(kept(from_b, 3), "-b-");
  EXPECT_EQ(kept({{{2}, 1}}, 3), "ab-");  // fits none: both of its views stay
  EXPECT_EQ(kept({{{1, 2}, 1}}, 3), "-b-");
}

TEST(Mechanism, PatternsAreRead) {
  const auto patterns = parse_patterns({"c+a=.25", "b=.5", "a=0.25", "b=0"}, some_data(5));
  ASSERT_EQ(patterns.size(), 4u);
  EXPECT_EQ(patterns[0].views, (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(patterns[1].views, (std::vector<std::size_t>{1}));
  EXPECT_EQ(patterns[0].share, .25);
  EXPECT_EQ(patterns[1].share, .5);
  EXPECT_EQ(patterns[3].share, 0);
  EXPECT_EQ(parse_patterns({"a=1"}, some_data(5))[0].share, 1);
  EXPECT_EQ(parse_patterns({"a=.3333333", "b=.3333333", "c=.3333333"}, some_data(5)).size(), 3u);
  Dataset odd = some_data(5);
  odd.views[1].name = "b=c";
  EXPECT_EQ(parse_patterns({"b=c=1"}, odd)[0].views, (std::vector<std::size_t>{1}));
}

// A flag that the mechanism or the views of test rows leave without effect.
TEST(Mechanism, IdleFlagsAreRefused) {
  const auto said = [](const char* mechanism, const char* test_views, const char* flag, const char* value) {
    MaskOptions mask;
    Options flags;
    mask.declare(flags);
    mask.mechanism = mechanism;
    mask.test_views = test_views;
    if (flag != nullptr) flags.set(flag, value, "test");
    try {
      refuse_idle(flags, mask);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  for (const char* mechanism : {"mcar", "mnar", "pattern"})
    for (const char* views : {"gaps", "complete"}) EXPECT_EQ(said(mechanism, views, nullptr, ""), "");
  has(said("pattern", "gaps", "missing-views", ".5"), "--missing-views has no effect: --mechanism pattern");
  EXPECT_EQ(said("mcar", "gaps", "missing-views", ".5"), "");
  has(said("mnar", "gaps", "patterns", "a=1"), "--patterns has no effect: it belongs to --mechanism pattern");
  EXPECT_EQ(said("pattern", "gaps", "patterns", "a=1"), "");
  has(said("mcar", "gaps", "strength", "1"), "--strength has no effect: it belongs to --mechanism mnar");
  has(said("pattern", "gaps", "strength", "1"), "the mechanism is pattern");
  EXPECT_EQ(said("mnar", "gaps", "strength", "1"), "");
  has(said("mcar", "complete", "scope", "part"), "--scope has no effect: with --test-views complete");
  EXPECT_EQ(said("mcar", "gaps", "scope", "part"), "");
}

std::string refusal(const std::vector<std::string>& patterns) {
  try {
    parse_patterns(patterns, some_data(5));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

TEST(Mechanism, PatternsThatCannotBe) {
  EXPECT_NE(refusal({"bb=1"}).find("some has no view 'bb'; did you mean 'b'? (it has a, b, c)"),
            std::string::npos)
      << refusal({"bb=1"});
  EXPECT_NE(refusal({"a=.5", "b=.4"}).find("add up to 0.9"), std::string::npos);
  for (const char* text : {"a", "a=", "a=x", "a=2", "a=-.1", "a=1.000001", "a=nan"})
    EXPECT_NE(refusal({text}).find("VIEW+VIEW=SHARE"), std::string::npos) << text;
  EXPECT_NE(refusal({"a=.5", "b=.50001"}).find("add up to 1.00001"), std::string::npos);
  EXPECT_NE(refusal({}).find("needs --patterns"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
