#include "data/prepare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"

namespace lacuna {
namespace {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> names = {"none", "zscore", "minmax"};
  return names;
}

std::string checked_kind(const std::string& kind, const std::string& where) {
  if (std::find(kinds().begin(), kinds().end(), kind) == kinds().end())
    fail(Exit::usage, "{}: there is no preparation '{}'{} (it is one of {})", where, kind,
         did_you_mean(kind, kinds()), join(kinds(), ", "));
  return kind;
}

// The kind of every view: the common one, then the exceptions "name=kind".
std::vector<std::string> kinds_of_views(const Dataset& data, const PrepareOptions& options) {
  std::vector<std::string> result(data.views.size(), checked_kind(options.kind, "prepare"));
  std::vector<std::string> names;
  for (const auto& view : data.views) names.push_back(view.name);
  for (const auto& entry : options.per_view) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos)
      fail(Exit::usage, "prepare-view: '{}' is not of the form name=kind (timbre=zscore)", entry);
    const std::string name = entry.substr(0, equals);
    const std::size_t at = data.view_index(name);
    if (at == data.views.size())
      fail(Exit::usage, "prepare-view: {} has no view '{}'{} (it has {})", data.name, name,
           did_you_mean(name, names), join(names, ", "));
    result[at] = checked_kind(entry.substr(equals + 1), "prepare-view " + name);
  }
  return result;
}

// Positions in the data of the instances that view v is fitted on.
std::vector<std::uint32_t> fitted_rows(const Selection& train, std::size_t v, bool leaky) {
  std::vector<std::uint32_t> rows;
  if (leaky) {
    for (std::size_t i = 0; i < train.data->rows; ++i)
      if (train.data->has(i, v)) rows.push_back(static_cast<std::uint32_t>(i));
  } else {
    for (std::size_t i = 0; i < train.rows.size(); ++i)
      if (train.has(i, v)) rows.push_back(train.rows[i]);
  }
  return rows;
}

struct Moments {
  std::vector<double> mean, deviation;  // population standard deviation
  std::vector<float> low, high;
};

// Columns are independent; each is summed in the order of the rows, so the bits do not depend on the threads.
Moments moments_dense(const Table<float>& table, const std::vector<std::uint32_t>& rows) {
  const std::size_t d = table.cols();
  const double n = static_cast<double>(rows.size());
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  parallel_for(d, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) m.low[j] = m.high[j] = table(rows[0], j);
    for (const std::uint32_t i : rows) {
      const auto row = table.row(i);
      for (std::size_t j = begin; j < end; ++j) {
        m.mean[j] += static_cast<double>(row[j]);
        m.low[j] = std::min(m.low[j], row[j]);
        m.high[j] = std::max(m.high[j], row[j]);
      }
    }
    for (std::size_t j = begin; j < end; ++j) m.mean[j] /= n;
    for (const std::uint32_t i : rows) {
      const auto row = table.row(i);
      for (std::size_t j = begin; j < end; ++j) {
        const double difference = static_cast<double>(row[j]) - m.mean[j];
        m.deviation[j] += difference * difference;
      }
    }
    for (std::size_t j = begin; j < end; ++j) m.deviation[j] = std::sqrt(m.deviation[j] / n);
  });
  return m;
}

