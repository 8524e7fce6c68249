// Removes temporary files of processes that were killed while writing.
#pragma once

#include <string>

namespace lacuna {

// Removes the temporary files (files.h: AtomicFile) and folders for `path` whose processes no longer run.
void remove_leftovers(const std::string& path);
// The same for all files of a folder that machines share. A process that does not run here may run elsewhere, so
// anything younger than an hour is kept.
void remove_old_leftovers(const std::string& folder);

}  // namespace lacuna
