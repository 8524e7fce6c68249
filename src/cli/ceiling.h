// The largest values that metrics can reach: with few labels many rows have no positive, and metrics that count such
// rows as wrong look worse than they are.
#pragma once

#include <cstdint>
#include <string>

#include "base/matrix.h"

namespace lacuna::cli {

// One line for people; "" where nearly every row with a known label has a positive one.
std::string ceiling_text(MatrixView<const std::int8_t> truth);

}  // namespace lacuna::cli
