#include "experiments/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "experiments/machine.h"
#include "experiments/published.h"
#include "experiments/settings_file.h"

namespace lacuna {

using nlohmann::json;

const char* experiment_name(Experiment experiment) {
  switch (experiment) {
    case Experiment::table:
      return "table";
    case Experiment::complete:
      return "complete";
    case Experiment::ablation:
      return "ablation";
    case Experiment::sensitivity:
      return "sensitivity";
    case Experiment::similarity:
      return "similarity";
    case Experiment::timing:
      return "timing";
    case Experiment::missing:
      return "missing";
  }
  return "";
}

const std::vector<AblationRow>& ablation_rows() {
  static const std::vector<AblationRow> rows = {
      {"s_ch baseline", {{"channels", "1"}, {"alpha", "0"}, {"beta", "0"}, {"gamma", "0"}}},
      {"d_ch baseline", {{"channels", "2"}, {"alpha", "0"}, {"beta", "0"}, {"gamma", "0"}}},
      {"d_ch + L_gc", {{"channels", "2"}, {"beta", "0"}, {"gamma", "0"}}},
      {"d_ch + L_re + L_gc", {{"channels", "2"}, {"beta", "0"}}},
      {"MTD", {{"channels", "2"}}},
      {"MTD w/o mask", {{"channels", "2"}, {"mask-rate", "0"}}},
      {"s_ch w/o mask",
       {{"channels", "1"}, {"alpha", "0"}, {"beta", "0"}, {"gamma", "0"}, {"mask-rate", "0"}}},
      {"d_ch w/o mask",
       {{"channels", "2"}, {"alpha", "0"}, {"beta", "0"}, {"gamma", "0"}, {"mask-rate", "0"}}},
  };
  return rows;
}

const std::vector<std::string>& default_methods() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = published_methods();
    list.back() = "mtd:authors";
    list.insert(list.end(), {"prior", kDefaultMethod});
    return list;
  }();
  return names;
}

BenchOptions BenchOptions::defaults(Experiment experiment) {
  BenchOptions options;
  switch (experiment) {
    case Experiment::table:
    case Experiment::complete:
      break;
    case Experiment::ablation:
      options.mask.repeats = 5;
      [[fallthrough]];
    case Experiment::sensitivity:
    case Experiment::similarity:
      options.methods = {"mtd:authors"};
      if (experiment != Experiment::ablation) options.mask.repeats = 1;
      break;
    case Experiment::timing:
      options.mask.repeats = 3;
      break;
    case Experiment::missing:
      options.mask.repeats = 3;
      break;
  }
  if (experiment == Experiment::complete) options.mask.missing_views = options.mask.missing_labels = 0;
  return options;
}

