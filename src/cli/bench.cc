// lacuna bench ...: experiments; lacuna report: the page about them.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/bench_run.h"
#include "cli/counted.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "experiments/forecast.h"
#include "experiments/machine.h"
#include "experiments/paper.h"
#include "experiments/report.h"
#include "experiments/results.h"
#include "experiments/settings_file.h"
#include "experiments/shard.h"
#include "experiments/statistics.h"
#include "experiments/work.h"
#include "methods/estimate.h"
#include "ops/device.h"

namespace lacuna::cli {
namespace {

// `lacuna bench cell` for one cell, waited for. A signal that stops this process stops that one too.
void run_apart(const PlannedCell& cell, const BenchOptions& bench) {
  std::vector<std::string> words = {"lacuna",    "bench",
                                    "cell",      cell.id,
                                    "--spec",    cell.spec.json().dump(),
                                    "--out",     bench.out,
                                    "--threads", std::to_string(bench.threads),
                                    "--device",  bench.device};
  if (bench.keep_scores) words.push_back("--keep-scores");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ))
    fail(Exit::failed, "cannot start a process for a cell: {}", std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    if (stop_requested) kill(child, SIGTERM);
  if (stop_requested) fail(Exit::interrupted, "interrupted");
  if (WIFSIGNALED(status))
    fail(Exit::failed, "the process of {} was ended by signal {}", cell.spec.method.text(), WTERMSIG(status));
}

void print_table(const ResultTable& shown) {
  TextTable table(shown.header);
  for (const auto& cells : shown.rows) {
    std::vector<std::string> row;
    for (const auto& cell : cells) row.push_back(cell.text);
    table.add(row);
  }
  fmt::print("{}\n{}", shown.caption, table.text());
  for (const auto& note : shown.notes) fmt::print("{}\n", note);
  fmt::print("\n");
}

// A table of the page for every data set, or for every method on it.
void print_own_tables(const ExperimentResults& results) {
  for (const auto& data : results.data) {
    if (results.kind == "timing") print_table(timing_table(results, data));
    if (results.kind == "similarity")
      for (const auto& method : results.methods)
        if (const ResultTable table = similarity_table(results, data, method); !table.rows.empty())
          print_table(table);
  }
  fmt::print("{}\n", results.origin_words());
}

// The results as they stand, for the terminal.
void print_results(const ExperimentResults& results) {
  if (results.kind == "timing" || results.kind == "similarity") return print_own_tables(results);
  std::size_t repetitions = 0;
  for (const auto& data : results.data) {
    std::vector<std::string> header = {data.name};
    for (const auto& metric : paper_metrics()) header.push_back(metric);
    header.push_back("Ave.R");
    TextTable table(header);
    const bool plain = results.kind == "table" || results.kind == "complete";
    const std::vector<double> ranking = plain ? average_ranks(results, data.name) : std::vector<double>();
    for (std::size_t i = 0; i < results.methods.size(); ++i) {
      // Every place of the experiment is a row; without places there is one row per method.
      std::vector<nlohmann::json> places;
      for (const auto& cell : results.cells) {
        nlohmann::json place = cell.place;
        for (const char* key : {"cell", "data", "method", "fold"}) place.erase(key);
        if (cell.data == data.name && cell.method == results.methods[i].key &&
            std::find(places.begin(), places.end(), place) == places.end())
          places.push_back(place);
      }
      for (const auto& place : places) {
        const std::string where = place_words(place);
        std::vector<std::string> row = {results.methods[i].marked() + (where.empty() ? "" : ", " + where)};
        for (const auto& metric : paper_metrics()) {
          const auto values = results.values(data.name, results.methods[i].key, metric, place);
          repetitions = std::max(repetitions, values.size());
          row.push_back(values.empty() ? "-"
                        : values.size() == 1
                            ? fmt::format("{:.3f}", values[0])
                            : fmt::format("{:.3f} ±{:.3f}", mean(values), deviation(values)));
        }
        row.push_back(!plain ? "" : std::isfinite(ranking[i]) ? fmt::format("{:.2f}", ranking[i]) : "-");
        table.add(row);
      }
    }
    std::fputs((table.text() + "\n").c_str(), stdout);
  }
  if (repetitions > 1) fmt::print("± is the {} over up to {} repetitions.\n", kDeviationWords, repetitions);
  if (std::ranges::any_of(results.methods, [](const MethodInfo& method) { return !method.ranked; }))
    fmt::print("† is not ranked: the floor, standard baselines, or the default network.\n");
  for (const auto& data : results.data) fmt::print("{}: {}.\n", data.name, results.gaps(data));
  fmt::print("{}\n", results.origin_words());
}

nlohmann::json results_json(const ExperimentResults& results, const BenchOutcome& outcome) {
  nlohmann::json cells = nlohmann::json::array();
  for (const auto& cell : results.cells) {
    nlohmann::json entry = cell.place;
    if (cell.result.is_object() && cell.result.contains("metrics")) entry["metrics"] = cell.result["metrics"];
    if (results.kind == "timing" && cell.run.is_object()) entry["run"] = cell.run;
    if (!cell.error.empty()) entry["error"] = cell.error;
    cells.push_back(std::move(entry));
  }
  nlohmann::json document = {
      {"schema", "lacuna.bench.1"}, {"kind", results.kind},    {"name", results.name}, {"done", outcome.done},
      {"failed", outcome.failed},   {"ran_here", outcome.ran}, {"cells", cells}};
  for (const char* key : {"protocol", "mask", "folds", "caution"})
    if (results.header.contains(key)) document[key] = results.header[key];
  document["seed"] = results.header.at("mask").value("seed", std::uint64_t{1});
  for (const auto& [key, value] : results.origin())
    if (!document.contains(key)) document[key] = value;
  for (const auto& data : results.data)
    document["data"].push_back({{"name", data.name},
                                {"hash", data.hash},
                                {"gaps", data.gaps.json()},
                                {"words", results.gaps(data)}});
  return document;
}

// What a reader must know before the first figure: that a protocol leaks, what was left out.
void announce(std::span<const Plan> plans) {
  std::vector<std::string> lines;
  for (const Plan& plan : plans) {
    lines.push_back(protocol_warning(protocol_from_name(plan.header.at("protocol"))));
    lines.insert(lines.end(), plan.remarks.begin(), plan.remarks.end());
  }
  std::set<std::string> told = {""};
  for (const auto& line : lines)
    if (told.insert(line).second) fmt::print(stderr, "{}\n", line);
}

// What will take more than a quarter of an hour a cell, or more memory than the machine has, is said before it starts.
void announce_long(std::span<const Plan> plans, const CellStore& store, Shelf& shelf) {
  constexpr double kLong = 15 * 60;
  for (const auto& line : forecast(plans, &store, shelf).lines) {
    if (line.done == line.cells || current_device().cuda) continue;
    if (line.each() > kLong)
      fmt::print(stderr, "{} on {}, {}: about {} per cell, by its own estimate\n", line.method, line.data,
                 line.experiment, duration_text(line.each()));
    if (line.bytes > static_cast<double>(machine_memory()))
      fmt::print(stderr, "{} on {}, {}: about {} of memory, and this machine has {}\n", line.method,
                 line.data, line.experiment, bytes_text(line.bytes),
                 bytes_text(static_cast<double>(machine_memory())));
  }
}

// Works cells off and says how it went; nothing where it was interrupted.
std::optional<BenchOutcome> work_cells(std::span<const PlannedCell* const> cells, const BenchOptions& bench,
                                       CellStore& store, Shelf& shelf) {
  catch_bench_signals();
  try {
    BenchDisplay display;
    return work_off(
        cells, bench, store, shelf,
        [&](const BenchProgress& progress) { display.show(progress.text(), progress.inside); },
        // What is to be timed runs alone: its memory is its own, and nothing is warm from the cell before.
        [&](const PlannedCell& cell) { run_apart(cell, bench); });
  } catch (const Error& error) {
    if (error.code() != Exit::interrupted) throw;
    fmt::print(stderr, "interrupted; the same command with --resume continues\n");
    return std::nullopt;
  }
}

// One part of the cells. Tables and pages need all of them: the same command without --shard.
int run_shard(std::span<const Plan> plans, const BenchOptions& bench, CellStore& store, Shelf& shelf,
              bool json) {
  const Shard shard = Shard::parse(bench.shard);
  const Sharding sharding = make_sharding(plans, shard.count, shelf);
  const auto cells = sharding.of(shard);
  const auto outcome = work_cells(cells, bench, store, shelf);
  if (!outcome) return interrupted_code();
  if (json)
    fmt::print("{}\n", nlohmann::json{{"schema", "lacuna.shard.1"},
                                      {"shard", shard.text()},
                                      {"cells", cells.size()},
                                      {"done", outcome->done},
                                      {"failed", outcome->failed},
                                      {"ran_here", outcome->ran}}
                           .dump(1));
  std::fflush(stdout);
  fmt::print(stderr,
             "part {}: {} of {} cells done, {} failed, in {}; lacuna bench status {} shows all parts\n",
             shard.text(), outcome->done, cells.size(), outcome->failed, bench.out, shell_quoted(bench.out));
  if (sharding.timed > 0)
    fmt::print(stderr,
               "{} cells are timed alone after all others: by the same command with --resume and without "
               "--shard\n",
               sharding.timed);
  return static_cast<int>(outcome->failed == 0 ? Exit::ok : Exit::failed);
}

// The experiments of these plans, in their order, with what there is by now.
std::vector<ExperimentResults> results_of(std::span<const Plan> plans, const CellStore& store) {
  std::vector<ExperimentResults> found;
  const auto all = load_results(store);
  for (const Plan& plan : plans)
    for (const auto& results : all)
      if (results.name == plan.header.at("name").get<std::string>()) found.push_back(results);
  return found;
}

void print_failures(const std::vector<ExperimentResults>& all) {
  std::set<std::string> told;
  for (const auto& results : all)
    for (const auto& cell : results.cells)
      if (!cell.error.empty() && told.insert(cell.id).second)
        fmt::print(stderr, "failed: {} on {}, repetition {}: {}\n", cell.method, cell.data, cell.fold + 1,
                   cell.error);
}

// What the cells of plans will take, without running any.
void print_forecast(std::span<const Plan> plans, const BenchOptions& bench, Shelf& shelf, bool json) {
  std::optional<CellStore> store;
  if (std::filesystem::is_directory(bench.out + "/cells")) store.emplace(bench.out);
  const Forecast found = forecast(plans, store ? &*store : nullptr, shelf);
  const nlohmann::json& header = plans.front().header;
  const std::string protocol = header.at("protocol"), caution = header.value("caution", "");
  const auto seed = header.at("mask").at("seed").get<std::uint64_t>();
  if (json) {
    nlohmann::json document = found.json();
    document["protocol"] = protocol, document["seed"] = seed, document["version"] = LACUNA_VERSION;
    if (!caution.empty()) document["caution"] = caution;
    fmt::print("{}\n", document.dump(1));
    return;
  }
  std::string experiment;
  std::optional<TextTable> table;
  const auto print = [&] {
    if (table) std::fputs((table->text() + "\n").c_str(), stdout);
  };
  for (const auto& line : found.lines) {
    if (line.experiment != experiment) {
      print();
      experiment = line.experiment;
      table.emplace(std::vector<std::string>{experiment, "method", "cells", "done", "each, about",
                                             "to do, about", "memory, about"});
    }
    table->add({line.data, line.method, std::to_string(line.cells), std::to_string(line.done),
                duration_text(line.each()), duration_text(line.seconds), bytes_text(line.bytes)});
  }
  print();
  const auto total = found.total();
  if (!caution.empty()) fmt::print("{}\n", caution);
  fmt::print("protocol {}, seed {}\n", protocol, seed);
  fmt::print(
      "{}, {} of them done; the others take about {} on {} of this kind, and at most about {} of memory; "
      "docs/results/five-sets.md compares estimates with measurements\n",
      counted(total.cells, "cell"), total.done, duration_text(total.seconds),
      counted(static_cast<std::uint64_t>(threads()), "thread"), bytes_text(total.bytes));
  if (current_device().cuda)
    fmt::print("networks on {}: by the bytes of their weights at 2 TB/s, which small ones do not reach\n",
               device_name(current_device()));
}

void declare_output(Options& options, bool& dry_run, bool& json) {
  options.add("dry-run", dry_run, "print the cells with estimated time and memory, and run nothing");
  options.add("json", json, "print one JSON document at the end; with --dry-run, the estimate");
}

int run_experiment(Experiment experiment, const Arguments& arguments, const std::string& about,
                   const std::string& examples) {
  const std::string verb = std::string("bench ") + experiment_name(experiment);
  BenchOptions bench = BenchOptions::defaults(experiment);
  bool json = false, dry_run = false;
  Options options;
  bench.declare(options, experiment);
  declare_output(options, dry_run, json);
  parse_or_help(options, arguments, verb, about, examples);
  bench.settle(options);
  set_threads(bench.threads);
  set_device(parse_device(bench.device));
  Shelf shelf;
  const Plan plan = make_plan(experiment, bench, command_line(verb, arguments), shelf);
  const std::span<const Plan> plans(&plan, 1);
  announce(plans);
  if (dry_run) {
    print_forecast(plans, bench, shelf, json);
    return static_cast<int>(Exit::ok);
  }
  CellStore store(bench.out);
  record_plan(plan, bench, store);
  announce_long(plans, store, shelf);
  if (!bench.shard.empty()) return run_shard(plans, bench, store, shelf, json);
  const auto outcome = work_cells(distinct_cells(plans), bench, store, shelf);
  if (!outcome) return interrupted_code();
  const auto all = results_of(plans, store);
  for (const auto& results : all) {
    if (json)
      fmt::print("{}\n", results_json(results, *outcome).dump(1));
    else
      print_results(results);
  }
  std::fflush(stdout);  // before the words on stderr
  print_failures(all);
  fmt::print(stderr, "{} done, {} failed, in {}; lacuna report {} writes the page\n",
             counted(outcome->done, "cell"), outcome->failed, bench.out, shell_quoted(bench.out));
  return static_cast<int>(outcome->failed == 0 ? Exit::ok : Exit::failed);
}

}  // namespace

