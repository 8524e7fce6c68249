// Estimated time and memory of the open cells of plans, by the methods' own estimates: `--dry-run`.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "experiments/plan.h"
#include "experiments/store.h"

namespace lacuna {

struct Forecast {
  struct Line {  // the cells of a method on a data set, in the first experiment that has them
    std::string experiment, data, method;
    std::size_t cells = 0, done = 0;  // all; those already finished in the folder
    double seconds = 0;               // of the open ones, on the present threads
    double all_seconds = 0;           // of all of them
    double bytes = 0;                 // of the largest
    double each() const { return cells == 0 ? 0 : all_seconds / static_cast<double>(cells); }
  };
  std::vector<Line> lines;
  Line total() const;
  nlohmann::json json() const;
};
// The estimated cost of each of distinct_cells(plans), in their order.
std::vector<Cost> cell_costs(std::span<const Plan> plans, Shelf& shelf);
// Without a store no cell counts as finished.
Forecast forecast(std::span<const Plan> plans, const CellStore* store, Shelf& shelf);

}  // namespace lacuna
