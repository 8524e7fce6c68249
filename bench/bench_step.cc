// A training step and an epoch of both networks in the shape of Corel5k, by part, beside the floor that the
// machine's arithmetic and memory set, and beside PyTorch (bench/peer_torch.py) in the same run.
//
//   bench_step [--network paper|best] [--no-peers] [--parts FILE] [--cpu-time]
//
// --cpu-time: one thread on both sides, and CPU seconds: what can be compared on a machine that others use
// too.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include "base/threads.h"
#include "lines.h"
#include "networks.h"
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

// Seconds of PyTorch's step with so many threads; 0 if there is none.
double peer_seconds(const std::string& network, int count) {
  return ask_peer(fmt::format("/usr/bin/python3 '{}/bench/peer_torch.py' step {} {} {}", LACUNA_SOURCE_DIR,
                              network, count, cpu_time ? "cpu" : "wall"))
      .first;
}

void bench_network(const Yardstick& yardstick, const Machine& machine, bool peers, std::FILE* parts_file) {
  const Items items = made_up_items(kRows, yardstick.columns, kLabels);
  double peer = 0;
  std::string peer_name;
  for (int count = 1; peers && count <= threads(); count *= 2)
    if (const double t = peer_seconds(yardstick.name, count); t > 0 && (peer == 0 || t < peer)) {
      peer = t;
      peer_name = fmt::format("PyTorch f32, {} thread{}", count, count == 1 ? "" : "s");
    }
  for (Precision precision : {Precision::bf16, Precision::f32}) {
    const PresetOptions setting = preset(yardstick.preset);
    Ledger ledger;
    const NetworkShape shape{.columns = yardstick.columns, .labels = kLabels, .training_rows = kRows};
    const auto network = make_network<float>(setting.network, shape, 1,
                                             std::make_unique<TimedOps>(make_cpu_ops(precision), ledger));
    network->keep({.second = setting.train.optimiser != "sgd", .mean = setting.train.average > 0});
    UpdateRule rule = rule_of(setting.train);
    std::vector<std::uint32_t> order(kRows);
    std::iota(order.begin(), order.end(), 0u);
    Batch batch{.items = &items, .rows = {}, .seed = 1};
    const auto step = [&](std::size_t first) {
      batch.rows = std::span(order).subspan(first, kBatch);
      network->step(batch, rule);
      ++batch.step;
      ++rule.step;
    };
    step(0);
    ledger.parts.clear();
    std::vector<double> times;
    const double begin = clock_seconds();
    for (std::size_t first = 0; first + kBatch <= kRows; first += kBatch) {
      const double start = clock_seconds();
      step(first);
      times.push_back(clock_seconds() - start);
    }
    const double epoch = clock_seconds() - begin;
    std::sort(times.begin(), times.end());
    const double steps = static_cast<double>(times.size()), median = times[times.size() / 2];
    const double peak = precision == Precision::bf16 && machine.bf16 > 0 ? machine.bf16 : machine.f32;
    const double arithmetic = ledger.flops() / steps / peak,
                 memory = ledger.bytes() / steps / machine.bandwidth;
    const double floor = std::max(arithmetic, memory);
    const char* label = precision == Precision::bf16 ? "bf16" : "f32";
    const double spread = median / times.front() - 1;
    print({fmt::format("step {} {}", yardstick.name, label), times.front(), "s", peer_name,
           peer / times.front(), floor, floor / times.front(), spread});
    print({fmt::format("epoch {} {} ({} steps)", yardstick.name, label, times.size()), epoch, "s", peer_name,
           peer * steps / epoch, floor * steps, floor * steps / epoch, spread});
    fmt::print(stderr,
               "{} {}: step best {:.1f} ms, median {:.1f} ms; {:.4g} GFLOP ({:.1f} ms at peak), {:.4g} GB "
               "({:.1f} ms)\n",
               yardstick.name, label, times.front() * 1e3, median * 1e3, ledger.flops() / steps * 1e-9,
               arithmetic * 1e3, ledger.bytes() / steps * 1e-9, memory * 1e3);
    for (const auto& [name, part] : ledger.parts) {
      fmt::print(stderr, "  {:<26} {:8.3f} ms {:6.1f} GFLOP/s {:6.1f} GB/s {:5.0f} calls\n", name,
                 part.seconds / steps * 1e3, part.flops / part.seconds * 1e-9,
                 part.bytes / part.seconds * 1e-9, static_cast<double>(part.calls) / steps);
      if (parts_file != nullptr)
        fmt::print(parts_file, "{}\t{}\t{}\t{:.6f}\n", yardstick.name, label, name,
                   part.seconds / steps * 1e3);
    }
    fmt::print(stderr, "  {:<26} {:8.3f} ms\n", "everything else", (epoch - ledger.seconds()) / steps * 1e3);
    if (parts_file != nullptr)
      fmt::print(parts_file, "{}\t{}\teverything else\t{:.6f}\n", yardstick.name, label,
                 (epoch - ledger.seconds()) / steps * 1e3);
  }
}

int run(int argc, char** argv) {
  bool peers = true;
  std::string only;
  std::FILE* parts = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-peers") == 0) {
      peers = false;
    } else if (std::strcmp(argv[i], "--cpu-time") == 0) {
      set_threads(1);
      use_clock(Clock::cpu);
      cpu_time = true;
    } else if (std::strcmp(argv[i], "--network") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else if (std::strcmp(argv[i], "--parts") == 0 && i + 1 < argc) {
      parts = std::fopen(argv[++i], "w");
    } else {
      fmt::print(stderr,
                 "usage: bench_step [--network paper|best] [--no-peers] [--parts FILE] [--cpu-time]\n");
      return 2;
    }
  }
  const Machine machine{peak_f32(threads()), peak_bf16(threads()), triad(threads())};
  fmt::print(stderr, "peak f32 {:.0f}, bf16 {:.0f} GFLOP/s, triad {:.1f} GB/s, {} threads, {}\n",
             machine.f32 * 1e-9, machine.bf16 * 1e-9, machine.bandwidth * 1e-9, threads(), isa_name(isa()));
  for (const Yardstick* yardstick : {&kPaper, &kBest})
    if (only.empty() || only == yardstick->name) bench_network(*yardstick, machine, peers, parts);
  if (parts != nullptr) std::fclose(parts);
  return 0;
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  return lacuna::run(argc, argv);
}
