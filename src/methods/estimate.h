// Estimated time and memory of a fit, and the floor that it should exceed.
#pragma once

#include "data/items.h"
#include "methods/method.h"

namespace lacuna {

FitSize fit_size(const Items& train);
// The same before the preparation: a view keeps its columns, or gets at most `components` of them (0: keeps them).
FitSize fit_size(const Selection& train, std::size_t components);

std::uint64_t machine_memory();  // bytes
// Exit::failed if a memory limit is too low for the method, with the rows themselves in files.
void check_memory_limit(const Method& method, const FitSize& size, FitContext& context);
// The same, and Exit::failed if the method needs more memory than the machine has, and a remark if `fits`
// fits, one after the other, will take more than a quarter of an hour on the present threads.
void announce_cost(const Method& method, const FitSize& size, int fits, FitContext& context);

// The floor: the AP on `val` if every item is scored by the labels' frequencies in `train`.
double floor_ap(const Items& train, const Items& val);

}  // namespace lacuna
