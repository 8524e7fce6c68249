#include "data/flat_table.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/convert.h"
#include "data/ids.h"
#include "data/labels.h"
#include "data/names.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

constexpr float kEmpty = std::numeric_limits<float>::quiet_NaN();

// The columns of `values` that belong to the given columns of the file.
std::vector<std::uint32_t> expand(const FlatTable& table, const std::vector<std::size_t>& columns) {
  std::vector<std::uint32_t> out;
  for (auto c : columns) {
    const FlatTable::Column column = table.column(c);
    for (std::size_t k = 0; k < column.width; ++k)
      out.push_back(static_cast<std::uint32_t>(column.first + k));
  }
  return out;
}

Csr take_sparse(const Csr& from, const std::vector<std::uint32_t>& columns) {
  std::unordered_map<std::uint32_t, std::uint32_t> place;
  for (std::size_t k = 0; k < columns.size(); ++k) place.emplace(columns[k], static_cast<std::uint32_t>(k));
  CsrBuilder builder;
  for (std::size_t i = 0; i + 1 < from.start.cols(); ++i) {
    for (std::uint64_t k = from.start(0, i); k < from.start(0, i + 1); ++k)
      if (const auto at = place.find(from.index(0, k)); at != place.end())
        builder.add(at->second, from.value(0, k));
    builder.end_row();
  }
  return builder.finish(columns.size());
}

}  // namespace

std::size_t FlatTable::rows() const {
  if (!labels.empty()) return labels.rows();
  if (const auto* dense = std::get_if<Table<float>>(&values))
    return std::max({dense->rows(), classes.size(), tags.size()});
  return std::get<Csr>(values).start.cols() - 1;
}

std::size_t FlatTable::width() const {
  if (const auto* dense = std::get_if<Table<float>>(&values)) return dense->cols();
  return std::get<Csr>(values).columns;
}

Table<float> transposed(const Table<float>& from) {
  Matrix<float> to(from.cols(), from.rows());
  constexpr std::size_t kTile = 32;  // both sides of a tile stay in cache
  for (std::size_t i0 = 0; i0 < from.rows(); i0 += kTile)
    for (std::size_t j0 = 0; j0 < from.cols(); j0 += kTile)
      for (std::size_t i = i0; i < std::min(from.rows(), i0 + kTile); ++i)
        for (std::size_t j = j0; j < std::min(from.cols(), j0 + kTile); ++j) to(j, i) = from(i, j);
  return to;
}

Csr transposed(const Csr& from) {
  const std::size_t rows = from.start.cols() - 1, count = from.value.cols();
  Matrix<std::uint64_t> start(1, from.columns + 1);
  for (std::size_t k = 0; k < count; ++k) ++start(0, from.index(0, k) + 1);
  for (std::size_t j = 0; j < from.columns; ++j) start(0, j + 1) += start(0, j);
  std::vector<std::uint64_t> next(start.values().begin(), start.values().end() - 1);
  Matrix<std::uint32_t> index(1, count);
  Matrix<float> value(1, count);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::uint64_t k = from.start(0, i); k < from.start(0, i + 1); ++k) {
      const std::uint64_t at = next[from.index(0, k)]++;
      index(0, at) = static_cast<std::uint32_t>(i);
      value(0, at) = from.value(0, k);
    }
  return {std::move(start), std::move(index), std::move(value), rows};
}

FlatTable transposed(FlatTable&& table) {
  FlatTable out;
  out.source_type = table.source_type;
  out.notes = std::move(table.notes);
  std::visit([&](const auto& values) { out.values = transposed(values); }, table.values);
  out.ids = std::move(table.value_names);
  out.has_ids = !out.ids.empty();
  out.row_numbers = are_row_numbers(out.ids);
  out.ignored = std::move(table.ignored);
  out.value_names = std::move(table.ids);
  for (std::size_t j = 0; j < out.value_names.size(); ++j) out.columns.push_back({out.value_names[j], j, 1});
  return out;
}

