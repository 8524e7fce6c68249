// How time and memory grow: the small network's epoch against rows, views and labels, with the straight line
// fitted to it, and the peak memory of the paper's network against what it must hold. The sizes take turns,
// so that all meet the same machine; the median of a size counts.
//
//   bench_growth [--cpu-time]
#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <vector>

#include "base/threads.h"
#include "lines.h"
#include "networks.h"
#include "ops/peaks.h"

namespace lacuna {
namespace {

struct Size {
  std::size_t rows = 3500, views = 6, labels = 260;
};

std::unique_ptr<Network> trainee(const PresetOptions& options, const std::vector<std::size_t>& columns,
                                 const Size& size) {
  const NetworkShape shape{.columns = columns, .labels = size.labels, .training_rows = size.rows};
  auto network = make_network<float>(options.network, shape, 1, make_cpu_ops(Precision::bf16));
  network->keep({.second = options.train.optimiser != Optimiser::sgd, .mean = options.train.average > 0});
  return network;
}

void run_epoch(Network& network, const Items& items, UpdateRule rule, std::size_t steps) {
  constexpr std::size_t kBatch = 128;
  std::vector<std::uint32_t> order(items.rows());
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t s = 0; s < steps && (s + 1) * kBatch <= order.size(); ++s) {
    const Batch batch{.items = &items,
                      .rows = std::span(order).subspan(s * kBatch, kBatch),
                      .seed = 1,
                      .step = static_cast<std::uint32_t>(s)};
    network.step(batch, rule);
    ++rule.step;
  }
}

// The network at one size, ready for epochs.
class Trainee {
 public:
  explicit Trainee(const Size& size)
      : options_(preset("best")),
        columns_(size.views, 96),
        items_(made_up_items(size.rows, columns_, size.labels)),
        network_(trainee(options_, columns_, size)) {
    run_epoch(*network_, items_, rule_of(options_.train), 2);
  }
  void epoch() {
    const double start = clock_seconds();
    run_epoch(*network_, items_, rule_of(options_.train), items_.rows());
    seconds_.push_back(clock_seconds() - start);
    std::sort(seconds_.begin(), seconds_.end());
  }
  double median() const { return seconds_[seconds_.size() / 2]; }
  double spread() const { return (seconds_.back() - seconds_.front()) / median(); }

 private:
  PresetOptions options_;
  std::vector<std::size_t> columns_;
  Items items_;
  std::unique_ptr<Network> network_;
  std::vector<double> seconds_;  // of epochs, sorted
};

// seconds = start + slope * size, by least squares; `straight` is 1 if all points lie on it (R²).
struct StraightLine {
  double start = 0, slope = 0, straight = 0;
};
StraightLine fitted(const std::vector<double>& sizes, const std::vector<double>& seconds) {
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  const auto n = static_cast<double>(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    x += sizes[i] / n;
    y += seconds[i] / n;
    xx += sizes[i] * sizes[i] / n;
    xy += sizes[i] * seconds[i] / n;
    yy += seconds[i] * seconds[i] / n;
  }
  const double covariance = xy - x * y, slope = covariance / (xx - x * x);
  return {y - slope * x, slope, covariance * slope / (yy - y * y)};
}

void grow(const char* what, std::size_t Size::*member, const std::vector<std::size_t>& values,
          const Size& base) {
  constexpr int kRounds = 7;
  std::vector<Trainee> trainees;
  std::vector<double> sizes, seconds;
  for (const std::size_t value : values) {
    Size size = base;
    size.*member = value;
    trainees.emplace_back(size);
    sizes.push_back(static_cast<double>(value));
  }
  for (int round = 0; round < kRounds; ++round)
    for (auto& one : trainees) one.epoch();
  for (std::size_t i = 0; i < values.size(); ++i) {
    seconds.push_back(trainees[i].median());
    print({.name = fmt::format("growth best: {} {}", values[i], what),
           .value = seconds.back(),
           .unit = "s/epoch",
           .spread = trainees[i].spread()});
  }
  const StraightLine line = fitted(sizes, seconds);
  print({.name = fmt::format("growth best: slope in {}, from {:.3g} s on", what, line.start),
         .value = line.slope * 1e3,
         .unit = "ms/epoch each",
         .share = line.straight});
}

double peak_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == "VmHWM:") {
      double kilobytes = 0;
      file >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

// Weights and momentum, and what a batch holds: inputs, hidden layers and embeddings with their gradients.
void memory() {
  const PresetOptions options = preset(kPaper.preset);
  const Size size{.rows = 256};
  const double before = peak_bytes();
  const Items items = made_up_items(size.rows, kPaper.columns, size.labels);
  double data = 0, widths = 0;
  for (const auto& X : items.X) {
    data += 4 * static_cast<double>(X.rows() * X.cols());
    const double h = .8 * static_cast<double>(X.cols());
    widths += static_cast<double>(X.cols()) + 2 * (2 * h + 1500 + 3 * 512) + (512 + 1500 + 2 * h + 2 * 512);
  }
  const auto network = trainee(options, kPaper.columns, size);
  run_epoch(*network, items, rule_of(options.train), 2);
  const double need = 8 * static_cast<double>(network->parameters()) + 128 * 4 * widths;
  const double used = peak_bytes() - before - data;
  print({.name = "memory paper: peak beside the data",
         .value = used * 1e-6,
         .unit = "MB",
         .limit = need * 1e-6,
         .share = need / used});
}

int run(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--cpu-time") != 0) {
      fmt::print(stderr, "usage: bench_growth [--cpu-time]\n");
      return 2;
    }
    set_threads(1);
    use_clock(Clock::cpu);
  }
  memory();                       // first: the peak never falls again
  const Size base{.rows = 1792};  // all other sizes as in Corel5k
  grow("rows", &Size::rows, {896, 1792, 3584, 7168}, base);
  grow("views", &Size::views, {2, 4, 8, 16}, base);
  grow("labels", &Size::labels, {260, 520, 1040, 2080}, base);
  return 0;
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  return lacuna::run(argc, argv);
}
