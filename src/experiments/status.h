// Progress of the experiments in a folder, from its contents alone: `lacuna bench status`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/store.h"

namespace lacuna {

struct GridStatus {
  struct Count {
    std::string name;  // of the experiment
    std::size_t cells = 0, done = 0, running = 0, failed = 0;
    std::size_t stale = 0;  // claimed by a process that is gone; the next process takes them over
    std::size_t open = 0;
    nlohmann::json json() const;
  };
  struct Entry {
    std::string id, what;  // "mtd:authors on corel5k, repetition 3"
    Owner owner;           // of a running or stale one
    std::string error;     // of a failed one
  };
  std::vector<Count> experiments;  // a cell that belongs to several counts in each
  Count total;                     // each cell once
  std::vector<Entry> running, stale, failed;
  double per_hour = 0;  // cells that were finished in the last hour, or since the first began if that is less
  double seconds_left =
      0;  // from the mean of finished cells of the same method and data, including running cells
  std::size_t untimed = 0;  // unfinished cells of a method and data set without any finished cell
  nlohmann::json json() const;
  std::string text() const;
};

GridStatus grid_status(const CellStore& store);

}  // namespace lacuna
