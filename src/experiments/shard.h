// Divides the cells of an experiment into parts, one per process of a grid (`--shard I/N`), which take about the same
// time by the methods' own estimates. Or into two, for a machine with a GPU: networks, and all others.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "experiments/plan.h"
#include "methods/method.h"

namespace lacuna {

struct Shard {
  enum class Of { cells, networks, others };  // networks: the methods that --device applies to
  Of of = Of::cells;
  std::size_t index = 1, count = 1;  // of cells; the first is 1

  // "3/8", or "slurm": from SLURM_ARRAY_TASK_ID, _MIN and _COUNT; "networks", "others". Otherwise Exit::usage with the
  // reason.
  static Shard parse(const std::string& text);
  std::string text() const;
};

// The part of each cell, counted from 1: the longest cells come first, and each goes to the part that has least so far.
// A pure function of its arguments, so processes agree without communication.
std::vector<std::size_t> balanced(const std::vector<double>& seconds, std::size_t parts);

// The plans' distinct cells in parts. Cells of `bench timing` are in none: they run alone, after all others.
struct Sharding {
  std::vector<const PlannedCell*> cells;
  std::vector<Cost> costs;        // of `cells`
  std::vector<std::size_t> part;  // of `cells`
  std::size_t timed = 0;          // cells that were left out
  std::vector<const PlannedCell*> of(const Shard& shard) const;
};
Sharding make_sharding(std::span<const Plan> plans, std::size_t parts, Shelf& shelf);

}  // namespace lacuna
