// Releases memory of mapped files while the mapping stays.
#pragma once

#include <memory>

#include "base/files.h"

namespace lacuna {

// How many bytes Linux maps around one that is touched.
constexpr std::size_t kAroundBytes = std::size_t{512} << 10;

// Tells the system that the bytes are not needed for now: what lies inside a MappedFile no longer counts as
// memory of the process, and is read again when it is touched. Bytes elsewhere are left alone. May be called
// at any time.
void release_mapped(Bytes bytes);

bool is_mapped(Bytes bytes);  // they lie inside a MappedFile

// Reads the bytes from the disk if necessary, so that they are in memory for their next use.
void fetch_mapped(Bytes bytes);

// Addresses without memory: reading or writing there ends the process. For data that have a size but are stored elsewhere.
std::shared_ptr<const void> unreadable(std::size_t bytes);

}  // namespace lacuna
