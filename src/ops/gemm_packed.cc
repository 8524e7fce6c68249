// The forward product with weights that have been packed once.
#include <algorithm>
#include <cassert>
#include <span>
#include <vector>

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

// Rows that are packed together. An even number of parts, for two threads.
Panels row_panels(const Kernels& k, std::size_t rows) {
  Panels panels(rows, k.rows, k.side);
  if (panels.count > 1 && panels.count % 2 == 1) panels.units.count = ++panels.count;
  return panels;
}

}  // namespace

void PackedRows::resize(const Kernels& k, std::size_t rows, std::size_t cols) {
  kernels_ = &k;
  rows_ = rows;
  cols_ = cols;
  panel_words_ = words_of(k, cols) * k.rows;
  if (const std::size_t words = row_panels(k, rows).count * panel_words_; words_.cols() < words)
    words_ = Matrix<std::uint32_t>(1, words);
}

void PackedRows::pack(MatrixView<const float> X) {
  const Kernels& k = lacuna::kernels(Precision::bf16);
  resize(k, X.rows, X.cols);
  if (X.empty()) return;
  const Panels panels = row_panels(k, X.rows);
  parallel_for(panels.count, grain_for(panels.count, static_cast<double>(X.size())),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t p = first; p < end; ++p)
                   k.left_along(&X(panels.begin(p), 0), X.stride, panels.size(p), X.cols, panel(p));
               });
}

namespace {

constexpr std::size_t kLeftWords = 1 << 18;   // of X, packed at once: a megabyte, for the second cache
constexpr std::size_t kFirstWords = 1 << 13;  // of X, that stay in the first cache
constexpr std::size_t kNearWords = 1 << 18;   // of W, that lie in every core's second cache
// See split_for(). W is read at once by all threads from a cache, or slowly from memory.
constexpr std::size_t kReadingNear = 8, kReadingFar = 128, kPacking = 32;

// Depth is cut in blocks (packed_depth), with AMX such that a panel of one fits the first cache. Where W lies
// in the second cache, a panel of X stays in the first and all those of W pass by. Where W comes from farther
// away, each of its blocks stays until all rows have passed, and the next one is asked for.
struct PackedProduct {
  const Kernels& k;
  const RowsIn& X;
  const PackedWeights& W;
  std::span<const float> b;
  bool relu;
  const RowsOut& Y;
  Panels panels = row_panels(k, X.rows());
  Panels blocks{W.in(), k.packed_depth, k.factors};
  std::size_t words = words_of(k, W.in()), panel_words = words * k.rows;

