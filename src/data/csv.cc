// CSV and TSV as people have them. Cells may be quoted ("a ""quoted"" cell", also over several lines); the
// separator is the tab of .tsv files, otherwise the one of , ; and tab that the first line has most of. Where
// that is not the comma, numbers may have decimal commas.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/id_columns.h"
#include "data/ids.h"
#include "data/names.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

constexpr std::size_t kMostCells = std::size_t{1} << 22, kLongestCell = std::size_t{1} << 20;

// Splits a text into rows of cells.
class CsvRows {
 public:
  CsvRows(std::string_view text, char separator, const std::string& where, std::size_t line)
      : rest_(text), separator_(separator), where_(where), next_line_(line) {}

  bool next(std::vector<std::string>& cells) {
    while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) advance();  // blank lines
    if (rest_.empty()) return false;
    line_ = next_line_;
    std::size_t count = 0;
    const auto add = [&](std::string_view text) {  // strings of the row before are used again
      if (count == kMostCells)
        fail(Exit::data, "{}: line {} has more than {} cells", where_, line_, kMostCells);
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
      fail(Exit::data, "{}: line {}: a cell of {} bytes; at most {} are read", where_, line_, size,
           kLongestCell);
  }
  std::string_view rest_;
  char separator_;
  const std::string& where_;
  std::string scratch_;
  std::size_t line_ = 1, next_line_;
};

// Excel writes the separator itself in a first line, sep=; and reads it again. Cuts that line off; 0 = there is none.
char cut_separator_line(std::string_view& text) {
  const auto end = text.find('\n');
  std::string_view line = trim(text.substr(0, std::min<std::size_t>(end, 16)));
  if (text.starts_with("sep=\t")) line = "sep=\t";
  if (line.size() > 2 && line.front() == '"' && line.back() == '"') line = line.substr(1, line.size() - 2);
  if (end == std::string_view::npos || line.size() != 5 || !line.starts_with("sep=")) return 0;
  text.remove_prefix(end + 1);
  return line[4];
}

// The most frequent of the three in the first row, outside of quotes: a quoted name may hold any of them.
char find_separator(const std::string& path, std::string_view text) {
  if (ending_of(path) == ".tsv") return '\t';
  constexpr std::array kSeparators = {',', ';', '\t'};
  std::array<std::size_t, kSeparators.size()> counts{};
  bool quoted = false;
  text.remove_prefix(std::min(text.size(), text.find_first_not_of("\r\n")));  // blank lines
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    for (std::size_t k = 0; k < kSeparators.size(); ++k) counts[k] += c == kSeparators[k];
  }
  return kSeparators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
}

// A first line of numbers is data, but for the numbers 0, 1, 2, ... that some tools write as column names, also behind
// an empty cell above the names of the rows.
bool looks_like_header(const std::vector<std::string>& cells) {
  float ignored = 0;
  if (!std::ranges::all_of(cells, [&](const auto& cell) { return parse_cell(cell, ignored); })) return true;
  if (cells.size() < 4) return false;
  const std::size_t begin = trim(cells[0]).empty() ? 1 : 0;
  for (std::size_t j = begin; j + 1 < cells.size() + begin; ++j)
    if (cells[j] != std::to_string(j - begin)) return false;
  return true;
}

// Numbers with decimal points or with decimal commas, and yes and no.
class Numbers {
 public:
  Numbers(char separator, const std::string& where) : commas_allowed_(separator != ','), where_(where) {}

  bool was_word() const { return word_; }  // the last one was yes or no
  bool read(std::string_view cell, std::size_t line, float& out) {
    word_ = false;
    if (trim(cell).empty()) {
      out = kBlankCell;
      return true;
    }
    if (parse_cell(cell, out)) {
      if (point_line_ == 0 && cell.find('.') != std::string_view::npos) note(line, cell, point_line_, point_);
      return true;
    }
    word_ = parse_yes_no(cell, out);
    if (word_) return true;
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
           "{}: line {} has a decimal comma ('{}') and line {} a decimal point ('{}'), so neither is certain; "
           "write all numbers alike",
           where_, comma_line_, comma_, point_line_, point_);
    return comma_line_ != 0;
  }

 private:
  static void note(std::size_t line, std::string_view cell, std::size_t& to_line, std::string& to) {
    to_line = line;
    to = trim(cell);
  }
  bool commas_allowed_, word_ = false;
  const std::string& where_;
  std::string changed_, comma_, point_;
  std::size_t comma_line_ = 0, point_line_ = 0;
};

