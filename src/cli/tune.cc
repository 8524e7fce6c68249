// lacuna tune: tries settings of a method and keeps every trial and the best model.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/counted.h"
#include "cli/learning.h"
#include "cli/progress.h"
#include "cli/trials.h"
#include "cli/verbs.h"
#include "experiments/search.h"

namespace lacuna::cli {
namespace {

struct TuneFlags {
  LearningFlags learning;
  std::string out, metric = "AP";
  std::vector<std::string> grid;
  std::int64_t trials = 20;
  bool json = false;

  void declare(Options& o) {
    learning.declare(o);
    o.add("out", out,
          "folder for the trials (one JSON file each) and best.safetensors; several processes may share it")
        .metavar("DIR");
    o.add("grid", grid, "values to try for a setting, instead of the method's candidates; may be repeated")
        .metavar("KEY=V1,V2");
    o.add("trials", trials,
          "maximum number of trials: the given settings first, then combinations, drawn at random if there "
          "are more; 0 = all")
        .range(0, 1e6);
    o.add("metric", metric, "the validation metric that selects the best").choices(metric_names());
    o.add("json", json, "print one JSON document at the end");
  }
};

// What is tried: the axes the user gave, or all that the method declares.
std::vector<Axis> search_axes(const TuneFlags& flags, Model& model) {
  std::vector<Axis> axes;
  for (const auto& [name, values] : settings(flags.grid, "grid")) {
    Axis axis{name, {}};
    for (const auto value : split(values, ',')) axis.values.emplace_back(trim(value));
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) axes = own_axes(model);
  if (axes.empty())
    fail(Exit::usage, "method {} declares nothing to tune; name values with --grid KEY=V1,V2",
         model.method().traits().name);
  check_axes(axes, model);
  return axes;
}

// Says what no trial before has said: all learn from the same data.
struct Remarks final : FitContext {
  std::set<std::string>& said;
  explicit Remarks(std::set<std::string>& before) : said(before) {}
  void remark(const std::string& text) override {
    if (said.insert(text).second) tell("", {text});
  }
};

// One fit. A combination that diverges or that the method refuses is a result as well.
nlohmann::json try_one(Model& trial, const LearningRows& rows, std::uint64_t seed,
                       std::set<std::string>& said) {
  nlohmann::json result = {{"metrics", nlohmann::json::object()}};
  Remarks context(said);
  context.seed = seed;
  const Stopwatch watch;
  try {
    trial.fit(rows.learn, rows.val, context);
    if (trial.validation()) result["metrics"] = metrics_json(*trial.validation());
  } catch (const Error& error) {
    if (error.code() != Exit::diverged && error.code() != Exit::usage) throw;
    result["failed"] = error.what();
  }
  result["seconds"] = watch.seconds();
  return result;
}

// The folder remembers what it is for; trials of another search are never mixed in.
void enter_folder(const std::string& folder, const nlohmann::json& print) {
  make_directories(folder);
  const std::string path = folder + "/tune.json";
  if (!std::filesystem::exists(path)) return write_text(path, print.dump(1) + "\n");
  const auto was = nlohmann::json::parse(read_text(path), nullptr, false);
  if (!was.is_object()) fail(Exit::data, "{}: is not what lacuna tune wrote", path);
  if (was != print)
    fail(Exit::usage, "{}: contains another search: {}; use another --out", folder, differences(was, print));
}

// Tries every combination of the list that no other process has tried or is trying.
class Trials {
 public:
  Trials(const TuneFlags& flags, const Model& model, const Source& source, const LearningRows& rows,
         const std::vector<Combination>& list)
      : flags_(flags),
        model_(model),
        source_(source),
        rows_(rows),
        list_(list),
        fixed_(model.options().json()),
        folder_(flags.out, flags.metric, list),
        results_(list.size()) {}

