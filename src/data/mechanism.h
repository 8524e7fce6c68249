// Missing-data mechanisms other than completely at random:
//   not at random   whether an instance is hidden depends on its values
//   by pattern      items come in groups that have the same views: patients of one clinic, products of one shop
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/folds.h"

namespace lacuna {

// Puts the rows into the order in which they are drawn without replacement. The weight of a row grows by the factor
// exp(strength) for each standard deviation of its projection on a random direction of view v.
void draw_by_value(const Dataset& data, std::size_t v, double strength, std::vector<std::uint32_t>& rows,
                   Random& random);

struct Pattern {
  std::vector<std::size_t> views;  // that its items keep
  double share = 0;                // of the items
};
// Exit::usage where a flag was given that the mechanism or the views of test rows leave without effect.
void refuse_idle(Options& flags, const MaskOptions& mask);
// "rna+image=.5": views and share of a group. Exit::usage where a view is unknown or the shares are not 1.
std::vector<Pattern> parse_patterns(const std::vector<std::string>& texts, const Dataset& data);
// Sets W (n, m) for the rows: each gets a pattern at random, in exact shares. An item that has none of its
// pattern's views takes the next pattern that leaves it one; if there is none, it keeps what it has.
void draw_patterns(const Dataset& data, const std::vector<Pattern>& patterns, std::vector<std::uint32_t> rows,
                   Random& random, Matrix<std::uint8_t>& W);

}  // namespace lacuna
