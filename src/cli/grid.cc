// lacuna bench slurm, lacuna bench status: experiments on more machines than one.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/verbs.h"
#include "experiments/paper.h"
#include "experiments/slurm.h"
#include "experiments/status.h"
#include "ops/device.h"

namespace lacuna::cli {
namespace {

constexpr Experiment kExperiments[] = {Experiment::table,       Experiment::complete,   Experiment::ablation,
                                       Experiment::sensitivity, Experiment::similarity, Experiment::missing};
constexpr const char* kPaper = "paper";

std::vector<std::string> experiment_names() {
  std::vector<std::string> names = {kPaper};
  for (const Experiment experiment : kExperiments) names.emplace_back(experiment_name(experiment));
  return names;
}

// What was given, as words to give again; without what the script says itself.
std::string words_given(const Options& options) {
  std::string text;
  for (const auto& option : options.all()) {
    if (!option.given || option.is_positional || option.name == "tasks" || option.name == "margin" ||
        option.name == "threads")
      continue;
    if (option.is_flag())
      text += (option.text() == "true" ? " --" : " --no-") + option.name;
    else
      text += " --" + option.name + " " + shell_quoted(option.text());
  }
  return text;
}

SlurmCommand command_of(const std::string& experiment, const Options& options) {
  namespace fs = std::filesystem;
  return {.name = "lacuna-" + experiment,
          .folder = shell_quoted(fs::current_path().string()),
          .program = fs::read_symlink("/proc/self/exe").string(),
          .words = "bench " + experiment + words_given(options)};
}

}  // namespace

int bench_slurm(const Arguments& arguments) {
  const auto names = experiment_names();
  const std::string first = arguments.empty() ? "" : arguments.front();  // decides which options there are
  const bool known = std::find(names.begin(), names.end(), first) != names.end(), is_paper = first == kPaper;
  Experiment kind = Experiment::table;
  for (const Experiment one : kExperiments)
    if (first == experiment_name(one)) kind = one;

  PaperOptions paper;
  BenchOptions plain = BenchOptions::defaults(kind);
  SlurmOptions slurm;
  std::string experiment;
  Options options;
  options.add("experiment", experiment, "the experiment to run, followed by its options")
      .positional()
      .metavar("EXPERIMENT")
      .choices(names)
      .required();
  slurm.declare(options);
  if (is_paper)
    paper.declare(options);
  else
    plain.declare(options, kind);
  // What the script says itself.
  std::erase_if(options.all(), [](const Option& one) { return one.name == "shard" || one.name == "resume"; });
  parse_or_help(
      options, arguments, "bench slurm",
      "Prints a script for Slurm's sbatch that runs an experiment as an array of tasks in one shared folder. "
      "Each task gets a part of the cells; the requested time and memory come from the estimate of --dry-run, "
      "for the number of --threads. Nothing is run. Relative paths are relative to the current folder.",
      "  lacuna bench slurm table --data corel5k.mat --out results --threads 4 > table.sbatch\n"
      "  sbatch --partition=short table.sbatch\n"
      "  lacuna bench status results\n");
  if (!known)
    fail(Exit::usage, "lacuna bench slurm needs the experiment first: lacuna bench slurm {} ...", experiment);
  BenchOptions& bench = is_paper ? paper.bench : plain;
  if (is_paper)
    paper.settle(options);
  else
    bench.settle(options);
  set_threads(bench.threads);
  const bool gpu = bench.device.starts_with("cuda");  // of the nodes: this machine may have none
  if (!gpu) set_device(parse_device(bench.device));
  Shelf shelf;
  std::vector<Plan> plans;
  if (is_paper)
    plans = paper_plans(paper, "", shelf);
  else
    plans.push_back(make_plan(kind, bench, "", shelf));
  std::optional<CellStore> store;
  if (std::filesystem::is_directory(bench.out + "/cells")) store.emplace(bench.out);
  SlurmJob job = plan_job(plans, slurm, store ? &*store : nullptr, shelf);
  job.gpu = gpu;
  std::fputs(slurm_script(job, command_of(experiment, options)).c_str(), stdout);
  return static_cast<int>(Exit::ok);
}

int bench_status(const Arguments& arguments) {
  std::string directory;
  bool json = false;
  Options options;
  options.add("dir", directory, "the folder of an experiment (lacuna bench ... --out DIR)")
      .positional()
      .metavar("DIR")
      .required();
  options.add("json", json, "print one JSON document");
  parse_or_help(
      options, arguments, "bench status",
      "Shows the progress of the experiments in a folder: cells done, running (where, in which process, for "
      "how long), failed (with the error) and stale (their process is gone; the next process takes them "
      "over), cells per hour, time left. It reads only the folder, from any machine that has it.",
      "  lacuna bench status results\n"
      "  lacuna bench status results --json | jq .seconds_left\n");
  if (!std::filesystem::is_directory(directory + "/experiments"))
    fail(Exit::usage, "{} contains no experiments; lacuna bench makes them", directory);
  const GridStatus status = grid_status(CellStore(directory));
  if (json)
    fmt::print("{}\n", status.json().dump(1));
  else
    std::fputs(status.text().c_str(), stdout);
  return static_cast<int>(Exit::ok);
}

}  // namespace lacuna::cli