  // Waits for what other processes have at work; if one is gone, its trial is ours.
  void run() {
    for (bool first = true, waiting = true; waiting; first = false) {
      waiting = false;
      const std::size_t before = ran_;
      for (std::size_t k = 0; k < list_.size(); ++k)
        if (results_[k].is_null() && !settle(k, first)) waiting = true;
      if (waiting && ran_ == before) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  nlohmann::json best() {
    const nlohmann::json best = folder_.settle_best();
    if (!best.is_null()) return best;
    if (std::ranges::any_of(results_, [](const auto& result) { return !result.contains("failed"); }))
      fail(Exit::failed,
           "{} is not defined on the {}, so that no trial is better than another: hold out more rows, or "
           "select by another --metric",
           flags_.metric, counted(rows_.val.rows.size(), "validation row"));
    fail(Exit::failed, "none of the {} trials gave a usable model; {} has the reasons", list_.size(),
         flags_.out);
  }
  double score(const nlohmann::json& result) const { return folder_.score(result); }
  const std::vector<nlohmann::json>& results() const { return results_; }
  std::size_t ran() const { return ran_; }

 private:
  // False if another process is at it.
  bool settle(std::size_t k, bool first) {
    results_[k] = folder_.result(k);
    if (!results_[k].is_null()) {
      tell(k, first ? "  (kept)" : "  (by another process)");
      return true;
    }
    const auto claim = folder_.claim(k);
    if (!claim) return false;
    run_one(k);
    tell(k, "");
    return true;
  }

  void run_one(std::size_t k) {
    Model trial(model_.method().traits().name);
    if (!model_.preset().empty()) trial.set_preset(model_.preset());
    trial.options().from_json(fixed_, "tune");
    for (const auto& [name, value] : list_[k]) trial.options().set(name, value, "tune");
    trial.notes() = {
        {"tuned", combination_text(list_[k])}, {"data", source_.data().name}, {"seed", flags_.learning.seed}};
    results_[k] = try_one(trial, rows_, flags_.learning.seed, said_);
    results_[k]["settings"] = nlohmann::json::object();
    for (const auto& [name, value] : list_[k]) results_[k]["settings"][name] = value;
    folder_.keep(k, results_[k], trial);
    ++ran_;
  }

  void tell(std::size_t k, const char* by) const {
    fmt::print(stderr, "trial {}/{}  {}  {}{}\n", k + 1, list_.size(), combination_text(list_[k]),
               results_[k].contains("failed")   ? results_[k]["failed"].get<std::string>()
               : std::isnan(score(results_[k])) ? flags_.metric + " -"
                                                : fmt::format("{} {:.4f}", flags_.metric, score(results_[k])),
               by);
  }

  const TuneFlags& flags_;
  const Model& model_;
  const Source& source_;
  const LearningRows& rows_;
  const std::vector<Combination>& list_;
  const nlohmann::json fixed_;
  TrialFolder folder_;
  std::set<std::string> said_;
  std::vector<nlohmann::json> results_;
  std::size_t ran_ = 0;
};

}  // namespace

int tune(const Arguments& arguments) {
  TuneFlags flags;
  Options options;
  flags.declare(options);
  Model model = parse_learning(
      flags.learning, options, arguments,
      {"tune",
       "Tries settings of a method and selects on validation rows. Every trial is a file: the same command "
       "continues after an interruption, and several processes with the same command share the trials.",
       "  lacuna tune photos.npz --method naim3l --out search\n"
       "  lacuna tune photos.npz --grid rate=1e-3,3e-3 --grid weight-decay=1,5 --trials 0 --out search\n"});
  if (flags.out.empty()) fail(Exit::usage, "lacuna tune needs --out DIR (see lacuna tune --help)");
  const auto axes = search_axes(flags, model);
  const auto list = search_plan(axes, flags.trials, flags.learning.seed, model);
  const Source source(flags.learning.source);
  const LearningRows rows = rows_to_learn(flags.learning, source);
  if (rows.val.rows.empty())
    fail(Exit::usage, "there are no validation rows to select on; use --hold-out or --folds");
  nlohmann::json print = fingerprint(flags.learning, source, model);
  print["metric"] = flags.metric;
  enter_folder(flags.out, print);

  Trials trials(flags, model, source, rows, list);
  trials.run();
  const nlohmann::json best = trials.best();
  if (flags.json) {
    const nlohmann::json document = {{"schema", "lacuna.tune.1"}, {"method", model.method().traits().name},
                                     {"metric", flags.metric},    {"best", best},
                                     {"ran_here", trials.ran()},  {"model", flags.out + "/best.safetensors"},
                                     {"trials", trials.results()}};
    fmt::print("{}\n", document.dump(1));
    return 0;
  }
  std::vector<std::string> chosen;
  for (const auto& [name, value] : best["settings"].items())
    chosen.push_back(name + "=" + value.get<std::string>());
  if (chosen.empty()) chosen.push_back("the settings as given");
  fmt::print("best of {} trials: {} {:.4f} with {}\nmodel: {}/best.safetensors\n", list.size(), flags.metric,
             trials.score(best), join(chosen, " "), flags.out);
  return 0;
}

}  // namespace lacuna::cli
