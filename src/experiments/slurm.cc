#include "experiments/slurm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"

namespace lacuna {
namespace {

constexpr double kTaskSeconds = 3600;     // of a task where nothing is said about their number
constexpr double kStartSeconds = 5 * 60;  // to start, and to read the data from a busy file server
constexpr double kProgramBytes = 256e6;   // the program, its tables, what libraries keep

}  // namespace

void SlurmOptions::declare(Options& o) {
  const auto group = o.group("the job");
  o.add("tasks", tasks, "tasks of the array; 0 = about one hour each")
      .range(0, 1e6)
      .metavar("N")
      .common();
  o.add("margin", margin, "request this many times the estimated time and memory").range(1, 100).common();
}

std::string SlurmJob::time() const {
  const auto minutes = static_cast<std::int64_t>(std::ceil((margin * longest + kStartSeconds) / 60));
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

std::string SlurmJob::memory() const {
  return fmt::format("{}M", static_cast<std::int64_t>(std::ceil((margin * bytes + kProgramBytes) / 1e6)));
}

SlurmJob plan_job(std::span<const Plan> plans, const SlurmOptions& options, const CellStore* store,
                  Shelf& shelf) {
  SlurmJob job;
  job.threads = static_cast<std::size_t>(threads());
  job.margin = options.margin;
  Sharding parts = make_sharding(plans, 1, shelf);
  job.cells = parts.cells.size(), job.timed = parts.timed;
  std::vector<double> seconds;  // of what is open
  for (std::size_t i = 0; i < job.cells; ++i) {
    const bool done = store != nullptr && store->state(parts.cells[i]->id) == CellStore::State::done;
    job.done += done;
    seconds.push_back(done ? 0 : parts.costs[i].core_seconds / static_cast<double>(job.threads));
    job.seconds += seconds.back();
    if (!done) job.bytes = std::max(job.bytes, parts.costs[i].bytes);
  }
  const double wanted =
      options.tasks > 0 ? static_cast<double>(options.tasks) : std::ceil(job.seconds / kTaskSeconds);
  job.tasks = static_cast<std::size_t>(std::clamp(wanted, 1., std::max(1., static_cast<double>(job.cells))));
  // As --shard will cut them: by all cells, those that are done included.
  parts = make_sharding(plans, job.tasks, shelf);
  std::vector<double> load(job.tasks + 1);
  for (std::size_t i = 0; i < job.cells; ++i) load[parts.part[i]] += seconds[i];
  job.longest = *std::max_element(load.begin(), load.end());
  return job;
}

std::string slurm_script(const SlurmJob& job, const SlurmCommand& command) {
  const std::string resources = fmt::format("--cpus-per-task={} --time={} --mem={}{}", job.threads,
                                            job.time(), job.memory(), job.gpu ? " --gres=gpu:1" : "");
  std::string text =
      fmt::format("#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --array=1-{}\n", command.name, job.tasks);
  for (const auto option : split(resources, ' ')) text += fmt::format("#SBATCH {}\n", option);
  // A minute before its time is up a task gives its cell back.
  text += "#SBATCH --signal=B:TERM@60\n";
  text += fmt::format(
      "# {} cells, {} of them done, in {} tasks. By the methods' own estimates the others take about {} on {} "
      "threads{},\n# the longest task {}, the largest cell {}. Asked for are {:g} times that, and {} and {} "
      "for the start.\n",
      job.cells, job.done, job.tasks, duration_text(job.seconds), job.threads,
      job.gpu ? " of CPUs, without the GPU" : "", duration_text(job.longest), bytes_text(job.bytes),
      job.margin, duration_text(kStartSeconds), bytes_text(kProgramBytes));
  text += fmt::format(
      "# Submit it with `sbatch FILE`; what your site asks for (--partition, --account) goes before FILE. "
      "Tasks "
      "that ended\n"
      "# too early are submitted again by `sbatch --array=3,7 FILE`: finished cells are not run again.\n"
      "# The tables{}, and what tasks may have left, when all have ended:\n"
      "#   sbatch --dependency=afterany:JOB {} FILE last\n",
      job.timed > 0 ? fmt::format(", {} cells that are timed alone", job.timed) : "",
      "--array=1 " + resources);
  text += fmt::format(
      "set -eu\ncd {}\n"
      "run() {{ exec \"${{LACUNA:-{}}}\" {} --resume --threads \"${{SLURM_CPUS_PER_TASK:-{}}}\" \"$@\"; }}\n"
      "if [ \"${{1:-}}\" = last ]; then run; fi\n"
      "run --shard \"${{SLURM_ARRAY_TASK_ID:?start it by sbatch, or set it to a number from 1 to {}}}/{}\"\n",
      command.folder, command.program, command.words, job.threads, job.tasks, job.tasks);
  return text;
}

}  // namespace lacuna
