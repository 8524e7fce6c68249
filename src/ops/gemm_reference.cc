#include "ops/gemm_reference.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <vector>

namespace lacuna::reference {

float round_bf16(float x) {
  if (std::isnan(x)) return x;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000);
}

namespace {

template <class T>
double rounded(T x, Precision precision) {
  return precision == Precision::bf16 ? static_cast<double>(round_bf16(static_cast<float>(x)))
                                      : static_cast<double>(x);
}

}  // namespace

template <class T>
void linear_forward(MatrixView<const T> X, MatrixView<const T> W, std::span<const T> b, bool relu,
                    Precision precision, MatrixView<T> Y) {
  assert(X.cols == W.rows && Y.rows == X.rows && Y.cols == W.cols && (b.empty() || b.size() == W.cols));
  std::vector<double> sums(W.cols);
  for (std::size_t r = 0; r < X.rows; ++r) {
    for (std::size_t j = 0; j < W.cols; ++j) sums[j] = b.empty() ? 0 : static_cast<double>(b[j]);
    for (std::size_t i = 0; i < W.rows; ++i) {
      const double x = rounded(X(r, i), precision);
      for (std::size_t j = 0; j < W.cols; ++j) sums[j] += x * rounded(W(i, j), precision);
    }
    for (std::size_t j = 0; j < W.cols; ++j) Y(r, j) = static_cast<T>(relu && !(sums[j] > 0) ? 0 : sums[j]);
  }
}

template <class T>
void linear_backward(MatrixView<const T> X, MatrixView<const T> dY, bool mask_by_input, Precision precision,
                     const UpdateRule& rule, ParameterView<T> W, ParameterView<T> b, MatrixView<T> dX) {
  const std::size_t n = X.rows, in = W.value.rows, out = W.value.cols;
  assert(X.cols == in && dY.rows == n && dY.cols == out);
  for (std::size_t r = 0; r < dX.rows; ++r)
    for (std::size_t i = 0; i < in; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < out; ++j)
        sum += rounded(dY(r, j), precision) * rounded(W.value(i, j), precision);
      dX(r, i) = static_cast<T>(mask_by_input && !(X(r, i) > 0) ? 0 : sum);
    }
  Matrix<T> dW(in, out), db(1, out);
  std::vector<double> sums(out);
  for (std::size_t i = 0; i < in; ++i) {
    sums.assign(out, 0);
    for (std::size_t r = 0; r < n; ++r) {
      const double x = rounded(X(r, i), precision);
      for (std::size_t j = 0; j < out; ++j) sums[j] += x * rounded(dY(r, j), precision);
    }
    for (std::size_t j = 0; j < out; ++j) dW(i, j) = static_cast<T>(sums[j]);
  }
  update_parameter<T>(rule, dW, W);
  if (b.value.empty()) return;
  sums.assign(out, 0);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t j = 0; j < out; ++j) sums[j] += static_cast<double>(dY(r, j));
  for (std::size_t j = 0; j < out; ++j) db(0, j) = static_cast<T>(sums[j]);
  update_parameter<T>(rule, db, b);
}

template <class T>
void multiply(MatrixView<const T> A, MatrixView<const T> B, Transpose transpose, bool accumulate,
              MatrixView<T> C) {
  const bool left = transpose == Transpose::left, right = transpose == Transpose::right;
  const std::size_t inner = left ? A.rows : A.cols;
  assert(C.rows == (left ? A.cols : A.rows) && C.cols == (right ? B.rows : B.cols));
  assert(inner == (right ? B.cols : B.rows));
  for (std::size_t i = 0; i < C.rows; ++i)
    for (std::size_t j = 0; j < C.cols; ++j) {
      double sum = accumulate ? static_cast<double>(C(i, j)) : 0;
      for (std::size_t k = 0; k < inner; ++k)
        sum += static_cast<double>(left ? A(k, i) : A(i, k)) * static_cast<double>(right ? B(j, k) : B(k, j));
      C(i, j) = static_cast<T>(sum);
    }
}

template void linear_forward(MatrixView<const float>, MatrixView<const float>, std::span<const float>, bool,
                             Precision, MatrixView<float>);
template void linear_forward(MatrixView<const double>, MatrixView<const double>, std::span<const double>,
                             bool, Precision, MatrixView<double>);
template void linear_backward(MatrixView<const float>, MatrixView<const float>, bool, Precision,
                              const UpdateRule&, ParameterView<float>, ParameterView<float>,
                              MatrixView<float>);
template void linear_backward(MatrixView<const double>, MatrixView<const double>, bool, Precision,
                              const UpdateRule&, ParameterView<double>, ParameterView<double>,
                              MatrixView<double>);
template void multiply(MatrixView<const float>, MatrixView<const float>, Transpose, bool, MatrixView<float>);
template void multiply(MatrixView<const double>, MatrixView<const double>, Transpose, bool,
                       MatrixView<double>);

}  // namespace lacuna::reference
