// Gaps that chance alone does not make: rates stay exact, own gaps are respected, and what is hidden depends on
// values or on groups.
#include "data/mechanism.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
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
  EXPECT_NE(refusal({"bb=1"}).find("no view 'bb'"), std::string::npos);
  EXPECT_NE(refusal({"a=.5", "b=.4"}).find("add up to 0.9"), std::string::npos);
  for (const char* text : {"a", "a=", "a=x", "a=2", "a=nan"})
    EXPECT_NE(refusal({text}).find("VIEW+VIEW=SHARE"), std::string::npos) << text;
  EXPECT_NE(refusal({}).find("needs --patterns"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