Moments moments_sparse(const Csr& csr, const std::vector<std::uint32_t>& rows) {
  const std::size_t d = csr.columns;
  const double n = static_cast<double>(rows.size());
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  std::vector<std::size_t> count(d);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::fill(m.low.begin(), m.low.end(), kInfinity);
  std::fill(m.high.begin(), m.high.end(), -kInfinity);
  const auto each = [&](auto&& body) {
    for (const std::uint32_t i : rows)
      for (std::uint64_t p = csr.start(0, i); p < csr.start(0, i + 1); ++p)
        body(csr.index(0, p), csr.value(0, p));
  };
  each([&](std::uint32_t j, float x) {
    ++count[j];
    m.mean[j] += static_cast<double>(x);
    m.low[j] = std::min(m.low[j], x);
    m.high[j] = std::max(m.high[j], x);
  });
  for (std::size_t j = 0; j < d; ++j) m.mean[j] /= n;
  each([&](std::uint32_t j, float x) {
    const double difference = static_cast<double>(x) - m.mean[j];
    m.deviation[j] += difference * difference;
  });
  for (std::size_t j = 0; j < d; ++j) {
    const std::size_t zeros = rows.size() - count[j];
    if (zeros > 0) m.low[j] = std::min(m.low[j], 0.f), m.high[j] = std::max(m.high[j], 0.f);
    m.deviation[j] = std::sqrt((m.deviation[j] + static_cast<double>(zeros) * m.mean[j] * m.mean[j]) / n);
  }
  return m;
}

Moments moments(const View& view, const std::vector<std::uint32_t>& rows) {
  if (const auto* table = std::get_if<Table<float>>(&view.features)) return moments_dense(*table, rows);
  return moments_sparse(std::get<Csr>(view.features), rows);
}

Preparation::ViewMap fit_view(const View& view, const std::string& kind,
                              const std::vector<std::uint32_t>& rows) {
  Preparation::ViewMap map;
  map.name = view.name;
  map.kind = kind;
  map.columns = view.columns();
  if (kind == "none") return map;
  map.shift = Matrix<float>(1, map.columns);
  map.scale = Matrix<float>(1, map.columns);
  map.clamp = kind == "minmax";
  if (rows.empty()) return map;  // never seen in training: scale 0 makes it say nothing
  const Moments m = moments(view, rows);
  for (std::size_t j = 0; j < map.columns; ++j) {
    const bool constant = !(m.low[j] < m.high[j]);
    if (kind == "zscore") {
      map.shift(0, j) = static_cast<float>(m.mean[j]);
      map.scale(0, j) = constant ? 0.f : static_cast<float>(1 / m.deviation[j]);
    } else {
      map.shift(0, j) = m.low[j];
      map.scale(0, j) = constant ? 0.f : 1 / (m.high[j] - m.low[j]);
    }
  }
  return map;
}

// One dense raw row to its prepared form, in place.
void transform_row(const Preparation::ViewMap& map, std::span<float> x) {
  if (map.scale.empty()) return;
  const auto shift = map.shift.row(0), scale = map.scale.row(0);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = (x[j] - shift[j]) * scale[j];
  if (map.clamp)
    for (float& value : x) value = std::clamp(value, 0.f, 1.f);
}

}  // namespace

void PrepareOptions::declare(Options& options) {
  options.add("prepare", kind, "preparation of every view").choices(kinds());
  options.add("prepare-view", per_view, "preparation of single views: name=kind").metavar("NAME=KIND");
  options.add("components", components, "at most so many directions (pca, log-pca)")
      .range(1, 65536)
      .symbol("K");
  options.add("leaky-prepare", leaky,
              "fit the preparation on all rows, test rows included, as the authors do");
}

Preparation Preparation::fit(const Selection& train, const PrepareOptions& options) {
  const std::vector<std::string> kind = kinds_of_views(*train.data, options);
  Preparation result;
  for (std::size_t v = 0; v < train.data->views.size(); ++v)
    result.views_.push_back(fit_view(train.data->views[v], kind[v], fitted_rows(train, v, options.leaky)));
  return result;
}

Items Preparation::apply(const Selection& selection, bool with_labels) const {
  std::vector<int> source(views_.size());
  for (std::size_t v = 0; v < source.size(); ++v) source[v] = static_cast<int>(v);
  return apply(selection, source, with_labels);
}