void BenchOptions::declare(Options& o, Experiment experiment) {
  o.add("data", data, "data sets: files or folders in any readable form; repeat it, or separate by commas")
      .metavar("PATH")
      .required();
  o.add("out", out, "the folder of results; several processes may work on one").metavar("DIR").required();
  o.add("resume", resume, "go on with what is there, or help a process that is at work");
  o.add("methods", methods,
        "methods, with a preset behind a colon (mtd:paper); none = the paper's nine, the floor and our own")
      .metavar("NAMES")
      .suggest(method_names());
  o.add("set", set,
        "a setting: KEY=VALUE for every method that has it, METHOD.KEY=VALUE for one; may be repeated")
      .metavar("KEY=VALUE");
  o.add("settings", settings,
        "a TOML file of settings per method and data set; `paper` is the one that bench paper uses")
      .metavar("FILE");
  o.add("tune", tune, "try so many settings on validation rows inside each cell and keep the best; 0 = none")
      .range(0, 1e6)
      .metavar("N");
  o.add("tune-methods", tune_methods, "the methods that --tune is for").metavar("NAMES").suggest(method_names());
  mask.declare(o);
  const auto gaps = o.group("gaps and splits");
  o.add("folds", folds, "gaps and splits from a file, for one data set; else the other flags make them")
      .metavar("FILE");
  o.add("protocol", protocol, "strict; authors: scaler fitted on all rows, validation rows inside the test")
      .choices(protocol_names());
  const auto running = o.group("running");
  o.add("threads", threads, "threads of a cell, 0 = all; results do not depend on it")
      .range(0, 1024)
      .common();
  o.add("device", device,
        "where networks compute: auto (a GPU if one can be used), cpu, cuda or cuda:N; results depend on it")
      .metavar("DEVICE");
  o.add("retry-failed", retry_failed, "with --resume: run failed cells again");
  o.add("keep-scores", keep_scores, "keep the scores of every cell as scores.npy");
  o.add("name", name, "the experiment's name in the folder, if it holds several of a kind").metavar("NAME");
  const auto statistics = o.group("statistics");
  o.add("metric", metric, "the metric of significance tests and single figures").choices(metric_names());
  o.add("level", level, "level of the significance tests").range(1e-6, .5);
  const auto axes = o.group(fmt::format("values of bench {}", experiment_name(experiment)));
  if (experiment == Experiment::sensitivity) {
    o.add("alphas", alphas, "values of alpha").range(0, 1e6).common();
    o.add("betas", betas, "values of beta").range(0, 1e6).common();
    o.add("gammas", gammas, "values of gamma").range(0, 1e6).common();
    o.add("sigmas", sigmas, "mask rates").range(0, .95).common();
  }
  if (experiment == Experiment::similarity)
    o.add("epochs", epochs, "look after these epochs; 0 = before the first").range(0, 1e9).common();
  if (experiment == Experiment::missing)
    o.add("rates", rates, "shares of missing views, and of missing labels").range(0, .95).common();
  read.declare(o);
}

