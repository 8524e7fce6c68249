// The backward products of a linear layer and the optimiser, in one pass over the weights.
#include <algorithm>
#include <cassert>

#include "base/subnormals.h"
#include "base/threads.h"
#include "ops/gemm.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kPiece = 128;       // outputs packed by one task; divides the k.outputs of every kernel
constexpr std::size_t kNeighbours = 128;  // inputs that a task takes, about

struct Backward {
  const Kernels& k;
  MatrixView<const float> X, dY;
  bool mask_by_input;
  ParameterView<float> W, b;
  MatrixView<float> dX;
  UpdateCoefficients<float> step, bias_step;

  // dY is packed twice: as a factor of dY Wᵀ (the left one, or dYᵀ as the right one of W dYᵀ), by blocks of
  // outputs, and as the right factor of Xᵀ dY.
  std::size_t n = X.rows, in = W.value.rows, out = W.value.cols;
  std::size_t width = k.weights_left ? k.columns : k.rows;  // of a panel of dY's rows
  Panels panels{n, width, k.side};
  std::size_t blocks = ceil_div(out, k.outputs), block_words = panels.count * words_of(k, k.outputs) * width;
  std::size_t row_words = words_of(k, n), right_words = row_words * k.columns;
  std::uint32_t *rows = nullptr, *right = nullptr;
  float* bias_gradient = nullptr;

  std::size_t pitch = whole(n);  // of sums, if weights_left

  // Buffers have room for whole tiles, and panels are padded with zero.
  std::size_t whole(std::size_t count) const { return ceil_div(count, k.side) * k.side; }
  bool wants_dX() const { return dX.rows != 0; }
  std::size_t block_depth(std::size_t o) const { return std::min(k.outputs, out - o * k.outputs); }
  std::uint32_t* row_panel(std::size_t o, std::size_t p) const {
    return rows + o * block_words + p * words_of(k, block_depth(o)) * width;
  }

  // Packs dY's columns j .. j + size, and updates their biases.
  void pack(std::size_t j, std::size_t size) const {
    if (n != 0) {
      if (wants_dX())
        for (std::size_t p = 0; p < panels.count; ++p)
          (k.weights_left ? k.right_along : k.left_along)(
              &dY(panels.begin(p), j), dY.stride, panels.size(p), size,
              row_panel(j / k.outputs, p) + words_of(k, j % k.outputs) * width);
      for (std::size_t c = j; c < j + size; c += k.columns)
        k.right_across(&dY(0, c), dY.stride, std::min(k.columns, j + size - c), n,
                       right + c / k.columns * right_words);
    }
    if (b.value.empty()) return;
    float* const sums = bias_gradient + j;
    std::fill_n(sums, size, 0.f);
    for (std::size_t r = 0; r < n; ++r) {
      const float* row = &dY(r, j);
      for (std::size_t c = 0; c < size; ++c) sums[c] += row[c];
    }
    k.update(bias_step, sums, 0, 1, size, parameters_at(b, 0, j));
  }

  // A strip: inputs i .. i + size of W, as many as a panel has, times block o of the outputs.
  std::size_t strip = k.weights_left ? k.rows : k.columns;
  struct Strip {
    std::size_t i, size, o;
  };

  // What a strip will want of W, the optimiser's state and, if rows_too, of X. Packed panels are long runs,
  // which the CPU reads ahead by itself.
  Ahead wanted(const Strip& s, bool rows_too) const {
    Ahead ahead;
    if (s.size == 0) return ahead;
    const std::size_t o0 = s.o * k.outputs, outputs = block_depth(s.o);
    const auto block = [&](MatrixView<float> A) {
      if (!A.empty()) ahead.then(&A(s.i, o0), A.stride, s.size, outputs);
    };
    if (rows_too && n != 0) ahead.then(&X(0, s.i), X.stride, n, s.size);
    block(W.value);
    block(W.first);
    block(W.second);
    block(W.mean);
    return ahead;
  }

