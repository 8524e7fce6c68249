// The backward products of a linear layer and the optimiser, in one pass over the weights.
#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kPiece = 128;      // outputs packed by one task; divides the depth of every kernel
constexpr std::size_t kInputBlock = 64;  // rows of W that a task takes

struct Backward {
  const Kernels& k;
  MatrixView<const float> X, dY;
  bool mask_by_input;
  ParameterView<float> W, b;
  MatrixView<float> dX;
  UpdateCoefficients<float> step, bias_step;

  // dY is packed twice: as the left factor of dY Wᵀ, by blocks of outputs, and as the right factor of Xᵀ dY.
  std::size_t n = X.rows, in = W.value.rows, out = W.value.cols;
  Parts panels{n, k.rows};
  std::size_t blocks = ceil_div(out, k.depth), block_words = panels.count * groups_of(k, k.depth) * k.rows;
  std::size_t row_groups = groups_of(k, n), right_words = row_groups * k.columns;
  std::uint32_t *left = nullptr, *right = nullptr;
  float* bias_gradient = nullptr;

  bool wants_dX() const { return dX.rows != 0; }
  std::size_t block_depth(std::size_t o) const { return std::min(k.depth, out - o * k.depth); }
  std::uint32_t* left_panel(std::size_t o, std::size_t p) const {
    return left + o * block_words + p * groups_of(k, block_depth(o)) * k.rows;
  }

  // Packs dY's columns j .. j + size, and updates their biases.
  void pack(std::size_t j, std::size_t size) const {
    if (n != 0) {
      if (wants_dX())
        for (std::size_t p = 0; p < panels.count; ++p)
          k.left_along(&dY(panels.begin(p), j), dY.stride, panels.size(p), size,
                       left_panel(j / k.depth, p) + j % k.depth / k.group * k.rows);
      for (std::size_t c = j; c < j + size; c += k.columns)
        k.right_across(&dY(0, c), dY.stride, std::min(k.columns, out - c), n,
                       right + c / k.columns * right_words);
    }
    if (b.value.empty()) return;
    float* const sums = bias_gradient + j;
    std::fill_n(sums, size, 0.f);
    for (std::size_t r = 0; r < n; ++r) {
      const float* row = &dY(r, j);
      for (std::size_t c = 0; c < size; ++c) sums[c] += row[c];
    }
    const auto at = [&](MatrixView<float> A) { return A.empty() ? nullptr : A.data + j; };
    k.update(bias_step, sums, 0, 1, size, {at(b.value), at(b.first), at(b.second), at(b.mean), 0, 0, 0, 0});
  }

  // sums (n, size) = or += dY[:, block o] W[i0 .. i0 + size, block o]ᵀ.
  void input_gradient(std::size_t i0, std::size_t size, std::size_t o, std::uint32_t* weights,
                      float* sums) const {
    const std::size_t o0 = o * k.depth, depth = block_depth(o);
    const std::size_t first = o0 / k.columns, last = ceil_div(o0 + depth, k.columns);
    for (std::size_t i = 0; i < size; i += k.columns) {
      const std::size_t width = std::min(k.columns, size - i), next = i + k.columns;
      k.right_along(&W.value(i0 + i, o0), W.value.stride, width, depth, weights);
      Ahead ahead;
      if (next < size)
        ahead = Ahead(&W.value(i0 + next, o0), W.value.stride, std::min(k.columns, size - next), depth);
      else if (blocks > 1)
        ahead.then(right + first * right_words, (last - first) * right_words);
      for (std::size_t p = 0; p < panels.count; ++p)
        k.tile(groups_of(k, depth), left_panel(o, p), weights, sums + panels.begin(p) * size + i, size,
               panels.size(p), width, {o > 0, nullptr, false}, ahead);
    }
  }

