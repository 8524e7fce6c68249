// LIBSVM multi-label lines: `3,17 1:0.5 9:2` (labels, then column:value, columns counted from 1). A file that
// opens with a line of three numbers (rows, columns, labels; the extreme classification repository) counts
// columns from 0.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/names.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

// rows, columns, labels of a first line that holds three numbers and nothing else.
std::optional<std::array<std::uint64_t, 3>> sizes_line(std::string_view line) {
  std::array<std::uint64_t, 3> sizes{};
  std::size_t found = 0;
  for (auto word : split(trim(line), ' ')) {
    const auto number = parse_int(word);
    if (!number || *number < 0 || found == 3) return std::nullopt;
    sizes[found++] = static_cast<std::uint64_t>(*number);
  }
  if (found != 3) return std::nullopt;
  return sizes;
}

// Reads lines of labels and column:value into rows.
class LibsvmLines {
 public:
  LibsvmLines(const std::string& path, bool from_zero) : path_(path), from_zero_(from_zero) {}

  void add(std::string_view line, std::size_t number) {
    std::vector<std::int64_t> row;
    for (std::size_t at = 0; at < line.size();) {
      const auto end = std::min(line.size(), line.find_first_of(" \t", at));
      const auto word = line.substr(at, end - at);
      at = end + 1;
      if (word.empty()) continue;
      if (const auto colon = word.find(':'); colon == std::string_view::npos)
        add_labels(word, number, row);
      else
        add_value(word, colon, number);
    }
    if (const auto twice = builder.end_row(); twice >= 0)
      fail(Exit::data, "{}: line {}: column {} occurs twice", path_, number, twice + (from_zero_ ? 0 : 1));
    labels.push_back(std::move(row));
  }

  CsrBuilder builder;
  std::vector<std::vector<std::int64_t>> labels;
  std::map<std::int64_t, std::uint32_t> columns;  // of the labels
  std::uint64_t width = 0;

 private:
  void add_labels(std::string_view word, std::size_t line, std::vector<std::int64_t>& row) {
    for (auto part : split(word, ',')) {
      if (part.empty()) continue;
      const auto number = parse_double(part);
      if (!number || !(std::abs(*number) <= 2e9) || *number != std::trunc(*number))  // nan is neither
        fail(Exit::data, "{}: line {}: '{}' is not a label number", path_, line,
             utf8_or_latin1(part.substr(0, 40)));
      row.push_back(static_cast<std::int64_t>(*number));
      columns.emplace(row.back(), 0);
    }
  }

  void add_value(std::string_view word, std::size_t colon, std::size_t line) {
    const auto column = parse_int(word.substr(0, colon));
    float value = 0;
    if (!column || *column < (from_zero_ ? 0 : 1) || *column > UINT32_MAX - 1)
      fail(Exit::data, "{}: line {}: '{}' is not column:value", path_, line,
           utf8_or_latin1(word.substr(0, 40)));
    if (!parse_cell(word.substr(colon + 1), value))
      refuse_cell(path_, line, std::to_string(*column), word.substr(colon + 1));
    const auto position = static_cast<std::uint32_t>(*column - (from_zero_ ? 0 : 1));
    width = std::max<std::uint64_t>(width, position + 1u);
    builder.add(position, value);
  }

  const std::string& path_;
  const bool from_zero_;
};

// What the first line promises of rows, columns and labels.
void take_promised_sizes(const std::array<std::uint64_t, 3>& sizes, std::size_t bytes, const std::string& path,
                LibsvmLines& rows) {
  if (sizes[0] != rows.labels.size())
    fail(Exit::data, "{}: the first line promises {} rows, there are {}", path, sizes[0], rows.labels.size());
  if (sizes[1] < rows.width)
    fail(Exit::data, "{}: the first line promises {} columns, there are {}", path, sizes[1], rows.width);
  rows.width = sizes[1];
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(std::min<std::uint64_t>(sizes[2], bytes)); ++j)
    rows.columns.emplace(j, 0);
}

// Label numbers become columns, in ascending order.
void number_labels(LibsvmLines& rows, std::size_t bytes, const std::string& path, FlatTable& table) {
  if (rows.columns.empty()) return;
  std::uint64_t cells = 0;
  if (__builtin_mul_overflow(rows.columns.size(), rows.labels.size(), &cells) || cells > 256 * (bytes + 4096))
    fail(Exit::data, "{}: {} rows x {} labels are too many for a file of {} bytes", path, rows.labels.size(),
         rows.columns.size(), bytes);
  for (auto& [number, column] : rows.columns) {
    column = static_cast<std::uint32_t>(table.label_names.size());
    table.label_names.push_back(std::to_string(number));
  }
  Matrix<std::int8_t> Y(rows.labels.size(), rows.columns.size());
  for (std::size_t i = 0; i < rows.labels.size(); ++i)
    for (auto number : rows.labels[i]) Y(i, rows.columns[number]) = 1;
  table.labels = std::move(Y);
}

}  // namespace

FlatTable read_libsvm(const std::string& path, const ReadOptions& options) {
  const TextFile file = open_text(path);
  std::string_view text = file.text, line;
  const std::optional<std::array<std::uint64_t, 3>> sizes = sizes_line(text.substr(0, text.find('\n')));
  Lines lines(text);
  if (sizes) lines.next(line);
  // A column 0 anywhere means that this file counts from 0.
  LibsvmLines rows(path, sizes || text.find(" 0:") != std::string_view::npos || text.starts_with("0:"));
  while (lines.next(line)) {
    line = line.substr(0, line.find('#'));
    if (trim(line).empty() && !sizes) continue;  // with sizes, an empty line is an item without anything
    rows.add(line, lines.number());
  }
  if (rows.labels.empty()) fail(Exit::data, "{}: has no rows", path);
  if (sizes) take_promised_sizes(*sizes, text.size(), path, rows);
  if (options.columns != 0) {
    if (static_cast<std::uint64_t>(options.columns) < rows.width)
      fail(Exit::data, "{}: has a column {}, --columns says {}", path, rows.width, options.columns);
    rows.width = static_cast<std::uint64_t>(options.columns);
  }
  check_backed(rows.width, text.size(), "columns", path);
  FlatTable table;
  table.values = rows.builder.finish(rows.width);
  table.source_type = "text";
  number_labels(rows, text.size(), path, table);
  return table;
}

}  // namespace lacuna