  // Turns of the tiles of a strip.
  std::size_t turns(const Strip& s) const {
    const std::size_t gradient =
        ceil_div(s.size, k.rows) * ceil_div(block_depth(s.o), k.columns) * Ahead::turns(row_words);
    const std::size_t products = wants_dX() ? panels.count * Ahead::turns(words_of(k, block_depth(s.o))) : 0;
    return gradient + products;
  }

  // sums (n, strip) = or += dY[:, block o] W[i .. i + size, block o]ᵀ; (strip, n) if weights_left. W is
  // packed to `panel`.
  void input_gradient(const Strip& s, std::uint32_t* panel, float* sums, Ahead& ahead) const {
    const std::size_t words = words_of(k, block_depth(s.o));
    const TileEnd end{s.o > 0, nullptr, false};
    (k.weights_left ? k.left_along : k.right_along)(&W.value(s.i, s.o * k.outputs), W.value.stride, s.size,
                                                    block_depth(s.o), panel);
    for (std::size_t p = 0; p < panels.count; ++p) {
      const std::size_t r = panels.begin(p), count = panels.size(p);
      if (k.weights_left)
        k.tile({words, panel, row_panel(s.o, p), PanelPair::Passing::right}, sums + r, pitch, whole(s.size),
               whole(count), end, ahead);
      else
        k.tile({words, row_panel(s.o, p), panel, PanelPair::Passing::left}, sums + r * strip, strip, count,
               s.size, end, ahead);
    }
  }

  // The optimiser's step of a strip with rows of Xᵀ dY that never leave the cache: SGD tile by tile, with
  // the sums still in registers; others, which have more state, along the rows, as the CPU reads ahead by
  // itself.
  void update(const Strip& s, const std::uint32_t* input, float* gradient, Ahead& ahead) const {
    const std::size_t o0 = s.o * k.outputs, outputs = block_depth(s.o);
    const bool by_tile = k.sgd_tile != nullptr && step.optimiser == Optimiser::sgd && W.mean.empty();
    const Panels inputs(s.size, k.rows, k.side);
    for (std::size_t p = 0; p < inputs.count; ++p) {
      const std::size_t i = s.i + inputs.begin(p), count = inputs.size(p);
      const std::uint32_t* const left = input + p * row_words * k.rows;
      for (std::size_t j = 0; j < outputs; j += k.columns) {
        const PanelPair factors{row_words, left, right + (o0 + j) / k.columns * right_words,
                                PanelPair::Passing::right};
        const std::size_t many = std::min(k.columns, outputs - j);
        if (by_tile)
          k.sgd_tile(factors, step, parameters_at(W, i, o0 + j), count, many, ahead);
        else
          k.tile(factors, gradient + j, k.outputs, whole(count), whole(many), {}, ahead);
      }
      if (!by_tile) k.update(step, gradient, k.outputs, count, outputs, parameters_at(W, i, o0));
    }
  }

