#include "experiments/paper.h"

#include <algorithm>

#include "base/text.h"

namespace lacuna {
namespace {

// What --quick makes of the networks: few epochs, a twentieth of their hidden width.
struct QuickSetting {
  const char* text;
  std::vector<std::string> methods;
};
const std::vector<QuickSetting> kQuickSettings = {{"epochs=10", {"c2ae", "dicnet", "mtd", kDefaultMethod}},
                                                  {"width=0.05", {"dicnet", "mtd", kDefaultMethod}},
                                                  {"hidden=26", {"c2ae"}}};

bool takes_part(const BenchOptions& options, const std::string& name) {
  const auto& methods = options.methods.empty() ? default_methods() : options.methods;
  return std::ranges::any_of(methods,
                             [&](const std::string& text) { return MethodChoice::parse(text).name == name; });
}

// Settings of the methods that take part. They come before what the user set, so that the user has the last word.
void set_first(BenchOptions& options, const std::vector<std::string>& names, const std::string& setting) {
  std::vector<std::string> set;
  for (const auto& name : names)
    if (takes_part(options, name)) set.push_back(name + "." + setting);
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

// The settings of --quick for the methods that take part, as far as --set does not say otherwise.
std::string quick_words(const BenchOptions& options) {
  std::vector<std::string> parts;
  for (const auto& [setting, names] : kQuickSettings) {
    const std::string text = setting, key = text.substr(0, text.find('='));
    std::vector<std::string> who;
    for (const auto& name : names)
      if (takes_part(options, name) && std::ranges::none_of(options.set, [&](const std::string& given) {
            return given.starts_with(key + "=") || given.starts_with(name + "." + key + "=");
          }))
        who.push_back(name);
    if (!who.empty()) parts.push_back(fmt::format("{} for {}", text, join(who, ", ")));
  }
  return fmt::format(
      "This is a quick run ({}small grids). It shows that everything works; its figures say "
      "nothing about methods.",
      parts.empty() ? "" : join(parts, "; ") + "; ");
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
  options.add(
      "quick", quick,
      "a quick check of everything: one repetition, small grids, networks with ten epochs and a twentieth of "
      "their hidden width (width=0.05, C2AE hidden=26); its figures say nothing about the methods");
}

void PaperOptions::settle(Options& options) {
  bench.settle(options);
  if (!quick) return;
  if (!options.find("repeats")->given) bench.mask.repeats = 1;
  if (!options.find("study-repeats")->given) study_repeats = 1;
}

std::vector<Plan> paper_plans(const PaperOptions& options, const std::string& command, Shelf& shelf) {
  const std::string caution = options.quick ? quick_words(options.bench) : "";
  std::vector<Plan> plans;
  for (const Experiment experiment : {Experiment::table, Experiment::complete, Experiment::ablation,
                                      Experiment::sensitivity, Experiment::similarity, Experiment::timing}) {
    BenchOptions part = options.bench;
    const bool study = experiment == Experiment::ablation || experiment == Experiment::sensitivity ||
                       experiment == Experiment::similarity;
    if (experiment == Experiment::complete) {
      part.mask.missing_views = part.mask.missing_labels = 0;
      part.mask.mechanism = "mcar", part.mask.patterns.clear();
    }
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
      for (const auto& [setting, names] : kQuickSettings) set_first(part, names, setting);
      part.alphas = part.betas = {1e-4, 1e-2};
      part.gammas = {1e-2, 1e-1, 1};
      part.sigmas = {0, .25, .5};
      part.epochs = {0, 3, 6, 10};
    }
    Plan plan = make_plan(experiment, part, command, shelf);
    if (options.quick) plan.header["caution"] = caution;
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace lacuna
