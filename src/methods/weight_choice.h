// One cautious rule for everything that is added to a fitted method with a weight chosen on validation rows: among a
// few weights, including 0, it takes the one with the largest mean gain in average precision per row over weight 0,
// minus one standard error of that gain. With few rows the error is large, so the weight is small or 0. With fewer than
// kFewestRows rows that can be judged it is 0.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/threads.h"

namespace lacuna {

constexpr std::size_t kFewestRows = 10;
constexpr std::array<double, 7> kTriedWeights = {0, .25, .5, .75, 1, 1.25, 1.5};

// The result of a weight on the validation rows: mean average precision, its gain over weight 0, and the gain's
// standard error over rows.
struct WeightTrial {
  double weight = 0, ap = 0, gain = 0, error = 0;
};

// The results of all weights that are tried, 0 first. precisions(weight) returns the average precision of each row, NaN
// where it is undefined.
std::vector<WeightTrial> try_weights(FunctionRef<std::vector<double>(double)> precisions);
// The rule above; `rows` can be judged.
WeightTrial choose_weight(const std::vector<WeightTrial>& trials, std::size_t rows);
std::size_t judged(const std::vector<double>& precisions);  // number of values that are not NaN

}  // namespace lacuna
