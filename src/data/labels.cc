#include "data/labels.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/names.h"
#include "data/readers.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// What each of the values -1, 0 and 1 means; 2 = not allowed.
struct Code {
  std::int8_t minus, zero, plus;
};
constexpr std::int8_t kNever = 2;

Code code_of(const std::string& name, bool has_minus, bool has_zero, const std::string& where) {
  if (name == "01") return {kNever, 0, 1};
  if (name == "pm1") return {0, kNever, 1};
  if (name == "pm1-unknown") return {0, kUnknown, 1};
  if (name == "01-unknown") return {kUnknown, 0, 1};
  if (has_minus && has_zero)
    fail(Exit::data,
         "{}: the labels contain -1 and 0, which can mean two things; use --label-code pm1-unknown (-1 = no, 0 = "
         "unknown, 1 = yes) or 01-unknown (-1 = unknown, 0 = no, 1 = yes)",
         where);
  return has_minus ? Code{0, kNever, 1} : Code{kNever, 0, 1};
}

bool is_absent(const std::string& cell) {  // nothing there, or NA
  float value = 0;
  return parse_cell(cell, value) && std::isnan(value);
}

// Words such as NA and None say that nothing is known; but they could be meant.
void note_absent(const std::vector<std::string>& cells, const char* what, Dataset& data) {
  const auto word = [](const std::string& cell) { return is_absent(cell) && !trim(cell).empty(); };
  const auto first = std::ranges::find_if(cells, word);
  if (first == cells.end()) return;
  data.notes.push_back(fmt::format("{} of the {} {} are '{}' or the like and count as unknown",
                                   std::ranges::count_if(cells, word), cells.size(), what, trim(*first)));
}

}  // namespace

Matrix<std::int8_t> decode_labels(MatrixView<const float> values, const std::string& code,
                                  const std::string& where, const std::vector<std::string>& columns) {
  Matrix<std::int8_t> out(values.rows, values.cols);
  if (code == "any") {  // they are not used
    std::ranges::fill(out.values(), kUnknown);
    return out;
  }
  bool has_minus = false, has_zero = false;
  for (std::size_t i = 0; i < values.rows; ++i)
    for (float x : values.row(i)) {
      has_minus |= x == -1;
      has_zero |= x == 0;
    }
  const Code meaning = code_of(code, has_minus, has_zero, where);
  for (std::size_t i = 0; i < values.rows; ++i)
    for (std::size_t j = 0; j < values.cols; ++j) {
      const float x = values(i, j);
      std::int8_t y = std::isnan(x) ? kUnknown
                      : x == 1      ? meaning.plus
                      : x == 0      ? meaning.zero
                      : x == -1     ? meaning.minus
                                    : kNever;
      if (y == kNever)
        fail(Exit::data, "{}: label {} of row {} is {}, expected {}{} or NaN (unknown){}", where,
             columns.empty() ? std::to_string(j) : "'" + columns[j] + "'", i, x,
             meaning.minus == kNever ? "" : "-1, ", meaning.zero == kNever ? "1" : "0, 1",
             columns.empty()
                 ? ""
                 : fmt::format("; if the column contains ids, use --id-column '{}'; --label-columns names "
                               "those that are labels",
                               columns[j]));
      out(i, j) = y;
    }
  return out;
}

void one_hot_labels(const std::vector<std::string>& classes, Dataset& data) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t, std::less<>> column;
  bool numbers = true;
  for (const auto& name : classes) {
    if (is_absent(name) || !column.emplace(name, 0).second) continue;
    names.push_back(name);
    numbers = numbers && parse_double(name).has_value();
  }
  if (numbers)
    std::ranges::stable_sort(names, {}, [](const std::string& name) { return *parse_double(name); });
  for (std::size_t j = 0; j < names.size(); ++j) column[names[j]] = j;
  constexpr std::size_t kMost = 65536;
  if (names.size() > kMost || (names.size() > 1000 && names.size() > classes.size() / 2))
    fail(Exit::data, "{} different classes in {} rows: this column does not hold classes", names.size(),
         classes.size());
  note_absent(classes, "classes", data);
  Matrix<std::int8_t> labels(classes.size(), names.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (is_absent(classes[i]))
      std::ranges::fill(labels.row(i), kUnknown);
    else
      labels(i, column[classes[i]]) = 1;
  }
  data.labels = std::move(labels);
  data.label_names = std::move(names);
}

