#include "ops/gemm.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "base/threads.h"
#include "ops/gemm_reference.h"

namespace lacuna {
namespace {

float rounded(float x, Precision precision) {
  return precision == Precision::bf16 ? reference::round_bf16(x) : x;
}

}  // namespace

void linear_forward(MatrixView<const float> X, MatrixView<const float> W, std::span<const float> b, bool relu,
                    Precision precision, MatrixView<float> Y) {
  assert(X.cols == W.rows && Y.rows == X.rows && Y.cols == W.cols && (b.empty() || b.size() == W.cols));
  parallel_for(Y.cols, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = 0; r < Y.rows; ++r)
      for (std::size_t j = begin; j < end; ++j) Y(r, j) = b.empty() ? 0 : b[j];
    for (std::size_t i = 0; i < W.rows; ++i) {
      float w[64];
      for (std::size_t j = begin; j < end; ++j) w[j - begin] = rounded(W(i, j), precision);
      for (std::size_t r = 0; r < Y.rows; ++r) {
        const float x = rounded(X(r, i), precision);
        float* y = Y.data + r * Y.stride + begin;
        for (std::size_t j = 0; j < end - begin; ++j) y[j] += x * w[j];
      }
    }
    if (relu)
      for (std::size_t r = 0; r < Y.rows; ++r)
        for (std::size_t j = begin; j < end; ++j) Y(r, j) = std::max(0.f, Y(r, j));
  });
}

void linear_backward(MatrixView<const float> X, MatrixView<const float> dY, bool mask_by_input,
                     Precision precision, const UpdateRule& rule, ParameterView<float> W,
                     ParameterView<float> b, MatrixView<float> dX) {
  const std::size_t n = X.rows, in = W.value.rows, out = W.value.cols;
  assert(X.cols == in && dY.rows == n && dY.cols == out);
  const UpdateCoefficients<float> k(rule, W.decay);
  Matrix<float> D(n, out);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t j = 0; j < out; ++j) D(r, j) = rounded(dY(r, j), precision);
  parallel_for(in, 8, [&](std::size_t begin, std::size_t end) {
    std::vector<float> w(out), gradient(out);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = 0; j < out; ++j) w[j] = rounded(W.value(i, j), precision);
      for (std::size_t r = 0; r < dX.rows; ++r) {
        float sums[16] = {};
        for (std::size_t j = 0; j < out; ++j) sums[j % 16] += D(r, j) * w[j];
        for (int s = 1; s < 16; ++s) sums[0] += sums[s];
        dX(r, i) = mask_by_input && !(X(r, i) > 0) ? 0 : sums[0];
      }
      std::fill(gradient.begin(), gradient.end(), 0.f);
      for (std::size_t r = 0; r < n; ++r) {
        const float x = rounded(X(r, i), precision);
        for (std::size_t j = 0; j < out; ++j) gradient[j] += x * D(r, j);
      }
      update_row(k, out, gradient.data(), &W.value(i, 0), &W.first(i, 0),
                 W.second.empty() ? nullptr : &W.second(i, 0), W.mean.empty() ? nullptr : &W.mean(i, 0));
    }
  });
  if (b.value.empty()) return;
  Matrix<float> db(1, out);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t j = 0; j < out; ++j) db(0, j) += dY(r, j);
  update_parameter<float>(rule, db, b);
}

void multiply(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose, bool accumulate,
              MatrixView<float> C) {
  reference::multiply<float>(A, B, transpose, accumulate, C);
}

}  // namespace lacuna
