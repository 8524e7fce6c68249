// Properties of the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lacuna::cli {

// Columns of the terminal of a file descriptor: COLUMNS if it is set, else the terminal's own number, else 80.
std::size_t terminal_width(int descriptor);

// Cuts a text to this many code points; the last one is then an ellipsis.
std::string clipped(std::string_view text, std::size_t width);

}  // namespace lacuna::cli