int bench_table(const Arguments& arguments) {
  return run_experiment(
      Experiment::table, arguments,
      "Compares methods on several data sets with missing views and labels.",
      "  lacuna bench table --data emotions.mat,yeast.mat --repeats 5 --out results\n  "
      "lacuna bench table --data corel5k.mat --methods prior,naim3l,mtd:authors --set mtd:authors.epochs=20 "
      "--out r\n  "
      "lacuna bench table ... --resume        continues after an interruption, or helps a running one\n");
}
int bench_complete(const Arguments& arguments) {
  return run_experiment(Experiment::complete, arguments,
                        "Compares methods without gaps, except those of the data.",
                        "  lacuna bench complete --data emotions.mat,yeast.mat --repeats 5 --out results\n");
}
int bench_ablation(const Arguments& arguments) {
  return run_experiment(
      Experiment::ablation, arguments,
      "MTD with parts added and removed, row by row as in the paper, on top of a preset.",
      "  lacuna bench ablation --data corel5k.mat --methods mtd:authors --repeats 5 --out results\n");
}
int bench_sensitivity(const Arguments& arguments) {
  return run_experiment(Experiment::sensitivity, arguments,
                        "MTD against the weights of its losses (alpha x beta, gamma) and its mask rate.",
                        "  lacuna bench sensitivity --data yeast.mat --alphas 0.0001,0.01,1 --betas "
                        "0.0001,0.01,1 --out results\n");
}
int bench_similarity(const Arguments& arguments) {
  return run_experiment(
      Experiment::similarity, arguments,
      "Cosines between MTD's channels at chosen epochs, for one item and averaged over the test rows.",
      "  lacuna bench similarity --data corel5k.mat --epochs 0,60,120,180 --out results\n");
}
int bench_timing(const Arguments& arguments) {
  return run_experiment(
      Experiment::timing, arguments,
      "Training and test time and peak memory of every method, each measured in its own process. Run it alone "
      "on the machine. Cells of other experiments in the folder are not reused, because their times were "
      "measured under other conditions.",
      "  lacuna bench timing --data corel5k.mat --repeats 1 --out results\n"
      "  lacuna bench timing --data corel5k.mat --methods dicnet --set dicnet.epochs=3 "
      "--repeats 1 --out r\n"
      "                         three epochs, from which the paper's 100 are estimated\n");
}
int bench_missing(const Arguments& arguments) {
  return run_experiment(
      Experiment::missing, arguments,
      "Metrics against the share of missing views, of missing labels, and with each view left out in turn.",
      "  lacuna bench missing --data yeast.mat --methods prior,naim3l,mtd --rates 0,0.3,0.6 --out results\n");
}

