// Estimated time and memory of a fit, and the floor that it should exceed.
#pragma once

#include "data/items.h"
#include "methods/method.h"

namespace lacuna {

FitSize fit_size(const Items& train);
// The same before the preparation: a view keeps its columns, or becomes at most `components` of them (0: keeps them).
FitSize fit_size(const Selection& train, std::size_t components);

std::uint64_t machine_memory();  // bytes
// Exit::failed where a memory limit is too low for the method, with the rows themselves in files.
void check_memory_limit(const Method& method, const FitSize& size, FitContext& context);
// The same, and Exit::failed where the method needs more memory than the machine has; a remark where it will run for more than a
// quarter of an hour on the threads there are, `fits` of them one after the other.
void announce_cost(const Method& method, const FitSize& size, int fits, FitContext& context);

// AP on `val` of scoring every item by the labels' frequencies in `train`.
double floor_ap(const Items& train, const Items& val);

}  // namespace lacuna
