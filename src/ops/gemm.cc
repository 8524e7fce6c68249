#include "ops/gemm.h"

#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm_kernels.h"
#include "ops/gemm_reference.h"
#include "ops/machine.h"

namespace lacuna {

const Kernels& kernels(Precision precision) {
  switch (isa()) {
    case Isa::plain:
      return plain_kernels(precision);
    case Isa::avx2:
      return avx2_kernels(precision);
    case Isa::avx512:
      return avx512_kernels(precision);
    case Isa::bf16:
      return precision == Precision::bf16 ? bf16_kernels() : avx512_kernels(precision);
    case Isa::amx:
      return precision == Precision::bf16 ? amx_kernels() : avx512_kernels(precision);
  }
  return plain_kernels(precision);
}

namespace {

// Memory that a thread's products use again and again: it grows to the largest size ever asked for, so that a
// training step allocates nothing once every shape has been seen.
class Scratch {
 public:
  std::uint32_t* words(std::size_t count) {
    if (memory_.cols() < count) memory_ = Matrix<std::uint32_t>(1, count);
    return memory_.data();
  }

 private:
  Matrix<std::uint32_t> memory_;
};

std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

// [0, n) cut into ceil(n / most) parts of nearly equal length.
struct Parts {
  std::size_t n, count;
  Parts(std::size_t length, std::size_t most) : n(length), count(ceil_div(length, most)) {}
  std::size_t begin(std::size_t p) const { return n * p / count; }
  std::size_t size(std::size_t p) const { return begin(p + 1) - begin(p); }
};

// A factor of a product, as stored: `along`, the sum runs along the rows of S; otherwise down its columns.
struct Factor {
  MatrixView<const float> S;
  bool along;
  std::size_t width() const { return along ? S.rows : S.cols; }
  std::size_t depth() const { return along ? S.cols : S.rows; }
  const float* at(std::size_t i, std::size_t k) const {
    return S.data + (along ? i * S.stride + k : k * S.stride + i);
  }
};

struct Finish {
  const float* bias = nullptr;
  bool relu = false;
  bool needed() const { return bias != nullptr || relu; }
};

constexpr std::size_t kFewRows = 4;        // up to here W is used as it lies, without packing
constexpr std::size_t kRowChunk = 512;     // rows packed at once
constexpr std::size_t kDepthChunk = 8192;  // factors packed at once
constexpr double kWorthThreads = 2e5;      // multiply-adds below which a product stays in the calling thread

// Grain that keeps small work in the calling thread.
std::size_t grain_for(std::size_t tasks, double multiply_adds) {
  return multiply_adds < kWorthThreads ? tasks : 1;
}

// A few rows: the time is that of reading W once.
void few_rows(const Kernels& k, MatrixView<const float> X, MatrixView<const float> W, Precision precision,
              const Finish& last, MatrixView<float> Y) {
  if (precision == Precision::bf16) {
    thread_local Scratch scratch;
    MatrixView<float> rounded(reinterpret_cast<float*>(scratch.words(X.size())), X.rows, X.cols);
    for (std::size_t r = 0; r < X.rows; ++r)
      for (std::size_t i = 0; i < X.cols; ++i) rounded(r, i) = reference::round_bf16(X(r, i));
    X = rounded;
  }
  const Parts parts(W.cols, std::clamp<std::size_t>(ceil_div(W.cols, 128) * 128 / 8, 128, 1024));
  parallel_for(parts.count, grain_for(parts.count, static_cast<double>(X.rows * W.size())),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t p = first; p < end; ++p) {
                   const std::size_t j = parts.begin(p), n = parts.size(p);
                   for (std::size_t r = 0; r < Y.rows; ++r) std::fill_n(&Y(r, j), n, 0.f);
                   k.direct(X.data, X.stride, W.data + j, W.stride, W.rows, &Y(0, j), Y.stride, X.rows, n);
                   if (last.needed())
                     k.finish(&Y(0, j), Y.stride, X.rows, n, last.bias == nullptr ? nullptr : last.bias + j,
                              last.relu);
                 }
               });
}

