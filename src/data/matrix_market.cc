// Matrix Market files (coordinate and array; real, integer and pattern; general and symmetric), the lists of
// names that lie beside them (.docs: one id per column, .terms: one name per row), and topic lists (.clist).
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/names.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

struct Banner {
  bool coordinate = true, pattern = false, symmetric = false, skew = false;
};

std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(" \t"); at < line.size();
       at = line.find_first_not_of(" \t", at)) {
    const auto end = std::min(line.size(), line.find_first_of(" \t", at));
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

Banner parse_banner(std::string_view line, const std::string& path) {
  std::string text(line);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto words = words_in(text);
  if (words.size() != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix")
    fail(Exit::data, "{}: line 1 is not '%%MatrixMarket matrix ...'", path);
  Banner b;
  b.coordinate = words[2] == "coordinate";
  b.pattern = words[3] == "pattern";
  b.skew = words[4] == "skew-symmetric";
  b.symmetric = b.skew || words[4] == "symmetric";
  if (!b.coordinate && words[2] != "array")
    fail(Exit::data, "{}: format '{}' is not coordinate or array", path, std::string(words[2]));
  if (words[3] != "real" && words[3] != "integer" && words[3] != "double" && !b.pattern)
    fail(Exit::data, "{}: numbers are '{}', expected real, integer or pattern", path, std::string(words[3]));
  if (!b.symmetric && words[4] != "general")
    fail(Exit::data, "{}: symmetry '{}' is not general, symmetric or skew-symmetric", path,
         std::string(words[4]));
  return b;
}

struct Triplet {
  std::uint32_t row, column;
  float value;
};

class MatrixMarket {
 public:
  explicit MatrixMarket(const std::string& path) : path_(path) {}

  std::variant<Table<float>, Csr> read() {
    const TextFile file = open_text(path_);
    Lines lines(file.text);
    std::string_view line;
    if (!lines.next(line)) fail(Exit::data, "{}: is empty", path_);
    banner_ = parse_banner(line, path_);
    do {
      if (!lines.next(line)) fail(Exit::data, "{}: ends before its sizes", path_);
    } while (trim(line).empty() || line[0] == '%');
    const auto words = words_in(line);
    if (words.size() != (banner_.coordinate ? 3u : 2u))
      fail(Exit::data, "{}: line {}: expected {}", path_, lines.number(),
           banner_.coordinate ? "rows, columns and entries" : "rows and columns");
    rows_ = size(words[0], lines.number());
    columns_ = size(words[1], lines.number());
    const std::uint64_t bytes = file.text.size();
    if (banner_.coordinate) {
      const std::uint64_t count = size(words[2], lines.number());
      if (count > bytes / 4) fail(Exit::data, "{}: promises {} entries in {} bytes", path_, count, bytes);
      check_backed(rows_, bytes, "rows", path_);
      check_backed(columns_, bytes, "columns", path_);
      return coordinate(lines, count);
    }
    if (rows_ == 0 || columns_ == 0 || rows_ > bytes || columns_ > bytes / rows_)
      fail(Exit::data, "{}: promises {} x {} values in {} bytes", path_, rows_, columns_, bytes);
    return array(lines);
  }

 private:
  std::uint64_t size(std::string_view word, std::size_t line) const {
    const auto number = parse_int(word);
    if (!number || *number < 0 || *number > UINT32_MAX)
      fail(Exit::data, "{}: line {}: '{}' is not a size", path_, line, utf8_or_latin1(word.substr(0, 40)));
    return static_cast<std::uint64_t>(*number);
  }
  std::uint32_t position(std::string_view word, std::uint64_t count, std::size_t line,
                         const char* what) const {
    const auto number = parse_int(word);
    if (!number || *number < 1 || static_cast<std::uint64_t>(*number) > count)
      fail(Exit::data, "{}: line {}: '{}' is not a {} (1 to {})", path_, line,
           utf8_or_latin1(word.substr(0, 40)), what, count);
    return static_cast<std::uint32_t>(*number - 1);
  }

  Csr coordinate(Lines& lines, std::uint64_t count) const {
    std::vector<Triplet> entries;
    entries.reserve(count);
    std::string_view line;
    while (lines.next(line)) {
      const auto words = words_in(line);
      if (words.empty() || words[0].starts_with('%')) continue;
      if (words.size() != (banner_.pattern ? 2u : 3u))
        fail(Exit::data, "{}: line {} has {} words, expected {}", path_, lines.number(), words.size(),
             banner_.pattern ? 2 : 3);
      Triplet e{position(words[0], rows_, lines.number(), "row"),
                position(words[1], columns_, lines.number(), "column"), 1.f};
      if (!banner_.pattern && !parse_cell(words[2], e.value))
        refuse_cell(path_, lines.number(), "3", words[2]);
      entries.push_back(e);
      if (entries.size() > count)
        fail(Exit::data, "{}: line {}: more than the promised {} entries", path_, lines.number(), count);
    }
    if (entries.size() != count)
      fail(Exit::data, "{}: ends after {} entries, {} were promised", path_, entries.size(), count);
    if (banner_.symmetric)
      for (std::size_t k = 0; k < count; ++k) {
        const Triplet e = entries[k];
        if (e.row >= columns_ || e.column >= rows_)
          fail(Exit::data, "{}: is symmetric but not square", path_);
        if (e.row != e.column) entries.push_back({e.column, e.row, banner_.skew ? -e.value : e.value});
      }
    std::ranges::stable_sort(entries, {}, &Triplet::row);
    CsrBuilder builder;
    std::size_t k = 0;
    for (std::uint64_t i = 0; i < rows_; ++i) {
      for (; k < entries.size() && entries[k].row == i; ++k) builder.add(entries[k].column, entries[k].value);
      if (const auto twice = builder.end_row(); twice >= 0)
        fail(Exit::data, "{}: the entry ({}, {}) occurs twice", path_, i + 1, twice + 1);
    }
    return builder.finish(columns_);
  }

  Table<float> array(Lines& lines) const {
    if (banner_.symmetric || banner_.pattern)
      fail(Exit::data, "{}: dense matrices are read in the general form only", path_);
    Matrix<float> values(rows_, columns_);
    std::uint64_t k = 0;
    std::string_view line;
    while (lines.next(line)) {
      const auto word = trim(line);
      if (word.empty() || word[0] == '%') continue;
      if (k == rows_ * columns_)
        fail(Exit::data, "{}: line {}: more than {} values", path_, lines.number(), k);
      if (!parse_cell(word, values(k % rows_, k / rows_))) refuse_cell(path_, lines.number(), "1", word);
      ++k;
    }
    if (k != rows_ * columns_)
      fail(Exit::data, "{}: ends after {} values, expected {}", path_, k, rows_ * columns_);
    return values;
  }

  const std::string& path_;
  Banner banner_;
  std::uint64_t rows_ = 0, columns_ = 0;
};

}  // namespace

FlatTable read_matrix_market(const std::string& path, const ReadOptions& options) {
  FlatTable table;
  table.values = MatrixMarket(path).read();
  table.source_type = "text";
  // Term matrices lie with their documents as columns; the lists beside them tell.
  const fs::path stem = fs::path(path).parent_path() / fs::path(path).stem();
  const std::string docs = stem.string() + ".docs", terms = stem.string() + ".terms";
  std::error_code error;
  if (!options.transpose && options.lists && fs::is_regular_file(docs, error)) {
    const auto ids = read_lines(docs);
    if (ids.size() == table.width() && ids.size() != table.rows()) {
      table = transposed(std::move(table));
      table.ids = ids;
      table.notes.push_back(fmt::format("columns are documents, as {} says; they became rows", docs));
      if (fs::is_regular_file(terms, error)) {
        const auto names = read_lines(terms);
        if (names.size() == table.width()) {
          table.value_names = names;
          for (std::size_t j = 0; j < names.size(); ++j) table.columns.push_back({names[j], j, 1});
        }
      }
    }
  }
  return table;
}

FlatTable read_topic_lists(const std::string& path, const ReadOptions&) {
  const TextFile file = open_text(path);
  Lines lines(file.text);
  std::string_view line;
  FlatTable table;
  std::unordered_map<std::string, std::size_t> place;
  std::vector<std::pair<std::size_t, std::size_t>> cells;
  while (lines.next(line)) {
    if (trim(line).empty()) continue;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos)
      fail(Exit::data, "{}: line {} is not of the form 'topic: id,id,...'", path, lines.number());
    table.label_names.push_back(utf8_or_latin1(trim(line.substr(0, colon))));
    for (auto part : split(line.substr(colon + 1), ',')) {
      const std::string id = utf8_or_latin1(trim(part));
      if (id.empty()) continue;
      const auto [at, fresh] = place.emplace(id, table.ids.size());
      if (fresh) table.ids.push_back(id);
      cells.emplace_back(at->second, table.label_names.size() - 1);
    }
  }
  if (table.ids.empty()) fail(Exit::data, "{}: lists no items", path);
  // A topic costs a line and an item a word, their product must stay in proportion to the file.
  if (table.ids.size() * table.label_names.size() > 256 * (file.text.size() + 4096))
    fail(Exit::data, "{}: {} items x {} topics are too many for {} bytes", path, table.ids.size(),
         table.label_names.size(), file.text.size());
  Matrix<std::int8_t> labels(table.ids.size(), table.label_names.size());
  for (const auto& [i, j] : cells) labels(i, j) = 1;
  table.labels = std::move(labels);
  return table;
}

}  // namespace lacuna
