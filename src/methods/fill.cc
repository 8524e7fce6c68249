// Model::recover: puts recovered views into a data set like the user's.
#include <algorithm>

#include "base/error.h"
#include "data/release.h"
#include "methods/model.h"

namespace lacuna {
namespace {

// Rows of a view, dense or sparse as the data has it; row(i) gives the values of row i, or none where it is missing.
template <class Row>
std::variant<Table<float>, Csr> gathered(std::size_t n, std::size_t columns, bool sparse, Row&& row) {
  if (!sparse) {
    Matrix<float> table(n, columns);
    for (std::size_t i = 0; i < n; ++i) {
      const std::span<const float> values = row(i);
      std::ranges::copy(values, table.row(i).begin());
    }
    return Table<float>(std::move(table));
  }
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  Matrix<std::uint64_t> start(1, n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const float> values = row(i);
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (values[j] == 0) continue;
      index.push_back(static_cast<std::uint32_t>(j));
      value.push_back(values[j]);
    }
    start(0, i + 1) = index.size();
  }
  Matrix<std::uint32_t> indices(1, index.size());
  Matrix<float> values(1, value.size());
  std::ranges::copy(index, indices.data());
  std::ranges::copy(value, values.data());
  return Csr{std::move(start), std::move(indices), std::move(values), columns};
}

// Names, ids and labels of the rows, without views.
Dataset shell(const Selection& rows) {
  const Dataset& data = *rows.data;
  Dataset result;
  result.name = data.name;
  result.source = data.source;
  result.licence = data.licence;
  result.rows = rows.rows.size();
  for (const std::uint32_t i : rows.rows)
    if (!data.ids.empty()) result.ids.push_back(data.ids[i]);
  return result;
}

// The model's views in the order of the data, then those that it lacks.
std::vector<std::size_t> order_of(const std::vector<int>& source) {
  std::vector<std::size_t> order(source.size());
  for (std::size_t v = 0; v < order.size(); ++v) order[v] = v;
  std::ranges::stable_sort(order, {}, [&](std::size_t v) { return static_cast<unsigned>(source[v]); });
  return order;
}

Filled filled(const Selection& rows, const std::vector<int>& source, const Columns& columns,
              const RecoveredViews& found) {
  const Dataset& data = *rows.data;
  const std::size_t n = rows.rows.size(), m = source.size();
  Filled result{shell(rows), shell(rows)};
  if (!data.labels.empty()) {
    Matrix<std::int8_t> labels(n, data.label_count());
    for (std::size_t i = 0; i < n; ++i)
      std::ranges::copy(data.labels.row(rows.rows[i]), labels.row(i).begin());
    result.data.labels = std::move(labels);
    result.data.label_names = data.label_names;
  }
  Matrix<std::uint8_t> present(n, m);
  std::vector<float> raw;
  for (const std::size_t v : order_of(source)) {
    const ViewColumns& own = columns.views()[v];
    const View* view = source[v] < 0 ? nullptr : &data.views[static_cast<std::size_t>(source[v])];
    const bool sparse = view != nullptr && view->sparse();
    raw.resize(own.count);
    const auto value = [&](std::size_t i) -> std::span<const float> {
      if (found.any[i] == 0) return {};
      if (found.there(i, v) == 0) return found.values[v].row(i);
      view->copy_row(rows.rows[i], raw);
      return raw;
    };
    const auto deviation = [&](std::size_t i) { return std::span<const float>(found.deviations[v].row(i)); };
    View values{own.view, gathered(n, own.count, sparse, value), own.names,
                view != nullptr ? view->source_type : "float32"};
    if (values.column_names.empty() && view != nullptr) values.column_names = view->column_names;
    View deviations{own.view, gathered(n, own.count, false, deviation), values.column_names};
    for (std::size_t i = 0; i < n; ++i) {
      present(i, result.data.views.size()) = found.any[i];
      const bool was_missing = found.any[i] != 0 && found.there(i, v) == 0;
      result.recovered += was_missing;
      if (was_missing) values.source_type = "float32";
    }
    result.data.views.push_back(std::move(values));
    result.deviations.views.push_back(std::move(deviations));
  }
  for (const std::uint8_t any : found.any) result.without_view += any == 0;
  if (result.without_view > 0) {
    Matrix<std::uint8_t> copy = present;
    result.data.present = std::move(copy);
    result.deviations.present = std::move(present);
  }
  return result;
}

}  // namespace

void Model::recover(const Selection& selection, FilledSink sink) const {
  recover_blocks(selection, Recovery::kBlock, sink);  // bounds the memory of raw columns
}

void Model::recover_blocks(const Selection& selection, std::size_t size, FilledSink sink) const {
  if (recovery_.empty())
    fail(Exit::mismatch,
         "the model has no decoders, so it cannot recover views; train it again with --keep-decoders");
  const Columns::Match match = columns_.match(*selection.data);
  Selection block{&match.data, selection.fold, {}, selection.hide_labels};
  for (std::size_t begin = 0; begin < selection.rows.size(); begin += size) {
    const std::size_t count = std::min(size, selection.rows.size() - begin);
    const auto first = selection.rows.begin() + static_cast<std::ptrdiff_t>(begin);
    block.rows.assign(first, first + static_cast<std::ptrdiff_t>(count));
    sink(begin, filled(block, match.source, columns_, recovery_.recover(block, match.source)));
    if (block.rows.back() - block.rows.front() + 1 == count)  // rows in the order of the file
      for (const auto& view : match.data.views) release_rows(view, block.rows.front(), count);
  }
}

Filled Model::recover(const Selection& selection) const {
  Filled whole;
  recover_blocks(selection, selection.rows.size(),
                 [&](std::size_t, Filled&& block) { whole = std::move(block); });
  return whole;
}

}  // namespace lacuna
