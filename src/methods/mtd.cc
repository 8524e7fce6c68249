// MTD (NeurIPS 2023) and its presets. The computation is nn/mtd.h; this file maps presets to its settings.
#include "methods/mtd.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/mapping.h"
#include "methods/all.h"
#include "nn/make.h"
#include "nn/row_order.h"
#include "ops/device.h"

namespace lacuna {
namespace {

enum Preset : std::size_t { kRepaired, kAuthors, kPaper, kPresets };
constexpr std::array<const char*, kPresets> kPresetNames = {"repaired", "authors", "paper"};

// A setting in each preset, in the order above. `repaired` is `authors` with its flaws mended, `paper`
// computes the equations as printed with the published corrections; where the paper is silent it takes the
// authors' value. Who sees which rows is a matter of the protocol, not of a preset.
struct Row {
  const char* option;
  std::array<const char*, kPresets> values;
};
constexpr const char* kWide = "0.8d,0.8d,1500";
constexpr const char* kWideBack = "1e,1500,0.8d,0.8d";

const Row kTable[] = {
    // the network
    {"encoder-widths", {kWide, kWide, kWide}},
    {"end-norm", {"batch-present", "batch", "none"}},
    {"channels", {"2", "2", "2"}},
    {"fused-relu", {"true", "true", "false"}},
    {"classifier-bias", {"0", "0", "0"}},
    {"decoder-widths", {kWideBack, kWideBack, "1500,0.8d,0.8d"}},
    {"decoder-input", {"sum", "sum", "sum"}},
    // masks
    {"mask-start", {"authors", "authors", "paper"}},
    {"mask-length", {"exact", "exact", "inclusive"}},
    {"view-dropout", {"0", "0", "0"}},
    {"hidden-dropout", {"0", "0", "0"}},
    {"fused-dropout", {"0", "0", "0"}},
    // losses
    {"bce-form", {"log", "log", "softplus"}},
    {"bce-divisor", {"known", "known", "all"}},
    {"alpha", {"1e-4", "1e-4", "0.4"}},
    {"beta", {"1e-4", "1e-4", "0.4"}},
    {"gamma", {"0.1", "0.1", "0.1"}},
    {"graph-normalise", {"true", "true", "false"}},
    {"contrast-factor", {"0.5", "0.5", "1"}},
    {"contrast-epsilon", {"1e-6", "1e-6", "0"}},
    {"contrast-count", {"views", "views", "pairs"}},
    {"reconstruction-target", {"clean", "masked", "clean"}},
    {"view-weight", {"0", "0", "0"}},
    {"guess-weight", {"0", "0", "0"}},
    // training
    {"epochs", {"200", "200", "200"}},
    {"shuffle", {"true", "false", "true"}},
    {"drop-last", {"false", "false", "false"}},
    {"optimiser", {"sgd", "sgd", "sgd"}},
    {"rate", {"0.1", "0.1", "0.1"}},
    {"weight-decay", {"0", "0", "0"}},
    {"decay-rows", {"0", "0", "0"}},
    {"schedule", {"constant", "constant", "constant"}},
    {"warm-up", {"0", "0", "0"}},
    {"average", {"0", "0", "0"}},
    // inputs
    {"prepare", {"zscore", "zscore", "zscore"}},
};

}  // namespace

std::unique_ptr<Network> TwoChannelMethod::make_network(const NetworkShape& shape, std::uint64_t seed) const {
  return lacuna::make_network<float>(network_options_, shape, seed, make_ops(current_device(), precision()));
}

std::vector<bool> TwoChannelMethod::views_read(const ItemShape& shape, const Ranks& ranks) const {
  return lacuna::views_read(network_options_,
                            {.columns = shape.columns, .labels = shape.labels, .ranks = &ranks});
}

void TwoChannelMethod::channels(const Items& items, std::vector<Matrix<float>>& shared,
                                std::vector<Matrix<float>>& own) const {
  const auto* two = dynamic_cast<const MtdNetwork<float>*>(network());
  if (two == nullptr || network_options_.channels != 2)
    fail(Exit::usage, "only a network with two channels can show them (--channels 2, --fusion mean)");
  two->channels(items, shared, own);
}

// Six operations a weight and row; a missing instance costs nothing. Weights, momentum and what a step keeps.
Cost TwoChannelMethod::cost(const FitSize& size) const {
  const MtdOptions& o = network_options_;
  const std::size_t e = o.embedding > 0 ? static_cast<std::size_t>(o.embedding) : size.labels;
  double weights = 0, work = 0;
  for (std::size_t v = 0; v < size.columns.size(); ++v) {
    const std::size_t d = size.columns[v];
    const auto path = [&](const std::vector<std::string>& hidden, std::size_t in, std::size_t out) {
      double sum = 0;
      for (const std::size_t width : resolve_widths(hidden, d, e, o.width))
        sum += static_cast<double>(in) * static_cast<double>(width), in = width;
      return sum + static_cast<double>(in) * static_cast<double>(out);
    };
    const double own = static_cast<double>(o.channels) * path(o.encoder_widths, d, e) +
                       (o.gamma > 0 ? path(o.decoder_widths, e, d) : 0);
    weights += own;
    work += own * static_cast<double>(size.present[v]);
  }
  if (o.fusion == Fusion::both) {  // every row passes twice
    const auto columns = std::accumulate(size.columns.begin(), size.columns.end(), std::size_t{0});
    double joint = 0;
    std::size_t in = columns;
    for (const std::size_t width : resolve_widths(o.joint_widths, columns, e, o.width))
      joint += static_cast<double>(in) * static_cast<double>(width), in = width;
    joint += static_cast<double>(in) * static_cast<double>(e);
    weights += joint;
    work += 2 * joint * static_cast<double>(size.rows);
  }
  const double state = train_options_.optimiser == Optimiser::sgd ? 8 : 16;
  const double labels = static_cast<double>(size.rows * size.labels);
  // Labels, what is known of them, and soft labels. With rows in files: soft labels, what is known, the best parameters so
  // far, and the two windows of rows that are in memory.
  double rows = 12 * labels;
  if (size.mapped) {
    const auto columns = std::accumulate(size.columns.begin(), size.columns.end(), std::size_t{0});
    const std::size_t row = columns * sizeof(float) + size.columns.size() + size.labels * (sizeof(float) + 1);
    const std::size_t window = std::min(size.rows, window_rows(train_options_, true, row));
    double resident = 0;
    const auto array = [&](std::size_t bytes) {
      resident +=
          static_cast<double>(std::min(size.rows * bytes, window * bytes + kBlocksInWindow * kAroundBytes));
    };
    for (const std::size_t d : size.columns) array(d * sizeof(float));
    array(size.labels * (sizeof(float) + 1) + size.columns.size());
    rows = (o.guess_weight > 0 ? 5 : 1) * labels + 4 * weights + 2 * resident;
  }
  const double rate = precision() == Precision::bf16 ? 120e9 : 60e9,
               epochs = static_cast<double>(train_options_.epochs);
  // A GPU is bound by the bytes of weights and state (20 a weight and step at 2 TB/s); a core waits for it.
  const double steps = static_cast<double>(size.rows) / static_cast<double>(train_options_.batch);
  return {current_device().cuda ? 20 * weights * steps * epochs / 2e12 : 6 * work * epochs / rate,
          weights * state + 4e4 * static_cast<double>(e) + rows, weights * state};
}

void PresetNetwork::declare(Options& options) {
  network_options_.declare(options);
  train_options_.declare(options);
  declare_precision(options);
}

void PresetNetwork::put_in_place(const std::string& preset, const std::vector<Setting>& settings,
                                 PrepareOptions& prepare) {
  network_options_ = MtdOptions();
  train_options_ = TrainOptions();
  Options options;
  declare(options);
  prepare.declare(options);
  for (const auto& [name, value] : settings) options.set(name, value, "preset " + preset);
}

Traits Mtd::traits() const {
  return {.name = "mtd",
          .title = "MTD",
          .source = "NeurIPS 2023",
          .divides = true,
          .streams = true,
          .probabilities = true};
}

// What the paper's own study varies is worth tuning.
void Mtd::declare(Options& options) {
  PresetNetwork::declare(options);
  for (Option& option : options.all()) option.candidates.clear();
  options.find("alpha")->tunable({"1e-5", "1e-4", "1e-3", "1e-2"});
  options.find("beta")->tunable({"1e-5", "1e-4", "1e-3", "1e-2"});
  options.find("gamma")->tunable({"0.01", "0.1", "1"});
  options.find("mask-rate")->tunable({"0", "0.125", "0.25", "0.5"});
}

std::vector<std::string> Mtd::presets() const {
  return {kPresetNames.begin(), kPresetNames.end()};
}

void Mtd::set_preset(const std::string& name, PrepareOptions& prepare) {
  const auto at = static_cast<std::size_t>(std::ranges::find(kPresetNames, name) - kPresetNames.begin());
  if (at == kPresets) no_such_preset(name);
  std::vector<Setting> settings;
  for (const Row& row : kTable) settings.push_back({row.option, row.values[at]});
  put_in_place(name, settings, prepare);
}

std::unique_ptr<Method> make_mtd() {
  return std::make_unique<Mtd>();
}

}  // namespace lacuna
