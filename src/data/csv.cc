// CSV and TSV as people have them. Cells may be quoted ("a ""quoted"" cell", also over several lines); the
// separator is the tab of .tsv files, otherwise the one of , ; and tab that the first line has most of. Where
// that is not the comma, numbers may have decimal commas.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/ids.h"
#include "data/names.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

constexpr std::size_t kMostCells = std::size_t{1} << 22, kLongestCell = std::size_t{1} << 20;

// Splits a text into rows of cells.
class CsvRows {
 public:
  CsvRows(std::string_view text, char separator, const std::string& where)
      : rest_(text), separator_(separator), where_(where) {}

  bool next(std::vector<std::string>& cells) {
    while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) advance();  // blank lines
    if (rest_.empty()) return false;
    line_ = next_line_;
    std::size_t count = 0;
    const auto add = [&](std::string_view text) {  // strings of the row before are used again
      if (count == kMostCells) fail(Exit::data, "{}: line {} has more than {} cells", where_, line_, kMostCells);
      if (count == cells.size()) cells.emplace_back();
      cells[count++].assign(text);
    };
    for (;;) {
      add(cell());
      if (rest_.empty()) break;
      const char end = rest_[0];
      advance();
      if (end == separator_) {
        if (!rest_.empty()) continue;
        add("");
        break;
      }
      if (end == '\r' && rest_.starts_with('\n')) advance();
      break;
    }
    cells.resize(count);
    return true;
  }
  std::size_t line() const { return line_; }  // where the row began

 private:
  void advance() {
    if (rest_[0] == '\n') ++next_line_;
    rest_.remove_prefix(1);
  }
  // Points into the text, or into `scratch_` where it was quoted.
  std::string_view cell() {
    if (!rest_.starts_with('"')) {
      const char stops[] = {separator_, '\n', '\r'};
      const std::string_view out = rest_.substr(0, rest_.find_first_of(std::string_view(stops, 3)));
      check_length(out.size());
      rest_.remove_prefix(out.size());
      return out;
    }
    advance();
    scratch_.clear();
    for (;;) {
      const auto quote = rest_.find('"');
      if (quote == std::string_view::npos)
        fail(Exit::data, "{}: line {}: a quoted cell has no end", where_, line_);
      check_length(scratch_.size() + quote);
      next_line_ += static_cast<std::size_t>(
          std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
      scratch_ += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      scratch_ += '"';
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_[0] != separator_ && rest_[0] != '\n' && rest_[0] != '\r')
      fail(Exit::data, "{}: line {}: '{}' follows a quoted cell, expected '{}' or the end of the line",
           where_, next_line_, utf8_or_latin1(rest_.substr(0, 1)), separator_);
    return scratch_;
  }
  void check_length(std::size_t size) const {
    if (size > kLongestCell)
      fail(Exit::data, "{}: line {}: a cell of {} bytes; at most {} are read", where_, line_, size, kLongestCell);
  }
  std::string_view rest_;
  char separator_;
  const std::string& where_;
  std::string scratch_;
  std::size_t line_ = 1, next_line_ = 1;
};

