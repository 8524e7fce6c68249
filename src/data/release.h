#pragma once

#include <cstddef>

#include "data/dataset.h"

namespace lacuna {

// After a pass over rows first .. first+count-1 of a view: releases their memory if the view is memory-mapped (it
// can be read again), so that passes over files larger than memory need little memory. Does nothing to views
// in plain memory.
void release_rows(const View& view, std::size_t first, std::size_t count);

}  // namespace lacuna