  // Asks for the optimiser's state of `rows` rows and one tile's columns from (i, j); W too unless dX has
  // just read it.
  // (Inlined always: g++ drops the call of a function that does nothing but prefetch.)
  [[gnu::always_inline]] void fetch(std::size_t i, std::size_t j, std::size_t rows) const {
    const auto ask = [&](MatrixView<float> A) __attribute__((always_inline)) {
      if (A.empty()) return;
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < k.columns; c += 16)
          __builtin_prefetch(A.data + (i + r) * A.stride + j + c, 1, 2);
    };
    ask(W.first);
    ask(W.second);
    ask(W.mean);
    if (!wants_dX()) ask(W.value);
  }

  // The optimiser's step of W[i0 .. i0 + size, block o] with tiles of Xᵀ dY that never leave the cache.
  void update(std::size_t i0, const Parts& inputs, std::size_t o, const std::uint32_t* input,
              Ahead ahead) const {
    alignas(64) float gradient[kLargestTile];
    const auto at = [](MatrixView<float> A, std::size_t i, std::size_t j) {
      return A.empty() ? nullptr : &A(i, j);
    };
    const std::size_t o0 = o * k.depth, o1 = o0 + block_depth(o);
    for (std::size_t p = 0; p < inputs.count; ++p) {
      const std::size_t i = i0 + inputs.begin(p), rows = inputs.size(p);
      for (std::size_t j = o0; j < o1; j += k.columns) {
        const std::size_t width = std::min(k.columns, out - j);
        if (j + k.columns < o1)
          fetch(i, j + k.columns, rows);
        else if (p + 1 < inputs.count)
          fetch(i0 + inputs.begin(p + 1), o0, inputs.size(p + 1));
        k.tile(row_groups, input + p * row_groups * k.rows, right + j / k.columns * right_words, gradient,
               k.columns, rows, width, {}, ahead);
        k.update(step, gradient, k.columns, rows, width,
                 {&W.value(i, j), &W.first(i, j), at(W.second, i, j), at(W.mean, i, j), W.value.stride,
                  W.first.stride, W.second.stride, W.mean.stride});
      }
    }
  }

  // What dX needs first in block o: rows of W, and dY.
  Ahead weights_ahead(std::size_t i, std::size_t o) const {
    if (!wants_dX() || i >= in) return {};
    Ahead ahead(&W.value(i, o * k.depth), W.value.stride, std::min(k.columns, in - i), block_depth(o));
    if (blocks > 1) ahead.then(left_panel(o, 0), panels.count * groups_of(k, block_depth(o)) * k.rows);
    return ahead;
  }

  // Rows i0 .. i0 + size of W, block by block of outputs: dX with the old weights, then their update. `next`
  // is where this thread will go on.
  void run(std::size_t i0, std::size_t size, std::size_t next) const {
    thread_local Scratch weight_scratch, input_scratch, sum_scratch;
    std::uint32_t* const weights = weight_scratch.words(groups_of(k, k.depth) * k.columns);
    const Parts inputs(size, k.rows);
    std::uint32_t* const input = input_scratch.words(inputs.count * row_groups * k.rows);
    for (std::size_t p = 0; p < inputs.count && n != 0; ++p)
      k.left_across(&X(0, i0 + inputs.begin(p)), X.stride, inputs.size(p), n,
                    input + p * row_groups * k.rows);
    float* const sums = sum_scratch.floats(n * size);
    for (std::size_t o = 0; o < blocks; ++o) {
      if (wants_dX()) input_gradient(i0, size, o, weights, sums);
      update(i0, inputs, o, input, o + 1 < blocks ? weights_ahead(i0, o + 1) : weights_ahead(next, 0));
    }
    if (wants_dX())
      k.keep(sums, size, mask_by_input ? &X(0, i0) : nullptr, X.stride, n, size, &dX(0, i0), dX.stride);
  }
};

}  // namespace

void linear_backward(MatrixView<const float> X, MatrixView<const float> dY, bool mask_by_input,
                     Precision precision, const UpdateRule& rule, ParameterView<float> W,
                     ParameterView<float> b, MatrixView<float> dX) {
  assert(X.cols == W.value.rows && dY.rows == X.rows && dY.cols == W.value.cols);
  assert(dX.rows == 0 || (dX.rows == X.rows && dX.cols == X.cols));
  if (W.value.empty()) return;
  Backward work{kernels(precision), X, dY, mask_by_input, W, b, dX, {rule, W.decay}, {rule, b.decay}};

  thread_local Scratch left_scratch, right_scratch, bias_scratch;
  if (work.wants_dX()) work.left = left_scratch.words(work.blocks * work.block_words);
  work.right = right_scratch.words(ceil_div(work.out, work.k.columns) * work.right_words);
  if (!b.value.empty()) work.bias_gradient = bias_scratch.floats(work.out);

  const std::size_t pieces = ceil_div(work.out, kPiece);
  parallel_for(pieces, grain_for(pieces, 4. * static_cast<double>(work.n * work.out)),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t piece = first; piece < end; ++piece)
                   work.pack(piece * kPiece, std::min(kPiece, work.out - piece * kPiece));
               });
  // As many equal tasks as there are threads, or a multiple of that.
  const auto workers = static_cast<std::size_t>(threads());
  const Parts tasks(work.in, ceil_div(work.in, workers * ceil_div(work.in, workers * kInputBlock)));
  const double multiply_adds =
      static_cast<double>(std::max<std::size_t>(work.n, 8)) * static_cast<double>(W.value.size());
  parallel_for(tasks.count, grain_for(tasks.count, multiply_adds), [&](std::size_t first, std::size_t end) {
    for (std::size_t t = first; t < end; ++t)
      work.run(tasks.begin(t), tasks.size(t), tasks.begin(std::min(t + workers, tasks.count)));
  });
}

}  // namespace lacuna
