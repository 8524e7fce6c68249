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
      place;  // {"data", "method", "fold"} and further coordinates: "row", "alpha", "missing_views"
};

struct Plan {
  Experiment experiment = Experiment::table;
  nlohmann::json header;  // for the report: data sets, methods, options, command
  std::vector<PlannedCell> cells;
  std::vector<std::string> remarks;  // what was left out, and why
};

// Each cell once, at its first place: a cell may have several places, and belong to several plans. All counts are of
// these.
std::vector<const PlannedCell*> distinct_cells(std::span<const Plan> plans);

Plan make_plan(Experiment experiment, const BenchOptions& options, const std::string& command, Shelf& shelf);

// Writes the plan to DIR/experiments/NAME.json. If there is one already, Exit::usage unless `resume`; if that is a
// different plan, Exit::usage naming the difference.
void record_plan(const Plan& plan, const BenchOptions& options, const CellStore& store);

// The rows of the ablation: name, and settings applied after the base preset.
struct AblationRow {
  const char* name;
  std::map<std::string, std::string> settings;
};
const std::vector<AblationRow>& ablation_rows();

}  // namespace lacuna
