#include "data/columns.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/flat_table.h"
#include "data/strips.h"

namespace lacuna {
namespace {

constexpr const char* kKey = "column_names";
using Places = std::unordered_map<std::string_view, std::size_t>;

std::vector<float> means_of(const Selection& train, std::size_t v) {
  constexpr std::size_t kColumns = 256;
  const View& view = train.data->views[v];
  const std::size_t d = view.columns();
  std::vector<double> sum(d), count(d);
  std::vector<float> row(d);
  // Blocks of columns side by side, rows in their order: the same sums with any number of threads.
  if (!view.sparse()) {
    const auto& table = std::get<Table<float>>(view.features);
    for_slabs(view, train.rows, [&](std::size_t first, std::size_t rows) {
      parallel_for(d, kColumns, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = first; i < first + rows; ++i) {
          if (!train.has(i, v)) continue;
          const auto values = table.row(train.rows[i]);
          for (std::size_t j = begin; j < end; ++j)
            if (std::isfinite(values[j])) sum[j] += double{values[j]}, ++count[j];
        }
      });
    });
  } else {
    const auto& csr = std::get<Csr>(view.features);
    double rows = 0;
    for_slabs(view, train.rows, [&](std::size_t first, std::size_t slab) {
      for (std::size_t i = first; i < first + slab; ++i) {
        if (!train.has(i, v)) continue;
        ++rows;
        for (std::uint64_t k = csr.start(0, train.rows[i]); k < csr.start(0, train.rows[i] + 1); ++k)
          sum[csr.index(0, k)] += double{csr.value(0, k)};
      }
    });
    std::ranges::fill(count, rows);
  }
  std::vector<float> means(d);
  for (std::size_t j = 0; j < d; ++j) means[j] = count[j] > 0 ? static_cast<float>(sum[j] / count[j]) : 0.f;
  return means;
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

Places places_of(const std::vector<std::string>& names, const std::string& where) {
  Places places;
  places.reserve(names.size());
  for (std::size_t j = 0; j < names.size(); ++j)
    if (const auto [at, fresh] = places.emplace(names[j], j); !fresh)
      fail(Exit::mismatch,
           "{}: columns {} and {} (from 0) are both called '{}'; columns are matched by name, so give them "
           "different "
           "names",
           where, at->second, j, names[j]);
  return places;
}

// For each column of the model its place in the data; empty = the same order.
std::vector<std::size_t> order_of(const ViewColumns& model, const View& view,
                                  const std::vector<std::string>& ids, const std::string& where) {
  if (model.names.empty() || view.column_names.empty()) return {};
  const Places here = places_of(view.column_names, where),
               known = places_of(model.names, where + ", in the model");
  if (model.names == view.column_names) return {};
  std::vector<std::string> missing, unknown;
  std::vector<std::size_t> order;
  for (const auto& name : model.names) {
    const auto at = here.find(name);
    if (at == here.end()) {
      missing.push_back(name);
    } else {
      order.push_back(at->second);
    }
  }
  for (const auto& name : view.column_names)
    if (!known.contains(name)) unknown.push_back(name);
  if (missing.empty() && unknown.empty()) return order;
  std::string what;
  if (!missing.empty())
    what = fmt::format("missing: {} of the model's {} columns ({})", missing.size(), model.count,
                       some(quoted(missing), 4));
  if (!unknown.empty())
    what += fmt::format("{}unknown to the model: {} of its {} columns ({})", what.empty() ? "" : "; ",
                        unknown.size(), view.columns(), some(quoted(unknown), 4));
  if (!missing.empty() && !unknown.empty()) what += did_you_mean(unknown[0], missing);
  if (!missing.empty() && std::ranges::find(ids, missing[0]) != ids.end())
    what += "; its rows are called as the model's columns are: use --transpose";
  if (missing.empty() && view.source_type == "text")
    what +=
        "; if they contain ids or labels, say so with --id-column or --label-columns; --ignore-columns "
        "leaves "
        "them out";
  fail(Exit::mismatch, "{}: {}", where, what);
}

void reorder(View& view, const std::vector<std::size_t>& order) {
  FlatTable table;
  table.values = view.features;
  table.value_names = view.column_names;
  View changed = take_view(table, order);
  view.features = std::move(changed.features);
  view.column_names = std::move(changed.column_names);
}

}  // namespace

Columns Columns::fit(const Selection& train) {
  Columns columns;
  for (std::size_t v = 0; v < train.data->views.size(); ++v) {
    const View& view = train.data->views[v];
    columns.views_.push_back({view.name, view.columns(), view.column_names, means_of(train, v)});
  }
  return columns;
}

