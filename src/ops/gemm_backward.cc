// The backward products of a linear layer and the optimiser, in one pass over the weights.
#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kPiece = 128;     // outputs packed by one task; divides the k.outputs of every kernel
constexpr std::size_t kNeighbours = 4;  // blocks of k.inputs that a task takes, at most

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
  std::size_t blocks = ceil_div(out, k.outputs),
              block_words = panels.count * groups_of(k, k.outputs) * k.rows;
  std::size_t row_groups = groups_of(k, n), right_words = row_groups * k.columns;
  std::uint32_t *left = nullptr, *right = nullptr;
  float* bias_gradient = nullptr;

  bool wants_dX() const { return dX.rows != 0; }
  std::size_t block_depth(std::size_t o) const { return std::min(k.outputs, out - o * k.outputs); }
  std::uint32_t* left_panel(std::size_t o, std::size_t p) const {
    return left + o * block_words + p * groups_of(k, block_depth(o)) * k.rows;
  }

  // Packs dY's columns j .. j + size, and updates their biases.
  void pack(std::size_t j, std::size_t size) const {
    if (n != 0) {
      if (wants_dX())
        for (std::size_t p = 0; p < panels.count; ++p)
          k.left_along(&dY(panels.begin(p), j), dY.stride, panels.size(p), size,
                       left_panel(j / k.outputs, p) + groups_of(k, j % k.outputs) * k.rows);
      k.right_across(&dY(0, j), dY.stride, size, n, right + j / k.columns * right_words, right_words);
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

  // What block o of rows i .. i + size will want of W, the optimiser's state and, if rows_too, of X. Packed
  // panels are long runs, which the CPU reads ahead by itself.
  Ahead wanted(std::size_t i, std::size_t size, std::size_t o, bool rows_too) const {
    Ahead ahead;
    if (size == 0) return ahead;
    const std::size_t o0 = o * k.outputs, width = block_depth(o);
    const auto block = [&](MatrixView<float> A) {
      if (!A.empty()) ahead.then(&A(i, o0), A.stride, size, width);
    };
    if (rows_too && n != 0) ahead.then(&X(0, i), X.stride, n, size);
    block(W.value);
    block(W.first);
    block(W.second);
    block(W.mean);
    return ahead;
  }

  // Turns of the tiles of such a block.
  std::size_t turns(std::size_t size, std::size_t o) const {
    const std::size_t gradient =
        ceil_div(size, k.rows) * ceil_div(block_depth(o), k.columns) * Ahead::turns(row_groups);
    const std::size_t products =
        wants_dX() ? ceil_div(size, k.columns) * panels.count * Ahead::turns(groups_of(k, block_depth(o)))
                   : 0;
    return gradient + products;
  }

  // sums (n, size) = or += dY[:, block o] W[i0 .. i0 + size, block o]ᵀ.
  void input_gradient(std::size_t i0, std::size_t size, std::size_t o, std::uint32_t* weights, float* sums,
                      Ahead& ahead) const {
    const std::size_t o0 = o * k.outputs, width = block_depth(o);
    for (std::size_t i = 0; i < size; i += k.columns) {
      const std::size_t columns = std::min(k.columns, size - i);
      k.right_along(&W.value(i0 + i, o0), W.value.stride, columns, width, weights);
      for (std::size_t p = 0; p < panels.count; ++p)
        k.tile(groups_of(k, width), left_panel(o, p), weights, sums + panels.begin(p) * size + i, size,
               panels.size(p), columns, {o > 0, nullptr, false}, ahead);
    }
  }

  // The optimiser's step of W[i0 .. i0 + size, block o] with rows of Xᵀ dY that never leave the cache. The
  // step goes along the rows, as the CPU reads ahead by itself; tile by tile it would wait for memory.
  void update(std::size_t i0, const Parts& inputs, std::size_t o, const std::uint32_t* input, float* gradient,
              Ahead& ahead) const {
    const auto at = [](MatrixView<float> A, std::size_t i, std::size_t j) {
      return A.empty() ? nullptr : &A(i, j);
    };
    const std::size_t o0 = o * k.outputs, width = block_depth(o);
    for (std::size_t p = 0; p < inputs.count; ++p) {
      const std::size_t i = i0 + inputs.begin(p), rows = inputs.size(p);
      for (std::size_t j = 0; j < width; j += k.columns)
        k.tile(row_groups, input + p * row_groups * k.rows, right + (o0 + j) / k.columns * right_words,
               gradient + j, k.outputs, rows, std::min(k.columns, width - j), {}, ahead);
      k.update(step, gradient, k.outputs, rows, width,
               {&W.value(i, o0), &W.first(i, o0), at(W.second, i, o0), at(W.mean, i, o0), W.value.stride,
                W.first.stride, W.second.stride, W.mean.stride});
    }
  }

  // Rows i0 .. i0 + size of W, block by block of outputs: dX with the old weights, then their update. `next`
  // is where this thread will go on, with `next_size` rows.
  void run(std::size_t i0, std::size_t size, std::size_t next, std::size_t next_size) const {
    thread_local Scratch weight_scratch, input_scratch, sum_scratch, gradient_scratch;
    std::uint32_t* const weights = weight_scratch.words(groups_of(k, k.outputs) * k.columns);
    const Parts inputs(size, k.rows);
    std::uint32_t* const input = input_scratch.words(inputs.count * row_groups * k.rows);
    for (std::size_t p = 0; p < inputs.count && n != 0; ++p)
      k.left_across(&X(0, i0 + inputs.begin(p)), X.stride, inputs.size(p), n,
                    input + p * row_groups * k.rows);
    float* const sums = sum_scratch.floats(n * size);
    float* const gradient = gradient_scratch.floats(k.rows * k.outputs);
    for (std::size_t o = 0; o < blocks; ++o) {
      Ahead ahead = o + 1 < blocks ? wanted(i0, size, o + 1, false) : wanted(next, next_size, 0, true);
      ahead.within(turns(size, o));
      if (wants_dX()) input_gradient(i0, size, o, weights, sums, ahead);
      update(i0, inputs, o, input, gradient, ahead);
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
  // As many equal blocks of rows as there are threads, or a multiple of that. A task takes neighbours, so
  // that it knows where it goes on; only its last block must guess.
  const auto workers = static_cast<std::size_t>(threads());
  const Parts rows(work.in, ceil_div(work.in, workers * ceil_div(work.in, workers * work.k.inputs)));
  const double multiply_adds =
      static_cast<double>(std::max<std::size_t>(work.n, 8)) * static_cast<double>(W.value.size());
  const std::size_t grain =
      std::max(grain_for(rows.count, multiply_adds), std::min(kNeighbours, ceil_div(rows.count, workers)));
  parallel_for(rows.count, grain, [&](std::size_t first, std::size_t end) {
    for (std::size_t r = first; r < end; ++r) {
      const std::size_t next = r + 1 < end ? r + 1 : first + workers * grain;
      work.run(rows.begin(r), rows.size(r), rows.begin(std::min(next, rows.count)),
               next < rows.count ? rows.size(next) : 0);
    }
  });
}

}  // namespace lacuna
