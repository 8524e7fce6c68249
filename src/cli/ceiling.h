// The largest values that metrics can reach: with few labels many rows have no positive, and metrics that count such
// rows as wrong look worse than they are.
#pragma once

#include <cstdint>
#include <string>

#include "base/matrix.h"

namespace lacuna::cli {

// Texts; "" if nearly every row with a known label has a positive one.
std::string ceiling_line(MatrixView<const std::int8_t> truth);      // after the metrics on a terminal
std::string ceiling_sentence(MatrixView<const std::int8_t> truth);  // within a text

}  // namespace lacuna::cli
