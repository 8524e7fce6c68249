// Checks before training whether anything can be learned from the data.
#pragma once

#include <string>
#include <vector>

#include "data/items.h"

namespace lacuna {

// Throws Exit::data, with a remedy, if nothing can be learned from the rows: no row has both a view and a known label,
// or no label has both a known positive and a known negative. Otherwise returns warnings, one sentence each: labels
// and views about which nothing is known, few rows.
std::vector<std::string> check_learnable(const Selection& train, const Selection& val);

}  // namespace lacuna
