// Splits that distribute every label over the parts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

// Iterative stratification (Sechidis, Tsoumakas and Vlahavas, 2011): rows are given to three parts of exactly these
// sizes so that each part gets its share of every label's positives as nearly as possible, rare labels first. `order`
// is a random permutation of the rows, which decides between rows with the same labels. Returns the rows of the first
// part, then of the second, then of the third, each in the given order.
std::vector<std::uint32_t> stratified_order(const Dataset& data, const std::array<std::size_t, 3>& sizes,
                                            const std::vector<std::uint32_t>& order);

}  // namespace lacuna
