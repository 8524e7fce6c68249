// Small types of the seam that the CPU's products use too.
#pragma once

#include <cstdint>

namespace lacuna {

// Of the factors of products; sums are in f32.
enum class Precision { f32, bf16 };

// Coordinates [begin, end) of a row are hidden.
struct Fragment {
  std::uint32_t begin = 0, end = 0;
};

}  // namespace lacuna