namespace {

// Without its brackets, or nothing where it has none.
std::optional<std::string_view> inside_brackets(std::string_view list) {
  list = trim(list);
  if (list.size() < 2) return std::nullopt;
  for (const std::string_view pair : {"[]", "{}", "()"})
    if (list.front() == pair[0] && list.back() == pair[1]) return trim(list.substr(1, list.size() - 2));
  return std::nullopt;
}

}  // namespace

char tag_separator(const std::vector<std::string>& lists) {
  bool brackets = true;
  std::size_t present = 0;
  const auto empty_brackets = [](const std::string& cell) {
    const auto inside = inside_brackets(cell);
    return inside && inside->empty();
  };
  for (const auto& cell : lists) {
    if (is_absent(cell)) continue;
    ++present;
    brackets = brackets && inside_brackets(cell).has_value();
  }
  if (present > 0 && brackets) return '[';
  for (const char separator : {';', '|', ','})
    for (const auto& cell : lists)
      if (cell.find(separator) != std::string::npos && !empty_brackets(cell)) return separator;
  return 0;
}

std::vector<std::string> split_tags(std::string_view list, char separator) {
  const auto inside = inside_brackets(list);
  list = trim(list);
  if (inside && (separator == '[' || inside->empty())) list = *inside;
  if (separator == '[') separator = ',';
  std::vector<std::string> tags;
  const auto add = [&](std::string_view tag) {
    tag = trim(tag);
    if (!tag.empty() && std::ranges::find(tags, tag) == tags.end()) tags.emplace_back(tag);
  };
  while (!list.empty()) {
    if (separator != 0 && (list[0] == '"' || list[0] == '\'')) {  // a quoted tag may hold separators
      const auto close = list.find(list[0], 1);
      const auto end = close == std::string_view::npos ? close : list.find_first_not_of(" \t", close + 1);
      if (close != std::string_view::npos && (end == std::string_view::npos || list[end] == separator)) {
        add(list.substr(1, close - 1));
        list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
        list = trim(list);
        continue;
      }
    }
    const auto end = separator == 0 ? std::string_view::npos : list.find(separator);
    add(list.substr(0, end));
    list = end == std::string_view::npos ? std::string_view() : trim(list.substr(end + 1));
  }
  return tags;
}

namespace {

using TagPlaces = std::map<std::string, std::size_t, std::less<>>;

void note_blank_lists(const std::vector<std::string>& lists, const std::string& shown,
                      const std::string& blanks, Dataset& data) {
  const auto blank = std::ranges::count_if(lists, [](const std::string& list) { return trim(list).empty(); });
  if (blank > 0 && blanks == "auto")
    data.notes.push_back(
        fmt::format("warning: {} of the {} lists in {} are blank and count as unknown; if a blank list means "
                    "that no tag applies, use --blank-means no",
                    blank, lists.size(), shown));
}

// Lists of one column that are written in two ways: A;B and A|B. Tags may well hold a comma (Ductal, NOS), so
// that one counts where it parts tags that occur by themselves.
void note_second_separator(const std::vector<std::string>& names, const TagPlaces& place, char separator,
                           Dataset& data) {
  for (const char other : {';', '|', ','}) {
    if (separator == 0 || other == separator || (separator == '[' && other == ',')) continue;
    const auto parts_tags = [&](const std::string& name) {
      if (name.find(other) == std::string::npos) return false;
      return other != ',' || std::ranges::any_of(split(name, other), [&](std::string_view part) {
               return place.find(trim(part)) != place.end();
             });
    };
    const auto at = std::ranges::find_if(names, parts_tags);
    if (at == names.end()) continue;
    data.notes.push_back(fmt::format(
        "warning: {} labels, among them '{}': is '{}' a separator too? A column has one; write all "
        "its lists with '{}'",
        names.size(), *at, other, separator == '[' ? ',' : separator));
  }
}

}  // namespace

