// The forward product with weights that have been packed once.
#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kLeftWords = 1 << 18;  // of X, packed at once: a megabyte, for the second cache
constexpr std::size_t kNearWords = 1 << 18;  // of W, that lie in every core's second cache
// See split_for(). W is read at once by everybody from a cache, or slowly from memory.
constexpr SplitCosts kNear = {4, 32}, kFar = {128, 32};

}  // namespace

PackedWeights::PackedWeights(MatrixView<const float> W)
    : kernels_(&lacuna::kernels(Precision::bf16)), in_(W.rows), out_(W.cols) {
  if (W.empty()) return;
  const Kernels& k = *kernels_;
  words_ = Matrix<std::uint32_t>(ceil_div(out_, k.columns), words_of(k, in_) * k.columns);
  parallel_for(words_.rows(), 1, [&](std::size_t first, std::size_t end) {
    for (std::size_t p = first; p < end; ++p)
      k.right_across(&W(0, p * k.columns), W.stride, std::min(k.columns, out_ - p * k.columns), in_,
                     words_.row(p).data());
  });
}

const std::uint32_t* PackedWeights::panel(std::size_t j) const {
  return words_.row(j / kernels_->columns).data();
}

// A task takes a part of the rows and of the columns, and for the latter a panel of W after the other through
// its whole depth. W is one long run in memory, which the CPU reads ahead by itself.
void linear_forward(MatrixView<const float> X, const PackedWeights& W, std::span<const float> b, bool relu,
                    MatrixView<float> Y) {
  assert(!W.empty() && X.cols == W.in() && Y.rows == X.rows && Y.cols == W.out() &&
         (b.empty() || b.size() == W.out()));
  if (Y.empty()) return;
  const Kernels& k = W.kernels();
  const std::size_t words = words_of(k, W.in());

  // Rows row .. row_end, columns column .. end.
  const auto run = [&](std::size_t row, std::size_t row_end, std::size_t column, std::size_t end) {
    thread_local Scratch scratch;
    const Panels panels(row_end - row, k.rows, k.side);
    std::uint32_t* const left = scratch.words(panels.count * words * k.rows);
    for (std::size_t p = 0; p < panels.count; ++p)
      k.left_along(&X(row + panels.begin(p), 0), X.stride, panels.size(p), W.in(), left + p * words * k.rows);
    Ahead nothing;
    for (std::size_t j = column; j < end; j += k.columns)
      for (std::size_t p = 0; p < panels.count; ++p)
        k.tile(words, left + p * words * k.rows, W.panel(j), &Y(row + panels.begin(p), j), Y.stride,
               panels.size(p), std::min(k.columns, end - j),
               {false, b.empty() ? nullptr : b.data() + j, relu}, nothing);
  };
  const Panels chunks(X.rows, std::max(kLeftWords / words, k.rows) / k.side * k.side, k.side);
  for (std::size_t c = 0; c < chunks.count; ++c) {
    const Split split =
        split_for(chunks.size(c), k.side, W.out(), k.columns, static_cast<std::size_t>(threads()),
                  W.words() <= kNearWords ? kNear : kFar);
    const std::size_t tasks = split.rows.count * split.columns.count;
    const double work = static_cast<double>(chunks.size(c) * W.in()) * static_cast<double>(W.out());
    parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t end) {
      for (std::size_t t = first; t < end; ++t) {
        const std::size_t r = t % split.rows.count, column = t / split.rows.count;
        run(chunks.begin(c) + split.rows.begin(r), chunks.begin(c) + split.rows.begin(r + 1),
            split.columns.begin(column), split.columns.begin(column + 1));
      }
    });
  }
}

}  // namespace lacuna
