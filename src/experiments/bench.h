// The experiments: what each asks for (a plan: cells with their places in a table or figure) and how a plan
// is worked off by one process or several.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/options.h"
#include "experiments/cell.h"
#include "experiments/store.h"

namespace lacuna {

enum class Experiment { table, complete, ablation, sensitivity, similarity, timing, missing };
const char* experiment_name(Experiment experiment);

struct BenchOptions {
  std::vector<std::string> data;     // files or folders
  ReadOptions read;                  // how to read all of them
  std::string folds;                 // a folds file, for one data set; empty = made by `mask`
  MaskOptions mask;                  // gaps, split, repetitions, seed
  std::vector<std::string> methods;  // "mtd", "mtd:paper"; empty = the paper's nine, the floor and our own
  std::vector<std::string> set;      // "epochs=20" for every method that has it, "mtd.epochs=20" for one
  std::string settings;              // a file of settings per method and data set; "paper" = the shipped one
  std::int64_t tune = 0;             // trials on validation rows inside each cell, of `tune_methods`
  std::vector<std::string> tune_methods = {"cdmm", "lvsl", "c2ae", "glocal"};
  std::string protocol = "strict";
  std::string out, name;  // the folder; the experiment's name in it (default: its kind)
  bool resume = false, retry_failed = false, keep_scores = false;
  int threads = 0;
  std::string device = "cpu";  // where networks compute; results depend on it
  double level = .05;         // of the significance tests
  std::string metric = "AP";  // of the tests and the figures that show one
  // For single experiments.
  std::vector<double> alphas = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}, betas = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
  std::vector<double> gammas = {1e-3, 1e-2, 1e-1, 1, 10}, sigmas = {0, .1, .2, .25, .3, .4, .5, .6, .7, .8};
  std::vector<double> epochs = {0, 60, 120, 180};
  std::vector<double> rates = {0, .1, .2, .3, .4, .5, .6, .7, .8, .9};

  static BenchOptions defaults(Experiment experiment);
  void declare(Options& options, Experiment experiment);
};

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

Plan make_plan(Experiment experiment, const BenchOptions& options, const std::string& command, Shelf& shelf);

// Writes the plan to DIR/experiments/NAME.json. If there is one already: Exit::usage unless `resume`, and
// Exit::usage naming what differs if it is another plan.
void record_plan(const Plan& plan, const BenchOptions& options, const CellStore& store);

struct BenchProgress {
  std::size_t total = 0, done = 0, failed = 0;
  std::size_t elsewhere = 0;  // run by other processes at the moment
  std::size_t untimed = 0;    // to be run, of a method and data set of which no cell was timed yet
  double seconds_left = 0;    // for the others, the running one included
  bool inside = false;        // `note` tells of a cell that is being run, not of one that ended
  std::string note;
  std::string text() const;  // one line
};

std::string epoch_text(const EpochRecord& record);  // "epoch 12 of 100"

struct BenchOutcome {
  std::size_t done = 0, failed = 0, ran = 0;  // `ran` by this process
};
// Runs a cell that was claimed and stores what came out, be it a failure. Returns what there is to tell.
std::string run_claimed(const Claim& claim, const CellSpec& spec, const BenchOptions& options,
                        CellStore& store, Shelf& shelf, const EpochWatch& watch = {});

// Works until every cell is done or failed, here or in another process. Where `apart` is given it claims,
// runs and stores a cell in a process of its own.
BenchOutcome work_off(const Plan& plan, const BenchOptions& options, CellStore& store, Shelf& shelf,
                      const std::function<void(const BenchProgress&)>& tell,
                      const std::function<void(const PlannedCell&)>& apart = {});

// The methods of the paper's comparison in its order, then the floor and our own network, which stand outside the ranks.
const std::vector<std::string>& default_methods();

// The rows of the ablation: name, settings laid over the base preset.
struct AblationRow {
  const char* name;
  std::map<std::string, std::string> settings;
};
const std::vector<AblationRow>& ablation_rows();

}  // namespace lacuna
