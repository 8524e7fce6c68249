// .mat as a data set, in the layouts that people publish:
//   X, view or data: a cell array with one matrix per view (or one matrix: one view)
//   label, Y, target or gt: n x c numbers; one column with more than two values holds classes
//   view_name(s), label_name(s), ids, column_names, name, source, licence: texts    W, G: masks
// Items may be rows or columns; the matching sizes decide, and if both fit, items are rows.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/formats.h"
#include "data/labels.h"
#include "data/mat.h"
#include "data/names.h"

namespace lacuna {
namespace {

const MatValue* find_any(std::span<const MatValue> values, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const MatValue* value = find_value(values, name)) return value;
  return nullptr;
}

// A name that could be meant as well is named: nothing is chosen silently.
const MatValue* find_one(std::span<const MatValue> values, std::initializer_list<const char*> names,
                         const char* what, Dataset& data) {
  const MatValue* const found = find_any(values, names);
  for (const char* name : names)
    if (const MatValue* other = find_value(values, name); other != nullptr && other != found)
      data.notes.push_back(
          fmt::format("{} are taken from the variable '{}'; '{}' is ignored", what, found->name, name));
  return found;
}

// Texts of a char array (one per row) or of a cell array of texts; numbers as they print.
std::vector<std::string> texts(const MatValue* value, const std::string& where) {
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (value->type == "char") {
    for (const auto& row : value->text) out.emplace_back(trim(row));
  } else if (value->type == "cell") {
    for (const auto& cell : value->cells) out.push_back(cell.text.empty() ? "" : cell.text[0]);
  } else {
    constexpr float kExact = 16777216;  // what lay here as float64 may have been another number from here on
    for (std::size_t i = 0; i < value->values.rows(); ++i)
      for (float x : value->values.row(i)) {
        if (std::abs(x) >= kExact && value->type == "float64")
          fail(Exit::data,
               "{}: '{}' contains a number of about {}, of which float32 does not hold every digit; store it as "
               "text (cellstr(string(ids)) in MATLAB)",
               where, value->name, x);
        out.push_back(fmt::format("{}", x));
      }
  }
  return out;
}

std::string single_text(std::span<const MatValue> values, const char* name) {
  const MatValue* value = find_value(values, name);
  return value != nullptr && value->text.size() == 1 ? value->text[0] : "";
}

View as_view(MatValue&& value, bool transpose) {
  View view;
  view.source_type = value.type == "sparse" ? "float64" : value.type;
  if (value.sparse) {
    view.features = transpose ? transposed(*value.sparse) : std::move(*value.sparse);
  } else {
    view.features = transpose ? transposed(value.values) : std::move(value.values);
  }
  return view;
}

bool is_matrix(const MatValue& value) {
  return value.shape.size() == 2 && value.numeric();
}

// Whether views and labels lie with items as rows; decided by which sizes agree.
struct Orientation {
  bool views_transposed = false, labels_transposed = false;
};

Orientation find_orientation(const std::vector<MatValue>& views, const MatValue* label,
                             const std::string& where, std::vector<std::string>& notes) {
  const auto agree = [&](Orientation o) {
    const std::size_t view_axis = o.views_transposed ? 1 : 0, label_axis = o.labels_transposed ? 1 : 0;
    const std::uint64_t n = label != nullptr ? label->shape[label_axis]
                            : views.empty()  ? 0
                                             : views[0].shape[view_axis];
    return std::ranges::all_of(views, [&](const MatValue& v) { return v.shape[view_axis] == n; });
  };
  for (const Orientation o : {Orientation{false, false}, {true, true}, {false, true}, {true, false}})
    if (agree(o)) {
      // Labels lie one way, and square views could lie either way.
      if (label != nullptr && label->shape[0] != label->shape[1] && !views.empty() &&
          agree({!o.views_transposed, o.labels_transposed}))
        notes.push_back(fmt::format("warning: its views are square; items are taken for their {0}, as they are {0} of "
                                    "'{1}'; otherwise transpose the views",
                                    o.views_transposed ? "columns" : "rows", label->name));
      return o;
    }
  std::vector<std::string> sizes;
  for (const auto& view : views) sizes.push_back(fmt::format("{} x {}", view.shape[0], view.shape[1]));
  fail(Exit::data, "{}: the views ({}) and the labels ({}) have no number of items in common", where,
       join(sizes, ", "),
       label == nullptr ? "none" : fmt::format("{} x {}", label->shape[0], label->shape[1]));
}

void read_labels(const MatValue& label, bool transpose, const ReadOptions& options, const std::string& where,
                 Dataset& data) {
  Table<float> values = label.values;
  if (label.sparse) {
    View view = as_view(MatValue(label), false);
    Matrix<float> full(view.rows(), view.columns());
    for (std::size_t i = 0; i < full.rows(); ++i) view.copy_row(i, full.row(i));
    values = std::move(full);
  }
  if (transpose) values = transposed(values);
  std::set<float> different;
  if (values.cols() == 1 && (options.label_code == "auto" || options.label_code == "any"))
    for (std::size_t i = 0; i < values.rows() && different.size() <= 3; ++i)
      if (!std::isnan(values(i, 0))) different.insert(values(i, 0));
  if (std::ranges::any_of(different, [](float x) { return x > 1 && x == std::floor(x); })) {
    std::vector<std::string> classes;
    for (std::size_t i = 0; i < values.rows(); ++i)
      classes.push_back(std::isnan(values(i, 0)) ? "" : fmt::format("{}", values(i, 0)));
    one_hot_labels(classes, data);
    data.notes.push_back(fmt::format("'{}' contains one class per row; {} classes became labels", label.name,
                                     data.label_names.size()));
    return;
  }
  data.labels = decode_labels(values, options.label_code, where);
  data.label_names = numbered_names("label", data.labels.cols());
}

Matrix<std::uint8_t> mask(const MatValue& value, std::size_t rows, const std::string& where) {
  const Table<float> values = value.values.rows() == rows ? value.values : transposed(value.values);
  Matrix<std::uint8_t> out(values.rows(), values.cols());
  for (std::size_t i = 0; i < out.rows(); ++i)
    for (std::size_t j = 0; j < out.cols(); ++j) {
      if (values(i, j) != 0 && values(i, j) != 1)
        fail(Exit::data, "{}: '{}' at ({}, {}) is {}, expected 0 or 1", where, value.name, i, j,
             values(i, j));
      out(i, j) = values(i, j) != 0 ? 1 : 0;
    }
  return out;
}

}  // namespace

