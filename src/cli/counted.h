// A number with its noun: "1 row", "4,999 rows".
#pragma once

#include <cstdint>
#include <string>

#include "base/text.h"

namespace lacuna::cli {

inline std::string counted(std::uint64_t n, const char* noun) {
  return count_text(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace lacuna::cli