  // Tasks share the panels of X and the columns.
  void share() const {
    const Split split =
        split_for(panels.count * k.rows, k.rows, W.out(), k.columns, static_cast<std::size_t>(threads()),
                  {W.words() <= kNearWords ? kReadingNear : kReadingFar, X.packed != nullptr ? 0 : kPacking});
    const std::size_t tasks = split.rows.count * split.columns.count;
    const double work = static_cast<double>(X.rows() * W.in()) * static_cast<double>(W.out());
    const std::size_t most = std::max<std::size_t>(kLeftWords / panel_words, 1);
    parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) {
        const std::size_t r = t % split.rows.count, column = t / split.rows.count;
        const std::size_t end = split.rows.begin(r + 1) / k.rows;
        for (std::size_t p = split.rows.begin(r) / k.rows; p < end; p += most)
          run(p, std::min(p + most, end), split.columns.begin(column), split.columns.begin(column + 1));
      }
    });
  }

  // A block of depth: words of a panel, and where they begin.
  struct Block {
    std::size_t from, words;
    bool begins, ends;
  };
  Block block(std::size_t d) const {
    return {words_of(k, blocks.begin(d)), words_of(k, blocks.size(d)), d == 0, d + 1 == blocks.count};
  }
  // A panel of X, m rows; where the sums of a task's first columns are, and where they are packed to.
  struct Rows {
    const std::uint32_t* left;
    std::size_t m;
    float* sums;
    std::uint32_t* packed;
  };

  // Panels first .. last of X, columns column .. end.
  void run(std::size_t first, std::size_t last, std::size_t column, std::size_t end) const {
    thread_local Scratch left_scratch, sum_scratch;
    thread_local std::vector<Rows> rows;
    const std::uint32_t* const left =
        X.packed != nullptr ? X.packed->panel(first) : pack(first, last, left_scratch);
    const bool near = words * (end - column) <= kNearWords;

    // Sums that will be packed need memory only until then: of a tile, a strip of columns, or all columns.
    const bool packs = Y.packed != nullptr, tile_alone = packs && blocks.count == 1,
               strip = tile_alone || (packs && !near);
    const std::size_t stride = !packs ? Y.plain.stride : strip ? k.columns : row_stride<float>(end - column);
    float* const sums =
        packs ? sum_scratch.floats((last - first) * k.rows * stride) : &Y.plain(panels.begin(first), column);
    rows.clear();
    for (std::size_t p = first; p < last; ++p)
      rows.push_back({left + (p - first) * panel_words, panels.size(p),
                      sums + (tile_alone ? 0 : panels.begin(p) - panels.begin(first)) * stride,
                      packs ? Y.packed->panel(p) : nullptr});

    const auto tile = [&](const Block& at, const Rows& r, std::size_t j, const std::uint32_t* right,
                          PanelPair::Passing passing, Ahead& ahead) {
      const std::size_t n = std::min(k.columns, end - j);
      float* const C = r.sums + (strip ? 0 : j - column);
      k.tile({at.words, r.left + at.from * k.rows, right, passing}, C, stride, r.m, n,
             {!at.begins, at.ends && !b.empty() ? b.data() + j : nullptr, at.ends && relu}, ahead);
      if (packs && at.ends) k.left_along(C, stride, r.m, n, r.packed + words_of(k, j) * k.rows);
    };

    if (near) {
      Ahead nothing;
      for (std::size_t d = 0; d < blocks.count; ++d) {
        const Block at = block(d);
        const Parts groups(last - first, std::max<std::size_t>(kFirstWords / (at.words * k.rows), 1));
        for (std::size_t g = 0; g < groups.count; ++g) {
          const std::span group = std::span(rows).subspan(groups.begin(g), groups.size(g));
          const std::uint32_t* right = W.panel(column) + at.from * k.columns;
          for (std::size_t j = column; j < end; j += k.columns, right += words * k.columns)
            for (const Rows& r : group) tile(at, r, j, right, PanelPair::Passing::right, nothing);
        }
      }
      return;
    }
    for (std::size_t j = column; j < end; j += k.columns)
      for (std::size_t d = 0; d < blocks.count; ++d) {
        const Block at = block(d);
        const std::uint32_t* const right = W.panel(j) + at.from * k.columns;
        // A single panel of X only reads W, in one long run, which the CPU reads ahead by itself.
        Ahead next = rows.size() > 1 ? after(j, d, end) : Ahead();
        next.within((last - first) * Ahead::turns(at.words));
        for (const Rows& r : rows) tile(at, r, j, right, PanelPair::Passing::left, next);
      }
  }

  const std::uint32_t* pack(std::size_t first, std::size_t last, Scratch& scratch) const {
    std::uint32_t* const left = scratch.words((last - first) * panel_words);
    for (std::size_t p = first; p < last; ++p)
      k.left_along(&X.plain(panels.begin(p), 0), X.plain.stride, panels.size(p), W.in(),
                   left + (p - first) * panel_words);
    return left;
  }

  // The block of W that comes next in a task whose columns go to `end`.
  Ahead after(std::size_t j, std::size_t d, std::size_t end) const {
    if (++d == blocks.count) d = 0, j += k.columns;
    if (j >= end) return {};
    const Block next = block(d);
    return {reinterpret_cast<const float*>(W.panel(j) + next.from * k.columns), 0, 1, next.words * k.columns};
  }
};

}  // namespace

void linear_forward(const RowsIn& X, const PackedWeights& W, std::span<const float> b, bool relu,
                    const RowsOut& Y) {
  assert(!W.empty() && X.cols() == W.in() && (b.empty() || b.size() == W.out()));
  assert(X.packed == nullptr || (X.packed != Y.packed && &X.packed->kernels() == &W.kernels()));
  if (Y.packed != nullptr) Y.packed->resize(W.kernels(), X.rows(), W.out());
  assert(Y.packed != nullptr || (Y.plain.rows == X.rows() && Y.plain.cols == W.out()));
  if (X.rows() == 0) return;
  PackedProduct{W.kernels(), X, W, b, relu, Y}.share();
}

}  // namespace lacuna
