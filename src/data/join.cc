#include "data/join.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/names.h"
#include "data/npy.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using Set = std::unordered_set<std::string_view>;

FlatTable stack(std::vector<FlatTable>&& tables, const Names& files, const std::string& where) {
  if (tables.size() == 1) return std::move(tables[0]);
  FlatTable out;
  out.columns = tables[0].columns;
  out.value_names = tables[0].value_names;
  out.source_type = tables[0].source_type;
  out.has_ids = tables[0].has_ids;
  out.id_name = tables[0].id_name;
  out.id_named = tables[0].id_named;
  out.list_name = tables[0].list_name;
  std::size_t rows = 0;
  for (std::size_t k = 0; k < tables.size(); ++k) {
    if (tables[k].width() != tables[0].width() || !std::holds_alternative<Table<float>>(tables[k].values))
      fail(Exit::data, "{}: {} has {} columns, {} has {}; only dense tables of the same width can be concatenated",
           where, files[k], tables[k].width(), files[0], tables[0].width());
    if (tables[k].value_names != tables[0].value_names)
      fail(Exit::data,
           "{}: the columns of {} are not named like those of {}; concatenated tables have "
           "the same columns in the same order",
           where, files[k], files[0]);
    rows += tables[k].rows();
  }
  Matrix<float> values(rows, tables[0].width());
  std::size_t i = 0;
  for (auto& table : tables) {
    const auto& from = std::get<Table<float>>(table.values);
    for (std::size_t r = 0; r < from.rows(); ++r, ++i) std::ranges::copy(from.row(r), values.row(i).begin());
    for (auto [to, own] :
         {std::pair{&out.ids, &table.ids}, {&out.classes, &table.classes}, {&out.tags, &table.tags}})
      to->insert(to->end(), own->begin(), own->end());
  }
  out.values = std::move(values);
  return out;
}

}  // namespace

Names read_names(const std::string& path) {
  if (!path.ends_with(".npy")) return read_lines(path);
  const Array array = read_npy(path);
  if (array.type != Element::text)
    fail(Exit::data, "{}: contains {}, expected strings", path, element_name(array.type));
  return array.text;
}

FlatTable Join::read_files(const TableSpec& spec, const std::string& name) {
  if (spec.files.empty()) fail(Exit::data, "{}: {} names no file", where_, name);
  std::vector<FlatTable> tables;
  for (const auto& file : spec.files) {
    FlatTable table = read_table(file, spec.read.format, spec.read);
    for (const auto& note : table.notes) data_.notes.push_back(fmt::format("{}: {}", file_name(file), note));
    tables.push_back(spec.transpose ? transposed(std::move(table)) : std::move(table));
  }
  FlatTable table = stack(std::move(tables), spec.files, where_);
  ignored_.insert(ignored_.end(), table.ignored.begin(), table.ignored.end());
  if (!spec.ids_file.empty()) {
    table.ids = read_names(spec.ids_file);
    table.has_ids = true;
    table.row_numbers = false;
  }
  if (!table.ids.empty() && table.ids.size() != table.rows())
    fail(Exit::data, "{}: {} has {} rows but {} ids", where_, name, table.rows(), table.ids.size());
  if (!spec.columns_file.empty()) {
    table.value_names = read_names(spec.columns_file);
    if (table.value_names.size() != table.width())
      fail(Exit::data, "{}: {} has {} columns but {} column names", where_, name, table.width(),
           table.value_names.size());
    table.columns.clear();
    for (std::size_t j = 0; j < table.width(); ++j) table.columns.push_back({table.value_names[j], j, 1});
  }
  if (!table.list_name.empty()) list_name_ = table.list_name;
  return table;
}

void Join::add_part(const TableSpec& spec, FlatTable& table, std::string name, std::size_t rows) {
  const bool has_ids = table.has_ids || !table.ids.empty();
  auto numbers = wary_ ? number_columns(table) : std::vector<NumberColumn>();
  parts_.push_back({std::move(name), spec.files[0], rows, std::move(table.ids), has_ids,
                    spec.transpose ? "" : table.id_name, table.id_named, table.row_numbers, spec.transpose,
                    std::move(numbers)});
}

void Join::add_view(const TableSpec& spec) {
  FlatTable table = read_files(spec, fmt::format("view '{}'", spec.name));
  arrays_only_ = arrays_only_ && spec.files[0].ends_with(".npy") && table.source_type == "float32";
  const std::size_t rows = table.rows();
  std::vector<std::size_t> columns(table.column_count());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  if (!spec.use.empty())
    columns = parse_ranges(spec.use, columns.size(), fmt::format("{}: view '{}'", where_, spec.name));
  View view = take_view(table, columns);
  view.name = spec.name;
  std::vector<std::uint8_t> present;
  if (table.source_type == "text") present = settle_empty_cells(view, spec.read.empty, spec.files[0], data_);
  add_part(spec, table, spec.name, rows);
  present_.push_back(std::move(present));
  data_.views.push_back(std::move(view));
}

void Join::add_view(View view, Names ids) {
  const bool has_ids = !ids.empty();
  parts_.push_back({view.name, where_, view.rows(), std::move(ids), has_ids, "", true, false, false, {}});
  present_.emplace_back();
  data_.views.push_back(std::move(view));
}