namespace {

// --set as given: a value may hold commas, at which the list was split.
std::vector<std::string> joined_settings(const std::vector<std::string>& parts) {
  std::vector<std::string> set;
  for (const auto& part : parts) {
    if (part.find('=') != std::string::npos)
      set.push_back(part);
    else if (set.empty())
      fail(Exit::usage, "--set takes KEY=VALUE or METHOD.KEY=VALUE, not '{}'", part);
    else
      set.back() += "," + part;
  }
  return set;
}

// A setting of --set: KEY=VALUE for every method that has it, METHOD.KEY=VALUE for one.
struct GivenSetting {
  std::string owner, key, value;  // owner is empty where none is named
  static GivenSetting parse(const std::string& text) {
    const auto equals = text.find('='), dot = text.substr(0, equals).find('.');
    return dot == std::string::npos
               ? GivenSetting{"", text.substr(0, equals), text.substr(equals + 1)}
               : GivenSetting{text.substr(0, dot), text.substr(dot + 1, equals - dot - 1),
                              text.substr(equals + 1)};
  }
  bool reaches(const MethodChoice& method) const {
    if (!owner.empty()) return owner == method.name || owner == method.text();
    return Model(method.name).options().find(key) != nullptr;
  }
};

std::map<std::string, std::string> settings_for(const MethodChoice& method,
                                                const std::vector<std::string>& set) {
  std::map<std::string, std::string> settings;
  for (const auto& text : set)
    if (const auto given = GivenSetting::parse(text); given.reaches(method))
      settings[given.key] = given.value;
  return settings;
}

// A key that no chosen method has is a mistake, not a wish; so is one that means different things to them.
void check_settings(const std::vector<MethodChoice>& methods, const std::vector<std::string>& set) {
  for (const auto& text : set) {
    const auto given = GivenSetting::parse(text);
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> meanings;  // by help text: who has it
    for (const auto& method : methods) {
      Model model(method.name);
      if (given.owner.empty())
        for (const auto& name : model.options().names()) names.push_back(name);
      else
        names.push_back(method.text() + "." + given.key);
      if (!given.reaches(method)) continue;
      const Option* option = model.options().find(given.key);
      auto& who = meanings[option == nullptr ? "" : option->help];
      if (std::find(who.begin(), who.end(), method.name) == who.end()) who.push_back(method.name);
    }
    if (meanings.empty())
      fail(Exit::usage, "--set {}: none of the chosen methods has it{}", text,
           did_you_mean(text.substr(0, text.find('=')), names));
    if (meanings.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [help, who] : meanings) parts.push_back(fmt::format("{} ({})", join(who, ", "), help));
    fail(Exit::usage, "--set {}: '{}' means different things to {}; write METHOD.{}={}", text, given.key,
         join(parts, " and "), given.key, given.value);
  }
}

class Planner {
 public:
  Planner(Experiment experiment, const BenchOptions& options, Shelf& shelf)
      : options_(options), shelf_(shelf) {
    plan.experiment = experiment;
    const auto& names = options.methods.empty() ? default_methods() : options.methods;
    for (const auto& name : names) methods_.push_back(MethodChoice::parse(name));
    set_ = joined_settings(options.set);
    check_settings(methods_, set_);
    file_ = SettingsFile::read(options.settings);
    for (const auto& name : options.tune_methods) tuned_.push_back(MethodChoice::parse(name));
    if (options.folds.empty() && options.mask.missing_labels >= 1)
      fail(Exit::usage, "--missing-labels 1 leaves no known label to learn from; give less than 1");
    if (!options.folds.empty() && options.data.size() > 1)
      fail(Exit::usage, "--folds belongs to one data set, {} are given", options.data.size());
    if (!options.folds.empty() && experiment == Experiment::complete)
      fail(Exit::usage,
           "bench complete makes its own splits without gaps, and the gaps of --folds {} would be in them; "
           "use "
           "bench table --folds {}",
           options.folds, options.folds);
    if (!options.folds.empty() && experiment == Experiment::missing)
      fail(Exit::usage,
           "bench missing draws gaps of several rates, and those of --folds {} cannot change; leave --folds "
           "out "
           "and give --train, --val, --repeats and --seed",
           options.folds);
    if (experiment == Experiment::complete &&
        (options.mask.missing_views > 0 || options.mask.missing_labels > 0))
      fail(Exit::usage,
           "bench complete is without gaps; bench table takes --missing-views and --missing-labels");
    std::map<std::string, int> uses;
    for (const auto& path : options.data) ++uses[shelf.data({path, options.read}).data.name];
    std::set<std::string> used;
    for (const auto& path : options.data) {
      const DataChoice choice{path, options.read};
      const Dataset& data = shelf.data(choice).data;
      // Sets that call themselves the same go by their files' names.
      const std::string own = uses[data.name] > 1 ? std::filesystem::path(path).stem().string() : data.name;
      std::string name = own;
      for (int copy = 2; !used.insert(name).second; ++copy) name = fmt::format("{} ({})", own, copy);
      data_.push_back(choice);
      names_.push_back(name);
      if (data.labels.empty())
        fail(Exit::data, "{}: has no labels, so nothing can be learned or scored", path);
    }
  }

