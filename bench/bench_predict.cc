// Prediction: many rows at once (rows per second) and one row at a time (latency), beside PyTorch in the same
// run.
//
//   bench_predict [--network paper|best] [--no-peers] [--cpu-time]
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/threads.h"
#include "lines.h"
#include "networks.h"
#include "ops/peaks.h"

namespace lacuna {
namespace {

constexpr std::size_t kLabels = 260;

std::unique_ptr<Network> predictor(const Yardstick& yardstick, Precision precision) {
  const PresetOptions options = preset(yardstick.preset);
  const NetworkShape shape{.columns = yardstick.columns, .labels = kLabels, .prediction_only = true};
  auto network = make_network<float>(options.network, shape, 1, make_cpu_ops(precision));
  network->visit([](const std::string&, ParameterView<float> p, bool) {
    Random random(p.value.size(), Purpose::test);
    for (std::size_t i = 0; i < p.value.rows; ++i)
      for (float& x : p.value.row(i)) x = random.uniform(-.02f, .02f);
  });
  network->settle();
  return network;
}

struct Peers {
  bool wanted = true, cpu_time = false;
  // Best over one thread and all of them.
  PeerNumbers ask(const std::string& what, const std::string& network, const std::string& more,
                  std::string& name) const {
    PeerNumbers best;
    for (int count = 1; wanted && count <= threads(); count *= 2) {
      const auto numbers =
          ask_peer(fmt::format("/usr/bin/python3 '{}/bench/peer_torch.py' {} {} {} {} {}", LACUNA_SOURCE_DIR,
                               what, network, count, cpu_time ? "cpu" : "wall", more));
      if (numbers.first <= 0 || (best.first > 0 && numbers.first >= best.first)) continue;
      best = numbers;
      name = fmt::format("PyTorch f32, {} thread{}", count, count == 1 ? "" : "s");
    }
    return best;
  }
};

void bench_network(const Yardstick& yardstick, std::size_t rows, const Peers& peers) {
  std::string peer_name, latency_peer_name;
  const auto peer = peers.ask("predict", yardstick.name, std::to_string(rows), peer_name);
  const auto latency_peer = peers.ask("latency", yardstick.name, "", latency_peer_name);
  const Items many = made_up_items(rows, yardstick.columns, kLabels),
              one = made_up_items(1, yardstick.columns, kLabels);
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    const char* label = precision == Precision::f32 ? "f32" : "bf16";
    const auto network = predictor(yardstick, precision);
    Matrix<float> scores(rows, kLabels), score(1, kLabels);
    const Timing t = measure(1, [&] { network->predict(many, scores); });
    print({.name = fmt::format("predict {} {} ({} rows)", yardstick.name, label, rows),
           .value = static_cast<double>(rows) / t.best,
           .unit = "rows/s",
           .peer = peer_name,
           .ratio = peer.first / t.best,
           .spread = t.spread()});
    std::vector<double> times;
    network->predict(one, score);
    for (const double begin = clock_seconds();
         times.size() < 1000 && (times.size() < 100 || clock_seconds() - begin < 2);) {
      const double start = clock_seconds();
      network->predict(one, score);
      times.push_back(clock_seconds() - start);
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2], high = times[times.size() * 99 / 100];
    print({.name = fmt::format("latency {} {} median", yardstick.name, label),
           .value = median * 1e3,
           .unit = "ms",
           .peer = latency_peer_name,
           .ratio = latency_peer.first / median});
    print({.name = fmt::format("latency {} {} 99th percentile", yardstick.name, label),
           .value = high * 1e3,
           .unit = "ms",
           .peer = latency_peer_name,
           .ratio = latency_peer.second / high});
  }
}

int run(int argc, char** argv) {
  Peers peers;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-peers") == 0) {
      peers.wanted = false;
    } else if (std::strcmp(argv[i], "--cpu-time") == 0) {
      set_threads(1);
      use_clock(Clock::cpu);
      peers.cpu_time = true;
    } else if (std::strcmp(argv[i], "--network") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      fmt::print(stderr, "usage: bench_predict [--network paper|best] [--no-peers] [--cpu-time]\n");
      return 2;
    }
  }
  if (only.empty() || only == kBest.name) bench_network(kBest, 25000, peers);
  if (only.empty() || only == kPaper.name) bench_network(kPaper, 1000, peers);
  return 0;
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  return lacuna::run(argc, argv);
}
