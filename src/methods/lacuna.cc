// The project's own network: one small channel per view, trained for missing views and unknown labels, with a
// memory of the training rows (docs/best.md). Presets: `best` is one network, `paired` one with two branches,
// `distilled` several that teach each other.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "methods/all.h"
#include "methods/mtd.h"
#include "ops/row_kernels.h"

namespace lacuna {
namespace {

constexpr const char* kBest = "best";
const std::vector<Setting> kBestSettings = {
    // the network
    {"encoder-widths", "1024"},
    {"end-norm", "layer"},
    {"channels", "1"},
    {"fused-relu", "true"},
    {"classifier-bias", "-4"},
    {"decoder-widths", "512"},
    {"decoder-input", "fused"},
    // masks
    {"mask-start", "paper"},
    {"mask-length", "exact"},
    {"view-dropout", "0.3"},
    {"hidden-dropout", "0.5"},
    {"fused-dropout", "0.3"},
    // losses
    {"bce-form", "softplus"},
    {"bce-divisor", "known"},
    {"alpha", "0"},
    {"beta", "0"},
    {"gamma", "0.01"},
    {"graph-normalise", "true"},
    {"contrast-factor", "0.5"},
    {"contrast-epsilon", "1e-6"},
    {"contrast-count", "views"},
    {"reconstruction-target", "clean"},
    {"view-weight", "3"},
    {"guess-weight", "0.3"},
    // training
    {"epochs", "100"},
    {"shuffle", "true"},
    {"drop-last", "true"},
    {"optimiser", "adamw"},
    {"rate", "1e-3"},
    {"weight-decay", "5"},
    {"decay-rows", "3500"},  // those of Corel5k, where 5 was found
    {"schedule", "cosine"},
    {"warm-up", "1"},
    {"average", "0.99"},
    // after training
    {"memory", "auto"},
    // inputs
    {"prepare", "root-pca"},
    {"kernel-components", "0"},
};

// Preset `paired`: the settings of `best` with two branches (nn/pair.h) that read two maps of each view. More accurate on
// large sets, for half as much time again.
constexpr const char* kPaired = "paired";
using Changes = std::vector<Setting>;
const Changes kBranches = {
    {"fusion", "both"}, {"joint-widths", "1024"}, {"prepare", "root-rbf-pca"}, {"kernel-components", "160"}};

// Preset `distilled`: the settings of `best`, and what its members change in them. Teachers and students are
// as different from each other as could be found without being much worse alone (docs/ensembles.md). The students
// are in the order in which smaller ensembles take them.
constexpr const char* kDistilled = "distilled";
const Changes kWider = {{"encoder-widths", "2048"}, {"weight-decay", "8"}};
const Changes kLogarithm = {{"prepare", "log-pca"}};
const Changes kEarly = {{"fusion", "early"}, {"encoder-widths", "2048"}, {"gamma", "0"}};
const Changes kHalfWhite = {{"components", "192"}, {"whiten", "0.5"}};
const Changes kKernel = {{"prepare", "rbf-pca"}};
const Changes kNoGuesses = {{"guess-weight", "0"}};
const Changes kNoMemory = {{"memory", "off"}};  // a training row would vote for itself
const Changes kTaught = {{"guess-weight", "1"}, {"guess-from", "0"}};

Changes operator+(Changes left, const Changes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::array<Changes, 3>& teachers() {
  static const std::array<Changes, 3> all = {
      kLogarithm + kNoGuesses + kNoMemory, kWider + kNoGuesses + kNoMemory, kEarly + kNoGuesses + kNoMemory};
  return all;
}
const std::array<Changes, 6>& students() {
  static const std::array<Changes, 6> all = {
      kWider + kTaught,     kEarly + kHalfWhite + kTaught,     kEarly + kKernel + kTaught,
      kLogarithm + kTaught, kLogarithm + kHalfWhite + kTaught, kEarly + kTaught};
  return all;
}

// Preset `auto`: candidates, in the order in which a budget is spent. The first is `best`; the others are there for data
// on which something else is better, or errs differently (docs/results/auto.md).
constexpr const char* kAuto = "auto";
const std::vector<MemberPlan>& candidates() {
  static const std::vector<MemberPlan> all = {
      {{}, false, ""},
      {{}, false, "cdmm"},
      {kKernel + Changes{{"components", "192"}}, false, "linear"},
      {{}, false, "linear"},
      {{{"prepare", "auto"}}, false, ""},
      {kEarly, false, ""},
      {{}, false, "lvsl"},
      {kKernel, false, ""},
  };
  return all;
}

}  // namespace

Traits Lacuna::traits() const {
  return {.name = "lacuna",
          .title = "Lacuna",
          .source = "this program",
          .divides = true,
          .streams = true,
          .probabilities = true,
          .prepare = "root-pca"};
}

void Lacuna::declare(Options& options) {
  PresetNetwork::declare(options);
  memory_options_.declare(options);
}

std::vector<std::string> Lacuna::presets() const {
  return {kBest, kPaired, kDistilled, kAuto};
}

void Lacuna::set_preset(const std::string& name, PrepareOptions& prepare) {
  if (const auto all = presets(); std::ranges::find(all, name) == all.end()) no_such_preset(name);
  memory_options_ = MemoryOptions();
  put_in_place(name, name == kPaired ? kBestSettings + kBranches : kBestSettings, prepare);
}

std::vector<MemberPlan> Lacuna::plan(const std::string& preset, std::size_t members) const {
  if (preset == kAuto) {
    const auto& all = candidates();
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(
                                           members == 0 ? all.size() : std::min(members, all.size()))};
  }
  if (preset != kDistilled) return Method::plan(preset, members);
  std::vector<MemberPlan> plan;
  for (const Changes& changes : teachers()) plan.push_back({changes, true});
  const std::size_t count = members == 0 ? students().size() : members;
  for (std::size_t k = 0; k < count; ++k) plan.push_back({students()[k % students().size()], false});
  return plan;
}

bool Lacuna::chooses(const std::string& preset) const {
  return preset == kAuto;
}

void Lacuna::fit(const Items& train, const Items& val, FitContext& context) {
  memory_ = RowMemory();
  MemoryOptions options = memory_options_;
  if (const nlohmann::json* first = context.follows())
    options.use = fmt::format("{}", first->at("memory").get<double>());
  const bool off = options.weight() == 0.;  // a wrong one is refused before the training
  const std::size_t c = train.labels(), own = static_cast<std::size_t>(network_options_.embedding),
                    branches = network_options_.fusion == Fusion::both ? 2 : 1;
  train_options_.beside = off ? 0 : options.bytes(train.rows(), branches * (own > 0 ? own : c), c);
  NetworkMethod::fit(train, val, context);
  memory_ = RowMemory::fit(*network(), train, val, options, precision(), context);
}

nlohmann::json Lacuna::selected() const {
  nlohmann::json chosen = NetworkMethod::selected();
  chosen["memory"] = memory_.weight();
  return chosen;
}

void Lacuna::predict(const Items& items, MatrixView<float> scores) const {
  if (memory_.empty()) return NetworkMethod::predict(items, scores);
  network()->fused(items, [&](std::size_t begin, MatrixView<const float> Z, MatrixView<float> logits) {
    memory_.join(Z, logits);
    for (std::size_t i = 0; i < logits.rows; ++i)
      row_kernels().sigmoid(logits.cols, logits.row(i).data(), scores.row(begin + i).data());
  });
}

void Lacuna::predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const {
  if (memory_.empty()) return NetworkMethod::predict_sets(items, sets, values);
  const bool done = network()->fused_sets(
      items, sets, [&](std::size_t begin, MatrixView<const float> Z, MatrixView<float> logits) {
        memory_.join(Z, logits);
        for (std::size_t i = 0; i < logits.rows; ++i)
          std::ranges::copy(logits.row(i), values.row(begin + i).begin());
      });
  if (!done) Method::predict_sets(items, sets, values);
}

void Lacuna::save(Tensors& file) const {
  NetworkMethod::save(file);
  memory_.save(file);
}

void Lacuna::load(const Tensors& file, const ItemShape& shape) {
  NetworkMethod::load(file, shape);
  memory_ = RowMemory::load(file, network()->fused_size(), shape.labels, precision());
}

std::unique_ptr<Method> make_lacuna() {
  return std::make_unique<Lacuna>();
}

}  // namespace lacuna
