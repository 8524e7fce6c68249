// The search for settings on validation rows: what is tried, and in which order. Shared by `lacuna tune` and by cells
// with --tune.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "methods/model.h"

namespace lacuna {

struct Axis {
  std::string name;
  std::vector<std::string> values;
};
using Combination = std::vector<Setting>;
std::string combination_text(
    const Combination& combination);  // "alpha=1 beta=2"; "the settings as given" if empty

// The settings that the method declares as worth tuning, with their values; empty if it declares none.
std::vector<Axis> own_axes(const Model& model);
// Exit::usage where a name or a value is none of the model's, said now and not after hours. The settings stay.
void check_axes(const std::vector<Axis>& axes, Model& model);

// The settings as given come first, as the empty combination; then all combinations in order, or distinct random ones
// where there are more than `most` (0 = no limit) in all. One that is what is given already is not repeated.
std::vector<Combination> search_plan(const std::vector<Axis>& axes, std::int64_t most, std::uint64_t seed,
                                     Model& model);

}  // namespace lacuna
