#include "data/prepare_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna {
namespace {

using ViewMap = Preparation::ViewMap;

bool is_observed(const Selection& train, std::size_t v) {
  for (std::size_t i = 0; i < train.rows.size(); ++i)
    if (train.has(i, v)) return true;
  return false;
}

// What is wrong with a view; "" = nothing.
std::string remark(const ViewMap& map) {
  constexpr float kLeastGain =
      1e-28f;  // below, values meet the bound of what is projected; 0: nothing was found
  if (map.scale.empty()) return "";
  if (std::ranges::all_of(map.scale.row(0), [](float s) { return s == 0; }))
    return fmt::format("view '{}' is the same in all training rows: it says nothing", map.name);
  if (!map.directions.empty() && !(map.gain > kLeastGain))
    return fmt::format(
        "view '{}': its values are too large or too small to be computed with, and it says nothing; "
        "are they codes of missing values (1e20, 3.4e38)? Otherwise scale its columns",
        map.name);
  return "";
}

}  // namespace

std::vector<std::string> check_preparations(const std::vector<Preparation>& preparations,
                                            const Selection& train) {
  std::vector<std::string> remarks;
  for (std::size_t v = 0; v < train.data->views.size(); ++v) {
    std::string text;
    for (const Preparation& preparation : preparations) {
      text = remark(preparation.views()[v]);
      if (text.empty()) break;
    }
    if (!text.empty() && is_observed(train, v)) remarks.push_back(std::move(text));
  }
  return remarks;
}

}  // namespace lacuna