// C = or += L R for up to kRowChunk rows of C and kDepthChunk factors. The left factor is packed once; a task
// packs a right panel, block of depth by block, and multiplies it with all its rows while it is in cache.
void product_chunk(const Kernels& k, const Factor& L, std::size_t row, std::size_t rows, const Factor& R,
                   std::size_t depth_begin, std::size_t depth, bool accumulate, const Finish& last,
                   MatrixView<float> C) {
  thread_local Scratch left_scratch;
  const Parts panels(rows, k.rows);
  const std::size_t blocks = ceil_div(depth, k.depth),
                    block_words = panels.count * groups_of(k, k.depth) * k.rows;
  std::uint32_t* const left = left_scratch.words(blocks * block_words);
  const auto block_depth = [&](std::size_t b) { return std::min(k.depth, depth - b * k.depth); };
  const auto left_panel = [&](std::size_t b, std::size_t p) {
    return left + b * block_words + p * groups_of(k, block_depth(b)) * k.rows;
  };
  const double work = static_cast<double>(rows * depth) * static_cast<double>(C.cols);
  const std::size_t packs = blocks * panels.count;
  parallel_for(packs, work < 4 * kWorthThreads ? packs : std::max<std::size_t>(1, packs / 16),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t t = first; t < end; ++t) {
                   const std::size_t b = t / panels.count, p = t % panels.count;
                   (L.along ? k.left_along : k.left_across)(
                       L.at(row + panels.begin(p), depth_begin + b * k.depth), L.S.stride, panels.size(p),
                       block_depth(b), left_panel(b, p));
                 }
               });

  const auto workers = static_cast<std::size_t>(threads());
  const std::size_t columns = ceil_div(C.cols, k.columns);
  const std::size_t together = std::clamp<std::size_t>(columns / (4 * workers), 1, 4);
  const std::size_t column_tasks = ceil_div(columns, together);
  const Parts row_tasks(panels.count,
                        column_tasks >= workers ? panels.count : ceil_div(panels.count, workers));
  const std::size_t tasks = column_tasks * row_tasks.count;
  parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t end) {
    thread_local Scratch right_scratch;
    std::uint32_t* const right = right_scratch.words(groups_of(k, k.depth) * k.columns);
    for (std::size_t t = first; t < end; ++t) {
      const std::size_t q0 = t / row_tasks.count * together, q1 = std::min(q0 + together, columns);
      const std::size_t p0 = row_tasks.begin(t % row_tasks.count),
                        p1 = row_tasks.begin(t % row_tasks.count + 1);
      for (std::size_t b = 0; b < blocks; ++b)
        for (std::size_t q = q0; q < q1; ++q) {
          const std::size_t j = q * k.columns, n = std::min(k.columns, C.cols - j);
          (R.along ? k.right_along : k.right_across)(R.at(j, depth_begin + b * k.depth), R.S.stride, n,
                                                     block_depth(b), right);
          for (std::size_t p = p0; p < p1; ++p)
            k.tile(groups_of(k, block_depth(b)), left_panel(b, p), right, &C(row + panels.begin(p), j),
                   C.stride, panels.size(p), n, accumulate || b > 0);
          if (b + 1 == blocks && last.needed())
            k.finish(&C(row + panels.begin(p0), j), C.stride, panels.begin(p1) - panels.begin(p0), n,
                     last.bias == nullptr ? nullptr : last.bias + j, last.relu);
        }
    }
  });
}

