// Cleans up after processes that were killed while writing.
#pragma once

#include <string>

namespace lacuna {

// Removes the temporary files (files.h: AtomicFile) and folders for `path` of processes that no longer run.
void remove_leftovers(const std::string& path);
// Of all files in a folder that machines share: a process that does not run here may run elsewhere, so what is younger
// than an hour stays.
void remove_old_leftovers(const std::string& folder);

}  // namespace lacuna
