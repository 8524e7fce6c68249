#pragma once

#include <cstddef>

#include "data/dataset.h"

namespace lacuna {

// After a pass over rows first .. first+count-1 of a view: a memory-mapped view gives their memory back (it
// is read again if need be), so that passes over files larger than memory stay small. Does nothing to views
// in plain memory.
void release_rows(const View& view, std::size_t first, std::size_t count);

}  // namespace lacuna