std::vector<std::size_t> parse_ranges(std::string_view text, std::size_t count, const std::string& where) {
  std::vector<std::size_t> columns;
  for (auto part : split(text, '+')) {
    const auto dash = part.find('-');
    const auto first = parse_int(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first)
      fail(Exit::usage, "{}: '{}' is not a range of columns; write 0-63, 5 or 0-3+17-20", where,
           std::string(part));
    if (static_cast<std::uint64_t>(*last) >= count)
      fail(Exit::usage, "{}: columns {} were requested, there are {} (0 to {})", where, std::string(part),
           count, count - 1);
    for (auto c = static_cast<std::size_t>(*first); c <= static_cast<std::size_t>(*last); ++c)
      columns.push_back(c);
  }
  auto sorted = columns;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    fail(Exit::usage, "{}: column {} is named twice in '{}'", where, *twice, std::string(text));
  return columns;
}

std::size_t find_column(const FlatTable& table, const std::string& column, const std::string& where) {
  std::vector<std::string> names;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == column) return c;
    names.push_back(table.columns[c].name);
  }
  if (const auto number = parse_int(column)) {
    const auto count = static_cast<std::int64_t>(table.column_count()),
               at = *number < 0 ? count + *number : *number;
    if (at >= 0 && at < count) return static_cast<std::size_t>(at);
    fail(Exit::usage, "{}: there is no column {} among {}", where, column, count);
  }
  fail(Exit::usage, "{}: there is no column '{}'{}", where, column, did_you_mean(column, names));
}

Matrix<float> take_dense(const FlatTable& table, const std::vector<std::size_t>& columns) {
  const auto from = expand(table, columns);
  Matrix<float> to(table.rows(), from.size());
  if (const auto* dense = std::get_if<Table<float>>(&table.values)) {
    for (std::size_t i = 0; i < to.rows(); ++i)
      for (std::size_t k = 0; k < from.size(); ++k) to(i, k) = (*dense)(i, from[k]);
  } else {
    const View view{"", take_sparse(std::get<Csr>(table.values), from), {}, ""};
    for (std::size_t i = 0; i < to.rows(); ++i) view.copy_row(i, to.row(i));
  }
  return to;
}

View take_view(FlatTable& table, const std::vector<std::size_t>& columns) {
  View view;
  view.source_type = table.source_type;
  const auto from = expand(table, columns);
  if (!table.value_names.empty())
    for (auto k : from) view.column_names.push_back(table.value_names[k]);
  bool all = from.size() == table.width();
  for (std::size_t k = 0; k < from.size() && all; ++k) all = from[k] == k;
  if (all) {
    view.features = table.values;
  } else if (const auto* csr = std::get_if<Csr>(&table.values)) {
    view.features = take_sparse(*csr, from);
  } else {
    view.features = take_dense(table, columns);
  }
  return view;
}

std::vector<std::uint8_t> settle_empty_cells(View& view, const std::string& empty, const std::string& where,
                                             Dataset& data) {
  const std::size_t rows = view.rows(), cols = view.columns();
  std::vector<std::uint8_t> present(rows, 1);
  const auto refuse = [&](std::size_t i, std::size_t j) {
    const std::string column =
        view.column_names.empty() ? fmt::format("column {}", j) : fmt::format("'{}'", view.column_names[j]);
    fail(Exit::data,
         "{}: view '{}', row {}: {} has no value (an empty cell, NA or the like) but other cells of the row "
         "have; "
         "a view is present or missing as a whole (--empty zero or --empty mean fills such cells{})",
         where, view.name, i, column,
         column == "''" ? "; a separator at the end of the lines makes a column without a name: "
                          "--ignore-columns '' leaves it out"
                        : "");
  };
  if (const auto* csr = std::get_if<Csr>(&view.features)) {
    Matrix<float> values;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::uint64_t k = csr->start(0, i); k < csr->start(0, i + 1); ++k) {
        if (!std::isnan(csr->value(0, k))) continue;
        if (empty != "zero") refuse(i, csr->index(0, k));
        if (values.empty()) {
          values = Matrix<float>(1, csr->value.cols());
          values.copy_from(csr->value.view());
        }
        values(0, k) = 0;
      }
    if (!values.empty()) view.features = Csr{csr->start, csr->index, std::move(values), csr->columns};
    return present;
  }
  const Table<float> table = std::get<Table<float>>(view.features);
  bool partly = false;
  for (std::size_t i = 0; i < rows; ++i) {
    std::size_t gaps = 0, first = 0;
    for (std::size_t j = cols; j-- > 0;)
      if (std::isnan(table(i, j))) {
        ++gaps;
        first = j;
      }
    present[i] = gaps == cols ? 0 : 1;
    if (gaps == 0 || gaps == cols) continue;
    if (empty == "refuse") refuse(i, first);
    partly = true;
  }
  data.empty_cells = data.empty_cells || (partly && empty == "mean");
  if (!partly || empty == "mean") return present;
  Matrix<float> filled(rows, cols);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) filled(i, j) = std::isnan(table(i, j)) ? 0.f : table(i, j);
  view.features = std::move(filled);
  return present;
}

