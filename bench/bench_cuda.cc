// The GPU engine: an epoch of the paper's network, a whole training of `best`, predictions of many rows; beside PyTorch
// in all of its modes in the same run, and beside what the memory allows. Prints why and ends well where there is no GPU.
//
//   bench_cuda [--no-peers] [--only paper|best|folds|predict] [--runs N] [--precision bf16|f32]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/threads.h"
#include "lines.h"
#include "networks.h"
#include "ops/device.h"

namespace lacuna {
namespace {

Precision measured = Precision::bf16;
constexpr std::size_t kFolds = 10;
constexpr std::size_t kLabels = 260, kRows = 3500, kValidation = 500, kMany = 1000000;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}
double spread(const std::vector<double>& times) {
  const auto [low, high] = std::minmax_element(times.begin(), times.end());
  return (*high - *low) / median(times);
}

// Notes when each epoch ended.
struct Clock final : FitContext {
  std::vector<double> ends;
  bool after_epoch(const EpochRecord&, FunctionRef<void(Tensors&)>) override {
    ends.push_back(now());
    return true;
  }
};

struct Peer {
  double seconds = 0;
  std::string name;
};
// The best of PyTorch's modes: seconds of a step, which times `steps` make an epoch or a training.
Peer ask(const std::string& network, double steps) {
  Peer best;
  for (const char* precision : {"tf32", "bf16"})
    for (const char* mode : {"eager", "compile", "reduce-overhead"}) {
      const auto answer = ask_peer(
          fmt::format("timeout 240 python3 '{}/bench/peer_cuda.py' {} {} {}", LACUNA_SOURCE_DIR, network, mode, precision));
      if (answer.first <= 0) continue;
      fmt::print(stderr, "PyTorch {} {} {}: {:.3f} ms a step\n", network, mode, precision, answer.first * 1e3);
      if (best.seconds == 0 || answer.first * steps < best.seconds)
        best = {answer.first * steps, fmt::format("PyTorch {} {}", mode, precision)};
    }
  return best;
}

void paper_epoch(double bandwidth, int runs, bool peers) {
  PresetOptions setting = preset("authors");
  setting.train.epochs = runs + 2;
  setting.train.rate *= .1;
  setting.train.select = "last";
  const Items items = made_up_items(kRows, kPaper.columns, kLabels);
  const NetworkShape shape{.columns = kPaper.columns, .labels = kLabels, .training_rows = kRows};
  auto network = make_network<float>(setting.network, shape, 1, make_cuda_ops(0, measured));
  Clock clock;
  train_network(*network, items, Items{}, setting.train, clock);
  std::vector<double> epochs;
  for (std::size_t k = 2; k < clock.ends.size(); ++k) epochs.push_back(clock.ends[k] - clock.ends[k - 1]);
  const double steps = static_cast<double>((kRows + 127) / 128), seconds = median(epochs),
               floor = 20. * static_cast<double>(network->parameters()) * steps / bandwidth;
  network.reset();
  const Peer peer = peers ? ask("paper", steps) : Peer{};
  print({.name = "cuda: paper's network, one epoch",
         .value = seconds * 1e3,
         .unit = "ms",
         .peer = peer.name,
         .ratio = peer.seconds / seconds,
         .limit = floor * 1e3,
         .share = floor / seconds,
         .spread = spread(epochs)});
}

void best_training(double bandwidth, int runs, bool peers) {
  PresetOptions setting = preset("best");
  setting.train.validate_every = 5;
  const Items items = made_up_items(kRows, kBest.columns, kLabels), val = made_up_items(kValidation, kBest.columns, kLabels);
  const NetworkShape shape{.columns = kBest.columns, .labels = kLabels, .training_rows = kRows};
  std::vector<double> times;
  double parameters = 0;
  for (int k = 0; k <= runs; ++k) {
    const double begin = now();
    auto network = make_network<float>(setting.network, shape, 1, make_cuda_ops(0, measured));
    FitContext context;
    train_network(*network, items, val, setting.train, context);
    if (k > 0) times.push_back(now() - begin);
    parameters = static_cast<double>(network->parameters());
  }
  const double steps = static_cast<double>(setting.train.epochs) * static_cast<double>(kRows / 128);
  const double floor = 36. * parameters * steps / bandwidth;  // 4 forward, 4 x 8 backward: weight, two moments, mean
  const Peer peer = peers ? ask("best", steps) : Peer{};
  print({.name = "cuda: best, 100 epochs",
         .value = median(times),
         .unit = "s",
         .peer = peer.name,
         .ratio = peer.seconds / median(times),
         .limit = floor,
         .share = floor / median(times),
         .spread = spread(times)});
}

// Ten trainings of `best` in one process, each with data of its own, `at_once` of them at a time.
void fold_trainings(std::size_t at_once) {
  PresetOptions setting = preset("best");
  setting.train.validate_every = 5;
  const NetworkShape shape{.columns = kBest.columns, .labels = kLabels, .training_rows = kRows};
  const Items items = made_up_items(kRows, kBest.columns, kLabels), val = made_up_items(kValidation, kBest.columns, kLabels);
  const std::vector<Items> all(kFolds, items), vals(kFolds, val);
  const double begin = now();
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (std::size_t k = 0; k < at_once; ++k)
    workers.emplace_back([&] {
      for (std::size_t fold = next++; fold < kFolds; fold = next++) {
        auto network = make_network<float>(setting.network, shape, fold + 1, make_cuda_ops(0, measured));
        FitContext context;
        train_network(*network, all[fold], vals[fold], setting.train, context);
      }
    });
  for (auto& worker : workers) worker.join();
  print({.name = fmt::format("cuda: best, ten folds, {} at once", at_once), .value = now() - begin, .unit = "s"});
}

void predictions(double bandwidth, int runs) {
  const PresetOptions setting = preset("best");
  Items items;
  items.W = Matrix<std::uint8_t>(kMany, kBest.columns.size());
  for (const std::size_t d : kBest.columns) items.X.emplace_back(kMany, d);
  parallel_for(kMany, 4096, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Random random(1, Purpose::test, static_cast<std::uint32_t>(i));
      for (std::size_t v = 0; v < kBest.columns.size(); ++v) {
        items.W(i, v) = v == i % kBest.columns.size() || random.below(2) == 0;
        for (float& x : items.X[v].row(i)) x = random.uniform(-1.7f, 1.7f);
      }
    }
  });
  const NetworkShape shape{.columns = kBest.columns, .labels = kLabels, .training_rows = kRows};
  const auto network = make_network<float>(setting.network, shape, 1, make_cuda_ops(0, measured));
  network->settle();
  Matrix<float> scores(kMany, kLabels);
  network->predict(items, scores);  // takes the data to the GPU
  std::vector<double> times;
  for (int k = 0; k < runs; ++k) {
    const double begin = now();
    network->predict(items, scores);
    times.push_back(now() - begin);
  }
  const double floor = static_cast<double>(kMany) * 4 * (576 + kLabels) / bandwidth;
  print({.name = "cuda: best, a million rows predicted",
         .value = median(times),
         .unit = "s",
         .limit = floor,
         .share = floor / median(times),
         .spread = spread(times)});
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  using namespace lacuna;
  bool peers = true;
  std::string only;
  int runs = 5;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--no-peers") == 0) peers = false;
    if (std::strcmp(argv[k], "--only") == 0 && k + 1 < argc) only = argv[++k];
    if (std::strcmp(argv[k], "--precision") == 0 && k + 1 < argc)
      measured = std::strcmp(argv[++k], "f32") == 0 ? Precision::f32 : Precision::bf16;
    if (std::strcmp(argv[k], "--runs") == 0 && k + 1 < argc) runs = std::max(1, std::atoi(argv[++k]));
  }
  if (!cuda_absence().empty()) {
    fmt::print(stderr, "bench_cuda: nothing to measure, {}\n", cuda_absence());
    return 0;
  }
  const double bandwidth = measure_gpu(0).copy;
  fmt::print(stderr, "{}: copies at {:.2f} TB/s\n", gpu_report().gpus[0].name, bandwidth * 1e-12);
  if (only.empty() || only == "paper") paper_epoch(bandwidth, runs, peers);
  if (only.empty() || only == "best") best_training(bandwidth, runs, peers);
  if (only.empty() || only == "folds")
    for (const std::size_t at_once : {1, 3, 5, 10}) fold_trainings(at_once);
  if (only.empty() || only == "predict") predictions(bandwidth, runs);
  return 0;
}