void product(const Kernels& k, const Factor& L, const Factor& R, bool accumulate, const Finish& last,
             MatrixView<float> C) {
  if (L.depth() == 0) {
    for (std::size_t i = 0; i < C.rows && !accumulate; ++i) std::fill_n(&C(i, 0), C.cols, 0.f);
    if (last.needed()) k.finish(C.data, C.stride, C.rows, C.cols, last.bias, last.relu);
  }
  for (std::size_t row = 0; row < C.rows; row += kRowChunk)
    for (std::size_t d = 0; d < L.depth(); d += kDepthChunk) {
      const std::size_t depth = std::min(kDepthChunk, L.depth() - d);
      const bool ends = d + depth == L.depth();
      product_chunk(k, L, row, std::min(kRowChunk, C.rows - row), R, d, depth, accumulate || d > 0,
                    ends ? last : Finish{}, C);
    }
}

}  // namespace

void linear_forward(MatrixView<const float> X, MatrixView<const float> W, std::span<const float> b, bool relu,
                    Precision precision, MatrixView<float> Y) {
  assert(X.cols == W.rows && Y.rows == X.rows && Y.cols == W.cols && (b.empty() || b.size() == W.cols));
  if (Y.empty()) return;
  const Kernels& k = kernels(precision);
  const Finish last{b.empty() ? nullptr : b.data(), relu};
  if (X.rows <= kFewRows)
    few_rows(k, X, W, precision, last, Y);
  else
    product(k, {X, true}, {W, false}, false, last, Y);
}