std::vector<std::size_t> chosen_labels(const FlatTable& table, const std::vector<std::string>& chosen,
                                       const std::string& where) {
  std::vector<std::size_t> labels;
  const auto names_one = [&](const std::string& name) {
    return std::ranges::any_of(table.columns, [&](const auto& column) { return column.name == name; });
  };
  const auto number = chosen.size() == 1 && !names_one(chosen[0]) ? parse_int(chosen[0]) : std::nullopt;
  if (!number) {
    for (const auto& name : chosen) labels.push_back(find_column(table, name, where));
    return labels;
  }
  const auto count = static_cast<std::int64_t>(table.column_count());
  if (*number == 0 || *number > count || *number < -count)
    fail(Exit::usage, "{}: {} label columns were requested, there are {} columns", where, chosen[0], count);
  labels.resize(static_cast<std::size_t>(std::abs(*number)));
  std::iota(labels.begin(), labels.end(), *number < 0 ? 0u : static_cast<std::size_t>(count - *number));
  return labels;
}

std::vector<std::size_t> take_labels(FlatTable& table, const ReadOptions& options, const std::string& where,
                                     Dataset& data) {
  std::vector<std::size_t> labels = table.label_columns;
  if (!options.label_columns.empty()) labels = chosen_labels(table, options.label_columns, where);
  std::ranges::sort(labels);  // the order of the columns wins over that of any list of names
  if (!table.labels.empty()) {
    data.labels = table.labels;
    data.label_names = table.label_names;
  } else if (!table.tags.empty()) {
    tag_labels(table.tags, table.list_name, options.blank_means, data);
  } else if (!table.classes.empty()) {
    one_hot_labels(table.classes, data);
    if (const char separator = tag_separator(table.classes); separator == ';' || separator == '|')
      data.notes.push_back(
          fmt::format("some classes of column '{}' contain '{}' and are taken as they are; if they are lists "
                      "of tags, use --tags-column instead of --class-column",
                      table.list_name, separator));
  } else if (!labels.empty()) {
    Matrix<float> values = take_dense(table, labels);
    if (values.cols() != labels.size()) fail(Exit::data, "{}: a label has more than two values", where);
    if (options.blank_means == "no")
      for (float& x : values.values())
        if (std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(kBlankCell)) x = 0;
    std::vector<std::string> columns;
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const std::string name = table.column(labels[k]).name;
      if (!name.empty() && table.source_type == "text") columns.push_back(name);
      data.label_names.push_back(name.empty() ? fmt::format("label{}", k) : name);
    }
    if (columns.size() != labels.size()) columns.clear();
    data.labels = decode_labels(values, options.label_code, where, columns);
  }
  std::vector<std::size_t> rest;
  for (std::size_t c = 0; c < table.column_count(); ++c)
    if (!std::ranges::binary_search(labels, c)) rest.push_back(c);
  return rest;
}

