#include "experiments/plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/rates.h"
#include "experiments/gap_facts.h"
#include "experiments/given_settings.h"
#include "experiments/published.h"
#include "experiments/search.h"
#include "experiments/settings_file.h"

namespace lacuna {

using nlohmann::json;

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

namespace {

class Planner {
 public:
  Planner(Experiment experiment, const BenchOptions& options, Shelf& shelf)
      : options_(options), shelf_(shelf) {
    plan.experiment = experiment;
    const auto& names = options.methods.empty() ? default_methods() : options.methods;
    for (const auto& name : names) methods_.push_back(MethodChoice::parse(name));
    refuse_repeated(names);
    set_ = joined_settings(options.set);
    check_settings(methods_, set_);
    file_ = SettingsFile::read(options.settings);
    for (const auto& name : options.tune_methods)
      if (const auto method = MethodChoice::parse(name); !own_axes(Model(method.name)).empty())
        tuned_.push_back(method);
    if (options.folds.empty() && options.mask.missing_labels >= 1)
      fail(Exit::usage, "--missing-labels 1 leaves no known label to learn from; give less than 1");
    if (!options.folds.empty() && options.data.size() > 1)
      fail(Exit::usage, "--folds belongs to one data set, {} are given", options.data.size());
    if (!options.folds.empty() && experiment == Experiment::missing)
      fail(Exit::usage,
           "bench missing draws gaps of several rates, and those of --folds {} cannot change; omit "
           "--folds and give --train, --val, --repeats and --seed",
           options.folds);
    if (experiment == Experiment::complete && options.folds.empty() &&
        (options.mask.missing_views > 0 || options.mask.missing_labels > 0))
      fail(Exit::usage,
           "bench complete is without gaps; bench table takes --missing-views and --missing-labels");
    if (options.folds.empty() && options.mask.mechanism == "pattern") {
      if (experiment == Experiment::complete)
        fail(Exit::usage,
             "--mechanism pattern hides views, and bench complete hides none; bench table takes it");
      if (experiment == Experiment::missing)
        fail(Exit::usage,
             "bench missing hides views at several rates, and --mechanism pattern has none; use mcar or "
             "mnar");
    }
    std::map<std::string, int> uses;
    for (const auto& path : options.data) ++uses[shelf.data({path, options.read}).data.name];
    std::set<std::string> used;
    std::map<std::string, std::string> contents;  // by hash: where it was
    for (const auto& path : options.data) {
      const DataChoice choice{path, options.read};
      const Dataset& data = shelf.data(choice).data;
      if (const auto [at, fresh] = contents.emplace(shelf.data(choice).hash, path); !fresh)
        fail(Exit::usage, "--data {} and {} are the same data; name each data set once", at->second, path);
      // Sets that call themselves the same go by their files' names.
      const std::string own = uses[data.name] > 1 ? std::filesystem::path(path).stem().string() : data.name;
      std::string name = own;
      for (int copy = 2; !used.insert(name).second; ++copy) name = fmt::format("{} ({})", own, copy);
      data_.push_back(choice);
      names_.push_back(name);
      if (data.labels.empty())
        fail(Exit::data, "{}: has no labels, so nothing can be learned or scored", path);
    }
    mask_ = options.mask;
    if (!options.folds.empty()) take_facts();
    plan.remarks = file_.idle_tables(names_);
  }