void Join::add_labels(const TableSpec& spec, const std::string& label_names_file) {
  FlatTable none;
  if (spec.files.size() == 1 && spec.files[0].ends_with(".npy") && spec.read.label_code == "01-unknown") {
    Array array = read_npy(spec.files[0]);  // as we write it: used unchanged
    if (array.type == Element::i8 && array.shape.size() == 2 && !array.column_major) {
      data_.labels = {array.owner,
                      {reinterpret_cast<const std::int8_t*>(array.bytes.data()), array.rows(), array.cols()}};
      data_.label_names = numbered_names("label", array.cols());
      add_part(spec, none, "labels", data_.labels.rows());
    }
  }
  if (data_.labels.empty()) {
    FlatTable table = read_files(spec, "[labels]");
    if (table.labels.empty() && table.classes.empty() && table.tags.empty() &&
        spec.read.label_columns.empty()) {
      table.label_columns.resize(table.column_count());
      std::iota(table.label_columns.begin(), table.label_columns.end(), std::size_t{0});
      if (!spec.use.empty())
        table.label_columns = parse_ranges(spec.use, table.column_count(), where_ + ": [labels]");
      if (table.label_columns.empty()) fail(Exit::data, "{}: [labels] has no columns", where_);
    }
    const auto rest = take_labels(table, spec.read, spec.files[0], data_);
    if (!rest.empty() && spec.use.empty())
      data_.notes.push_back(fmt::format("{}: {} of its columns are not labels and are ignored",
                                        file_name(spec.files[0]), rest.size()));
    add_part(spec, table, "labels", data_.labels.rows());
  }
  if (label_names_file.empty()) return;
  Names names = read_names(label_names_file);
  if (names.size() != data_.labels.cols())
    fail(Exit::data, "{}: {} label names for {} labels", where_, names.size(), data_.labels.cols());
  data_.label_names = std::move(names);
}

// The row of each item in each part; -1 = not there, empty = in the order of the part.
std::vector<std::vector<std::int64_t>> Join::place(const Names& order) {
  const bool any_ids = std::ranges::any_of(parts_, [](const Part& p) { return !p.ids.empty(); });
  std::unordered_map<std::string_view, std::uint32_t> places;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (!places.emplace(order[i], static_cast<std::uint32_t>(i)).second)
      fail(Exit::data, "{}: the id '{}' occurs twice", where_, order[i]);
  std::vector<std::vector<std::int64_t>> rows(parts_.size());
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Part& part = parts_[k];
    if (part.ids.empty()) {
      if (any_ids && order.size() != part.rows)
        fail(Exit::data, "{}: '{}' has {} rows and no ids, so it cannot be joined with the others ({} items)",
             where_, part.name, part.rows, order.size());
      if (part.rows != data_.rows)
        fail(
            Exit::data,
            "{}: '{}' has {} rows, '{}' has {}, and no ids tell which belong together; write a column of ids "
            "into both",
            where_, part.name, part.rows, parts_[0].name, data_.rows);
      continue;
    }
    rows[k].assign(data_.rows, -1);
    for (std::size_t i = 0; i < part.ids.size(); ++i) {
      const auto at = places.find(part.ids[i]);
      if (at == places.end())
        fail(Exit::data, "{}: the id '{}' of '{}' is not in the list of ids", where_, part.ids[i], part.name);
      if (rows[k][at->second] >= 0)
        fail(Exit::data, "{}: the id '{}' occurs twice, in rows {} and {} (from 0)", part.file, part.ids[i],
             rows[k][at->second], i);
      rows[k][at->second] = static_cast<std::int64_t>(i);
    }
    bool same = part.rows == data_.rows;
    for (std::size_t i = 0; i < data_.rows && same; ++i) same = rows[k][i] == static_cast<std::int64_t>(i);
    if (same) rows[k].clear();
  }
  return rows;
}

Dataset Join::finish(Names order, std::optional<std::uint64_t> row_numbers) {
  if (wary_)
    check_ids();
  else if (order.empty() && !row_numbers)
    check_named();
  if (row_numbers) {
    std::uint64_t rows = 0;
    for (const auto& part : parts_) rows += part.rows;
    check_backed(*row_numbers, rows, "rows", where_);
    order = numbered_names("", static_cast<std::size_t>(*row_numbers));
  }
  if (order.empty()) {
    Set seen;
    for (const auto& part : parts_)
      for (const auto& id : part.ids)
        if (seen.insert(id).second) order.push_back(id);
  }
  data_.rows = !order.empty() ? order.size() : parts_.empty() ? 0 : parts_[0].rows;
  const auto rows = place(order);
  bool gaps = std::ranges::any_of(present_, [](const auto& p) { return std::ranges::find(p, 0) != p.end(); });
  const std::size_t m = data_.views.size();
  for (std::size_t v = 0; v < m; ++v) {
    gaps = gaps || std::ranges::find(rows[v], -1) != rows[v].end();
    if (!rows[v].empty()) data_.views[v].features = gather_rows(data_.views[v], rows[v]);
  }
  if (gaps) {
    Matrix<std::uint8_t> W(data_.rows, m);
    for (std::size_t v = 0; v < m; ++v)
      for (std::size_t i = 0; i < data_.rows; ++i) {
        const std::int64_t row = rows[v].empty() ? static_cast<std::int64_t>(i) : rows[v][i];
        W(i, v) =
            row >= 0 && (present_[v].empty() || present_[v][static_cast<std::size_t>(row)] != 0) ? 1 : 0;
      }
    data_.present = std::move(W);
  }
  if (!data_.labels.empty() && !rows.back().empty()) {
    Matrix<std::int8_t> labels(data_.rows, data_.labels.cols());
    for (std::size_t i = 0; i < data_.rows; ++i) {
      const std::int64_t row = rows.back()[i];
      if (row < 0)
        std::ranges::fill(labels.row(i), kUnknown);
      else
        std::ranges::copy(data_.labels.row(static_cast<std::size_t>(row)), labels.row(i).begin());
    }
    data_.labels = std::move(labels);
  }
  if (!row_numbers) data_.ids = std::move(order);
  if (wary_) tell_misspelt();
  return std::move(data_);
}

}  // namespace lacuna