// A column in which points or commas may part thousands, as in 999 and 1.002: every one stands before exactly three
// digits, and some numbers have none.
class Thousands {
 public:
  void see(std::string_view cell) {
    if (!likely_ || cell.empty() || cell == "0") return;
    if (cell[0] == '-') cell.remove_prefix(1);
    const auto at = cell.find_first_of(".,");
    const std::string_view whole = cell.substr(0, at);
    const bool plain = at == std::string_view::npos;
    const auto digits = [](std::string_view text) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    float absent = 0;
    if (!digits(whole)) {  // NA says nothing
      likely_ = parse_cell(cell, absent) && std::isnan(absent);
      return;
    }
    likely_ = whole.size() <= 3 && whole[0] != '0' &&
              (plain || (cell.size() - at == 4 && digits(cell.substr(at + 1)) &&
                         (example_.empty() || mark() == cell[at])));
    if (plain) plain_ = true;
    if (!plain && example_.empty()) example_ = cell;
  }
  bool likely() const { return likely_ && plain_ && !example_.empty(); }
  const std::string& example() const { return example_; }
  char mark() const { return example_[example_.find_first_of(".,")]; }

 private:
  bool likely_ = true, plain_ = false;
  std::string example_;
};

// Whether a number with a point has more digits in front of it than float32 holds: whole numbers of that size are
// refused, those of 1.5e20 mean no single digit.
bool loses_digits(std::string_view cell, float value) {
  constexpr float kExact = 16777216;
  return std::abs(value) >= kExact && cell.find_first_of("eE") == std::string_view::npos &&
         parse_double(cell) != static_cast<double>(value);
}

enum class Role { number, id, maybe_id, classes, tags, ignored };

class CsvReader {
 public:
  CsvReader(const std::string& path, const ReadOptions& options)
      : path_(path),
        options_(options),
        file_(open_text(path)),
        told_(cut_separator_line(file_.text)),
        separator_(told_ != 0 ? told_ : find_separator(path, file_.text)),
        rows_(file_.text, separator_, path, told_ != 0 ? 2 : 1),
        numbers_(separator_, path) {
    if (const auto nul = file_.text.substr(0, 4096).find('\0'); nul != std::string_view::npos)
      fail(Exit::data, "{}: byte {} is NUL; this is not text, or UTF-16 without a byte order mark", path, nul);
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
    header_ =
        short_header || options_.header == "yes" || (options_.header == "auto" && looks_like_header(first));
    if (header_ && !more) fail(Exit::data, "{}: has a header line but no rows", path_);
    width_ = first.size();
    if (more) tell_number_names(first, cells);
    for (std::size_t j = 0; j < width_; ++j)
      all_.columns.push_back({header_ ? utf8_or_latin1(first[j]) : "", j, 1});
    find_roles(header_ ? cells : first);
    std::size_t kept = 0;
    for (const Role role : role_) kept += role == Role::number || role == Role::maybe_id;
    values_.reserve(std::min(file_.text.size() / 2 + 1,
                             kept * static_cast<std::size_t>(std::ranges::count(file_.text, '\n') + 1)));
    std::size_t count = 0;
    if (!header_) add_row(first, first_line), ++count;
    for (; more; more = rows_.next(cells), ++count) add_row(cells, rows_.line());
    if (numbers_.commas()) table_.notes.push_back("its numbers have decimal commas");
    tell_thousands();
    settle_ids(count);
    kept = table_.columns.size();
    if (!options_.labels_table && !options_.transpose) find_running_numbers(count);
    auto owner = std::make_shared<std::vector<float>>(std::move(values_));
    table_.values = Table<float>(owner, MatrixView<const float>(owner->data(), count, kept));
    table_.source_type = "text";
    return std::move(table_);
  }

