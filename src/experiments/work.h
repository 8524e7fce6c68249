// Runs the cells of a plan, in one process or several.
#pragma once

#include <functional>
#include <string>

#include "experiments/plan.h"
#include "experiments/store.h"

namespace lacuna {

struct BenchProgress {
  std::size_t total = 0, done = 0, failed = 0;
  std::size_t elsewhere = 0;  // run by other processes or threads at the moment
  std::size_t untimed = 0;    // to be run, of a method and data set of which no cell was timed yet
  double seconds_left = 0;    // for the others, the running one included
  bool inside = false;        // `note` tells of a cell that is being run, not of one that ended
  std::string note;
  std::string text() const;  // one line
};

std::string epoch_text(const EpochRecord& record);  // "epoch 12 of 100"

struct BenchOutcome {
  std::size_t done = 0, failed = 0, ran = 0;  // distinct cells; `ran` by this process
};
// Runs a cell that was claimed and stores what came out, be it a failure. Returns what there is to tell.
std::string run_claimed(const Claim& claim, const CellSpec& spec, const BenchOptions& options,
                        CellStore& store, Shelf& shelf, const EpochWatch& watch = {});

// Works until every one of these distinct cells is done or failed, here or in another process. Cells that are to be timed come
// after all others have ended, one at a time, and where `apart` is given it claims, runs and stores them in processes of their own.
// Networks on a GPU run several at a time.
BenchOutcome work_off(std::span<const PlannedCell* const> cells, const BenchOptions& options,
                      CellStore& store, Shelf& shelf, const std::function<void(const BenchProgress&)>& tell,
                      const std::function<void(const PlannedCell&)>& apart = {});

}  // namespace lacuna