Dataset assemble(FlatTable&& table, const ReadOptions& options, const std::string& where) {
  Dataset data;
  data.rows = table.rows();
  data.ids = std::move(table.ids);
  data.notes = std::move(table.notes);
  const auto rest = take_labels(table, options, where, data);
  std::vector<std::vector<std::uint8_t>> present;
  const auto add = [&](const std::string& name, const std::vector<std::size_t>& columns) {
    View view = take_view(table, columns);
    view.name = name;
    present.push_back(settle_empty_cells(view, options.empty, where, data));
    data.views.push_back(std::move(view));
  };
  std::vector<bool> used(table.column_count());
  for (const auto& text : options.views) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (name.empty() || (equals == std::string::npos && options.views.size() > 1))
      fail(Exit::usage, "--views takes NAME=A-B, or NAME alone for all columns, not '{}'", text);
    const auto columns = equals == std::string::npos ? rest
                                                     : parse_ranges(std::string_view(text).substr(equals + 1),
                                                                    table.column_count(), where);
    for (auto c : columns) {
      if (!std::ranges::binary_search(rest, c))
        fail(Exit::usage, "{}: column {} of view '{}' is a label", where, c, name);
      used[c] = true;
    }
    add(name, columns);
  }
  if (options.views.empty() && !rest.empty()) add(kSingleView, rest);
  const auto left = std::ranges::count_if(rest, [&](std::size_t c) { return !used[c]; });
  if (!options.views.empty() && left > 0)
    data.notes.push_back(fmt::format("{} columns are in no view and are ignored", left));
  if (std::ranges::any_of(present, [](const auto& p) { return std::ranges::find(p, 0) != p.end(); })) {
    Matrix<std::uint8_t> W(data.rows, data.views.size());
    for (std::size_t v = 0; v < present.size(); ++v)
      for (std::size_t i = 0; i < data.rows; ++i) W(i, v) = present[v][i];
    data.present = std::move(W);
  }
  return data;
}

bool parse_cell(std::string_view cell, float& out) {
  cell = trim(cell);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  static constexpr std::string_view kNothing[] = {"",    "?",  "NA",   "N/A",  "n/a",  "#N/A",
                                                  "#NA", "na", "null", "NULL", "None", "<NA>"};
  if ((cell.empty() || !(cell[0] >= '0' && cell[0] <= '9')) &&
      std::ranges::find(kNothing, cell) != std::end(kNothing)) {
    out = kEmpty;
    return true;
  }
  auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  if (end != cell.data() + cell.size()) return false;
  if (error == std::errc::result_out_of_range) {  // too large, or so small that it is zero in float32
    const auto value = parse_double(cell);
    if (value && std::abs(*value) > 1) return false;
    out = 0;
    return cell.find_first_of("123456789") != std::string_view::npos;
  }
  if (error != std::errc()) return false;
  if (cell.size() > 7 && cell.find_first_not_of("-0123456789") == std::string_view::npos) {
    const auto whole = parse_int(cell);
    float ignored = 0;
    return whole.has_value() && to_float(*whole, ignored);
  }
  return true;
}

bool parse_yes_no(std::string_view cell, float& out) {
  cell = trim(cell);
  if (cell.empty() || cell.size() > 5) return false;
  std::string word(cell);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool yes = word == "yes" || word == "true" || word == "y" || word == "t";
  if (!yes && word != "no" && word != "false" && word != "n" && word != "f") return false;
  out = yes ? 1.f : 0.f;
  return true;
}

std::string why_no_float(double value, std::string_view shown) {
  if (std::isinf(value))
    return fmt::format("'{}' is not a finite number; leave the cell empty if the value is missing", shown);
  if (std::abs(value) > std::numeric_limits<float>::max())
    return fmt::format("{} is beyond the range of float32 (3.4e38); scale the column", shown);
  return fmt::format("float32 cannot represent {} exactly; write it with a decimal point if rounding is meant",
                     shown);
}

