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

Panels depth_blocks(const Kernels& k, std::size_t depth) {
  return {depth, k.depth, k.factors};
}

}  // namespace

PackedWeights::PackedWeights(MatrixView<const float> W)
    : kernels_(&lacuna::kernels(Precision::bf16)), in_(W.rows), out_(W.cols) {
  if (W.empty()) return;
  const Kernels& k = *kernels_;
  const Panels blocks = depth_blocks(k, in_);
  words_ = Matrix<std::uint32_t>(ceil_div(out_, k.columns), words_of(k, in_) * k.columns);
  parallel_for(words_.rows(), 1, [&](std::size_t first, std::size_t end) {
    for (std::size_t p = first; p < end; ++p)
      for (std::size_t b = 0; b < blocks.count; ++b)
        k.right_across(&W(blocks.begin(b), p * k.columns), W.stride,
                       std::min(k.columns, out_ - p * k.columns), blocks.size(b),
                       words_.row(p).data() + words_of(k, blocks.begin(b)) * k.columns);
  });
}

// A task takes a part of the columns for all rows of a chunk, and a panel of W after the other through its
// whole depth: W is one long run in memory, and the sums of a panel stay in the nearest caches.
void linear_forward(MatrixView<const float> X, const PackedWeights& W, std::span<const float> b, bool relu,
                    MatrixView<float> Y) {
  assert(!W.empty() && X.cols == W.in() && Y.rows == X.rows && Y.cols == W.out() &&
         (b.empty() || b.size() == W.out()));
  if (Y.empty()) return;
  const Kernels& k = W.kernels();
  const std::size_t all_words = words_of(k, W.in());
  const Panels blocks = depth_blocks(k, W.in());
  const Panels chunks(X.rows, std::max(kLeftWords / all_words, k.rows) / k.side * k.side, k.side);
  const std::size_t tiles = ceil_div(W.out(), k.columns);
  const Panels columns(W.out(), ceil_div(tiles, static_cast<std::size_t>(threads())) * k.columns, k.columns);

  const auto run = [&](MatrixView<const float> rows, std::size_t row, std::size_t column, std::size_t end) {
    thread_local Scratch scratch;
    const Panels panels(rows.rows, k.rows, k.side);
    std::uint32_t* const left = scratch.words(panels.count * all_words * k.rows);
    const auto left_panel = [&](std::size_t p, std::size_t block) {
      return left + (p * all_words + words_of(k, blocks.begin(block))) * k.rows;
    };
    for (std::size_t p = 0; p < panels.count; ++p)
      for (std::size_t block = 0; block < blocks.count; ++block)
        k.left_along(&rows(panels.begin(p), blocks.begin(block)), rows.stride, panels.size(p),
                     blocks.size(block), left_panel(p, block));
    for (std::size_t j = column; j < end; j += k.columns)
      for (std::size_t block = 0; block < blocks.count; ++block) {
        const std::size_t words = words_of(k, blocks.size(block));
        const std::uint32_t* const right = W.panel(j, blocks.begin(block));
        const bool last = block + 1 == blocks.count;
        const TileEnd tile_end{block > 0, last && !b.empty() ? b.data() + j : nullptr, last && relu};
        // What follows in memory is what comes next.
        Ahead ahead;
        if (!last || j + k.columns < end)
          ahead.then(reinterpret_cast<const float*>(right + words * k.columns), 0, 1, words * k.columns);
        ahead.within(panels.count * Ahead::turns(words));
        for (std::size_t p = 0; p < panels.count; ++p)
          k.tile(words, left_panel(p, block), right, &Y(row + panels.begin(p), j), Y.stride, panels.size(p),
                 std::min(k.columns, end - j), tile_end, ahead);
      }
  };
  for (std::size_t c = 0; c < chunks.count; ++c) {
    const MatrixView<const float> rows = X.slice(chunks.begin(c), chunks.size(c));
    const double work = static_cast<double>(rows.size()) * static_cast<double>(W.out());
    parallel_for(columns.count, grain_for(columns.count, work), [&](std::size_t first, std::size_t end) {
      run(rows, chunks.begin(c), columns.begin(first), columns.begin(end));
    });
  }
}

const std::uint32_t* PackedWeights::panel(std::size_t j, std::size_t d) const {
  return words_.row(j / kernels_->columns).data() + words_of(*kernels_, d) * kernels_->columns;
}

}  // namespace lacuna
