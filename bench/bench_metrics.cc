// The metrics on scores of the size of ESPGame against scikit-learn's three ranking metrics on the same
// files, in the same run. Prints one line of JSON.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/metrics.h"
#include "data/npy.h"

namespace lacuna {
namespace {

constexpr std::size_t kRows = 20770, kLabels = 268;
constexpr float kCardinality = 4.69f;

double best_seconds(int repeats, const std::function<void()>& work) {
  double best = 1e300;
  for (int r = 0; r < repeats; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// What the peer prints: its seconds, then its value of the average precision and of the ranking loss.
std::vector<double> peer(const std::string& folder) {
  const std::string command =
      fmt::format("/usr/bin/python3 '{}/bench/sklearn_metrics.py' '{}'", LACUNA_SOURCE_DIR, folder);
  std::FILE* pipe = popen(command.c_str(), "r");
  char line[256] = "";
  const bool read = pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr;
  if (pipe != nullptr && (pclose(pipe) != 0 || !read)) fail(Exit::failed, "the peer failed: {}", command);
  std::vector<double> numbers;
  for (const auto word : split(trim(line), ' ')) numbers.push_back(parse_double(word).value_or(-1));
  return numbers;
}

int run() {
  Matrix<float> scores(kRows, kLabels);
  Matrix<std::int8_t> truth(kRows, kLabels);
  for (std::size_t i = 0; i < kRows; ++i) {
    Random random(1, Purpose::test, static_cast<std::uint32_t>(i));
    for (std::size_t j = 0; j < kLabels; ++j) {
      truth(i, j) = random.uniform() * static_cast<float>(kLabels) < kCardinality;
      scores(i, j) = .7f * random.uniform() + (truth(i, j) != 0 ? .3f : 0.f);
    }
    truth(i, random.below(kLabels)) = 1;  // the peer counts rows without positives otherwise than we do
  }
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("lacuna_bench_{}", getpid());
  std::filesystem::create_directories(folder);
  write_npy((folder / "scores.npy").string(), borrow("scores", scores));
  write_npy((folder / "truth.npy").string(), borrow("truth", truth));

  Metrics metrics;
  const double ours = best_seconds(9, [&] { metrics = evaluate(scores, truth); });
  const auto theirs = peer(folder.string());
  std::filesystem::remove_all(folder);
  if (theirs.size() != 3 || std::abs(theirs[1] - metrics.ap) > 1e-6 ||
      std::abs(1 - theirs[2] - metrics.rl) > 1e-6)
    fail(Exit::failed, "the peer computes other values: AP {} and {}, 1-RL {} and {}", metrics.ap,
         theirs.at(1), metrics.rl, 1 - theirs.at(2));
  // The limit: reading scores and labels once.
  volatile float sink = 0;
  const double limit = best_seconds(9, [&] {
    float sum = 0;
    for (std::size_t k = 0; k < scores.values().size(); ++k)
      sum = std::max(sum, scores.values()[k] + static_cast<float>(truth.values()[k]));
    sink = sum;
  });
  const nlohmann::json line = {
      {"name", fmt::format("nine metrics of {} x {} scores, against three of scikit-learn", kRows, kLabels)},
      {"value", ours},
      {"unit", "s"},
      {"peer", theirs[0]},
      {"ratio", theirs[0] / ours},
      {"limit", limit},
      {"share", limit / ours}};
  fmt::print("{}\n", line.dump());
  return 0;
}

}  // namespace
}  // namespace lacuna

int main() {
  try {
    return lacuna::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_metrics: {}\n", error.what());
    return 1;
  }
}
