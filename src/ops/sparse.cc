#include "ops/sparse.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <tuple>

#include "base/subnormals.h"
#include "base/threads.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kColumns = 256;      // that one task searches for deviations
constexpr std::size_t kMostOutputs = 512;  // of a task in the backward pass
constexpr std::size_t kVector = 16;        // outputs that are never cut apart
constexpr std::size_t kSoon = 8;           // rows of W that are asked for ahead in the backward pass

}  // namespace

void Deviations::reserve(std::size_t rows, std::size_t cols) {
  if (entries_.cols() < rows * cols) entries_ = Matrix<SparseColumns::Entry>(1, rows * cols);
  background_.reserve(cols);
  runs_.reserve(cols);
  borders_.reserve(4 * rows);
}

// Each block of columns has room for all of its entries, so that threads need not wait for each other.
void Deviations::find(MatrixView<const float> X, std::span<const Fragment> hidden,
                      std::span<const float> background, Precision precision) {
  assert(hidden.size() == X.rows && background.size() == X.cols);
  const Kernels& k = kernels(precision);
  precision_ = precision;
  reserve(X.rows, X.cols);
  runs_.resize(X.cols);
  background_.resize(X.cols);
  k.round(background.data(), X.cols, background_.data());
  std::atomic<std::size_t> count = 0;
  const std::size_t blocks = ceil_div(X.cols, kColumns);
  parallel_for(blocks, 1, [&](std::size_t first, std::size_t end) {
    const std::size_t from = first * kColumns, width = std::min(X.cols, end * kColumns) - from;
    thread_local Scratch scratch;
    const MatrixView<float> rounded(scratch.floats(X.rows * width), X.rows, width);
    for (std::size_t r = 0; r < X.rows; ++r) k.round(&X(r, from), width, rounded.row(r).data());
    SparseColumns::Entry* const entries = entries_.data();
    std::size_t at = from * X.rows;
    for (std::size_t j = 0; j < width; ++j) {
      const float usual = background_[from + j];
      const std::size_t begin = at;
      for (std::size_t r = 0; r < X.rows; ++r) {
        const bool shown = from + j < hidden[r].begin || from + j >= hidden[r].end;
        entries[at] = {static_cast<std::uint32_t>(r), rounded(r, j) - usual};
        at += rounded(r, j) != usual && shown;
      }
      runs_[from + j] = {begin, at};
    }
    count += at - from * X.rows;
  });
  count_ = count;

  borders_.clear();
  const auto add = [&](std::size_t begin, std::size_t end, std::size_t row) {
    if (begin == end) return;
    borders_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(row), true});
    borders_.push_back({static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(row), false});
  };
  for (std::size_t r = 0; r < X.rows; ++r) {
    if (hidden[r].begin < hidden[r].end) {
      add(0, hidden[r].begin, r);
      add(hidden[r].end, X.cols, r);
    } else {
      add(0, X.cols, r);
    }
  }
  std::sort(borders_.begin(), borders_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.column, a.row) < std::tie(b.column, b.row);
  });
  columns_ = {X.rows,       X.cols,          background_.data(), entries_.data(),
              runs_.data(), borders_.data(), borders_.size()};
}

void sparse_forward(const Deviations& deviations, MatrixView<const float> W, std::span<const float> b,
                    bool relu, MatrixView<float> Y) {
  const SparseColumns& X = deviations.columns();
  assert(X.cols == W.rows && Y.rows == X.rows && Y.cols == W.cols && (b.empty() || b.size() == W.cols));
  const Kernels& k = kernels(deviations.precision());
  parallel_for(ceil_div(W.cols, kSparseStrip), 1, [&](std::size_t first, std::size_t end) {
    thread_local Scratch scratch;
    float* const sums = scratch.floats(X.rows * kSparseStrip);
    for (std::size_t strip = first; strip < end; ++strip) {
      const std::size_t c = strip * kSparseStrip, n = std::min(kSparseStrip, W.cols - c);
      std::fill_n(sums, X.rows * kSparseStrip, 0.f);
      k.scatter(X, W.data + c, W.stride, n, sums);
      k.finish(sums, kSparseStrip, X.rows, n, b.empty() ? nullptr : b.data() + c, relu);
      for (std::size_t r = 0; r < X.rows; ++r)
        std::copy_n(sums + r * kSparseStrip, n, Y.data + r * Y.stride + c);
    }
  });
}

void sparse_backward(const Deviations& deviations, MatrixView<const float> dY, const UpdateRule& rule,
                     ParameterView<float> W, ParameterView<float> b) {
  const SparseColumns& X = deviations.columns();
  assert(X.cols == W.value.rows && dY.rows == X.rows && dY.cols == W.value.cols);
  const FlushSubnormals flush;
  const Kernels& k = kernels(deviations.precision());
  const UpdateCoefficients<float> step{rule, W.decay}, bias_step{rule, b.decay};
  const std::size_t out = W.value.cols;
  const auto workers = static_cast<std::size_t>(threads());
  const Panels parts(
      out, ceil_div(out, workers * ceil_div(out, workers * kMostOutputs)) / kVector * kVector + kVector,
      kVector);
  parallel_for(parts.count, 1, [&](std::size_t first, std::size_t end) {
    thread_local Scratch rounded_scratch, shown_scratch, gradient_scratch;
    for (std::size_t p = first; p < end; ++p) {
      const std::size_t c = parts.begin(p), n = parts.size(p), stride = row_stride<float>(n);
      float* const dy = rounded_scratch.floats(X.rows * stride);
      float* const shown = shown_scratch.floats(n);
      float* const gradient = gradient_scratch.floats(n);
      for (std::size_t r = 0; r < X.rows; ++r) k.round(&dY(r, c), n, dy + r * stride);
      if (!b.value.empty()) {
        std::fill_n(gradient, n, 0.f);
        for (std::size_t r = 0; r < X.rows; ++r)
          for (std::size_t i = 0; i < n; ++i) gradient[i] += dY(r, c + i);
        k.update(bias_step, gradient, 0, 1, n, parameters_at(b, 0, c));
      }
      std::fill_n(shown, n, 0.f);
      const SparseColumns::Border* border = X.borders;
      for (std::size_t j = 0; j < X.cols; ++j) {
        for (; border != X.borders + X.border_count && border->column == j; ++border) {
          const float sign = border->shown ? 1.f : -1.f;
          for (std::size_t i = 0; i < n; ++i) shown[i] += sign * dy[border->row * stride + i];
        }
        if (j + kSoon < X.cols)
          for (const MatrixView<float>& A : {W.value, W.first, W.second, W.mean})
            for (std::size_t i = 0; i < n && !A.empty(); i += kVector)
              __builtin_prefetch(&A(j + kSoon, c + i), 0, 2);
        k.combine(X, j, shown, dy, stride, n, gradient);
        k.update(step, gradient, 0, 1, n, parameters_at(W, j, c));
      }
    }
  });
}

}  // namespace lacuna