 private:
  void find_roles(const std::vector<std::string>& row) {
    role_.assign(width_, Role::number);
    said_.assign(width_, false);
    thousands_.assign(width_, {});
    place_.assign(width_, IdChoice::kNone);
    for (const auto& column : options_.ignore_columns) {
      bool found = false;  // every column of that name; otherwise the one at that place
      for (std::size_t j = 0; j < width_; ++j)
        if (header_ && all_.columns[j].name == column) role_[j] = Role::ignored, found = true;
      const auto at = parse_int(column);
      if (!found && options_.several_tables && (!at || *at < 0 || static_cast<std::size_t>(*at) >= width_))
        continue;  // another table has it
      if (!found) role_[find_column(all_, column, path_)] = Role::ignored;
      table_.ignored.push_back(column);
    }
    for (const auto& [column, role] :
         {std::pair{&options_.class_column, Role::classes}, {&options_.tags_column, Role::tags}})
      if (!column->empty()) {
        const std::size_t j = find_column(all_, *column, path_);
        role_[j] = role;
        table_.list_name = all_.columns[j].name;
      }
    const bool named =
        !options_.id_column.empty() &&
        !(options_.several_tables && !has_column(options_.id_column) && !parse_int(options_.id_column));
    if (named) add_id_column(find_column(all_, options_.id_column, path_), Role::id);
    for (std::size_t j = 0; j < width_ && header_ && width_ > 1; ++j) {
      if (role_[j] != Role::number) continue;
      const std::string& name = all_.columns[j].name;
      float ignored = 0;
      const bool names_of_rows = j == 0 && options_.transpose && !numbers_.read(row[0], 1, ignored);
      if (names_of_rows || (j == 0 && is_id_name(name)))
        add_id_column(j, Role::id);
      else if (may_hold_ids(name, j) &&
               (!options_.labels_table || is_sure_id_name(name) || is_row_number_name(name)))
        add_id_column(j, Role::maybe_id);
    }
    if (named) id_columns_[0].named_by_user = true;
    texts_.resize(id_columns_.size());
    if (!options_.labels_table || std::ranges::count(role_, Role::number) != 1) return;
    // Labels that are one column of text: tags, or one class per row.
    const auto only = static_cast<std::size_t>(std::ranges::find(role_, Role::number) - role_.begin());
    CsvRows again(file_.text, separator_, path_, 1);
    std::vector<std::string> cells;
    if (header_) again.next(cells);
    float ignored = 0;
    while (again.next(cells)) {
      if (cells.size() != width_ || trim(cells[only]).empty()) continue;
      if (!Numbers(separator_, path_).read(cells[only], 1, ignored)) set_tags(only);
      return;
    }
  }

  void set_tags(std::size_t j) {
    role_[j] = Role::tags;
    table_.list_name = all_.columns[j].name;
  }

  void add_id_column(std::size_t j, Role role) {
    role_[j] = role;
    id_columns_.push_back({j, all_.columns[j].name, false, {}});
    place_[j] = id_columns_.size() - 1;
  }

  // Now that all values are known: which column holds the ids, and which are features after all.
  void settle_ids(std::size_t rows) {
    // Row names in the first column of a transposed table need no customary header.
    if (options_.transpose && !id_columns_.empty() && !is_id_name(id_columns_[0].name) &&
        role_[id_columns_[0].column] == Role::id)
      id_columns_[0].named_by_user = true;
    IdChoice choice = choose_ids(id_columns_, path_);
    table_.notes.insert(table_.notes.end(), choice.notes.begin(), choice.notes.end());
    std::vector<bool> cut;  // of the columns of values_
    for (std::size_t j = 0; j < width_; ++j) {
      if (role_[j] != Role::number && role_[j] != Role::maybe_id) continue;
      const std::size_t k = role_[j] == Role::maybe_id ? place_[j] : IdChoice::kNone;
      cut.push_back(k != IdChoice::kNone &&
                    (k == choice.ids || std::ranges::find(choice.dropped, k) != choice.dropped.end()));
      if (cut.back()) continue;
      if (k != IdChoice::kNone && texts_[k].line != 0) refuse(j, texts_[k].cell, texts_[k].line);
      table_.columns.push_back({all_.columns[j].name, table_.columns.size(), 1});
      if (header_) table_.value_names.push_back(all_.columns[j].name);
    }
    if (std::ranges::find(cut, true) != cut.end()) {
      std::size_t to = 0;
      for (std::size_t i = 0, from = 0; i < rows; ++i)
        for (std::size_t c = 0; c < cut.size(); ++c, ++from)
          if (!cut[c]) values_[to++] = values_[from];
      values_.resize(to);
    }
    if (choice.ids == IdChoice::kNone) return;
    IdColumn& ids = id_columns_[choice.ids];
    table_.has_ids = true;
    table_.id_name = ids.name;
    if (!is_id_name(ids.name) && names_look_like_data(ids.column))
      table_.notes.push_back(fmt::format(
          "warning: its first line ('{}', ...) is taken for the names of the columns, though they are "
          "numbers; if it is a row, use --header no --id-column {}, otherwise --header yes",
          ids.name, ids.column));
    table_.id_named = !options_.id_column.empty() && ids.named_by_user;
    table_.row_numbers = choice.row_numbers;
    table_.ids = std::move(ids.values);
    float absent = 0;
    for (std::size_t i = 0; i < table_.ids.size() && !options_.transpose; ++i)
      if (!trim(table_.ids[i]).empty() && parse_cell(table_.ids[i], absent) && std::isnan(absent)) {
        table_.notes.push_back(fmt::format(
            "warning: row {} (from 0) has the id '{}', which is read like any other; if its id is unknown, "
            "drop the row",
            i, table_.ids[i]));
        break;
      }
  }

