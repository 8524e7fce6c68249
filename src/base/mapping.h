// Releases and prefetches memory of mapped files; the mapping itself remains.
#pragma once

#include <memory>

#include "base/files.h"

namespace lacuna {

// How many bytes Linux maps around one that is touched.
constexpr std::size_t kAroundBytes = std::size_t{512} << 10;

// Tells the system that the bytes are not needed for now: those inside a MappedFile no longer count as memory
// of the process, and are read again when they are touched. Other bytes are not affected. May be called at
// any time.
void release_mapped(Bytes bytes);

bool is_mapped(Bytes bytes);  // they lie inside a MappedFile

// Reads the bytes from the disk if necessary, so that they are in memory for their next use.
void fetch_mapped(Bytes bytes);

// Reserves addresses without memory, for data that have a size but are stored elsewhere. Reading or writing there ends
// the process.
std::shared_ptr<const void> unreadable(std::size_t bytes);

}  // namespace lacuna
