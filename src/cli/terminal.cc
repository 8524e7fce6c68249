#include "cli/terminal.h"

#include <sys/ioctl.h>

#include <cstdlib>

#include "base/text.h"

namespace lacuna::cli {

std::size_t terminal_width(int descriptor) {
  constexpr std::size_t kUnknown = 80, kLeast = 40;
  std::size_t width = kUnknown;
  winsize size{};
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr && parse_int(columns).value_or(0) > 0)
    width = static_cast<std::size_t>(*parse_int(columns));
  else if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    width = size.ws_col;
  return width < kLeast ? kLeast : width;
}

std::string clipped(std::string_view text, std::size_t width) {
  std::size_t points = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (++points == width && code_points(text) > width) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

}  // namespace lacuna::cli
