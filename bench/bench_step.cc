// A training step and an epoch of both networks in the shape of Corel5k, by part, beside the floor that the
// machine's arithmetic and memory set, and beside PyTorch (bench/peer_torch.py) in the same run.
//
//   bench_step [--network paper|best] [--no-peers] [--peer-threads T] [--python COMMAND] [--same-precision]
//              [--parts FILE] [--cpu-time]
//
// --python: what runs PyTorch, /usr/bin/python3 if not said. --same-precision: our steps in bf16 are compared
// with PyTorch's under autocast to bf16, not with its f32.
// PyTorch's steps and ours, in bf16 and in f32, take turns: a few steps each, several rounds, so that all
// meet the same machine. Best is compared with best (step), and the mean step of the median round
// with the same (epoch); both sides shuffle,
// gather and draw their masks. --cpu-time: one thread on both sides, and CPU seconds: what can be compared on
// a machine that others use too.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

#include "base/random.h"
#include "base/threads.h"
#include "lines.h"
#include "networks.h"
#include "ops/gemm.h"
#include "ops/machine.h"
#include "ops/peaks.h"
#include "timed_ops.h"

namespace lacuna {
namespace {

constexpr std::size_t kRows = 3500, kLabels = 260, kBatch = 128;

struct Machine {
  double f32, bf16, bandwidth;
};

bool cpu_time = false;
std::string python = "/usr/bin/python3";

// Steps of one side, as they came.
struct Times {
  std::vector<double> rounds;  // mean seconds of a step in each round
  double best = 0;

  void add(double best_so_far, double mean_of_round) {
    best = best_so_far;
    rounds.push_back(mean_of_round);
  }
  bool empty() const { return rounds.empty(); }
  // Mean step of the median round: a round that was disturbed does not count.
  double mean() const {
    std::vector<double> sorted = rounds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  // How far the rounds lie apart, as a share of the median one.
  double spread() const {
    const auto [low, high] = std::minmax_element(rounds.begin(), rounds.end());
    return (*high - *low) / mean();
  }
};

std::string peer_command(const std::string& what, const std::string& network, int count,
                         Precision precision) {
  return fmt::format("{} '{}/bench/peer_torch.py' {} {} {} {} {}", python, LACUNA_SOURCE_DIR, what, network,
                     count, cpu_time ? "cpu" : "wall", precision == Precision::bf16 ? "bf16" : "");
}

// With how many threads PyTorch's step is fastest; 0 if there is no PyTorch.
int peer_threads(const std::string& network) {
  int best = 0;
  double least = 0;
  for (int count = 1; count <= threads(); count *= 2)
    if (const double t = ask_peer(peer_command("step", network, count, Precision::f32)).first;
        t > 0 && (best == 0 || t < least)) {
      best = count;
      least = t;
    }
  return best;
}

// Our network in one precision, which makes steps over batch after batch.
class Trainee {
 public:
  Trainee(const Yardstick& yardstick, const Items& items, Precision precision)
      : precision_(precision), items_(items) {
    const PresetOptions setting = preset(yardstick.preset);
    const NetworkShape shape{.columns = yardstick.columns, .labels = kLabels, .training_rows = kRows};
    network_ = make_network<float>(setting.network, shape, 1,
                                   std::make_unique<TimedOps>(make_cpu_ops(precision), precision, ledger_));
    network_->keep({.second = setting.train.optimiser != Optimiser::sgd, .mean = setting.train.average > 0});
    rule_ = rule_of(setting.train);
    step();
    ledger_.parts.clear();
  }

  // Batches differ in what they lack, so steps differ in work: the best is the one with the least time a
  // FLOP, brought to the mean work of all.
  void round(std::size_t count) {
    const double begin = clock_seconds();
    for (std::size_t s = 0; s < count; ++s) {
      const double start = clock_seconds(), flops = ledger_.flops();
      step();
      least_ = std::min(least_, (clock_seconds() - start) / (ledger_.flops() - flops));
    }
    const double seconds = clock_seconds() - begin;
    seconds_ += seconds;
    steps_ += static_cast<double>(count);
    times_.add(least_ * ledger_.flops() / steps_, seconds / static_cast<double>(count));
  }

  const char* label() const { return precision_ == Precision::bf16 ? "bf16" : "f32"; }
  Precision precision() const { return precision_; }
  const Times& times() const { return times_; }
  const Ledger& ledger() const { return ledger_; }
  double steps() const { return steps_; }
  double seconds() const { return seconds_; }  // of all steps

