// Views of which the preparation leaves little or nothing.
#pragma once

#include <string>
#include <vector>

#include "data/prepare.h"

namespace lacuna {

// One sentence for each view that does not vary in the training rows, or whose values are beyond what can be computed
// with; only where all preparations of it agree.
std::vector<std::string> check_preparations(const std::vector<Preparation>& preparations, const Selection& train);

}  // namespace lacuna
