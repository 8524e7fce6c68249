// Free space on a disk.
#pragma once

#include <cstdint>
#include <string>

namespace lacuna {

// On the disk where a file of this path would lie; all of 64 bits where nobody knows.
std::uint64_t free_bytes(const std::string& path);

}  // namespace lacuna