// A task takes some input rows of W. Block by block of the outputs it multiplies dY with them (dX) and, while
// they are in cache, makes the tiles of Xᵀ dY and applies the optimiser to W.
void linear_backward(MatrixView<const float> X, MatrixView<const float> dY, bool mask_by_input,
                     Precision precision, const UpdateRule& rule, ParameterView<float> W,
                     ParameterView<float> b, MatrixView<float> dX) {
  const std::size_t n = X.rows, in = W.value.rows, out = W.value.cols;
  assert(X.cols == in && dY.rows == n && dY.cols == out && (dX.rows == 0 || (dX.rows == n && dX.cols == in)));
  if (in == 0 || out == 0) return;
  const Kernels& k = kernels(precision);
  const bool wants_dX = dX.rows != 0;

  // dY is packed twice: as the left factor of dX, block by block, and as the right factor of the gradient.
  thread_local Scratch left_scratch, right_scratch, bias_scratch;
  const Parts panels(n, k.rows);
  const std::size_t blocks = ceil_div(out, k.depth),
                    block_words = panels.count * groups_of(k, k.depth) * k.rows;
  const auto block_depth = [&](std::size_t o) { return std::min(k.depth, out - o * k.depth); };
  const std::size_t gradient_groups = groups_of(k, n), right_words = gradient_groups * k.columns;
  const std::size_t columns = ceil_div(out, k.columns);
  std::uint32_t* const left = wants_dX ? left_scratch.words(blocks * block_words) : nullptr;
  std::uint32_t* const right = right_scratch.words(columns * right_words);
  const auto left_panel = [&](std::size_t o, std::size_t p) {
    return left + o * block_words + p * groups_of(k, block_depth(o)) * k.rows;
  };
  float* const bias_gradient = b.value.empty() ? nullptr : reinterpret_cast<float*>(bias_scratch.words(out));
  const UpdateCoefficients<float> bias_step(rule, b.decay), step(rule, W.decay);

  constexpr std::size_t kPiece = 128;
  const std::size_t pieces = ceil_div(out, kPiece);
  parallel_for(
      pieces, grain_for(pieces, 4 * static_cast<double>(n * out)), [&](std::size_t first, std::size_t end) {
        for (std::size_t j = first * kPiece; j < std::min(end * kPiece, out); j += kPiece) {
          const std::size_t size = std::min(kPiece, out - j), o = j / k.depth, inside = j % k.depth / k.group;
          if (wants_dX)
            for (std::size_t p = 0; p < panels.count; ++p)
              k.left_along(&dY(panels.begin(p), j), dY.stride, panels.size(p), size,
                           left_panel(o, p) + inside * k.rows);
          if (n != 0)
            for (std::size_t q = j / k.columns; q * k.columns < j + size; ++q)
              k.right_across(dY.data + q * k.columns, dY.stride, std::min(k.columns, out - q * k.columns), n,
                             right + q * right_words);
          if (bias_gradient == nullptr) continue;
          std::fill_n(bias_gradient + j, size, 0.f);
          for (std::size_t r = 0; r < n; ++r)
            for (std::size_t c = j; c < j + size; ++c) bias_gradient[c] += dY.data[r * dY.stride + c];
          k.update(bias_step, bias_gradient + j, 0, 1, size,
                   {b.value.data + j, b.first.data + j, b.second.empty() ? nullptr : b.second.data + j,
                    b.mean.empty() ? nullptr : b.mean.data + j, 0, 0, 0, 0});
        }
      });

  const auto workers = static_cast<std::size_t>(threads());
  const Parts tasks(in, ceil_div(in, workers * ceil_div(in, workers * 64)));
  parallel_for(tasks.count, grain_for(tasks.count, static_cast<double>(n * in) * static_cast<double>(out)),
               [&](std::size_t first, std::size_t end) {
                 thread_local Scratch weight_scratch, input_scratch;
                 std::uint32_t* const weights = weight_scratch.words(groups_of(k, k.depth) * k.columns);
                 alignas(64) float gradient[kLargestTile];
                 for (std::size_t t = first; t < end; ++t) {
                   const std::size_t i0 = tasks.begin(t), size = tasks.size(t);
                   const Parts inputs(size, k.rows);
                   std::uint32_t* const input = input_scratch.words(inputs.count * gradient_groups * k.rows);
                   for (std::size_t p = 0; p < inputs.count; ++p)
                     if (n != 0)
                       k.left_across(&X(0, i0 + inputs.begin(p)), X.stride, inputs.size(p), n,
                                     input + p * gradient_groups * k.rows);
                   for (std::size_t o = 0; o < blocks; ++o) {
                     const std::size_t o0 = o * k.depth, o1 = o0 + block_depth(o);
                     if (wants_dX)
                       for (std::size_t i = i0; i < i0 + size; i += k.columns) {
                         const std::size_t width = std::min(k.columns, i0 + size - i);
                         k.right_along(&W.value(i, o0), W.value.stride, width, o1 - o0, weights);
                         for (std::size_t p = 0; p < panels.count; ++p)
                           k.tile(groups_of(k, o1 - o0), left_panel(o, p), weights, &dX(panels.begin(p), i),
                                  dX.stride, panels.size(p), width, o > 0);
                       }
                     for (std::size_t p = 0; p < inputs.count; ++p)
                       for (std::size_t j = o0; j < o1; j += k.columns) {
                         const std::size_t i = i0 + inputs.begin(p), rows = inputs.size(p),
                                           width = std::min(k.columns, out - j);
                         k.tile(gradient_groups, input + p * gradient_groups * k.rows,
                                right + j / k.columns * right_words, gradient, k.columns, rows, width, false);
                         k.update(
                             step, gradient, k.columns, rows, width,
                             {&W.value(i, j), &W.first(i, j), W.second.empty() ? nullptr : &W.second(i, j),
                              W.mean.empty() ? nullptr : &W.mean(i, j), W.value.stride, W.first.stride,
                              W.second.stride, W.mean.stride});
                       }
                   }
                   if (wants_dX && mask_by_input)
                     for (std::size_t r = 0; r < n; ++r)
                       for (std::size_t i = i0; i < i0 + size; ++i)
                         if (!(X(r, i) > 0)) dX(r, i) = 0;
                 }
               });
}

void multiply(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose, bool accumulate,
              MatrixView<float> C) {
  const Factor L{A, transpose != Transpose::left}, R{B, transpose == Transpose::right};
  assert(L.width() == C.rows && R.width() == C.cols && L.depth() == R.depth());
  if (C.empty()) return;
  product(kernels(Precision::f32), L, R, accumulate, {}, C);
}

}  // namespace lacuna
