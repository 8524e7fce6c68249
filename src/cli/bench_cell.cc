// lacuna bench cell and bench rerun: one cell of an experiment, by itself.
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/bench_run.h"
#include "cli/machine_flags.h"
#include "cli/verbs.h"
#include "experiments/work.h"
#include "ops/device.h"

namespace lacuna::cli {

int bench_cell(const Arguments& arguments) {
  std::string id, spec;
  BenchOptions bench;
  Options options;
  options.add("id", id, "its name in the folder").positional().metavar("ID").required();
  options.add("spec", spec, "the cell as JSON, as in spec.json").metavar("JSON").required();
  options.add("out", bench.out, "the folder of results").metavar("DIR").required();
  add_threads(options, bench.threads);
  add_device(options, bench.device);
  options.add("keep-scores", bench.keep_scores, "keep the scores as scores.npy");
  parse_or_help(options, arguments, "bench cell",
                "Runs one cell and stores it in a folder of results, as bench timing does for each of its "
                "cells. To repeat a finished cell, use lacuna bench rerun.",
                "  lacuna bench cell 3f0c6a51b2d97e84 --spec \"$(cat spec.json)\" --out results\n");
  set_threads(bench.threads);
  set_device(parse_device(bench.device));
  const auto content = nlohmann::json::parse(spec, nullptr, false);
  const CellSpec cell = CellSpec::from_json(content);
  Shelf shelf;
  if (const std::string own = cell_id(cell, shelf); own != id)
    fail(Exit::usage, "the cell that --spec describes is {}, not {}", own, id);
  CellStore store(bench.out);
  const auto claim = store.claim(id);
  if (claim == nullptr) return static_cast<int>(Exit::ok);  // another process was faster
  catch_bench_signals();
  BenchDisplay display;
  const Stopwatch watch;
  run_claimed(*claim, cell, bench, store, shelf, [&](const EpochRecord& record) {
    const double share = record.share_done();
    display.show(
        fmt::format("running {}, repetition {}, {}, about {} left", cell.method.text(), cell.fold + 1,
                    epoch_text(record), duration_text(watch.seconds() * (1 - share) / share)),
        true);
  });
  display.clear();
  return static_cast<int>(store.state(id) == CellStore::State::done ? Exit::ok : Exit::failed);
}

int bench_rerun(const Arguments& arguments) {
  std::string cell, data, folds;
  int thread_count = 0;
  Options options;
  options.add("cell", cell, "the folder of a finished cell: DIR/cells/ID")
      .positional()
      .metavar("CELL")
      .required();
  options.add("data", data, "where the data set is now, if it has moved").metavar("PATH");
  options.add("folds", folds, "where the folds file is now, if it has moved").metavar("FILE");
  add_threads(options, thread_count);
  parse_or_help(options, arguments, "bench rerun",
                "Runs one cell again and compares the result byte for byte. Exit code 0: the same; 1: it "
                "differs.",
                "  lacuna bench rerun results/cells/3f0c6a51b2d97e84\n");
  set_threads(thread_count);
  namespace fs = std::filesystem;
  const fs::path path = fs::path(cell).lexically_normal();
  const fs::path folder = path.filename().empty() ? path.parent_path() : path;
  const nlohmann::json stored_spec = read_json(folder.string() + "/spec.json");
  if (stored_spec.is_null())
    fail(Exit::usage, "{} is not the folder of a finished cell (it has no spec.json)", cell);
  CellSpec spec = CellSpec::from_json(stored_spec);
  if (!folds.empty() && spec.folds.file.empty())
    fail(Exit::usage, "--folds has no effect: the gaps of this cell were drawn, not read from a file");
  if (!data.empty()) spec.data.path = data;
  if (!folds.empty()) spec.folds.file = folds;
  for (const auto& [flag, file] : {std::pair("data", spec.data.path), std::pair("folds", spec.folds.file)})
    if (!file.empty() && !fs::exists(file))
      fail(Exit::data,
           "{}: the cell was run on it, and there is no such file or folder; --{} PATH says where it is now",
           file, flag);
  set_device(parse_device(stored_spec.value("device", "cpu")));
  Shelf shelf;
  const std::string found = shelf.data(spec.data).hash, wanted = stored_spec.at("data").value("hash", "");
  if (found != wanted)
    fail(Exit::data, "{}: its content is not what the cell was run on (hash {}, then {})", spec.data.path,
         found.substr(0, 16), wanted.substr(0, 16));
  if (const std::string now = fold_hash(shelf.folds(spec.data, spec.folds), spec.fold),
      then = stored_spec.at("folds").value("hash", now);
      now != then)
    fail(Exit::data,
         "repetition {} has other gaps or another split than the cell was run on (hash {}, then {})",
         spec.fold + 1, now.substr(0, 16), then.substr(0, 16));
  catch_bench_signals();
  const CellFiles files = run_cell(spec, shelf);
  const nlohmann::json before = read_json(folder.string() + "/result.json");
  const nlohmann::json run_before = read_json(folder.string() + "/run.json");
  TextTable table({"metric", "stored", "now"});
  if (files.result.contains("metrics"))
    for (const auto& [name, value] : files.result["metrics"].items()) {
      const auto& stored = before.value("metrics", nlohmann::json::object()).value(name, nlohmann::json());
      table.add({name, stored.dump(), value.dump()});
    }
  std::fputs(table.text().c_str(), stdout);
  const bool same = before == files.result;
  fmt::print("{}\n", same ? "the same result" : "another result");
  // Settings may have been added since, or have other defaults: a reason for another result, or a harmless
  // one.
  const auto& now = files.spec["options"];
  const auto& then = stored_spec.at("options");
  for (const auto& [name, value] : now.items())
    if (then.value(name, nlohmann::json()) != value)
      fmt::print("setting {}: {}, now {}\n", name, then.contains(name) ? then[name].dump() : "not there",
                 value.dump());
  if (!same && run_before.is_object())
    fmt::print("stored: version {} on {}; now: version {} on {}\n", run_before.value("version", "?"),
               run_before.value("processor", "?"), files.run.value("version", "?"),
               files.run.value("processor", "?"));
  return static_cast<int>(same ? Exit::ok : Exit::failed);
}

}  // namespace lacuna::cli
