// One cautious rule for everything that is added to a fitted method with a weight chosen on validation rows: of a few
// weights, 0 among them, the one with the largest mean gain in average precision of a row over weight 0, less one
// standard error of that gain. Where there is little to choose by the error is large, so that the weight stays small
// or 0. Fewer than kFewestRows rows that can be judged: 0.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/threads.h"

namespace lacuna {

constexpr std::size_t kFewestRows = 10;
constexpr std::array<double, 7> kTriedWeights = {0, .25, .5, .75, 1, 1.25, 1.5};

// What a weight did on the validation rows: mean average precision, its gain over weight 0, and the gain's standard
// error over rows.
struct WeightTrial {
  double weight = 0, ap = 0, gain = 0, error = 0;
};

// All weights that are tried, 0 first. precisions(weight) has the average precision of each row, NaN where nothing is
// known about it.
std::vector<WeightTrial> try_weights(FunctionRef<std::vector<double>(double)> precisions);
// The rule above; `rows` can be judged.
WeightTrial choose_weight(const std::vector<WeightTrial>& trials, std::size_t rows);
std::size_t judged(const std::vector<double>& precisions);  // those that are no NaN

}  // namespace lacuna