Dataset read_mat_dataset(const std::string& path, const ReadOptions& options) {
  std::vector<MatValue> values =
      read_mat(path, {"X", "view", "data", "label", "Y", "target", "gt", "W", "G", "view_name", "view_names",
                      "label_name", "label_names", "ids", "name", "source", "licence", "column_names"});
  Dataset data;
  std::vector<MatValue> views;
  const MatValue* cell = find_one(values, {"X", "view", "data"}, "views", data);
  if (cell != nullptr) {
    auto& source = const_cast<MatValue&>(*cell);  // ours, and taken apart here
    if (source.type == "cell") {
      views = std::move(source.cells);
    } else {
      views.push_back(std::move(source));
    }
  }
  for (const auto& view : views)
    if (!is_matrix(view))
      fail(Exit::data, "{}: '{}' is {} of {}, expected a matrix of numbers", path, view.name, view.type,
           view.shape.empty() ? "no size" : fmt::format("{} x {}", view.shape[0], view.shape[1]));
  const MatValue* label = find_one(values, {"label", "Y", "target", "gt"}, "labels", data);
  if (label != nullptr && !is_matrix(*label))
    fail(Exit::data, "{}: '{}' is {}, expected a matrix of numbers", path, label->name, label->type);
  if (cell == nullptr && label == nullptr)
    fail(Exit::data, "{}: has none of the variables X, view, data (views) and label, Y, target, gt (labels)",
         path);
  const Orientation o = find_orientation(views, label, path, data.notes);
  const auto names = texts(find_any(values, {"view_name", "view_names"}), path);
  if (!names.empty() && names.size() != views.size())
    fail(Exit::data, "{}: {} view names for {} views", path, names.size(), views.size());
  const MatValue* column_names = find_value(values, "column_names");
  for (std::size_t v = 0; v < views.size(); ++v) {
    View view = as_view(std::move(views[v]), o.views_transposed);
    view.name = names.empty() ? fmt::format("view{}", v) : names[v];
    if (column_names != nullptr && column_names->cells.size() == views.size())
      view.column_names = texts(&column_names->cells[v], path);
    data.rows = view.rows();
    data.views.push_back(std::move(view));
  }
  if (label != nullptr) {
    read_labels(*label, o.labels_transposed, options, path, data);
    if (data.views.empty()) data.rows = data.labels.rows();
  }
  const auto label_names = texts(find_any(values, {"label_name", "label_names"}), path);
  if (!label_names.empty()) data.label_names = label_names;
  if (const MatValue* known = find_value(values, "G"))
    hide_unknown(mask(*known, data.rows, path), data, path);
  if (const MatValue* present = find_value(values, "W")) data.present = mask(*present, data.rows, path);
  data.ids = texts(find_value(values, "ids"), path);
  data.name = single_text(values, "name");
  data.source = single_text(values, "source");
  data.licence = single_text(values, "licence");
  if (label_names.empty() && label != nullptr && label->shape[o.labels_transposed ? 0 : 1] > 1)
    find_label_names(path, options, data);
  return data;
}

void write_mat_dataset(const Dataset& data, const std::string& path) {
  std::vector<MatValue> values, cells, columns;
  std::vector<std::string> names;
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const View& view = data.views[v];
    names.push_back(view.name);
    if (const auto* csr = std::get_if<Csr>(&view.features)) {
      MatValue cell{.name = "", .type = "sparse", .shape = {data.rows, csr->columns}};
      cell.sparse = *csr;
      cells.push_back(std::move(cell));
    } else {
      cells.push_back(mat_matrix("", without_missing(data, v)));
    }
    columns.push_back(mat_texts("", view.column_names));
  }
  if (!cells.empty()) {
    values.push_back(mat_cell("X", std::move(cells)));
    values.push_back(mat_texts("view_name", names));
    if (std::ranges::any_of(data.views, [](const View& v) { return !v.column_names.empty(); }))
      values.push_back(mat_cell("column_names", std::move(columns)));
  }
  if (!data.labels.empty()) {
    values.push_back(
        mat_matrix("label", labels_as_floats(data), has_unknown_labels(data) ? "float32" : "uint8"));
    values.push_back(mat_texts("label_name", data.label_names));
  }
  if (!data.present.empty()) {
    Matrix<float> present(data.present.rows(), data.present.cols());
    for (std::size_t i = 0; i < present.rows(); ++i)
      std::ranges::copy(data.present.row(i), present.row(i).begin());
    values.push_back(mat_matrix("W", std::move(present), "uint8"));
  }
  if (!data.ids.empty()) values.push_back(mat_texts("ids", data.ids));
  for (const auto& [key, text] :
       {std::pair{"name", &data.name}, {"source", &data.source}, {"licence", &data.licence}})
    if (!text->empty()) values.push_back(mat_text(key, *text));
  write_mat(path, values);
}

}  // namespace lacuna