  // Adds one cell for every repetition of a data set.
  void add(std::size_t data, const MethodChoice& method, const std::map<std::string, std::string>& settings,
           const MaskOptions& mask, const json& place, const std::string& without_view = "") {
    const FoldChoice folds{options_.folds, mask};
    const std::size_t available = shelf_.folds(data_[data], folds).folds.size();
    const auto wanted = static_cast<std::size_t>(options_.mask.repeats);
    for (std::size_t fold = 0; fold < std::min(available, wanted); ++fold) {
      PlannedCell cell;
      cell.spec.method = method;
      cell.spec.settings = file_.find(method, names_[data]);
      for (const auto& [key, value] : settings_for(method, set_)) cell.spec.settings[key] = value;
      for (const auto& [key, value] : settings) cell.spec.settings[key] = value;
      cell.spec.data = data_[data];
      cell.spec.folds = folds;
      cell.spec.fold = fold;
      cell.spec.without_view = without_view;
      cell.spec.protocol = protocol_from_name(options_.protocol);
      cell.spec.seed = options_.mask.seed + fold;
      if (plan.experiment == Experiment::timing) cell.spec.task = Task::timing;
      const bool tuned = std::any_of(tuned_.begin(), tuned_.end(), [&](const MethodChoice& one) {
        return one.name == method.name && (one.preset.empty() || one.preset == method.preset_used());
      });
      if (tuned && plan.experiment != Experiment::similarity) cell.spec.tune = options_.tune;
      if (plan.experiment == Experiment::similarity) {
        cell.spec.task = Task::similarity;
        for (double epoch : options_.epochs) cell.spec.epochs.push_back(std::llround(epoch));
      }
      cell.id = cell_id(cell.spec, shelf_);
      cell.place = place;
      cell.place["data"] = names_[data];
      cell.place["method"] = method.text();
      cell.place["fold"] = fold;
      plan.cells.push_back(std::move(cell));
    }
  }

  void plain() {
    for (std::size_t d = 0; d < data_.size(); ++d)
      for (const auto& method : methods_) add(d, method, {}, options_.mask, json::object());
  }
  void ablation() {
    for (std::size_t d = 0; d < data_.size(); ++d)
      for (const auto& method : methods_)
        for (const auto& row : ablation_rows())
          add(d, method, row.settings, options_.mask, {{"row", row.name}});
  }
  void sensitivity() {
    const auto text = [](double value) { return fmt::format("{}", value); };
    for (std::size_t d = 0; d < data_.size(); ++d)
      for (const auto& method : methods_) {
        for (double alpha : options_.alphas)
          for (double beta : options_.betas)
            add(d, method, {{"alpha", text(alpha)}, {"beta", text(beta)}}, options_.mask,
                {{"figure", "alpha-beta"}, {"alpha", alpha}, {"beta", beta}});
        for (double gamma : options_.gammas)
          add(d, method, {{"gamma", text(gamma)}}, options_.mask, {{"figure", "gamma"}, {"gamma", gamma}});
        for (double sigma : options_.sigmas)
          add(d, method, {{"mask-rate", text(sigma)}}, options_.mask,
              {{"figure", "sigma"}, {"sigma", sigma}});
      }
  }
  void missing() {
    for (std::size_t d = 0; d < data_.size(); ++d) {
      const Dataset& data = shelf_.data(data_[d]).data;
      const double most = 1 - 1 / static_cast<double>(data.views.size());
      for (const auto& method : methods_) {
        for (double rate : options_.rates) {
          MaskOptions mask = options_.mask;
          mask.missing_labels = rate;
          add(d, method, {}, mask, {{"figure", "labels"}, {"rate", rate}});
          if (rate > most) continue;
          mask = options_.mask;
          mask.missing_views = rate;
          add(d, method, {}, mask, {{"figure", "views"}, {"rate", rate}});
        }
        if (data.views.size() < 2) continue;
        MaskOptions mask = options_.mask;
        mask.missing_views = 0;
        add(d, method, {}, mask, {{"figure", "without"}, {"view", ""}});
        for (const auto& view : data.views)
          add(d, method, {}, mask, {{"figure", "without"}, {"view", view.name}}, view.name);
      }
      if (!options_.rates.empty() && *std::max_element(options_.rates.begin(), options_.rates.end()) > most)
        plan.remarks.push_back(
            fmt::format("{} has {} views, so at most {:.3f} of them can be missing if every item keeps one",
                        names_[d], data.views.size(), most));
    }
  }

