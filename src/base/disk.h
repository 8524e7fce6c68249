// Free space on a disk.
#pragma once

#include <cstdint>
#include <string>

namespace lacuna {

// Of the disk that a file with this path would be on; 2^64 - 1 if unknown.
std::uint64_t free_bytes(const std::string& path);

}  // namespace lacuna
