// The range and the signs of the values of a view.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

struct Reach {
  float largest = 0;  // |x|
  std::size_t positive = 0, negative = 0;
  void add(const Reach& other) {
    largest = std::max(largest, other.largest);
    positive += other.positive;
    negative += other.negative;
  }
  // Both signs are common: 0 is then in the middle of the range, and a root would keep little but the sign.
  bool two_sided() const {
    constexpr double kTwoSided = .25;  // the share of the rarer sign
    return positive + negative > 0 && static_cast<double>(std::min(positive, negative)) >=
                                          kTwoSided * static_cast<double>(positive + negative);
  }
};

// Of the rows at the given positions; of a sparse view, of its stored values.
Reach reach_of(const View& view, const std::vector<std::uint32_t>& rows);

}  // namespace lacuna