 private:
  void step() {
    const std::size_t batches = kRows / kBatch, at = batch_.step % batches;
    if (at == 0) order_ = Random(1, Purpose::shuffle, batch_.step).permutation(kRows);
    batch_.items = &items_;
    batch_.rows = std::span(order_).subspan(at * kBatch, kBatch);
    network_->step(batch_, rule_);
    ++batch_.step;
    ++rule_.step;
  }

  Precision precision_;
  const Items& items_;
  Ledger ledger_;
  std::unique_ptr<Network> network_;
  UpdateRule rule_;
  std::vector<std::uint32_t> order_;
  Batch batch_{.items = nullptr, .rows = {}, .seed = 1};
  Times times_;
  double steps_ = 0, seconds_ = 0, least_ = 1e300;  // least: seconds a FLOP
};

// FLOP/s of a plain forward product at the network's largest layer, 128 rows: the rate that products reach
// here.
double product_rate(const Yardstick& yardstick, Precision precision) {
  const std::size_t in = yardstick.name == kPaper.name ? 3277 : 1024,
                    out = yardstick.name == kPaper.name ? 3277 : 512;
  // Laid out as networks keep them, and written: memory that was only read is one page of zeros.
  const auto lined = [](Matrix<float>& all, std::size_t rows, std::size_t cols) {
    all = Matrix<float>(rows, row_stride<float>(cols));
    std::ranges::fill(all.values(), .01f);
    return MatrixView<float>(all.data(), rows, cols, all.cols());
  };
  Matrix<float> memory[3];
  const MatrixView<float> X = lined(memory[0], kBatch, in), W = lined(memory[1], in, out),
                          Y = lined(memory[2], kBatch, out);
  const Timing t = measure(.3, [&] { linear_forward(X, W, {}, true, precision, Y); });
  return 2. * static_cast<double>(kBatch) * static_cast<double>(W.size()) / t.best;
}

void report(const Yardstick& yardstick, const Machine& machine, const Trainee& trainee, const Times& peer,
            const std::string& peer_name, std::FILE* parts_file) {
  const Ledger& ledger = trainee.ledger();
  const Times& times = trainee.times();
  const std::string name = fmt::format("{} {}", yardstick.name, trainee.label());
  const double steps = trainee.steps(), epoch_steps = static_cast<double>(kRows / kBatch);
  const double peak = trainee.precision() == Precision::bf16 && machine.bf16 > 0 ? machine.bf16 : machine.f32;
  const double flops = ledger.flops() / steps, bytes = ledger.bytes() / steps,
               memory = bytes / machine.bandwidth;
  const double rate = product_rate(yardstick, trainee.precision());
  const double floor = std::max(flops / peak, memory), product_floor = std::max(flops / rate, memory);
  print({"step " + name, times.best, "s", peer_name, peer.empty() ? 0 : peer.best / times.best, floor,
         floor / times.best, times.spread()});
  print({.name = "step " + name + ", floor from the rate of products",
         .value = times.best,
         .unit = "s",
         .limit = product_floor,
         .share = product_floor / times.best,
         .spread = times.spread()});
  print({fmt::format("epoch {} ({} steps)", name, epoch_steps), times.mean() * epoch_steps, "s", peer_name,
         peer.empty() ? 0 : peer.mean() / times.mean(), floor * epoch_steps, floor / times.mean(),
         times.spread()});
  fmt::print(
      stderr,
      "{}: step best {:.1f} ms, mean {:.1f} ms, rounds {:.0f} % apart; {:.4g} GFLOP ({:.1f} ms at peak, "
      "{:.1f} ms at {:.0f} GFLOP/s of products), {:.4g} GB ({:.1f} ms)\n",
      name, times.best * 1e3, times.mean() * 1e3, times.spread() * 100, flops * 1e-9, flops / peak * 1e3,
      flops / rate * 1e3, rate * 1e-9, bytes * 1e-9, memory * 1e3);
  if (!peer.empty())
    fmt::print(stderr, "  {}: best {:.1f} ms, mean {:.1f} ms, rounds {:.0f} % apart\n", peer_name,
               peer.best * 1e3, peer.mean() * 1e3, peer.spread() * 100);
  const auto line = [&](const std::string& part, double milliseconds, const std::string& rates) {
    fmt::print(stderr, "  {:<26} {:8.3f} ms{}\n", part, milliseconds, rates);
    if (parts_file != nullptr)
      fmt::print(parts_file, "{}\t{}\t{}\t{:.6f}\n", yardstick.name, trainee.label(), part, milliseconds);
  };
  for (const auto& [part_name, part] : ledger.parts)
    line(part_name, part.seconds / steps * 1e3,
         fmt::format(" {:6.1f} GFLOP/s {:6.1f} GB/s {:5.0f} calls", part.flops / part.seconds * 1e-9,
                     part.bytes / part.seconds * 1e-9, static_cast<double>(part.calls) / steps));
  line("everything else", trainee.seconds() / steps * 1e3 - ledger.seconds() / steps * 1e3, "");
}

// PyTorch's network, ready for steps.
class PeerTrainee {
 public:
  PeerTrainee(const std::string& network, int count, Precision precision)
      : peer_(peer_command("serve", network, count, precision)),
        name_(fmt::format("PyTorch {}, {} thread{}", precision == Precision::bf16 ? "bf16" : "f32", count,
                          count == 1 ? "" : "s")) {
    peer_.ask(1);  // until it is ready
  }
  void round(std::size_t steps) {
    if (const PeerNumbers numbers = peer_.ask(steps); numbers.first > 0)
      times_.add(times_.empty() ? numbers.first : std::min(times_.best, numbers.first), numbers.second);
  }
  const Times& times() const { return times_; }
  const std::string& name() const { return name_; }