Columns::Match Columns::match(const Dataset& data) const {
  Match match{data, {}, {}};
  std::vector<std::string> known;
  for (const auto& view : views_) known.push_back(view.view);
  const auto knows = [&](const std::string& name) { return std::ranges::find(known, name) != known.end(); };
  if (data.views.size() == 1 && data.views[0].name == kSingleView && !knows(kSingleView)) {
    std::string& name = match.data.views[0].name;
    if (knows(data.name)) {
      name = data.name;
    } else if (known.size() == 1) {
      name = known[0];
      match.notes.push_back(fmt::format("its only view is matched with the model's only view, '{}'", name));
    } else {
      fail(Exit::mismatch,
           "{}: which view of the model is it? Name it with --views NAME, or name the file after it (the "
           "model "
           "has {})",
           data.name, join(known, ", "));
    }
  }
  for (const auto& view : match.data.views)
    if (!knows(view.name)) {
      const auto twin =
          std::ranges::find_if(known, [&](const auto& name) { return same_letters(name, view.name); });
      fail(Exit::mismatch, "{}: the model has no view '{}'{} (it has {})", data.name, view.name,
           twin != known.end()
               ? fmt::format("; did you mean '{}'? Names are case-sensitive", *twin)
               : did_you_mean(view.name, known),
           join(known, ", "));
    }
  for (const ViewColumns& model : views_) {
    const std::size_t at = match.data.view_index(model.view);
    match.source.push_back(at == data.views.size() ? -1 : static_cast<int>(at));
    if (at == data.views.size()) continue;
    View& view = match.data.views[at];
    const std::string where = fmt::format("{}: view '{}'", data.name, view.name);
    const auto order = order_of(model, view, data.ids, where);
    if (view.columns() != model.count)
      fail(Exit::mismatch, "{} has {} columns, the model expects {}", where, view.columns(), model.count);
    if (!order.empty()) {
      reorder(view, order);
      match.notes.push_back(
          fmt::format("view '{}': its {} columns come in another order than in the training data; they are "
                      "matched by name",
                      view.name, model.count));
    } else if (model.names.empty() != view.column_names.empty()) {
      match.notes.push_back(
          fmt::format("view '{}': the columns of {} have no names; its {} columns are matched by position",
                      view.name, model.names.empty() ? "the model" : "the data", model.count));
    }
  }
  if (data.empty_cells) match.data = filled(match.data);
  return match;
}

Dataset Columns::filled(const Dataset& data) const {
  if (!data.empty_cells) return data;
  Dataset out = data;
  out.empty_cells = false;
  for (std::size_t v = 0; v < out.views.size(); ++v) {
    const auto* table = std::get_if<Table<float>>(&out.views[v].features);
    if (table == nullptr) continue;
    const auto model = std::ranges::find(views_, out.views[v].name, &ViewColumns::view);
    if (model == views_.end()) continue;
    if (model->means.size() != table->cols())
      fail(
          Exit::mismatch,
          "{}: view '{}' has empty cells, and the model does not know the means of its training rows (it was "
          "written by an older version); train it again, or use --empty zero",
          data.name, model->view);
    Matrix<float> values(table->rows(), table->cols());
    for (std::size_t i = 0; i < values.rows(); ++i)
      for (std::size_t j = 0; j < values.cols(); ++j)
        values(i, j) = std::isnan((*table)(i, j)) ? model->means[j] : (*table)(i, j);
    out.views[v].features = std::move(values);
  }
  return out;
}

void Columns::save(Tensors& file) const {
  auto names = nlohmann::json::array();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    names.push_back(views_[v].names);
    if (!views_[v].means.empty())
      file.put(fmt::format("columns.{}.means", v), std::span<const float>(views_[v].means));
  }
  file.metadata[kKey] = std::move(names);
}

Columns Columns::load(const Tensors& file, std::vector<ViewColumns> views) {
  Columns columns;
  columns.views_ = std::move(views);
  const bool named = file.metadata.contains(kKey);
  if (named && (!file.metadata[kKey].is_array() || file.metadata[kKey].size() != columns.views_.size()))
    fail(Exit::data, "{}: its metadata '{}' is not a list of {} views", file.path(), kKey,
         columns.views_.size());
  for (std::size_t v = 0; v < columns.views_.size(); ++v) {
    ViewColumns& view = columns.views_[v];
    if (named) view.names = file.metadata[kKey][v].get<std::vector<std::string>>();
    if (!view.names.empty() && view.names.size() != view.count)
      fail(Exit::data, "{}: {} column names for the {} columns of view '{}'", file.path(), view.names.size(),
           view.count, view.view);
    const std::string means = fmt::format("columns.{}.means", v);
    if (!file.has(means)) continue;
    view.means = file.floats(means);
    if (view.means.size() != view.count)
      fail(Exit::data, "{}: tensor '{}' has {} values, view '{}' has {} columns", file.path(), means,
           view.means.size(), view.view, view.count);
  }
  return columns;
}

}  // namespace lacuna
