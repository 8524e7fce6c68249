// Every table and figure of the paper that introduced MTD, as experiments in one folder: `lacuna bench paper`.
#pragma once

#include <string>
#include <vector>

#include "experiments/plan.h"

namespace lacuna {

struct PaperOptions {
  BenchOptions bench;              // common to all parts
  std::int64_t study_repeats = 3;  // repetitions of the studies of single weights
  bool quick =
      false;  // few epochs of narrow networks, small grids, one repetition: everything once, in minutes

  PaperOptions();
  void declare(Options& options);
  void settle(Options& options);  // after parsing: applies --quick to options that were not given
};

// Table 1, the radar on complete data, table 2, the studies of alpha x beta, gamma and the mask rate, the channels'
// similarity by epoch, the times.
std::vector<Plan> paper_plans(const PaperOptions& options, const std::string& command, Shelf& shelf);

}  // namespace lacuna
