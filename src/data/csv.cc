// CSV and TSV. Cells may be quoted ("a ""quoted"" cell", also over several lines); the separator is the tab
// of .tsv files, otherwise the one of , ; and tab that the first line has most of.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/names.h"

namespace lacuna {
namespace {

// Splits a text into rows of cells. Cells point into the text, or into `scratch` where quotes were doubled.
class CsvRows {
 public:
  CsvRows(std::string_view text, char separator, const std::string& where)
      : rest_(text), separator_(separator), where_(where) {}

  bool next(std::vector<std::string>& cells) {
    cells.clear();
    while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) advance();  // blank lines
    if (rest_.empty()) return false;
    line_ = next_line_;
    for (;;) {
      cells.push_back(cell());
      if (rest_.empty()) return true;
      const char end = rest_[0];
      advance();
      if (end == separator_) {
        if (rest_.empty()) cells.emplace_back();
        continue;
      }
      if (end == '\r' && rest_.starts_with('\n')) advance();
      return true;
    }
  }
  std::size_t line() const { return line_; }  // where the row began

 private:
  void advance() {
    if (rest_[0] == '\n') ++next_line_;
    rest_.remove_prefix(1);
  }
  std::string cell() {
    std::string out;
    if (!rest_.starts_with('"')) {
      const char stops[] = {separator_, '\n', '\r'};
      const auto end = rest_.find_first_of(std::string_view(stops, 3));
      out = rest_.substr(0, end);
      rest_.remove_prefix(out.size());
      return out;
    }
    advance();
    for (;;) {
      const auto quote = rest_.find('"');
      if (quote == std::string_view::npos)
        fail(Exit::data, "{}: line {}: a quoted cell has no end", where_, line_);
      next_line_ += static_cast<std::size_t>(
          std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      out += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      out += '"';
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_[0] != separator_ && rest_[0] != '\n' && rest_[0] != '\r')
      fail(Exit::data, "{}: line {}: '{}' follows a quoted cell, expected '{}' or the end of the line",
           where_, next_line_, utf8_or_latin1(rest_.substr(0, 1)), separator_);
    return out;
  }
  std::string_view rest_;
  char separator_;
  const std::string& where_;
  std::size_t line_ = 1, next_line_ = 1;
};

// The most frequent of the three in the first row, outside of quotes: a quoted name may hold any of them.
char find_separator(const std::string& path, std::string_view text) {
  if (path.ends_with(".tsv")) return '\t';
  constexpr std::array kSeparators = {',', ';', '\t'};
  std::array<std::size_t, kSeparators.size()> counts{};
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    for (std::size_t k = 0; k < kSeparators.size(); ++k) counts[k] += c == kSeparators[k];
  }
  return kSeparators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
}

// A first line of numbers is data, but for the numbers 0, 1, 2, ... that some tools write as column names.
bool looks_like_header(const std::vector<std::string>& cells) {
  float ignored = 0;
  if (!std::ranges::all_of(cells, [&](const auto& cell) { return parse_cell(cell, ignored); })) return true;
  if (cells.size() < 4) return false;
  for (std::size_t j = 0; j + 1 < cells.size(); ++j)
    if (cells[j] != std::to_string(j)) return false;
  return true;
}

bool is_id_name(const std::string& name) {
  return name == "id" || name == "ID" || name == "Id" || name == "ids";
}

}  // namespace

FlatTable read_csv(const std::string& path, const ReadOptions& options) {
  const auto file = MappedFile::open(path);
  std::string_view text = file->text();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  CsvRows rows(text, find_separator(path, text), path);
  std::vector<std::string> cells;
  FlatTable table;
  if (!rows.next(cells)) fail(Exit::data, "{}: is empty", path);
  const std::size_t width = cells.size();
  const bool header = options.header == "yes" || (options.header == "auto" && looks_like_header(cells));
  FlatTable all;  // with the id and class columns still in it
  for (std::size_t j = 0; j < width; ++j)
    all.columns.push_back({header ? utf8_or_latin1(cells[j]) : "", j, 1});
  std::size_t id = width, class_column = width;
  if (!options.id_column.empty()) {
    id = find_column(all, options.id_column, path);
  } else if (header && is_id_name(all.columns[0].name)) {
    id = 0;
  }
  if (!options.class_column.empty()) class_column = find_column(all, options.class_column, path);
  for (std::size_t j = 0; j < width; ++j) {
    if (j == id || j == class_column) continue;
    table.columns.push_back({all.columns[j].name, table.columns.size(), 1});
    if (header) table.value_names.push_back(all.columns[j].name);
  }
  const std::size_t kept = table.columns.size();
  std::vector<float> values;
  std::size_t count = 0;
  values.reserve(
      std::min(text.size() / 2 + 1, kept * static_cast<std::size_t>(std::ranges::count(text, '\n') + 1)));
  for (bool more = !header || rows.next(cells); more; more = rows.next(cells), ++count) {
    if (cells.size() != width)
      fail(Exit::data, "{}: line {} has {} cells, the first line has {}", path, rows.line(), cells.size(),
           width);
    for (std::size_t j = 0; j < width; ++j) {
      if (j == id) {
        table.ids.push_back(utf8_or_latin1(cells[j]));
      } else if (j == class_column) {
        table.classes.push_back(utf8_or_latin1(trim(cells[j])));
      } else {
        float value = 0;
        if (!parse_cell(cells[j], value))
          refuse_cell(path, rows.line(),
                      header ? fmt::format("'{}'", all.columns[j].name) : std::to_string(j), cells[j]);
        values.push_back(value);
      }
    }
  }
  if (count == 0) fail(Exit::data, "{}: has a header line but no rows", path);
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  table.values = Table<float>(owner, MatrixView<const float>(owner->data(), count, kept));
  table.source_type = "text";
  return table;
}

}  // namespace lacuna
