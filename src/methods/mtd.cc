// MTD (NeurIPS 2023) and its presets. The computation is nn/mtd.h; this file says what is called what.
#include "methods/mtd.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "methods/all.h"
#include "nn/make.h"

namespace lacuna {
namespace {

enum Preset : std::size_t { kBest, kRepaired, kAuthors, kPaper, kPresets };
constexpr std::array<const char*, kPresets> kPresetNames = {"best", "repaired", "authors", "paper"};

// A setting in each preset, in the order above. `repaired` is `authors` with its flaws mended, `paper`
// computes the equations as printed with the published corrections; where the paper is silent it takes the
// authors' value.
struct Row {
  const char* option;
  std::array<const char*, kPresets> values;
};
constexpr const char* kWide = "0.8d,0.8d,1500";
constexpr const char* kWideBack = "1e,1500,0.8d,0.8d";

const Row kTable[] = {
    // the network
    {"encoder-widths", {"1024", kWide, kWide, kWide}},
    {"end-norm", {"layer", "batch-present", "batch", "none"}},
    {"channels", {"1", "2", "2", "2"}},
    {"fused-relu", {"true", "true", "true", "false"}},
    {"classifier-bias", {"-4", "0", "0", "0"}},
    {"decoder-widths", {"512", kWideBack, kWideBack, "1500,0.8d,0.8d"}},
    {"decoder-input", {"fused", "sum", "sum", "sum"}},
    // masks
    {"mask-start", {"paper", "authors", "authors", "paper"}},
    {"mask-length", {"exact", "exact", "exact", "inclusive"}},
    {"view-dropout", {"0.3", "0", "0", "0"}},
    {"hidden-dropout", {"0.5", "0", "0", "0"}},
    {"fused-dropout", {"0.3", "0", "0", "0"}},
    // losses
    {"bce-form", {"softplus", "log", "log", "softplus"}},
    {"bce-divisor", {"known", "known", "known", "all"}},
    {"alpha", {"0", "1e-4", "1e-4", "0.4"}},
    {"beta", {"0", "1e-4", "1e-4", "0.4"}},
    {"gamma", {"0.01", "0.1", "0.1", "0.1"}},
    {"graph-normalise", {"true", "true", "true", "false"}},
    {"contrast-factor", {"0.5", "0.5", "0.5", "1"}},
    {"contrast-epsilon", {"1e-6", "1e-6", "1e-6", "0"}},
    {"contrast-count", {"views", "views", "views", "pairs"}},
    {"reconstruction-target", {"clean", "clean", "masked", "clean"}},
    {"view-weight", {"3", "0", "0", "0"}},
    {"guess-weight", {"0.3", "0", "0", "0"}},
    // training
    {"epochs", {"100", "200", "200", "200"}},
    {"shuffle", {"true", "true", "false", "true"}},
    {"drop-last", {"true", "false", "false", "false"}},
    {"optimiser", {"adamw", "sgd", "sgd", "sgd"}},
    {"rate", {"1e-3", "0.1", "0.1", "0.1"}},
    {"weight-decay", {"5", "0", "0", "0"}},
    {"decay-rows", {"3500", "0", "0", "0"}},  // those of Corel5k, where 5 was found
    {"schedule", {"cosine", "constant", "constant", "constant"}},
    {"warm-up", {"1", "0", "0", "0"}},
    {"average", {"0.99", "0", "0", "0"}},
    // inputs
    {"prepare", {"root-pca", "zscore", "zscore", "zscore"}},
    {"leaky-prepare", {"false", "false", "true", "false"}},
};

// Preset `distilled`: the settings of `best`, and what its members change in them. Teachers and students are
// as different from each other as could be found without being much worse alone (docs/best.md). The students
// are in the order in which smaller ensembles take them.
constexpr const char* kDistilled = "distilled";
using Changes = std::vector<Setting>;
const Changes kWider = {{"encoder-widths", "2048"}, {"weight-decay", "8"}};
const Changes kLogarithm = {{"prepare", "log-pca"}};
const Changes kEarly = {{"fusion", "early"}, {"encoder-widths", "2048"}, {"gamma", "0"}};
const Changes kHalfWhite = {{"components", "192"}, {"whiten", "0.5"}};
const Changes kKernel = {{"prepare", "rbf-pca"}};
const Changes kNoGuesses = {{"guess-weight", "0"}};
const Changes kTaught = {{"guess-weight", "1"}, {"guess-from", "0"}};

Changes operator+(Changes left, const Changes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::array<Changes, 3>& teachers() {
  static const std::array<Changes, 3> all = {kLogarithm + kNoGuesses, kWider + kNoGuesses,
                                             kEarly + kNoGuesses};
  return all;
}
const std::array<Changes, 6>& students() {
  static const std::array<Changes, 6> all = {
      kWider + kTaught,     kEarly + kHalfWhite + kTaught,     kEarly + kKernel + kTaught,
      kLogarithm + kTaught, kLogarithm + kHalfWhite + kTaught, kEarly + kTaught};
  return all;
}

}  // namespace

std::unique_ptr<Network> TwoChannelMethod::make_network(const NetworkShape& shape, std::uint64_t seed) const {
  return lacuna::make_network<float>(network_options_, shape, seed, make_cpu_ops(precision()));
}

void TwoChannelMethod::channels(const Items& items, std::vector<Matrix<float>>& shared,
                                std::vector<Matrix<float>>& own) const {
  const auto* two = dynamic_cast<const MtdNetwork<float>*>(network());
  if (two == nullptr || network_options_.channels != 2)
    fail(Exit::usage, "only a network with two channels has them to show (--channels 2, --fusion mean)");
  two->channels(items, shared, own);
}

Traits Mtd::traits() const {
  return {
      .name = "mtd", .title = "MTD", .source = "NeurIPS 2023", .probabilities = true, .prepare = "root-pca"};
}

void Mtd::declare(Options& options) {
  network_options_.declare(options);
  train_options_.declare(options);
  declare_precision(options);
}

std::vector<std::string> Mtd::presets() const {
  std::vector<std::string> names(kPresetNames.begin(), kPresetNames.end());
  names.insert(names.begin() + 1, kDistilled);
  return names;
}

void Mtd::set_preset(const std::string& name, PrepareOptions& prepare) {
  const std::string settings = name == kDistilled ? kPresetNames[kBest] : name;
  const auto at = static_cast<std::size_t>(std::ranges::find(kPresetNames, settings) - kPresetNames.begin());
  if (at == kPresets)
    fail(Exit::usage, "mtd has no preset '{}'{} (it has {})", name, did_you_mean(name, presets()),
         join(presets(), ", "));
  network_options_ = MtdOptions();
  train_options_ = TrainOptions();
  Options options;
  declare(options);
  prepare.declare(options);
  for (const Row& row : kTable) options.set(row.option, row.values[at], "preset " + name);
}

std::vector<MemberPlan> Mtd::plan(const std::string& preset, std::size_t members) const {
  if (preset != kDistilled) return Method::plan(preset, members);
  std::vector<MemberPlan> plan;
  for (const Changes& changes : teachers()) plan.push_back({changes, true});
  const std::size_t count = members == 0 ? students().size() : members;
  for (std::size_t k = 0; k < count; ++k) plan.push_back({students()[k % students().size()], false});
  return plan;
}

std::unique_ptr<Method> make_mtd() {
  return std::make_unique<Mtd>();
}

}  // namespace lacuna
