#include "experiments/shard.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <queue>

#include "base/error.h"
#include "base/text.h"
#include "experiments/forecast.h"

namespace lacuna {
namespace {

constexpr std::int64_t kMost = 1000000;
constexpr double kPerCell =
    .05;  // seconds to claim and to store one; else all that take nothing would be in one part

constexpr const char* kNetworks = "networks";
constexpr const char* kOthers = "others";

std::int64_t slurm_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr)
    fail(Exit::usage,
         "--shard slurm: {} is not set; start it by sbatch --array=1-N, or give --shard I/N yourself", name);
  const auto number = parse_int(text);
  if (!number || *number < 0) fail(Exit::usage, "--shard slurm: {} is '{}', not a number", name, text);
  return *number;
}

Shard slurm_shard() {
  const std::int64_t id = slurm_number("SLURM_ARRAY_TASK_ID"), first = slurm_number("SLURM_ARRAY_TASK_MIN"),
                     count = slurm_number("SLURM_ARRAY_TASK_COUNT");
  // With gaps between the numbers (--array=1,5 or 1-9:2) some parts would belong to nobody.
  if (id < first || id - first >= count || slurm_number("SLURM_ARRAY_TASK_MAX") - first + 1 != count)
    fail(Exit::usage,
         "--shard slurm: task {} of {} tasks that begin at {} and end at {}: the numbers of the array have "
         "gaps; give --shard \"$SLURM_ARRAY_TASK_ID/N\" with N of the whole array",
         id, count, first, slurm_number("SLURM_ARRAY_TASK_MAX"));
  return {.index = static_cast<std::size_t>(id - first + 1), .count = static_cast<std::size_t>(count)};
}

}  // namespace

Shard Shard::parse(const std::string& text) {
  if (text == "slurm") return slurm_shard();
  if (text == kNetworks) return {.of = Of::networks};
  if (text == kOthers) return {.of = Of::others};
  const auto slash = text.find('/');
  const auto index = parse_int(text.substr(0, slash));
  const auto count = slash == std::string::npos ? std::nullopt : parse_int(text.substr(slash + 1));
  if (!index || !count || *count < 1 || *count > kMost || *index < 1 || *index > *count)
    fail(Exit::usage, "--shard '{}' is not I/N, with I from 1 to N, nor slurm, {} or {}", text, kNetworks,
         kOthers);
  return {.index = static_cast<std::size_t>(*index), .count = static_cast<std::size_t>(*count)};
}

std::string Shard::text() const {
  return of == Of::networks ? kNetworks : of == Of::others ? kOthers : fmt::format("{}/{}", index, count);
}

std::vector<std::size_t> balanced(const std::vector<double>& seconds, std::size_t parts) {
  std::vector<std::size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
  using Load = std::pair<double, std::size_t>;  // seconds so far, part
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::size_t k = 1; k <= std::min(parts, seconds.size()); ++k) loads.emplace(0, k);
  std::vector<std::size_t> part(seconds.size());
  for (const std::size_t i : order) {
    auto [load, k] = loads.top();
    loads.pop();
    part[i] = k;
    loads.emplace(load + seconds[i], k);
  }
  return part;
}

std::vector<const PlannedCell*> Sharding::of(const Shard& shard) const {
  std::vector<const PlannedCell*> found;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool ours = shard.of == Shard::Of::cells
                          ? part[i] == shard.index
                          : is_network(cells[i]->spec.method) == (shard.of == Shard::Of::networks);
    if (ours) found.push_back(cells[i]);
  }
  return found;
}

Sharding make_sharding(std::span<const Plan> plans, std::size_t parts, Shelf& shelf) {
  Sharding result;
  const auto all = distinct_cells(plans);
  const auto costs = cell_costs(plans, shelf);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->spec.task == Task::timing) {
      ++result.timed;
      continue;
    }
    result.cells.push_back(all[i]);
    result.costs.push_back(costs[i]);
    seconds.push_back(costs[i].core_seconds + kPerCell);
  }
  result.part = balanced(seconds, parts);
  return result;
}

}  // namespace lacuna
