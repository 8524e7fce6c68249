// A first layer from sparse inputs (ops/sparse.h) beside the dense products: 64 rows of a colour histogram,
// standardised, a quarter of each row hidden, times W (4096, 3277), forward and backward with the update. The
// shares of deviating entries are those of Corel5k's three histograms, and more.
#include <fmt/core.h>

#include <vector>

#include "base/matrix.h"
#include "base/random.h"
#include "base/threads.h"
#include "lines.h"
#include "ops/gemm.h"
#include "ops/peaks.h"
#include "ops/sparse.h"

namespace lacuna {
namespace {

constexpr std::size_t kRows = 64, kIn = 4096, kOut = 3277, kStride = row_stride<float>(kOut);

int run() {
  Random random(1, Purpose::test);
  Matrix<float> values(kIn, kStride), momentum(kIn, kStride), outputs(kRows, kStride), background(1, kIn),
      X(kRows, row_stride<float>(kIn));
  for (float& w : values.values()) w = random.uniform(-.01f, .01f);
  for (float& x : background.values()) x = random.uniform(-1, 0);
  const auto part = [](Matrix<float>& all, std::size_t cols) {
    return MatrixView<float>(all.data(), all.rows(), cols, all.cols());
  };
  const ParameterView<float> W{part(values, kOut), part(momentum, kOut), {}, {}};
  const MatrixView<float> Y = part(outputs, kOut), inputs = part(X, kIn);
  UpdateRule rule;
  rule.rate = 1e-6;
  for (const double share : {.04, .086, .175, .25, .4}) {
    std::vector<Fragment> hidden(kRows);
    for (std::size_t r = 0; r < kRows; ++r) {
      hidden[r].begin = static_cast<std::uint32_t>(random.below(kIn * 3 / 4));
      hidden[r].end = hidden[r].begin + kIn / 4;
      for (std::size_t j = 0; j < kIn; ++j) {
        const bool differs = random.uniform() < static_cast<float>(share);
        const float x = differs ? random.uniform(0, 9) : background(0, j);
        inputs(r, j) = j >= hidden[r].begin && j < hidden[r].end ? 0 : x;
      }
    }
    Deviations deviations;
    const auto find = [&](Precision precision) {
      deviations.find(inputs, hidden, background.row(0), precision);
    };
    const auto line = [&](const char* what, auto&& own, auto&& dense) {
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        find(precision);
        Timing best = measure(.2, own);
        const Timing peer = measure(.2, [&] { dense(precision); });
        const Timing again = measure(.2, own);
        best.best = std::min(best.best, again.best);
        print({fmt::format("sparse inputs, {:.1f} % deviate, {}", 100 * share, what), best.best * 1e3, "ms",
               precision == Precision::bf16 ? "dense product in bf16" : "dense product in f32",
               peer.best / best.best, 0, 0, again.spread()});
      }
    };
    const Timing search = measure(.1, [&] { find(Precision::bf16); });
    print({.name = fmt::format("sparse inputs, {:.1f} % deviate, found", 100 * share),
           .value = search.best * 1e3,
           .unit = "ms",
           .spread = search.spread()});
    line(
        "forward", [&] { sparse_forward(deviations, W.value, {}, true, Y); },
        [&](Precision precision) { linear_forward(inputs, W.value, {}, true, precision, Y); });
    for (float& y : outputs.values()) y = random.uniform(-1e-3f, 1e-3f);
    line(
        "backward", [&] { sparse_backward(deviations, Y, rule, W, {}); },
        [&](Precision precision) { linear_backward(inputs, Y, false, precision, rule, W, {}, {}); });
  }
  return 0;
}

}  // namespace
}  // namespace lacuna

int main() {
  return lacuna::run();
}
