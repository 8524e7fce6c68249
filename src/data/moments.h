// Means, deviations and extremes of the columns of a view.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/strips.h"

namespace lacuna {

struct Moments {
  std::vector<double> mean, deviation;  // population standard deviation
  std::vector<float> low, high;
};

// Of the given rows, at least one. Columns are independent; each is summed in the order of the rows, so the bits do not
// depend on the number of threads.
Moments moments(const View& view, const std::vector<std::uint32_t>& rows);
Moments moments(const Strips& X);  // of all rows

}  // namespace lacuna
