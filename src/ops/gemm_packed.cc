// The forward product with weights that have been packed once.
#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {

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

namespace {

constexpr std::size_t kLeftWords = 1 << 18;   // of X, packed at once: a megabyte, for the second cache
constexpr std::size_t kFirstWords = 1 << 13;  // of X, that stay in the first cache
constexpr std::size_t kNearWords = 1 << 18;   // of W, that lie in every core's second cache
// See split_for(). W is read at once by everybody from a cache, or slowly from memory.
constexpr SplitCosts kNear = {4, 32}, kFar = {128, 32};

// Rows of X times columns of Y, within a task. Depth is cut in blocks, such that a panel of one fits the
// first cache. Where W lies in the second cache, a panel of X stays in the first and all those of W pass by.
// Where W comes from farther away, each of its blocks stays until all rows have passed, and the next one is
// asked for.
struct PackedProduct {
  const Kernels& k;
  const PackedWeights& W;
  std::span<const float> b;
  bool relu;
  Panels blocks{W.in(), k.packed_depth, k.factors};
  std::size_t words = words_of(k, W.in());

  void run(MatrixView<const float> X, std::size_t column, std::size_t end, MatrixView<float> Y) const {
    thread_local Scratch scratch;
    const Panels panels(X.rows, k.rows, k.side);
    std::uint32_t* const left = scratch.words(panels.count * words * k.rows);
    for (std::size_t p = 0; p < panels.count; ++p)
      k.left_along(&X(panels.begin(p), 0), X.stride, panels.size(p), W.in(), left + p * words * k.rows);

    const auto tile = [&](std::size_t block, std::size_t p, std::size_t j, PanelPair::Passing passing,
                          Ahead& ahead) {
      const std::size_t from = words_of(k, blocks.begin(block));
      const bool ends = block + 1 == blocks.count;
      k.tile({words_of(k, blocks.size(block)), left + (p * words + from) * k.rows,
              W.panel(j) + from * k.columns, passing},
             &Y(panels.begin(p), j), Y.stride, panels.size(p), std::min(k.columns, end - j),
             {block > 0, ends && !b.empty() ? b.data() + j : nullptr, ends && relu}, ahead);
    };
    if (words * (end - column) <= kNearWords) {
      Ahead nothing;
      for (std::size_t block = 0; block < blocks.count; ++block) {
        const std::size_t panel_words = words_of(k, blocks.size(block)) * k.rows;
        const Parts groups(panels.count, std::max<std::size_t>(kFirstWords / panel_words, 1));
        for (std::size_t g = 0; g < groups.count; ++g)
          for (std::size_t j = column; j < end; j += k.columns)
            for (std::size_t p = groups.begin(g); p < groups.begin(g + 1); ++p)
              tile(block, p, j, PanelPair::Passing::right, nothing);
      }
      return;
    }
    for (std::size_t j = column; j < end; j += k.columns)
      for (std::size_t block = 0; block < blocks.count; ++block) {
        Ahead next = after(j, block, end);
        next.within(panels.count * Ahead::turns(words_of(k, blocks.size(block))));
        for (std::size_t p = 0; p < panels.count; ++p) tile(block, p, j, PanelPair::Passing::left, next);
      }
  }

  // The block of W that comes next in a task whose columns go to `end`.
  Ahead after(std::size_t j, std::size_t block, std::size_t end) const {
    if (++block == blocks.count) block = 0, j += k.columns;
    if (j >= end) return {};
    const std::uint32_t* const next = W.panel(j) + words_of(k, blocks.begin(block)) * k.columns;
    return {reinterpret_cast<const float*>(next), 0, 1, words_of(k, blocks.size(block)) * k.columns};
  }
};

}  // namespace

void linear_forward(MatrixView<const float> X, const PackedWeights& W, std::span<const float> b, bool relu,
                    MatrixView<float> Y) {
  assert(!W.empty() && X.cols == W.in() && Y.rows == X.rows && Y.cols == W.out() &&
         (b.empty() || b.size() == W.out()));
  if (Y.empty()) return;
  const PackedProduct product{W.kernels(), W, b, relu};
  const Kernels& k = product.k;
  const Panels chunks(X.rows, std::max(kLeftWords / product.words, k.rows) / k.side * k.side, k.side);
  for (std::size_t c = 0; c < chunks.count; ++c) {
    const Split split = split_for(chunks.size(c), k.side, W.out(), k.columns,
                                  static_cast<std::size_t>(threads()), W.words() <= kNearWords ? kNear : kFar);
    const std::size_t tasks = split.rows.count * split.columns.count;
    const double work = static_cast<double>(chunks.size(c) * W.in()) * static_cast<double>(W.out());
    parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t end) {
      for (std::size_t t = first; t < end; ++t) {
        const std::size_t r = t % split.rows.count, column = t / split.rows.count;
        const std::size_t row = chunks.begin(c) + split.rows.begin(r), rows = split.rows.size(r);
        product.run({&X(row, 0), rows, X.cols, X.stride}, split.columns.begin(column),
                    split.columns.begin(column + 1), {&Y(row, 0), rows, Y.cols, Y.stride});
      }
    });
  }
}

}  // namespace lacuna