int bench_paper(const Arguments& arguments) {
  PaperOptions paper;
  bool dry_run = false, json = false, print_settings = false;
  Options options;
  paper.declare(options);
  declare_output(options, dry_run, json);
  options.add("print-settings", print_settings, "print the built-in settings file and stop");
  if (std::find(arguments.begin(), arguments.end(), "--print-settings") != arguments.end()) {
    std::fputs(SettingsFile::paper(), stdout);
    return static_cast<int>(Exit::ok);
  }
  parse_or_help(
      options, arguments, "bench paper",
      "Reproduces every table and figure of the paper that introduced MTD, in one folder with one page: table "
      "1 with Ave.R, the radar on complete data, table 2, alpha x beta, gamma and the mask rate, the "
      "channels' similarity by epoch, and the times; the nine methods in the paper's order, with its printed "
      "figures next to ours. The floor, two standard baselines (linear, mlknn) and the default network are "
      "not ranked. Settings per method and data set come from a file (--print-settings shows it, --settings "
      "FILE replaces it).",
      "  lacuna bench paper --data emotions.mat,msrc.mat --out quick --quick\n"
      "  lacuna bench paper --data corel5k.mat --out paper --dry-run\n"
      "  lacuna bench paper --data corel5k.mat --out paper --repeats 10 --resume\n");
  paper.settle(options);
  set_threads(paper.bench.threads);
  set_device(parse_device(paper.bench.device));
  Shelf shelf;
  const auto plans = paper_plans(paper, command_line("bench paper", arguments), shelf);
  announce(plans);
  if (dry_run) {
    print_forecast(plans, paper.bench, shelf, json);
    return static_cast<int>(Exit::ok);
  }
  CellStore store(paper.bench.out);
  for (const auto& plan : plans) record_plan(plan, paper.bench, store);
  announce_long(plans, store, shelf);
  if (!paper.bench.shard.empty()) return run_shard(plans, paper.bench, store, shelf, json);
  const auto outcome = work_cells(distinct_cells(plans), paper.bench, store, shelf);
  if (!outcome) return interrupted_code();
  const auto all = results_of(plans, store);
  const std::string page = write_report(paper.bench.out);
  if (json) {
    nlohmann::json document = {
        {"schema", "lacuna.paper.1"}, {"report", page}, {"experiments", nlohmann::json::array()}};
    for (const auto& results : all) document["experiments"].push_back(results_json(results, *outcome));
    fmt::print("{}\n", document.dump(1));
  } else {
    for (const auto& results : all) {
      fmt::print("# {}\n\n", results.name);
      print_results(results);
    }
    fmt::print("{}\n", page);
  }
  std::fflush(stdout);
  print_failures(all);
  if (paper.quick) fmt::print(stderr, "{}\n", plans.front().header.at("caution").get<std::string>());
  fmt::print(stderr, "{} done, {} failed, in {}\n", counted(outcome->done, "cell"), outcome->failed,
             paper.bench.out);
  return static_cast<int>(outcome->failed == 0 ? Exit::ok : Exit::failed);
}

int report(const Arguments& arguments) {
  std::string directory;
  Options options;
  options.add("dir", directory, "the folder of an experiment (lacuna bench ... --out DIR)")
      .positional()
      .metavar("DIR")
      .required();
  parse_or_help(options, arguments, "report",
                "Writes DIR/report.html, a self-contained page, its tables as DIR/tables/*.md, .csv and .tex, "
                "and its plots as DIR/plots/*.svg. It may be called while an experiment runs.",
                "  lacuna report results\n");
  const std::string path = write_report(directory);
  fmt::print("{}\n", path);
  return 0;
}

}  // namespace lacuna::cli
