#include "data/names.h"

#include <cstdint>

namespace lacuna {
namespace {

// Length of the well-formed sequence at the front of `text`, and its code point; 0 if it is not well-formed.
std::size_t decode(std::string_view text, char32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) {
    point = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3Fu);
  }
  const char32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  return point < least || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ? 0 : length;
}

void append(std::string& text, char32_t point) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  }
}

}  // namespace

bool valid_utf8(std::string_view text) {
  while (!text.empty()) {
    char32_t point = 0;
    const std::size_t length = decode(text, point);
    if (length == 0 || point == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string utf8_or_latin1(std::string_view text) {
  if (valid_utf8(text)) return std::string(text);
  std::string out;
  for (char c : text)
    if (c != 0) append(out, static_cast<std::uint8_t>(c));
  return out;
}

std::u32string to_code_points(std::string_view utf8) {
  std::u32string points;
  while (!utf8.empty()) {
    char32_t point = 0;
    std::size_t length = decode(utf8, point);
    if (length == 0) {
      point = 0xFFFD;
      length = 1;
    }
    points += point;
    utf8.remove_prefix(length);
  }
  return points;
}

std::string from_code_points(std::u32string_view points) {
  std::string text;
  for (char32_t point : points)
    append(text, point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ? char32_t{0xFFFD} : point);
  return text;
}

std::vector<std::string> numbered_names(std::string_view stem, std::size_t count) {
  std::vector<std::string> names;
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::string(stem) + std::to_string(i));
  return names;
}

}  // namespace lacuna