// The most frequent of the three in the first row, outside of quotes: a quoted name may hold any of them.
char find_separator(const std::string& path, std::string_view text) {
  if (ending_of(path) == ".tsv") return '\t';
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

// Numbers with decimal points or with decimal commas, and yes and no.
class Numbers {
 public:
  Numbers(char separator, const std::string& where) : commas_allowed_(separator != ','), where_(where) {}

  bool read(std::string_view cell, std::size_t line, float& out) {
    if (trim(cell).empty()) {
      out = kBlankCell;
      return true;
    }
    if (parse_cell(cell, out)) {
      if (point_line_ == 0 && cell.find('.') != std::string_view::npos) note(line, cell, point_line_, point_);
      return true;
    }
    if (parse_yes_no(cell, out)) return true;
    const auto comma = cell.find(',');
    if (!commas_allowed_ || comma == std::string_view::npos || cell.find('.') != std::string_view::npos)
      return false;
    changed_ = cell;
    changed_[comma] = '.';
    if (!parse_cell(changed_, out)) return false;
    if (comma_line_ == 0) note(line, cell, comma_line_, comma_);
    return true;
  }
  bool commas() const {  // Exit::data where some numbers have commas and others points
    if (comma_line_ != 0 && point_line_ != 0)
      fail(Exit::data,
           "{}: line {} has a decimal comma ('{}') and line {} a decimal point ('{}'), so that neither is sure; "
           "write all numbers alike",
           where_, comma_line_, comma_, point_line_, point_);
    return comma_line_ != 0;
  }

 private:
  static void note(std::size_t line, std::string_view cell, std::size_t& to_line, std::string& to) {
    to_line = line;
    to = trim(cell);
  }
  bool commas_allowed_;
  const std::string& where_;
  std::string changed_, comma_, point_;
  std::size_t comma_line_ = 0, point_line_ = 0;
};

enum class Role { number, id, classes, tags, ignored };

class CsvReader {
 public:
  CsvReader(const std::string& path, const ReadOptions& options)
      : path_(path),
        options_(options),
        file_(open_text(path)),
        separator_(find_separator(path, file_.text)),
        rows_(file_.text, separator_, path),
        numbers_(separator_, path) {
    if (const auto nul = file_.text.substr(0, 4096).find('\0'); nul != std::string_view::npos)
      fail(Exit::data, "{}: byte {} is NUL; this is no text, or UTF-16 without a byte order mark", path, nul);
  }

  FlatTable read() {
    std::vector<std::string> first, cells;
    if (!rows_.next(first)) fail(Exit::data, "{}: is empty", path_);
    const std::size_t first_line = rows_.line();
    bool more = rows_.next(cells);
    // R writes a header without a cell for the row names. (A separator at the end of each line is something else.)
    const bool short_header =
        more && options_.header != "no" && cells.size() == first.size() + 1 && !trim(cells.back()).empty();
    if (short_header) first.insert(first.begin(), "");
    header_ = short_header || options_.header == "yes" || (options_.header == "auto" && looks_like_header(first));
    if (header_ && !more) fail(Exit::data, "{}: has a header line but no rows", path_);
    width_ = first.size();
    for (std::size_t j = 0; j < width_; ++j)
      all_.columns.push_back({header_ ? utf8_or_latin1(first[j]) : "", j, 1});
    find_roles(header_ ? cells : first);
    for (std::size_t j = 0; j < width_; ++j) {
      if (role_[j] != Role::number) continue;
      table_.columns.push_back({all_.columns[j].name, table_.columns.size(), 1});
      if (header_) table_.value_names.push_back(all_.columns[j].name);
    }
    const std::size_t kept = table_.columns.size();
    values_.reserve(std::min(file_.text.size() / 2 + 1,
                             kept * static_cast<std::size_t>(std::ranges::count(file_.text, '\n') + 1)));
    std::size_t count = 0;
    if (!header_) add_row(first, first_line), ++count;
    for (; more; more = rows_.next(cells), ++count) add_row(cells, rows_.line());
    if (numbers_.commas()) table_.notes.push_back("its numbers have decimal commas");
    auto owner = std::make_shared<std::vector<float>>(std::move(values_));
    table_.values = Table<float>(owner, MatrixView<const float>(owner->data(), count, kept));
    table_.source_type = "text";
    return std::move(table_);
  }

 private:
  void find_roles(const std::vector<std::string>& row) {
    role_.assign(width_, Role::number);
    const auto choose = [&](const std::string& column, Role role) {
      if (!column.empty()) role_[find_column(all_, column, path_)] = role;
    };
    for (const auto& column : options_.ignore_columns) {
      if (options_.several_tables && !has_column(column)) continue;  // another table has it
      choose(column, Role::ignored);
      table_.ignored.push_back(column);
    }
    choose(options_.class_column, Role::classes);
    choose(options_.tags_column, Role::tags);
    std::size_t id = width_;
    if (!options_.id_column.empty()) {
      id = find_column(all_, options_.id_column, path_);
    } else if (header_ && role_[0] == Role::number && width_ > 1) {
      float ignored = 0;
      const bool names_of_rows = options_.transpose && !numbers_.read(row[0], 1, ignored);
      if (is_id_name(all_.columns[0].name) || names_of_rows) id = 0;
    }
    if (id < width_) {
      role_[id] = Role::id;
      table_.has_ids = true;
      table_.id_name = all_.columns[id].name;
    }
    if (!options_.labels_table || std::ranges::count(role_, Role::number) != 1) return;
    // Labels that are one column of text: tags, or one class a row.
    const auto only = static_cast<std::size_t>(std::ranges::find(role_, Role::number) - role_.begin());
    CsvRows again(file_.text, separator_, path_);
    std::vector<std::string> cells;
    if (header_) again.next(cells);
    float ignored = 0;
    while (again.next(cells)) {
      if (cells.size() != width_ || trim(cells[only]).empty()) continue;
      if (!Numbers(separator_, path_).read(cells[only], 1, ignored)) role_[only] = Role::tags;
      return;
    }
  }

  bool has_column(const std::string& column) const {
    return std::ranges::any_of(all_.columns, [&](const auto& c) { return c.name == column; });
  }

  void add_row(const std::vector<std::string>& cells, std::size_t line) {
    if (cells.size() != width_)
      fail(Exit::data, "{}: line {} has {} cells, the first line has {}", path_, line, cells.size(), width_);
    for (std::size_t j = 0; j < width_; ++j) {
      switch (role_[j]) {
        case Role::id: table_.ids.push_back(utf8_or_latin1(cells[j])); break;
        case Role::classes: table_.classes.push_back(utf8_or_latin1(trim(cells[j]))); break;
        case Role::tags: table_.tags.push_back(utf8_or_latin1(trim(cells[j]))); break;
        case Role::ignored: break;
        case Role::number: {
          float value = 0;
          if (!numbers_.read(cells[j], line, value)) refuse(j, cells[j], line);
          values_.push_back(value);
        }
      }
    }
  }

  [[noreturn]] void refuse(std::size_t j, std::string_view cell, std::size_t line) const {
    const std::string column = header_ ? fmt::format("'{}'", all_.columns[j].name) : std::to_string(j);
    if (parse_double(trim(cell))) refuse_cell(path_, line, column, cell);
    const std::string flag = header_ && !all_.columns[j].name.empty() ? all_.columns[j].name : std::to_string(j);
    fail(Exit::data,
         "{}: line {}, column {}: '{}' is not a number; if the column holds ids, say --id-column '{}'; if one "
         "class or a list of tags a row, --class-column or --tags-column; to leave it out, --ignore-columns '{}'",
         path_, line, column, utf8_or_latin1(cell.substr(0, 40)), flag, flag);
  }

  const std::string& path_;
  const ReadOptions& options_;
  TextFile file_;
  char separator_;
  CsvRows rows_;
  Numbers numbers_;
  bool header_ = false;
  std::size_t width_ = 0;
  FlatTable all_;  // the columns with ids, classes and tags still among them
  std::vector<Role> role_;
  std::vector<float> values_;
  FlatTable table_;
};

}  // namespace

FlatTable read_csv(const std::string& path, const ReadOptions& options) {
  return CsvReader(path, options).read();
}

}  // namespace lacuna