  void finish(const std::string& command) {
    if (plan.cells.empty()) fail(Exit::usage, "there is nothing to run");
    json data = json::array(), methods = json::array(), cells = json::array();
    for (std::size_t d = 0; d < data_.size(); ++d) {
      const Shelf::Book& book = shelf_.data(data_[d]);
      json views = json::array();
      for (const auto& view : book.data.views)
        views.push_back({{"name", view.name}, {"columns", view.columns()}});
      const Folds& folds = shelf_.folds(data_[d], {options_.folds, options_.mask});
      const bool authors = options_.protocol == "authors";
      const std::size_t tested = book.data.rows - folds.train_rows() - (authors ? 0 : folds.val_rows());
      double positives = 0;
      for (std::size_t i = 0; i < book.data.rows; ++i)
        for (std::size_t j = 0; j < book.data.label_count(); ++j) positives += book.data.labels(i, j) == 1;
      const auto rows = static_cast<double>(book.data.rows);
      data.push_back({{"name", names_[d]},
                      {"path", data_[d].path},
                      {"hash", book.hash},
                      {"rows", book.data.rows},
                      {"labels", book.data.label_count()},
                      {"cardinality", positives / rows},
                      {"train", static_cast<double>(folds.train_rows()) / rows},
                      {"test", static_cast<double>(tested) / rows},
                      {"views", views}});
    }
    for (const auto& method : methods_) {
      const Traits traits = make_method(method.name)->traits();
      const bool beside =
          method.name == "prior" || (options_.methods.empty() && method.name == kDefaultMethod);
      methods.push_back({{"key", method.text()},
                         {"name", method.name},
                         {"title", method.title()},
                         {"source", traits.source},
                         {"reconstructed", traits.reconstructed},
                         {"ranked", !beside},
                         {"prepare", prepare_of(method)},
                         {"multi_view", traits.multi_view},
                         {"missing_views", traits.missing_views},
                         {"missing_labels", traits.missing_labels}});
    }
    for (const auto& cell : plan.cells) {
      json entry = cell.place;
      entry["cell"] = cell.id;
      cells.push_back(std::move(entry));
    }
    Options mask_options;
    MaskOptions mask = options_.mask;
    mask.declare(mask_options);
    plan.header = {{"schema", "lacuna.experiment.1"},
                   {"kind", experiment_name(plan.experiment)},
                   {"name", options_.name.empty() ? experiment_name(plan.experiment) : options_.name},
                   {"command", command},
                   {"protocol", options_.protocol},
                   {"mask", mask_options.json()},
                   {"folds", options_.folds},
                   {"set", set_},
                   {"settings", options_.settings},
                   {"tune", options_.tune},
                   {"metric", options_.metric},
                   {"level", options_.level},
                   {"data", data},
                   {"methods", methods},
                   {"remarks", plan.remarks},
                   {"cells", cells}};
  }

  Plan plan;

 private:
  // The preparation of a method's inputs, which differs between methods and is part of what is compared.
  std::string prepare_of(const MethodChoice& method) const {
    for (const auto& cell : plan.cells)
      if (cell.spec.method.text() == method.text())
        return resolved_options(cell.spec).value("prepare", std::string());
    return "";
  }

  const BenchOptions& options_;
  Shelf& shelf_;
  SettingsFile file_;
  std::vector<MethodChoice> methods_, tuned_;
  std::vector<std::string> set_;
  std::vector<DataChoice> data_;
  std::vector<std::string> names_;
};

}  // namespace

Plan make_plan(Experiment experiment, const BenchOptions& options, const std::string& command, Shelf& shelf) {
  Planner planner(experiment, options, shelf);
  switch (experiment) {
    case Experiment::table:
    case Experiment::complete:
    case Experiment::similarity:
    case Experiment::timing:
      planner.plain();
      break;
    case Experiment::ablation:
      planner.ablation();
      break;
    case Experiment::sensitivity:
      planner.sensitivity();
      break;
    case Experiment::missing:
      planner.missing();
      break;
  }
  planner.finish(command);
  return std::move(planner.plan);
}

