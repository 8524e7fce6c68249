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
    // training
    {"epochs", {"100", "200", "200", "200"}},
    {"shuffle", {"true", "true", "false", "true"}},
    {"drop-last", {"true", "false", "false", "false"}},
    {"optimiser", {"adamw", "sgd", "sgd", "sgd"}},
    {"rate", {"1e-3", "0.1", "0.1", "0.1"}},
    {"weight-decay", {"5", "0", "0", "0"}},
    {"schedule", {"cosine", "constant", "constant", "constant"}},
    {"warm-up", {"1", "0", "0", "0"}},
    {"average", {"0.99", "0", "0", "0"}},
    // inputs
    {"prepare", {"log-pca", "zscore", "zscore", "zscore"}},
    {"leaky-prepare", {"false", "false", "true", "false"}},
};

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
      .name = "mtd", .title = "MTD", .source = "NeurIPS 2023", .probabilities = true, .prepare = "log-pca"};
}

void Mtd::declare(Options& options) {
  network_options_.declare(options);
  train_options_.declare(options);
  declare_precision(options);
}

std::vector<std::string> Mtd::presets() const {
  return {kPresetNames.begin(), kPresetNames.end()};
}

void Mtd::set_preset(const std::string& name, PrepareOptions& prepare) {
  const auto names = presets();
  const auto at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  if (at == names.size())
    fail(Exit::usage, "mtd has no preset '{}'{} (it has {})", name, did_you_mean(name, names),
         join(names, ", "));
  network_options_ = MtdOptions();
  train_options_ = TrainOptions();
  Options options;
  declare(options);
  prepare.declare(options);
  for (const Row& row : kTable) options.set(row.option, row.values[at], "preset " + name);
}

std::unique_ptr<Method> make_mtd() {
  return std::make_unique<Mtd>();
}

}  // namespace lacuna