  // Adds one cell for every repetition of a data set.
  void add(std::size_t data, const MethodChoice& method, const std::map<std::string, std::string>& settings,
           const MaskOptions& mask, const json& place, const std::string& without_view = "") {
    const FoldChoice folds = fold_choice(mask);
    for (std::size_t fold = 0; fold < static_cast<std::size_t>(mask_.repeats); ++fold) {
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
      cell.spec.seed = mask_.seed + fold;
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
      for (const auto& method : methods_) add(d, method, {}, mask_, json::object());
  }
  void ablation() {
    for (std::size_t d = 0; d < data_.size(); ++d)
      for (const auto& method : methods_)
        for (const auto& row : ablation_rows()) {
          add(d, method, row.settings, mask_, {{"row", row.name}});
          if (std::string_view(row.name) == "MTD") refuse_missing_parts(plan.cells.back().spec);
        }
  }
  // The row with all parts has them: without one, other rows would be named after what they do not contain.
  void refuse_missing_parts(const CellSpec& complete) const {
    const json used = resolved_options(complete);
    std::vector<std::string> off;
    for (const char* part : {"alpha", "beta", "gamma", "mask-rate"})
      if (used.value(part, 0.) == 0) off.push_back(part);
    if (!off.empty())
      fail(Exit::usage, "bench ablation removes parts one by one, and {} has {} = 0; give --set {}.{}=VALUE",
           complete.method.text(), join(off, " = 0, "), complete.method.name, off.front());
  }
  void sensitivity() {
    const auto text = [](double value) { return fmt::format("{}", value); };
    for (std::size_t d = 0; d < data_.size(); ++d)
      for (const auto& method : methods_) {
        for (double alpha : options_.alphas)
          for (double beta : options_.betas)
            add(d, method, {{"alpha", text(alpha)}, {"beta", text(beta)}}, mask_,
                {{"figure", "alpha-beta"}, {"alpha", alpha}, {"beta", beta}});
        for (double gamma : options_.gammas)
          add(d, method, {{"gamma", text(gamma)}}, mask_, {{"figure", "gamma"}, {"gamma", gamma}});
        for (double sigma : options_.sigmas)
          add(d, method, {{"mask-rate", text(sigma)}}, mask_, {{"figure", "sigma"}, {"sigma", sigma}});
      }
  }
  void missing() {
    for (std::size_t d = 0; d < data_.size(); ++d) {
      const Dataset& data = shelf_.data(data_[d]).data;
      const double most = 1 - 1 / static_cast<double>(data.views.size());
      for (const auto& method : methods_) {
        for (double rate : options_.rates) {
          MaskOptions mask = mask_;
          mask.missing_labels = rate;
          add(d, method, {}, mask, {{"figure", "labels"}, {"rate", rate}});
          if (rate > most) continue;
          mask = mask_;
          mask.missing_views = rate;
          add(d, method, {}, mask, {{"figure", "views"}, {"rate", rate}});
        }
        if (data.views.size() < 2) continue;
        MaskOptions mask = mask_;
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
    if (options_.tune > 0 &&
        std::ranges::none_of(plan.cells, [](const auto& cell) { return cell.spec.tune > 0; }))
      fail(Exit::usage, "--tune {} has no effect: {}", options_.tune,
           plan.experiment == Experiment::similarity
               ? std::string("bench similarity trains with the settings that are given")
               : fmt::format("none of the chosen methods is among --tune-methods {} with settings to try",
                             join(options_.tune_methods, ",")));
    json data = json::array(), methods = json::array(), cells = json::array();
    for (std::size_t d = 0; d < data_.size(); ++d) {
      const Shelf::Book& book = shelf_.data(data_[d]);
      json views = json::array();
      for (const auto& view : book.data.views)
        views.push_back({{"name", view.name}, {"columns", view.columns()}});
      const Folds& folds = shelf_.folds(data_[d], fold_choice(mask_));
      const Protocol protocol = protocol_from_name(options_.protocol);
      const std::size_t tested =
          book.data.rows - folds.train_rows() - (protocol == Protocol::authors ? 0 : folds.val_rows());
      double positives = 0;
      for (std::size_t i = 0; i < book.data.rows; ++i)
        for (std::size_t j = 0; j < book.data.label_count(); ++j) positives += book.data.labels(i, j) == 1;
      const auto rows = static_cast<double>(book.data.rows);
      data.push_back(
          {{"name", names_[d]},
           {"path", data_[d].path},
           {"hash", book.hash},
           {"rows", book.data.rows},
           {"labels", book.data.label_count()},
           {"cardinality", positives / rows},
           {"train", static_cast<double>(folds.train_rows()) / rows},
           {"test", static_cast<double>(tested) / rows},
           {"gaps", measure_gaps(book.data, folds, static_cast<std::size_t>(mask_.repeats), protocol).json()},
           {"views", views}});
    }
    for (const auto& method : methods_) {
      const Traits traits = make_method(method.name)->traits();
      // Whoever names methods compares them; by default the ranks are those of the paper's nine.
      const auto& nine = published_methods();
      const bool published = std::ranges::find(nine, method.name) != nine.end();
      const bool beside = method.name == "prior" || (options_.methods.empty() && !published);
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
    mask_.declare(mask_options);
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
  // Twice the same would be counted as more repetitions than there are.
  void refuse_repeated(const std::vector<std::string>& names) const {
    std::map<std::string, std::string> known;
    for (std::size_t i = 0; i < methods_.size(); ++i)
      if (const auto [at, fresh] =
              known.emplace(methods_[i].name + ":" + methods_[i].preset_used(), names[i]);
          !fresh)
        fail(Exit::usage, "--methods {} and {} are the same; name each method once", at->second, names[i]);
    const auto once = [](const char* flag, std::vector<double> values) {
      std::sort(values.begin(), values.end());
      if (const auto at = std::adjacent_find(values.begin(), values.end()); at != values.end())
        fail(Exit::usage, "--{} has {:g} twice; give each value once", flag, *at);
    };
    once("alphas", options_.alphas), once("betas", options_.betas), once("gammas", options_.gammas);
    once("sigmas", options_.sigmas), once("epochs", options_.epochs), once("rates", options_.rates);
  }

  // What the folds file says of gaps, splits and repetitions, in the place of flags that made none of them.
  void take_facts() {
    Folds folds = shelf_.folds(data_[0], fold_choice(mask_));
    const auto available = static_cast<std::int64_t>(folds.folds.size());
    if (mask_.repeats > available && options_.repeats_given)
      fail(Exit::usage, "--repeats {} was requested, --folds {} has {}", mask_.repeats, options_.folds,
           available);
    mask_.repeats = std::min(mask_.repeats, available);
    folds.folds.resize(static_cast<std::size_t>(mask_.repeats));
    const Rates rates = rates_of(shelf_.data(data_[0]).data, folds);
    double hidden = 0, existing = 0;
    for (std::size_t v = 0; v < rates.hidden.size(); ++v)
      hidden += rates.hidden[v] * rates.existing[v], existing += rates.existing[v];
    mask_.missing_views = existing > 0 ? hidden / existing : 0;
    mask_.missing_labels = rates.positives_hidden;
    mask_.train = folds.train_share, mask_.val = folds.val_share;
  }

  FoldChoice fold_choice(const MaskOptions& mask) const {
    return {options_.folds, mask, !options_.folds.empty() && plan.experiment == Experiment::complete};
  }

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
  MaskOptions mask_;  // as asked, or as the folds file has it
  std::vector<MethodChoice> methods_, tuned_;
  std::vector<std::string> set_;
  std::vector<DataChoice> data_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<const PlannedCell*> distinct_cells(std::span<const Plan> plans) {
  std::vector<const PlannedCell*> cells;
  std::set<std::string> seen;
  for (const Plan& plan : plans)
    for (const PlannedCell& cell : plan.cells)
      if (seen.insert(cell.id).second) cells.push_back(&cell);
  return cells;
}

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
    json was = before.value(key, json()), is = now.value(key, json());
    const std::string name = key;
    if (name == "data")  // what was measured follows from the rest, and older plans have none of it
      for (json* list : {&was, &is})
        for (auto& one : *list) one.erase("gaps");
    if (was == is) continue;
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
    fail(Exit::usage, "{} already exists; --resume continues it, --name gives a second one its own "
                      "name",
         path);
  if (const std::string found = difference(before, plan.header); !found.empty())
    fail(Exit::usage, "{} was made with {}; give the same flags to resume it, or another --name", path,
         found);
}

}  // namespace lacuna
