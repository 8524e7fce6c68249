// Names of views, columns, labels and items: UTF-8 text without NUL, preserved exactly by every file format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

bool valid_utf8(std::string_view text);  // well-formed and without NUL
std::string utf8_or_latin1(
    std::string_view text);  // as it is if it is UTF-8, otherwise read as Latin-1; NUL dropped
std::u32string to_code_points(std::string_view utf8);
std::string from_code_points(
    std::u32string_view points);  // surrogates and what lies beyond Unicode become U+FFFD
// "label0", "label1", ... : names where a file has none.
std::vector<std::string> numbered_names(std::string_view stem, std::size_t count);

}  // namespace lacuna
