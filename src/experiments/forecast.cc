#include "experiments/forecast.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/threads.h"
#include "ops/device.h"

namespace lacuna {

Forecast::Line Forecast::total() const {
  Line sum;
  for (const Line& line : lines) {
    sum.cells += line.cells;
    sum.done += line.done;
    sum.seconds += line.seconds;
    sum.all_seconds += line.all_seconds;
    sum.bytes = std::max(sum.bytes, line.bytes);
  }
  return sum;
}

nlohmann::json Forecast::json() const {
  const auto numbers = [](const Line& line) {
    return nlohmann::json{{"cells", line.cells},
                          {"done", line.done},
                          {"seconds_each", line.each()},
                          {"seconds", line.seconds},
                          {"bytes", line.bytes}};
  };
  nlohmann::json document = numbers(total());
  document["schema"] = "lacuna.forecast.1";
  document["threads"] = threads();
  document["lines"] = nlohmann::json::array();
  for (const Line& line : lines) {
    nlohmann::json entry = numbers(line);
    entry["experiment"] = line.experiment, entry["data"] = line.data, entry["method"] = line.method;
    document["lines"].push_back(std::move(entry));
  }
  return document;
}

std::vector<Cost> cell_costs(std::span<const Plan> plans, Shelf& shelf) {
  std::vector<Cost> found;
  std::set<std::string> seen;
  for (const Plan& plan : plans) {
    std::map<std::string, Cost> costs;  // repetitions of one place are as long as each other
    for (const PlannedCell& cell : plan.cells) {
      if (!seen.insert(cell.id).second) continue;
      nlohmann::json place = cell.place;
      place.erase("fold");
      const auto [cost, fresh] = costs.try_emplace(place.dump());
      if (fresh) cost->second = estimate_cell(cell.spec, shelf);
      found.push_back(cost->second);
    }
  }
  return found;
}

Forecast forecast(std::span<const Plan> plans, const CellStore* store, Shelf& shelf) {
  Forecast all;
  std::set<std::string> seen;
  const auto costs = cell_costs(plans, shelf);
  auto cost = costs.begin();
  for (const Plan& plan : plans) {
    const std::string experiment = experiment_name(plan.experiment);
    for (const PlannedCell& cell : plan.cells) {
      if (!seen.insert(cell.id).second) continue;
      const std::string data = cell.place.at("data"), method = cell.place.at("method");
      auto at = std::find_if(all.lines.begin(), all.lines.end(), [&](const Forecast::Line& line) {
        return line.experiment == experiment && line.data == data && line.method == method;
      });
      if (at == all.lines.end())
        at = all.lines.insert(at, {.experiment = experiment, .data = data, .method = method});
      const bool on_gpu = current_device().cuda && is_network(cell.spec.method);
      const double seconds = cost->core_seconds / (on_gpu ? 1. : static_cast<double>(threads()));
      const bool done = store != nullptr && store->state(cell.id) == CellStore::State::done;
      ++at->cells;
      at->done += done;
      at->seconds += done ? 0 : seconds;
      at->all_seconds += seconds;
      at->bytes = std::max(at->bytes, cost->bytes);
      ++cost;
    }
  }
  return all;
}

}  // namespace lacuna