namespace {

// "other methods (prior; now prior, mtd)": the first thing that tells two plans apart, or "". What was asked
// for comes before what follows from it.
std::string difference(const json& before, const json& now) {
  const auto names = [](const json& list, const char* key) {
    std::vector<std::string> found;
    for (const auto& one : list) found.push_back(one.at(key).get<std::string>());
    return join(found, ", ");
  };
  for (const auto& [key, words] :
       {std::pair("kind", "another experiment"), std::pair("data", "other data sets"),
        std::pair("methods", "other methods"), std::pair("set", "other settings"),
        std::pair("protocol", "another protocol"), std::pair("folds", "another folds file"),
        std::pair("mask", "other gaps, splits or repetitions"), std::pair("metric", "another metric"),
        std::pair("level", "another level"), std::pair("cells", "settings that ask for other cells")}) {
    const json was = before.value(key, json()), is = now.value(key, json());
    if (was == is) continue;
    const std::string name = key;
    if (name == "data" || name == "methods") {
      const char* inner = name == "data" ? "path" : "key";
      return fmt::format("{} ({}; now {})", words, names(was, inner), names(is, inner));
    }
    if (name == "cells") return fmt::format("{} ({}; now {})", words, was.size(), is.size());
    return fmt::format("{} ({}; now {})", words, was.dump(), is.dump());
  }
  return "";
}

}  // namespace

void record_plan(const Plan& plan, const BenchOptions& options, const CellStore& store) {
  const std::string path =
      store.directory() + "/experiments/" + plan.header.at("name").get<std::string>() + ".json";
  const json before = read_json(path);
  if (before.is_null()) {
    write_text(path, plan.header.dump(1) + "\n");
    return;
  }
  if (!options.resume)
    fail(Exit::usage, "{} is there already; --resume goes on with it, --name gives a second one its own name",
         path);
  if (const std::string found = difference(before, plan.header); !found.empty())
    fail(Exit::usage, "{} was made with {}; give the same flags to resume it, or another --name", path,
         found);
}

std::string epoch_text(const EpochRecord& record) {
  return (record.members > 1 ? fmt::format("member {} of {}, ", record.member + 1, record.members) : "") +
         fmt::format("epoch {} of {}", record.epoch, record.epochs);
}

std::string BenchProgress::text() const {
  std::string line = fmt::format("{} of {} done", done, total);
  if (failed > 0) line += fmt::format(", {} failed", failed);
  if (elsewhere > 0) line += fmt::format(", {} run by other processes", elsewhere);
  if (seconds_left > 0) line += fmt::format(", about {} left", duration_text(seconds_left));
  if (untimed > 0)
    line += fmt::format("{} {} cells of methods not timed yet", seconds_left > 0 ? " and" : ",", untimed);
  return line + "; " + note;
}