Items Preparation::apply(const Selection& selection, const std::vector<int>& source, bool with_labels) const {
  const Dataset& data = *selection.data;
  const std::size_t n = selection.rows.size(), m = views_.size();
  Items items;
  items.W = Matrix<std::uint8_t>(n, m);
  for (std::size_t v = 0; v < m; ++v) {
    const ViewMap& map = views_[v];
    Matrix<float> X(n, map.width());
    if (source[v] >= 0) {
      const auto from = static_cast<std::size_t>(source[v]);
      const View& view = data.views[from];
      if (view.columns() != map.columns)
        fail(Exit::mismatch, "{}: view '{}' has {} columns, the model expects {}", data.name, view.name,
             view.columns(), map.columns);
      parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          if (!selection.has(i, from)) continue;
          items.W(i, v) = 1;
          view.copy_row(selection.rows[i], X.row(i));
          transform_row(map, X.row(i));
        }
      });
    }
    items.X.push_back(std::move(X));
  }
  if (with_labels && !data.labels.empty()) {
    const std::size_t c = data.label_count();
    items.Y = Matrix<float>(n, c);
    items.G = Matrix<std::uint8_t>(n, c);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        const std::int8_t label = selection.label(i, j);
        items.G(i, j) = label != kUnknown;
        items.Y(i, j) = label == 1 ? 1.f : 0.f;
      }
  }
  return items;
}

void Preparation::save(Tensors& file, const std::string& prefix) const {
  auto list = nlohmann::json::array();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const ViewMap& map = views_[v];
    list.push_back({{"name", map.name},
                    {"kind", map.kind},
                    {"reason", map.reason},
                    {"columns", map.columns},
                    {"log_scale", map.log_scale},
                    {"gain", map.gain},
                    {"clamp", map.clamp}});
    const std::string stem = prefix + std::to_string(v) + ".";
    if (!map.scale.empty()) {
      file.put(stem + "shift", map.shift.view());
      file.put(stem + "scale", map.scale.view());
    }
    if (!map.directions.empty()) file.put(stem + "directions", map.directions.view());
  }
  file.metadata[prefix + "views"] = std::move(list);
}

Preparation Preparation::load(const Tensors& file, const std::string& prefix) {
  Preparation result;
  const std::string key = prefix + "views";
  if (!file.metadata.contains(key) || !file.metadata[key].is_array())
    fail(Exit::data, "{}: its metadata lacks the list '{}'", file.path(), key);
  try {
    for (const auto& entry : file.metadata[key]) {
      ViewMap map;
      map.name = entry.at("name").get<std::string>();
      map.kind = entry.at("kind").get<std::string>();
      map.reason = entry.at("reason").get<std::string>();
      map.columns = entry.at("columns").get<std::size_t>();
      map.log_scale = entry.at("log_scale").get<double>();
      map.gain = entry.at("gain").get<float>();
      map.clamp = entry.at("clamp").get<bool>();
      const std::string stem = prefix + std::to_string(result.views_.size()) + ".";
      const auto check = [&](const Matrix<float>& matrix, const std::string& name, std::size_t rows,
                             std::size_t cols) {
        if (matrix.rows() != rows || (cols != 0 && matrix.cols() != cols))
          fail(Exit::data, "{}: tensor '{}{}' has shape ({}, {}), view '{}' has {} columns", file.path(),
               stem, name, matrix.rows(), matrix.cols(), map.name, map.columns);
      };
      if (file.has(stem + "scale")) {
        map.shift = file.matrix(stem + "shift");
        map.scale = file.matrix(stem + "scale");
        check(map.shift, "shift", 1, map.columns);
        check(map.scale, "scale", 1, map.columns);
      }
      if (file.has(stem + "directions")) {
        map.directions = file.matrix(stem + "directions");
        check(map.directions, "directions", map.columns, 0);
      }
      result.views_.push_back(std::move(map));
    }
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "{}: broken metadata under '{}': {}", file.path(), key, error.what());
  }
  return result;
}

}  // namespace lacuna