// Groups of three digits after a first group of one to three, all by the same separator; then perhaps decimals by
// another one.
std::string why_no_number(std::string_view shown) {
  std::string_view rest = trim(shown);
  std::string plain;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) plain = rest[0], rest.remove_prefix(1);
  const auto digits = [&] {
    const std::size_t size = std::min(rest.find_first_not_of("0123456789"), rest.size());
    plain += rest.substr(0, size);
    rest.remove_prefix(size);
    return size;
  };
  const std::size_t first = digits();
  const char separator = rest.empty() ? ' ' : rest[0];
  bool grouped =
      first >= 1 && first <= 3 && std::string_view(".,' ").find(separator) != std::string_view::npos;
  std::size_t groups = 0;
  while (grouped && !rest.empty() && rest[0] == separator) {
    rest.remove_prefix(1);
    grouped = digits() == 3;
    ++groups;
  }
  if (grouped && groups > 0 && !rest.empty() && (rest[0] == '.' || rest[0] == ',')) {
    plain += rest[0];
    rest.remove_prefix(1);
    digits();
  }
  if (!grouped || groups == 0 || !rest.empty()) return "is not a number";
  return fmt::format("has thousands separators; write {}, and all numbers without them", plain);
}

void refuse_cell(const std::string& where, std::size_t line, const std::string& column,
                 std::string_view cell) {
  const std::string shown = utf8_or_latin1(cell.substr(0, 40));
  if (const auto value = parse_double(cell))
    fail(Exit::data, "{}: line {}, column {}: {}", where, line, column, why_no_float(*value, shown));
  fail(Exit::data, "{}: line {}, column {}: '{}' {}", where, line, column, shown, why_no_number(shown));
}

void check_backed(std::uint64_t count, std::uint64_t bytes, const char* what, const std::string& where) {
  if (count > (std::uint64_t{1} << 20) + 4 * bytes)
    fail(Exit::data, "{}: {} {} in {} bytes are implausible", where, count, what, bytes);
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> out;
  if (path.ends_with(".csv")) {
    ReadOptions options;
    options.header = "no";
    options.id_column = "0";
    return read_csv(path, options).ids;
  }
  const TextFile file = open_text(path);
  Lines lines(file.text);
  std::string_view line;
  while (lines.next(line)) out.push_back(utf8_or_latin1(line));
  while (!out.empty() && trim(out.back()).empty()) out.pop_back();
  return out;
}

std::int64_t CsrBuilder::end_row() {
  const std::size_t begin = start_.back(), end = index_.size();
  bool sorted = true;
  for (std::size_t k = begin + 1; k < end; ++k) sorted = sorted && index_[k - 1] < index_[k];
  if (!sorted) {
    std::vector<std::pair<std::uint32_t, float>> row;
    for (std::size_t k = begin; k < end; ++k) row.emplace_back(index_[k], value_[k]);
    std::ranges::stable_sort(row, {}, &std::pair<std::uint32_t, float>::first);
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (k > 0 && row[k].first == row[k - 1].first) return row[k].first;
      index_[begin + k] = row[k].first;
      value_[begin + k] = row[k].second;
    }
  }
  std::size_t kept = begin;
  for (std::size_t k = begin; k < end; ++k) {
    if (value_[k] == 0) continue;
    index_[kept] = index_[k];
    value_[kept++] = value_[k];
  }
  index_.resize(kept);
  value_.resize(kept);
  start_.push_back(kept);
  return -1;
}

Csr CsrBuilder::finish(std::size_t columns) {
  Csr csr;
  csr.columns = columns;
  const auto table = []<class T>(std::vector<T>&& from) {
    auto owner = std::make_shared<std::vector<T>>(std::move(from));
    return Table<T>(owner, MatrixView<const T>(owner->data(), 1, owner->size()));
  };
  csr.start = table(std::move(start_));
  csr.index = table(std::move(index_));
  csr.value = table(std::move(value_));
  return csr;
}

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

}  // namespace lacuna
