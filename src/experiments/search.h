// The search for settings on validation rows: which ones are tried, and in which order. Shared by `lacuna tune` and by
// cells with --tune.
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
// Exit::usage if a name or a value is invalid for the model, now rather than after hours. Does not change the settings.
void check_axes(const std::vector<Axis>& axes, Model& model);

// The given settings come first, as the empty combination; then all combinations in order, or distinct random ones if
// there are more than `most` (0 = no limit). A combination that equals the given settings is not repeated.
std::vector<Combination> search_plan(const std::vector<Axis>& axes, std::int64_t most, std::uint64_t seed,
                                     Model& model);

}  // namespace lacuna