 private:
  Peer peer_;
  std::string name_;
  Times times_;
};

// peer_count: threads of PyTorch; 0: as many as are best for it; -1: no PyTorch.
void bench_network(const Yardstick& yardstick, const Machine& machine, int peer_count, bool same_precision,
                   std::FILE* parts_file) {
  const Items items = made_up_items(kRows, yardstick.columns, kLabels);
  const bool large = yardstick.name == kPaper.name;
  constexpr std::size_t kRounds = 9;
  const std::size_t steps = large ? 3 : kRows / kBatch, peer_steps = large ? 1 : 9;
  if (peer_count == 0) peer_count = peer_threads(yardstick.name);
  std::unique_ptr<PeerTrainee> full_peer, low_peer;
  if (peer_count > 0) {
    full_peer = std::make_unique<PeerTrainee>(yardstick.name, peer_count, Precision::f32);
    if (same_precision) low_peer = std::make_unique<PeerTrainee>(yardstick.name, peer_count, Precision::bf16);
  }
  Trainee low(yardstick, items, Precision::bf16), full(yardstick, items, Precision::f32);
  for (std::size_t r = 0; r < kRounds; ++r) {
    for (PeerTrainee* peer : {full_peer.get(), low_peer.get()})
      if (peer != nullptr) peer->round(peer_steps);
    for (Trainee* trainee : {&low, &full}) trainee->round(steps);
  }
  for (const Trainee* trainee : {&low, &full}) {
    const PeerTrainee* peer = trainee == &low && low_peer ? low_peer.get() : full_peer.get();
    const bool there = peer != nullptr && !peer->times().empty();
    report(yardstick, machine, *trainee, there ? peer->times() : Times{},
           there ? fmt::format("{}, {} steps", peer->name(), kRounds * peer_steps) : "", parts_file);
  }
}

int run(int argc, char** argv) {
  int peer_count = 0;
  bool same_precision = false;
  std::string only;
  std::FILE* parts = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-peers") == 0) {
      peer_count = -1;
    } else if (std::strcmp(argv[i], "--peer-threads") == 0 && i + 1 < argc) {
      peer_count = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--python") == 0 && i + 1 < argc) {
      python = argv[++i];
    } else if (std::strcmp(argv[i], "--same-precision") == 0) {
      same_precision = true;
    } else if (std::strcmp(argv[i], "--cpu-time") == 0) {
      set_threads(1);
      use_clock(Clock::cpu);
      cpu_time = true;
    } else if (std::strcmp(argv[i], "--network") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else if (std::strcmp(argv[i], "--parts") == 0 && i + 1 < argc) {
      parts = std::fopen(argv[++i], "w");
    } else {
      fmt::print(
          stderr,
          "usage: bench_step [--network paper|best] [--no-peers] [--peer-threads T] [--python COMMAND] "
          "[--same-precision] [--parts FILE] [--cpu-time]\n");
      return 2;
    }
  }
  const Machine machine{peak_f32(threads()), peak_bf16(threads()), triad(threads())};
  fmt::print(stderr, "peak f32 {:.0f}, bf16 {:.0f} GFLOP/s, triad {:.1f} GB/s, {} threads, {}\n",
             machine.f32 * 1e-9, machine.bf16 * 1e-9, machine.bandwidth * 1e-9, threads(), isa_name(isa()));
  for (const Yardstick* yardstick : {&kPaper, &kBest})
    if (only.empty() || only == yardstick->name)
      bench_network(*yardstick, machine, peer_count, same_precision, parts);
  if (parts != nullptr) std::fclose(parts);
  return 0;
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  return lacuna::run(argc, argv);
}