std::string run_claimed(const Claim& claim, const CellSpec& spec, const BenchOptions& options,
                        CellStore& store, Shelf& shelf, const EpochWatch& watch) {
  std::string error;
  Exit code = Exit::failed;
  try {
    const CellFiles files = run_cell(spec, shelf, watch);
    store.finish(claim, files.text(options.keep_scores));
    return files.result.contains("metrics")
               ? fmt::format(": {} {:.4f}", options.metric, files.result["metrics"].value(options.metric, 0.))
               : "";
  } catch (const Error& caught) {
    if (caught.code() == Exit::interrupted) throw;
    error = caught.what();
    code = caught.code();
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  store.fail(claim, {{"schema", "lacuna.failure.1"},
                     {"spec", spec.json()},
                     {"error", error},
                     {"code", static_cast<int>(code)}});
  return " failed: " + error;
}

BenchOutcome work_off(const Plan& plan, const BenchOptions& options, CellStore& store, Shelf& shelf,
                      const std::function<void(const BenchProgress&)>& tell,
                      const std::function<void(const PlannedCell&)>& apart) {
  using State = CellStore::State;
  // One cell may stand at several places; it is run once.
  std::vector<const PlannedCell*> cells;
  std::set<std::string> seen;
  for (const auto& cell : plan.cells)
    if (seen.insert(cell.id).second) cells.push_back(&cell);
  if (options.retry_failed)
    for (const auto* cell : cells) store.forget_failure(cell->id);

  store.sweep();
  BenchOutcome outcome;
  std::map<std::string, std::pair<double, std::size_t>> seconds_of;  // by method and data
  const auto group = [](const PlannedCell& cell) {
    return cell.spec.method.text() + "\n" + cell.spec.data.path;
  };
  const auto timed = [&](const PlannedCell& cell, double seconds) {
    auto& sum = seconds_of[group(cell)];
    sum.first += seconds;
    ++sum.second;
  };
  for (const auto* cell : cells)  // an earlier run has timed some already
    if (const json run = store.read(cell->id, "run.json"); run.is_object())
      timed(*cell, run.at("seconds").value("total", 0.));
  std::vector<State> states(cells.size(), State::open);
  std::size_t running = cells.size();  // the cell that this process runs
  double running_left = 0;
  const auto report = [&](const std::string& note, bool inside) {
    BenchProgress progress{.total = cells.size(), .inside = inside, .note = note};
    progress.seconds_left = running_left;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (states[i] == State::running && i != running)
        states[i] = store.state(cells[i]->id);  // others finish theirs meanwhile
      progress.done += states[i] == State::done;
      progress.failed += states[i] == State::failed;
      progress.elsewhere += states[i] == State::running && i != running;
      if (states[i] != State::open) continue;
      const auto at = seconds_of.find(group(*cells[i]));
      if (at == seconds_of.end())
        ++progress.untimed;
      else
        progress.seconds_left += at->second.first / static_cast<double>(at->second.second);
    }
    tell(progress);
  };

  for (;;) {
    bool ran = false, waiting = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (states[i] == State::done || states[i] == State::failed) continue;
      const PlannedCell& cell = *cells[i];
      auto claim = apart ? nullptr : store.claim(cell.id);
      states[i] = store.state(cell.id);
      if (apart ? states[i] != State::open : claim == nullptr) {
        waiting = waiting || states[i] == State::running || states[i] == State::open;
        continue;
      }
      const std::string what =
          fmt::format("{} on {}, repetition {}", cell.place.at("method").get<std::string>(),
                      cell.place.at("data").get<std::string>(), cell.spec.fold + 1);
      states[i] = State::running;
      running = i;
      const auto known = seconds_of.find(group(cell));
      running_left =
          known == seconds_of.end() ? 0 : known->second.first / static_cast<double>(known->second.second);
      report("running " + what, true);
      const Stopwatch watch;
      double told = 0;
      std::string note = what;
      if (apart) {
        apart(cell);
      } else {
        note += run_claimed(*claim, cell.spec, options, store, shelf, [&](const EpochRecord& record) {
          if (const double share = record.share_done(); share > 0)
            running_left = watch.seconds() * (1 - share) / share;
          if (watch.seconds() - told < .2) return;
          told = watch.seconds();
          report(fmt::format("running {}, {}", what, epoch_text(record)), true);
        });
        claim.reset();
      }
      note += ", " + duration_text(watch.seconds());
      running = cells.size();
      running_left = 0;
      states[i] = store.state(cell.id);
      if (states[i] == State::open) fail(Exit::failed, "the process of {} ended without a result", what);
      timed(cell, watch.seconds());
      ++outcome.ran;
      ran = true;
      report(note, false);
    }
    if (!waiting) break;
    if (stop_requested) fail(Exit::interrupted, "interrupted");
    if (!ran) {
      report("waiting for cells that other processes run", false);
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
  for (const State state : states) {
    outcome.done += state == State::done;
    outcome.failed += state == State::failed;
  }
  return outcome;
}

}  // namespace lacuna
