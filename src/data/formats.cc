#include "data/formats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/flat_table.h"

namespace lacuna {

void find_missing_rows(Dataset& data) {
  Matrix<std::uint8_t> present(data.rows, data.views.size());
  std::size_t found = 0;
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const auto* table = std::get_if<Table<float>>(&data.views[v].features);
    for (std::size_t i = 0; i < data.rows; ++i) {
      present(i, v) = data.has(i, v) ? 1 : 0;
      if (table == nullptr || present(i, v) == 0 || table->cols() == 0 || i >= table->rows()) continue;
      if (std::ranges::all_of(table->row(i), [](float x) { return std::isnan(x); })) {
        present(i, v) = 0;
        ++found;
      }
    }
  }
  if (found == 0) return;
  data.present = std::move(present);
  data.notes.push_back(fmt::format("{} instances contain only NaN and count as missing", found));
}

std::variant<Table<float>, Csr> gather_rows(const View& view, const std::vector<std::int64_t>& rows) {
  if (const auto* csr = std::get_if<Csr>(&view.features)) {
    CsrBuilder builder;
    for (auto row : rows) {
      if (row >= 0)
        for (std::uint64_t k = csr->start(0, static_cast<std::size_t>(row));
             k < csr->start(0, static_cast<std::size_t>(row) + 1); ++k)
          builder.add(csr->index(0, k), csr->value(0, k));
      builder.end_row();
    }
    return builder.finish(csr->columns);
  }
  const auto& table = std::get<Table<float>>(view.features);
  Matrix<float> out(rows.size(), table.cols());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= 0) std::ranges::copy(table.row(static_cast<std::size_t>(rows[i])), out.row(i).begin());
  return Table<float>(std::move(out));
}

Table<float> without_missing(const Dataset& data, std::size_t v) {
  const auto& table = std::get<Table<float>>(data.views[v].features);
  if (data.present.empty() && table.view().stride == table.cols()) return table;
  Matrix<float> copy(table.rows(), table.cols());
  for (std::size_t i = 0; i < table.rows(); ++i)
    if (data.has(i, v)) std::ranges::copy(table.row(i), copy.row(i).begin());
  return copy;
}

bool has_unknown_labels(const Dataset& data) {
  for (std::size_t i = 0; i < data.labels.rows(); ++i)
    if (std::ranges::find(data.labels.row(i), kUnknown) != data.labels.row(i).end()) return true;
  return false;
}

Table<float> labels_as_floats(const Dataset& data) {
  Matrix<float> out(data.labels.rows(), data.labels.cols());
  for (std::size_t i = 0; i < out.rows(); ++i)
    for (std::size_t j = 0; j < out.cols(); ++j)
      out(i, j) = data.labels(i, j) == kUnknown ? std::numeric_limits<float>::quiet_NaN() : data.labels(i, j);
  return out;
}

void hide_unknown(MatrixView<const std::uint8_t> known, Dataset& data, const std::string& where) {
  if (known.rows != data.labels.rows() || known.cols != data.labels.cols())
    fail(Exit::data, "{}: the label mask G is {} x {}, the labels are {} x {}", where, known.rows, known.cols,
         data.labels.rows(), data.labels.cols());
  Matrix<std::int8_t> labels(known.rows, known.cols);
  for (std::size_t i = 0; i < known.rows; ++i)
    for (std::size_t j = 0; j < known.cols; ++j) {
      if (known(i, j) > 1)
        fail(Exit::data, "{}: G at ({}, {}) is {}, expected 0 or 1", where, i, j, known(i, j));
      labels(i, j) = known(i, j) != 0 ? data.labels(i, j) : kUnknown;
    }
  data.labels = std::move(labels);
}

}  // namespace lacuna
