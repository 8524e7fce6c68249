// The frequency of each label among training rows whose labels are known in part.
#pragma once

#include <vector>

#include "data/items.h"

namespace lacuna {

// Per label (k + q) / (n + 1), if k of its n known entries are positive; q is the frequency over all labels.
std::vector<double> label_shares(const Items& items);

}  // namespace lacuna
