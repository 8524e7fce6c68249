// The backward products of a layer whose input has been through ReLU, in f32. An entry of X that is zero adds
// nothing to Xᵀ dY, and dX is masked there, so that about half of both products need not be computed. What is
// left has no structure; but an entry X(r, i) that counts wants the same row of dY twice, for the gradient of
// row i of W and for dX(r, i). With a part of row i and of its gradient in registers that makes two
// multiplications for every load, which keeps the CPU as busy as the tiles of dense products do.
#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kInputs = 64;     // that go through the outputs together, strip by strip
constexpr std::size_t kSoon = 3;        // rows of W that are asked for ahead
constexpr std::size_t kNeighbours = 4;  // blocks of inputs that a task takes

struct Gated {
  const Kernels& k;
  MatrixView<const float> X, dY;
  ParameterView<float> W, b;
  MatrixView<float> dX;
  UpdateCoefficients<float> step, bias_step;

  std::size_t n = X.rows, in = W.value.rows, out = W.value.cols;
  std::size_t strips = ceil_div(out, kGateStrip);
  float* strip_rows = nullptr;  // dY strip by strip, each (n, kGateStrip)
  float* bias_gradient = nullptr;

  const float* rows_of(std::size_t strip) const { return strip_rows + strip * n * kGateStrip; }
  std::size_t outputs(std::size_t strip) const { return std::min(kGateStrip, out - strip * kGateStrip); }

  // Copies a strip of dY, and updates its biases.
  void prepare(std::size_t strip) const {
    const std::size_t j = strip * kGateStrip, count = outputs(strip);
    float* const to = strip_rows + strip * n * kGateStrip;
    for (std::size_t r = 0; r < n; ++r)
      std::fill(std::copy_n(&dY(r, j), count, to + r * kGateStrip), to + (r + 1) * kGateStrip, 0.f);
    if (b.value.empty()) return;
    float* const sums = bias_gradient + j;
    std::fill_n(sums, count, 0.f);
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t c = 0; c < count; ++c) sums[c] += to[r * kGateStrip + c];
    k.update(bias_step, sums, 0, 1, count, parameters_at(b, 0, j));
  }

  // Inputs i0 .. i0 + size; `end`: where the task ends. The lists of a block's entries, their sums and a
  // strip of dY stay in the nearest caches.
  void run(std::size_t i0, std::size_t size, std::size_t end) const {
    thread_local Scratch entry_scratch, sum_scratch;
    auto* const entries = reinterpret_cast<SparseColumns::Entry*>(entry_scratch.words(2 * size * n + 2));
    SparseColumns::Run runs[kInputs];
    std::size_t count = 0;
    for (std::size_t i = 0; i < size; ++i) {
      runs[i].begin = count;
      for (std::size_t r = 0; r < n; ++r) {
        const float x = X(r, i0 + i);
        entries[count] = {static_cast<std::uint32_t>(r), x};
        count += x != 0;
      }
      runs[i].end = count;
    }
    float* const sums = sum_scratch.floats(size * n * kGateLanes);  // room for all: batches differ in zeros
    std::fill_n(sums, count * kGateLanes, 0.f);

    for (std::size_t strip = 0; strip < strips; ++strip)
      for (std::size_t i = 0; i < size; ++i) {
        std::size_t soon = i0 + i + kSoon, soon_strip = strip;
        if (i + kSoon >= size) soon -= size, ++soon_strip;
        if (soon_strip == strips) soon += size, soon_strip = 0;
        if (soon < end) ask(soon, soon_strip);

        alignas(64) float gradient[kGateStrip], padded[kGateStrip];
        const std::size_t j = strip * kGateStrip, width = outputs(strip);
        const float* weights = &W.value(i0 + i, j);
        if (width < kGateStrip) {
          std::fill(std::copy_n(weights, width, padded), padded + kGateStrip, 0.f);
          weights = padded;
        }
        k.gate(entries + runs[i].begin, runs[i].end - runs[i].begin, weights, rows_of(strip), gradient,
               sums + runs[i].begin * kGateLanes);
        k.update(step, gradient, 0, 1, width, parameters_at(W, i0 + i, j));
      }

    for (std::size_t r = 0; r < n; ++r) std::fill_n(&dX(r, i0), size, 0.f);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t e = runs[i].begin; e < runs[i].end; ++e)
        if (entries[e].value > 0) dX(entries[e].row, i0 + i) = total(sums + e * kGateLanes);
  }
  static float total(const float* lanes) {
    static_assert(kGateLanes == 16);
    float half[8], quarter[4];
    for (std::size_t i = 0; i < 8; ++i) half[i] = lanes[i] + lanes[i + 8];
    for (std::size_t i = 0; i < 4; ++i) quarter[i] = half[i] + half[i + 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
  }

  // A strip of row i of W and of the optimiser's state will be wanted soon. (Inlined always: g++ drops the
  // call of a function that does nothing but prefetch.)
  [[gnu::always_inline]] void ask(std::size_t i, std::size_t strip) const {
    const std::size_t width = outputs(strip);
    for (const MatrixView<float>& A : {W.value, W.first, W.second, W.mean})
      for (std::size_t c = 0; c < width && !A.empty(); c += 16)
        __builtin_prefetch(&A(i, strip * kGateStrip + c), 0, 3);
  }
};

}  // namespace

std::size_t not_zero(MatrixView<const float> X) {
  std::size_t count = 0;
  for (std::size_t r = 0; r < X.rows; ++r) {
    std::uint32_t in_row = 0;
    for (float x : X.row(r)) in_row += x != 0;
    count += in_row;
  }
  return count;
}

// The lists and sums of an input cost as much as half a strip. Where the shares meet was measured: at 16 to
// 128 rows, for layers of both networks.
bool gated_backward_pays(MatrixView<const float> X, std::size_t out) {
  constexpr std::size_t kFewest = 16;
  constexpr double kMost = .75;
  if (X.rows < kFewest) return false;
  const auto work = static_cast<double>(ceil_div(out, kGateStrip) * kGateStrip + kGateStrip / 2);
  return static_cast<double>(not_zero(X)) * work <= kMost * static_cast<double>(X.size() * out);
}

void gated_backward(const Kernels& k, MatrixView<const float> X, MatrixView<const float> dY,
                    const UpdateRule& rule, ParameterView<float> W, ParameterView<float> b,
                    MatrixView<float> dX) {
  Gated work{k, X, dY, W, b, dX, {rule, W.decay}, {rule, b.decay}};
  thread_local Scratch row_scratch, bias_scratch;
  work.strip_rows = row_scratch.floats(work.strips * work.n * kGateStrip);
  if (!b.value.empty()) work.bias_gradient = bias_scratch.floats(work.out);
  parallel_for(work.strips, grain_for(work.strips, 4. * static_cast<double>(work.n * work.out)),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t strip = first; strip < end; ++strip) work.prepare(strip);
               });
  const auto workers = static_cast<std::size_t>(threads());
  const Parts blocks(work.in, ceil_div(work.in, workers * ceil_div(work.in, workers * kInputs)));
  const double multiply_adds = static_cast<double>(work.n) * static_cast<double>(W.value.size());
  const std::size_t grain = std::max(grain_for(blocks.count, multiply_adds),
                                     std::min(kNeighbours, ceil_div(blocks.count, workers)));
  parallel_for(blocks.count, grain, [&](std::size_t first, std::size_t end) {
    for (std::size_t p = first; p < end; ++p) work.run(blocks.begin(p), blocks.size(p), blocks.begin(end));
  });
}

}  // namespace lacuna
