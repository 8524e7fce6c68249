// Releases memory of mapped files while the mapping stays.
#pragma once

#include <memory>

#include "base/files.h"

namespace lacuna {

// Linux maps up to so many bytes around one that is touched.
constexpr std::size_t kAroundBytes = std::size_t{512} << 10;

// Tells the system that the bytes are not needed for now: what lies inside a MappedFile no longer counts as
// memory of the process, and is read again when it is touched. Bytes elsewhere are left alone. May be called
// at any time.
void release_mapped(Bytes bytes);

bool is_mapped(Bytes bytes);  // they lie inside a MappedFile

// Reads the bytes from the disk, if need be, so that whoever needs them next finds them in memory.
void fetch_mapped(Bytes bytes);

// Addresses without memory: whoever reads or writes there is ended by the system. For what has a size and lies elsewhere.
std::shared_ptr<const void> unreadable(std::size_t bytes);

}  // namespace lacuna