void tag_labels(const std::vector<std::string>& lists, const std::string& column, const std::string& blanks,
                Dataset& data) {
  const char separator = tag_separator(lists);
  constexpr std::size_t kMost = 65536;
  TagPlaces place;
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> rows(lists.size());
  std::size_t uses = 0;
  std::vector<bool> absent(lists.size());  // nothing there, or NA
  for (std::size_t i = 0; i < lists.size(); ++i) {
    absent[i] = is_absent(lists[i]);
    if (absent[i]) continue;
    for (auto& tag : split_tags(lists[i], separator)) {
      const auto [at, fresh] = place.emplace(tag, names.size());
      if (fresh) names.push_back(std::move(tag));
      rows[i].push_back(at->second);
      ++uses;
    }
  }
  if (names.size() > kMost || (names.size() > 1000 && names.size() > uses / 2))
    fail(Exit::data, "{} different tags in {} rows: this column does not hold tags", names.size(),
         lists.size());
  const std::string shown = column.empty() ? "its only column" : fmt::format("the column '{}'", column);
  if (separator == 0)
    data.notes.push_back(fmt::format("{} contains one tag per row: {} labels", shown, names.size()));
  else
    data.notes.push_back(fmt::format(
        "{} contains lists of tags, {}: {} labels (if each cell is one class, use --class-column)", shown,
        separator == '[' ? "in brackets" : fmt::format("separated by '{}'", separator), names.size()));
  note_blank_lists(lists, shown, blanks, data);
  note_absent(lists, "lists", data);
  note_second_separator(names, place, separator, data);
  Matrix<std::int8_t> labels(lists.size(), names.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const bool unknown = blanks == "unknown" || (absent[i] && !(blanks == "no" && trim(lists[i]).empty()));
    if (unknown) std::ranges::fill(labels.row(i), kUnknown);
    for (const auto j : rows[i]) labels(i, j) = 1;
  }
  data.labels = std::move(labels);
  data.label_names = std::move(names);
}

std::vector<std::string> read_words(const std::string& path, std::size_t count) {
  std::vector<std::string> words;
  const std::string text = read_text(path, std::size_t{1} << 26);
  for (auto line : split(text, '\n'))
    if (!trim(line).empty()) words.push_back(utf8_or_latin1(trim(line)));
  if (words.size() != count)
    fail(Exit::data, "{}: {} names, one per line, for {} labels", path, words.size(), count);
  return words;
}

void find_label_names(const std::string& path, const ReadOptions& options, Dataset& data) {
  if (data.label_names.empty()) return;
  if (!options.label_file.empty()) {
    data.label_names = read_words(options.label_file, data.label_names.size());
    return;
  }
  if (!options.lists) return;
  const fs::path file(path);
  std::string stem = file.stem().string();
  // corel5k_six_view.mat belongs to corel5k_words.txt: parts are cut from the stem until a file fits.
  for (;;) {
    const fs::path words = file.parent_path() / (stem + "_words.txt");
    std::error_code error;
    if (fs::is_regular_file(words, error)) {
      try {
        data.label_names = read_words(words.string(), data.label_names.size());
        data.notes.push_back(fmt::format("label names are taken from {}", words.string()));
      } catch (const Error& reason) {
        data.notes.push_back(fmt::format("label names are generated: {}", reason.what()));
      }
      return;
    }
    const auto cut = stem.rfind('_');
    if (cut == std::string::npos || cut == 0) return;
    stem.resize(cut);
  }
}

}  // namespace lacuna
