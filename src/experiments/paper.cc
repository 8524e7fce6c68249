#include "experiments/paper.h"

#include <algorithm>

namespace lacuna {
namespace {

constexpr const char* kQuick =
    "This is a quick run: few epochs of narrow networks, small grids. It shows that everything works; its "
    "figures say "
    "nothing about methods.";

const std::vector<std::string> kNetworks = {"c2ae", "dicnet", "mtd", kDefaultMethod};

// Settings of the methods that take part. They come before what the user set, so that the user has the last word.
void set_first(BenchOptions& options, const std::vector<std::string>& names, const std::string& setting) {
  std::vector<std::string> set;
  for (const auto& name : names) {
    const auto& methods = options.methods.empty() ? default_methods() : options.methods;
    if (std::any_of(methods.begin(), methods.end(),
                    [&](const std::string& text) { return MethodChoice::parse(text).name == name; }))
      set.push_back(name + "." + setting);
  }
  options.set.insert(options.set.begin(), set.begin(), set.end());
}

// Settings that the methods of a part do not have are meant for another part.
std::vector<std::string> settings_of(const BenchOptions& options, const std::vector<std::string>& methods) {
  std::vector<std::string> kept;
  for (const auto& text : options.set) {
    const std::string key = text.substr(0, text.find('='));
    const auto dot = key.find('.');
    if (dot == std::string::npos || std::any_of(methods.begin(), methods.end(), [&](const std::string& one) {
          return key.substr(0, dot) == one || key.substr(0, dot) == MethodChoice::parse(one).name;
        }))
      kept.push_back(text);
  }
  return kept;
}

}  // namespace

PaperOptions::PaperOptions() {
  bench.settings = "paper";
}

void PaperOptions::declare(Options& options) {
  bench.declare(options, Experiment::table);
  options
      .add("study-repeats", study_repeats,
           "repetitions of the studies of alpha x beta, gamma and the mask rate")
      .range(1, 1e6);
  options.add("quick", quick,
              "everything once, in minutes: one repetition, ten epochs of narrow networks, small grids; its "
              "figures say nothing about methods");
}

void PaperOptions::settle(Options& options) {
  bench.settle(options);
  if (!quick) return;
  if (!options.find("repeats")->given) bench.mask.repeats = 1;
  if (!options.find("study-repeats")->given) study_repeats = 1;
}

std::vector<Plan> paper_plans(const PaperOptions& options, const std::string& command, Shelf& shelf) {
  std::vector<Plan> plans;
  for (const Experiment experiment : {Experiment::table, Experiment::complete, Experiment::ablation,
                                      Experiment::sensitivity, Experiment::similarity, Experiment::timing}) {
    BenchOptions part = options.bench;
    const bool study = experiment == Experiment::ablation || experiment == Experiment::sensitivity ||
                       experiment == Experiment::similarity;
    if (experiment == Experiment::complete) part.mask.missing_views = part.mask.missing_labels = 0;
    if (!part.name.empty()) part.name += std::string("-") + experiment_name(experiment);
    if (study) {
      part.methods = {"mtd:authors"};
      part.set = settings_of(options.bench, part.methods);
      part.tune = 0;
    }
    if (experiment == Experiment::sensitivity)
      part.mask.repeats = std::min(part.mask.repeats, options.study_repeats);
    if (experiment == Experiment::similarity || experiment == Experiment::timing) part.mask.repeats = 1;
    if (experiment == Experiment::timing) part.tune = 0;
    if (options.quick) {
      set_first(part, kNetworks, "epochs=10");
      set_first(part, {"dicnet", "mtd"}, "width=0.05");
      part.alphas = part.betas = {1e-4, 1e-2};
      part.gammas = {1e-2, 1e-1, 1};
      part.sigmas = {0, .25, .5};
      part.epochs = {0, 3, 6, 10};
    }
    Plan plan = make_plan(experiment, part, command, shelf);
    if (options.quick) plan.header["caution"] = kQuick;
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace lacuna
