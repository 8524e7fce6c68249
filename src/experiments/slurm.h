// A script for Slurm's sbatch that runs an experiment as an array of tasks, each with a part of the cells.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/shard.h"
#include "experiments/store.h"

namespace lacuna {

struct SlurmOptions {
  std::int64_t tasks = 0;  // of the array; 0 = so many that each takes about an hour
  double margin = 2;       // requested time and memory, divided by the estimate
  void declare(Options& options);
};

struct SlurmJob {
  std::size_t tasks = 1, threads = 1;
  std::size_t cells = 0, done = 0, timed = 0;  // in the array; of them done; left to the last command
  double seconds = 0, longest = 0;  // of the open cells on `threads`; of the task that has most to do
  double bytes = 0;                 // of the largest cell
  double margin = 2;
  bool gpu = false;

  std::string time() const;    // "0-02:35:00"
  std::string memory() const;  // "1200M"
};
// Without a store no cell counts as finished.
SlurmJob plan_job(std::span<const Plan> plans, const SlurmOptions& options, const CellStore* store,
                  Shelf& shelf);

struct SlurmCommand {
  std::string name;     // of the job
  std::string folder;   // where it is started
  std::string program;  // of this process
  std::string words;    // its quoted arguments, "bench table ...", without --threads, --shard, --resume
};
std::string slurm_script(const SlurmJob& job, const SlurmCommand& command);

}  // namespace lacuna