  // Numbers of samples under an unknown header: each of a run of whole numbers once, in any order.
  void find_running_numbers(std::size_t rows) {
    constexpr std::size_t kFewest = 10, kShown = 3;
    const std::size_t width = table_.columns.size();
    if (rows < kFewest) return;
    std::vector<std::string> found;
    std::vector<bool> seen(2 * rows);
    for (std::size_t c = 0; c < width && found.size() <= kShown; ++c) {
      const double first = static_cast<double>(values_[c]), n = static_cast<double>(rows);
      double least = first, largest = first;
      std::vector<std::size_t> marked;
      std::size_t i = 0;
      for (; i < rows; ++i) {
        const double x = static_cast<double>(values_[i * width + c]), at = x - first + n;
        if (!(at >= 0 && at < 2 * n) || x != std::floor(x) || seen[static_cast<std::size_t>(at)]) break;
        seen[static_cast<std::size_t>(at)] = true;
        marked.push_back(static_cast<std::size_t>(at));
        least = std::min(least, x), largest = std::max(largest, x);
      }
      for (const std::size_t at : marked) seen[at] = false;
      if (i == rows && largest - least + 1 == n)
        found.push_back(table_.columns[c].name.empty() ? std::to_string(c) : table_.columns[c].name);
    }
    if (found.empty()) return;
    const std::size_t count = std::min(found.size(), kShown);
    std::vector<std::string> names;
    for (std::size_t k = 0; k < count; ++k) names.push_back("'" + found[k] + "'");
    if (found.size() > kShown) names.emplace_back("...");
    table_.notes.push_back(fmt::format(
        "warning: {} {} a running number (each of {} whole numbers once) and is read as a feature; if it "
        "contains ids, use --id-column '{}'; if it is not needed, --ignore-columns '{}'",
        join(names, ", "), count == 1 ? "looks like" : "each look like", rows, found[0], found[0]));
  }

  void tell_thousands() {
    for (std::size_t j = 0; j < width_; ++j) {
      if (!thousands_[j].likely()) continue;
      const std::string& example = thousands_[j].example();
      const char mark = thousands_[j].mark();
      if (mark == '.' && separator_ == '\t') continue;  // where points are usual
      const std::string name = mark == '.' ? "point" : "comma";
      std::string without = example, read = example;
      std::erase(without, mark);
      std::ranges::replace(read, ',', '.');
      table_.notes.push_back(fmt::format(
          "warning: column {0}: '{1}' is read as {2}, with a decimal {3}; if its {3}s separate thousands "
          "({4}), write its numbers without them",
          column_name(j), example, read, name, without));
      return;
    }
  }

  // Names of columns that are numbers (of genes, say) look like a row, but for the numbers below them.
  void tell_number_names(const std::vector<std::string>& first, const std::vector<std::string>& second) {
    constexpr std::size_t kFewest = 3;
    if (header_ || options_.header != "auto" || first.size() != second.size() || first.size() < kFewest)
      return;
    const auto whole = [](const std::string& cell) { return parse_int(trim(cell)).has_value(); };
    const std::set<std::string> different(first.begin(), first.end());
    if (different.size() < first.size() || !std::ranges::all_of(first, whole) ||
        2 * std::ranges::count_if(second, whole) > std::ssize(second))
      return;
    table_.notes.push_back(fmt::format(
        "warning: its first line ({}, {}, ...) is taken for a row, though its numbers are whole and those of "
        "the next are not; if they are the names of the columns, use --header yes",
        trim(first[0]), trim(first[1])));
  }

  // Whether the names of most other columns are numbers, so that the line of names may be a row.
  bool names_look_like_data(std::size_t besides) const {
    std::size_t numbers = 0;
    for (std::size_t j = 0; j < width_; ++j)
      numbers += j != besides && parse_double(trim(all_.columns[j].name)).has_value();
    return header_ && options_.header == "auto" && 2 * numbers > width_ - 1;
  }

  std::string column_name(std::size_t j) const {
    return header_ ? fmt::format("'{}'", all_.columns[j].name) : std::to_string(j);
  }

  bool has_column(const std::string& column) const {
    return std::ranges::any_of(all_.columns, [&](const auto& c) { return c.name == column; });
  }

