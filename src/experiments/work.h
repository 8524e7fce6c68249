// Runs the cells of a plan, in one process or several.
#pragma once

#include <functional>
#include <string>

#include "experiments/plan.h"
#include "experiments/store.h"

namespace lacuna {

struct BenchProgress {
  std::size_t total = 0, done = 0, failed = 0;
  std::size_t elsewhere = 0;  // cells that other processes or threads are running
  std::size_t untimed = 0;    // open cells of a method and data set without any timed cell
  double seconds_left = 0;    // for the other open cells, including the running one
  bool inside = false;        // `note` is about a running cell, not about one that ended
  std::string note;
  std::string text() const;  // one line
};

std::string epoch_text(const EpochRecord& record);  // "epoch 12 of 100"

struct BenchOutcome {
  std::size_t done = 0, failed = 0, ran = 0;  // distinct cells; `ran` by this process
};
// Runs a claimed cell and stores its result or its failure. Returns a note for the progress.
std::string run_claimed(const Claim& claim, const CellSpec& spec, const BenchOptions& options,
                        CellStore& store, Shelf& shelf, const EpochWatch& watch = {});

// Works until all of these distinct cells are done or failed, here or in another process. Cells of `bench timing` run
// after all others, one at a time; if `apart` is given, it claims, runs and stores them in processes of their own. On a
// GPU several networks run at a time.
BenchOutcome work_off(std::span<const PlannedCell* const> cells, const BenchOptions& options,
                      CellStore& store, Shelf& shelf, const std::function<void(const BenchProgress&)>& tell,
                      const std::function<void(const PlannedCell&)>& apart = {});

}  // namespace lacuna
