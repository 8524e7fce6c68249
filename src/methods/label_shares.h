// How common each label is among training rows whose labels are known in part.
#pragma once

#include <vector>

#include "data/items.h"

namespace lacuna {

// Per label: of n known labels, k of them positive, (k + q) / (n + 1), where q is the share of all labels together.
std::vector<double> label_shares(const Items& items);

}  // namespace lacuna
