// The plan of an experiment: its cells, with their places in a table or figure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "experiments/bench.h"
#include "experiments/cell.h"
#include "experiments/store.h"

namespace lacuna {

struct PlannedCell {
  std::string id;
  CellSpec spec;
  nlohmann::json
      place;  // {"data", "method", "fold"} and what else tells it apart: "row", "alpha", "missing_views"
};

struct Plan {
  Experiment experiment = Experiment::table;
  nlohmann::json header;  // what the report needs to know: data sets, methods, options, command
  std::vector<PlannedCell> cells;
  std::vector<std::string> remarks;  // what was left out, and why
};

// Each cell once, where it stands first: one may stand at several places, and in several plans. What is counted
// anywhere are these.
std::vector<const PlannedCell*> distinct_cells(std::span<const Plan> plans);

Plan make_plan(Experiment experiment, const BenchOptions& options, const std::string& command, Shelf& shelf);

// Writes the plan to DIR/experiments/NAME.json. If there is one already: Exit::usage unless `resume`, and
// Exit::usage naming what differs if it is another plan.
void record_plan(const Plan& plan, const BenchOptions& options, const CellStore& store);

// The rows of the ablation: name, settings laid over the base preset.
struct AblationRow {
  const char* name;
  std::map<std::string, std::string> settings;
};
const std::vector<AblationRow>& ablation_rows();

}  // namespace lacuna
