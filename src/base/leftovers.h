// What processes leave behind that were killed in the middle of writing.
#pragma once

#include <string>

namespace lacuna {

// Removes the temporary files for `path` (files.h: AtomicFile) of processes that no longer run.
void remove_leftovers(const std::string& path);

}  // namespace lacuna
