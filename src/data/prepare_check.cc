#include "data/prepare_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/text.h"

namespace lacuna {
namespace {

using ViewMap = Preparation::ViewMap;

bool is_observed(const Selection& train, std::size_t v) {
  for (std::size_t i = 0; i < train.rows.size(); ++i)
    if (train.has(i, v)) return true;
  return false;
}

// How much of all that varies lies along the first direction, of those that are kept.
double share_of_first(const ViewMap& map) {
  std::vector<double> spread;
  for (std::size_t k = 0; k < map.variances.size(); ++k) {
    double squares = 0;  // 1, or less where it was whitened
    for (std::size_t j = 0; j < map.directions.rows(); ++j)
      squares += static_cast<double>(map.directions(j, k)) * static_cast<double>(map.directions(j, k));
    spread.push_back(static_cast<double>(map.variances[k]) * squares);
  }
  return spread.empty() ? 0 : spread[0] / std::accumulate(spread.begin(), spread.end(), 0.);
}

// The columns of which the first direction is made, the largest first.
std::vector<std::size_t> columns_of_first(const ViewMap& map) {
  constexpr double kMost = .99;
  std::vector<double> squares(map.directions.rows());
  for (std::size_t j = 0; j < squares.size(); ++j)
    squares[j] = static_cast<double>(map.directions(j, 0)) * static_cast<double>(map.directions(j, 0));
  const double all = std::accumulate(squares.begin(), squares.end(), 0.);
  std::vector<std::size_t> order(squares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t j) { return squares[j]; });
  double sum = 0;
  std::size_t count = 0;
  while (count < order.size() && sum < kMost * all) sum += squares[order[count++]];
  order.resize(count);
  return order;
}

// What is wrong with a view; "" = nothing.
std::string remark(const ViewMap& map, const View& view) {
  constexpr float kLeastGain = 1e-28f;  // below, values meet the bound of what is projected; 0: nothing was found
  constexpr double kHides = .99;  // share of the first direction
  constexpr std::size_t kFew = 10;  // a tenth of the columns
  if (map.scale.empty()) return "";
  const auto scale = map.scale.row(0);
  const auto varying = static_cast<std::size_t>(std::ranges::count_if(scale, [](float s) { return s != 0; }));
  if (varying == 0) return fmt::format("view '{}' is the same in all training rows: it says nothing", map.name);
  if (map.directions.empty()) return "";
  if (!(map.gain > kLeastGain))
    return fmt::format("view '{}': its values are too large or too small to be computed with, and it says nothing; "
                       "are they codes of missing values (1e20, 3.4e38)? Otherwise scale its columns",
                       map.name);
  if (varying < 2 || share_of_first(map) < kHides) return "";
  const std::vector<std::size_t> columns = columns_of_first(map);
  if (columns.size() > 1 && columns.size() * kFew > varying) return "";
  std::vector<std::string> names;
  for (const std::size_t j : columns)
    names.push_back(view.column_names.empty() ? std::to_string(j) : "'" + view.column_names[j] + "'");
  return fmt::format("view '{0}': {1} {2} ({3}) {4} so much larger than the others that these hardly count; "
                     "--prepare-view '{0}=zscore' puts all columns on one scale",
                     map.name, columns.size(), columns.size() == 1 ? "column" : "columns", some(names, 3),
                     columns.size() == 1 ? "is" : "are");
}

}  // namespace

std::vector<std::string> check_preparations(const std::vector<Preparation>& preparations, const Selection& train) {
  std::vector<std::string> remarks;
  for (std::size_t v = 0; v < train.data->views.size(); ++v) {
    std::string text;
    for (const Preparation& preparation : preparations) {
      text = remark(preparation.views()[v], train.data->views[v]);
      if (text.empty()) break;
    }
    if (!text.empty() && is_observed(train, v)) remarks.push_back(std::move(text));
  }
  return remarks;
}

}  // namespace lacuna
