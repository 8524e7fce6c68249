// Text helpers: the nearest valid name for a misspelt one, numbers for people, aligned tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

// The candidate nearest to `word` (edit distance at most a third of its length, at least 2), or "" if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// "; did you mean 'x'?" or "", for the end of a message.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
std::string lower(std::string text);  // of A to Z
std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& items, std::string_view separator);
std::vector<std::string> with(std::vector<std::string> names, std::initializer_list<const char*> more);
std::vector<std::string> quoted(std::vector<std::string> names);  // 'a', 'b'
std::string some(std::vector<std::string> names,
                 std::size_t most);  // "a, b and 7 more", or "none", for a message
// A list as one text, separated by commas; a backslash precedes a comma or a backslash within an item.
std::vector<std::string> split_list(std::string_view text);
std::string join_list(const std::vector<std::string>& items);

std::size_t code_points(std::string_view text);
// Lines of at most `width` code points, broken at blanks; every line but the first is indented. A single newline in the
// text counts as a blank, an empty line separates paragraphs. A word that is longer than a line gets its own line.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

// The whole text as a number, or nothing. Locale-free.
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int(std::string_view text);

std::string bytes_text(double bytes);       // "278 MB"
std::string duration_text(double seconds);  // "3 min 20 s"
std::optional<double> parse_duration(const std::string& text);  // seconds of "90", "90s", "2m" or "1.5h"; above 0
std::string count_text(std::uint64_t n);    // "288,650,000"

// Columns padded to their widest cell; numbers (cells that parse as one) to the right. Width counts code points.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lacuna