  void add_row(const std::vector<std::string>& cells, std::size_t line) {
    if (cells.size() != width_)
      fail(Exit::data, "{}: line {} has {} cells, the first line has {}", path_, line, cells.size(), width_);
    for (std::size_t j = 0; j < width_; ++j) {
      switch (role_[j]) {
        case Role::id:
          id_columns_[place_[j]].values.push_back(utf8_or_latin1(cells[j]));
          break;
        case Role::maybe_id: {
          id_columns_[place_[j]].values.push_back(utf8_or_latin1(cells[j]));
          float value = 0;
          First& text = texts_[place_[j]];
          if (!numbers_.read(cells[j], line, value) && text.line == 0) text = {line, cells[j]};
          values_.push_back(value);
          break;
        }
        case Role::classes:
          table_.classes.push_back(utf8_or_latin1(trim(cells[j])));
          break;
        case Role::tags:
          table_.tags.push_back(utf8_or_latin1(trim(cells[j])));
          break;
        case Role::ignored:
          break;
        case Role::number: {
          float value = 0;
          if (!numbers_.read(cells[j], line, value)) refuse(j, cells[j], line);
          said_[j] = said_[j] || numbers_.was_word();
          if (separator_ != ',') thousands_[j].see(trim(cells[j]));
          if (!told_digits_ && loses_digits(cells[j], value)) {
            told_digits_ = true;
            table_.notes.push_back(fmt::format(
                "warning: column {}: '{}' is read as {:.0f}, because float32 holds about 7 digits; if they matter, "
                "subtract a constant, or use --id-column '{}' if the column contains ids",
                column_name(j), trim(cells[j]), value, header_ ? all_.columns[j].name : std::to_string(j)));
          }
          values_.push_back(value);
        }
      }
    }
  }

  [[noreturn]] void refuse(std::size_t j, std::string_view cell, std::size_t line) const {
    const std::string column = column_name(j);
    const std::string flag =
        header_ && !all_.columns[j].name.empty() ? all_.columns[j].name : std::to_string(j);
    const std::string shown = utf8_or_latin1(cell.substr(0, 40));
    if (const auto value = parse_double(trim(cell)))
      fail(Exit::data, "{}: line {}, column {}: {}; if the column contains ids, use --id-column '{}'", path_,
           line, column, why_no_float(*value, shown), flag);
    if (all_.columns.size() == 1 && cell.find_first_of("| :") != std::string_view::npos)
      fail(
          Exit::data,
          "{}: line {}: '{}' is one cell: cells are separated by commas, semicolons or tabs; write the table "
          "with one of these, or use --id-column '{}' if it is an id",
          path_, line, shown, flag);
    if (said_[j])
      fail(Exit::data,
           "{}: line {}, column {}: '{}' is neither yes nor no; write yes, no, true, false, y, n, t, f (in any "
           "case), 1 or 0, and leave the cell empty or write NA or ? where it is unknown",
           path_, line, column, shown);
    if (names_look_like_data(j))
      fail(Exit::data,
           "{}: line {}, column {}: '{}' is not a number. The first line is taken for the names of the "
           "columns, but they are numbers: if it is a row, write a line of names above it, or use --header no "
           "--id-column {} (of every table); if these are names, --header yes --id-column '{}'",
           path_, line, column, shown, j, flag);
    fail(Exit::data,
         "{}: line {}, column {}: '{}' {}; if the column contains ids, use --id-column '{}'; if one class or "
         "a list "
         "of tags per row, --class-column or --tags-column; if a label, write yes or no; to leave it out, "
         "--ignore-columns '{}'",
         path_, line, column, shown, why_no_number(shown), flag, flag);
  }

  const std::string& path_;
  const ReadOptions& options_;
  TextFile file_;
  char told_, separator_;
  CsvRows rows_;
  Numbers numbers_;
  bool header_ = false, told_digits_ = false;
  std::size_t width_ = 0;
  FlatTable all_;  // the columns with ids, classes and tags still among them
  std::vector<Role> role_;
  std::vector<bool> said_;  // yes or no stood in the column
  std::vector<Thousands> thousands_;
  std::vector<IdColumn> id_columns_;  // those that may hold ids,
  std::vector<std::size_t> place_;    //   which of them a column is,
  struct First {
    std::size_t line = 0;  // 0 = none
    std::string cell;
  };
  std::vector<First> texts_;  //   and the first cell of each that is no number
  std::vector<float> values_;
  FlatTable table_;
};

}  // namespace

FlatTable read_csv(const std::string& path, const ReadOptions& options) {
  return CsvReader(path, options).read();
}

}  // namespace lacuna