  // Inputs i0 .. i0 + size of W, block by block of outputs and in it strip by strip: dX with the old weights,
  // then their update. `next` is where this thread will go on, with `next_size` inputs.
  void run(std::size_t i0, std::size_t size, std::size_t next, std::size_t next_size) const {
    thread_local Scratch weight_scratch, input_scratch, sum_scratch, gradient_scratch;
    const Panels strips(size, strip, k.side);
    const std::size_t input_words = ceil_div(strip, k.rows) * row_words * k.rows, sum_count = pitch * strip;
    std::uint32_t* const input = input_scratch.words(strips.count * input_words);
    for (std::size_t s = 0; s < strips.count && n != 0; ++s) {
      const Panels inputs(strips.size(s), k.rows, k.side);
      for (std::size_t p = 0; p < inputs.count; ++p)
        k.left_across(&X(0, i0 + strips.begin(s) + inputs.begin(p)), X.stride, inputs.size(p), n,
                      input + s * input_words + p * row_words * k.rows);
    }
    float* const sums = sum_scratch.floats(strips.count * sum_count);
    float* const gradient = gradient_scratch.floats(k.rows * k.outputs);
    std::uint32_t* const weights = weight_scratch.words(words_of(k, k.outputs) * strip);

    const std::size_t count = blocks * strips.count;
    const auto place = [&](std::size_t at) -> Strip {
      if (at == count) return {next, std::min(next_size, strip), 0};
      return {i0 + strips.begin(at % strips.count), strips.size(at % strips.count), at / strips.count};
    };
    for (std::size_t at = 0; at < count; ++at) {
      const Strip here = place(at), after = place(at + 1);
      const std::size_t s = at % strips.count;
      Ahead ahead = wanted(after, at + 1 == count);
      ahead.within(turns(here));
      if (wants_dX()) input_gradient(here, weights, sums + s * sum_count, ahead);
      update(here, input + s * input_words, gradient, ahead);
    }
    for (std::size_t s = 0; s < strips.count && wants_dX(); ++s) {
      const std::size_t i = i0 + strips.begin(s);
      k.keep(sums + s * sum_count, k.weights_left ? pitch : strip, mask_by_input ? &X(0, i) : nullptr,
             X.stride, n, strips.size(s), &dX(0, i), dX.stride);
    }
  }
};

}  // namespace

void linear_backward(MatrixView<const float> X, MatrixView<const float> dY, bool mask_by_input,
                     Precision precision, const UpdateRule& rule, ParameterView<float> W,
                     ParameterView<float> b, MatrixView<float> dX) {
  assert(X.cols == W.value.rows && dY.rows == X.rows && dY.cols == W.value.cols);
  assert(dX.rows == 0 || (dX.rows == X.rows && dX.cols == X.cols));
  if (W.value.empty()) return;
  const FlushSubnormals flush;
  if (precision == Precision::f32 && mask_by_input && dX.rows != 0 && gated_backward_pays(X, dY.cols))
    return gated_backward(kernels(precision), X, dY, rule, W, b, dX);
  Backward work{kernels(precision), X, dY, mask_by_input, W, b, dX, {rule, W.decay}, {rule, b.decay}};

  thread_local Scratch row_scratch, right_scratch, bias_scratch;
  if (work.wants_dX()) work.rows = row_scratch.words(work.blocks * work.block_words);
  work.right = right_scratch.words(ceil_div(work.out, work.k.columns) * work.right_words);
  if (!b.value.empty()) work.bias_gradient = bias_scratch.floats(work.out);

  const std::size_t pieces = ceil_div(work.out, kPiece);
  parallel_for(pieces, grain_for(pieces, 4. * static_cast<double>(work.n * work.out)),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t piece = first; piece < end; ++piece)
                   work.pack(piece * kPiece, std::min(kPiece, work.out - piece * kPiece));
               });
  // As many equal blocks of rows as there are threads, or a multiple of that. A task takes neighbours, so
  // that it knows where it continues; only its last block must guess.
  const auto workers = static_cast<std::size_t>(threads());
  const Parts rows(work.in, ceil_div(work.in, workers * ceil_div(work.in, workers * work.k.inputs)));
  const double multiply_adds =
      static_cast<double>(std::max<std::size_t>(work.n, 8)) * static_cast<double>(W.value.size());
  const std::size_t neighbours = std::max<std::size_t>(kNeighbours / work.k.inputs, 1);
  const std::size_t grain =
      std::max(grain_for(rows.count, multiply_adds), std::min(neighbours, ceil_div(rows.count, workers)));
  parallel_for(rows.count, grain, [&](std::size_t first, std::size_t end) {
    for (std::size_t r = first; r < end; ++r) {
      const std::size_t next = r + 1 < end ? r + 1 : first + workers * grain;
      work.run(rows.begin(r), rows.size(r), rows.begin(std::min(next, rows.count)),
               next < rows.count ? rows.size(next) : 0);
    }
  });
}

}  // namespace lacuna
