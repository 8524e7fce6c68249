#include "methods/kernels.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/threads.h"

namespace lacuna {

Matrix<float> unit_rows(MatrixView<const float> X) {
  Matrix<float> out(X.rows, X.cols);
  parallel_for(X.rows, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      double squares = 0;
      for (const float x : X.row(i)) squares += static_cast<double>(x) * static_cast<double>(x);
      const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
      for (std::size_t j = 0; j < X.cols; ++j)
        out(i, j) = static_cast<float>(static_cast<double>(X(i, j)) * scale);
    }
  });
  return out;
}

namespace {

std::vector<double> squared_lengths(MatrixView<const float> A) {
  std::vector<double> result(A.rows);
  for (std::size_t i = 0; i < A.rows; ++i)
    for (const float x : A.row(i)) result[i] += static_cast<double>(x) * static_cast<double>(x);
  return result;
}

}  // namespace

void radial_kernel(MatrixView<const float> A, MatrixView<const float> B, double width, MatrixView<float> K) {
  product(A, B, Transpose::right, false, K);
  const std::vector<double> a = squared_lengths(A), b = squared_lengths(B);
  parallel_for(K.rows, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < K.cols; ++j) {
        const double squared = std::max(a[i] + b[j] - 2 * static_cast<double>(K(i, j)), 0.0);
        K(i, j) = static_cast<float>(std::exp(-squared / width));
      }
  });
}

void radial_kernel(MatrixView<const float> A, double width, MatrixView<double> K) {
  gram_of_rows(A, K);
  std::vector<double> squares(A.rows);
  for (std::size_t i = 0; i < A.rows; ++i) squares[i] = K(i, i);
  parallel_for(K.rows, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < K.cols; ++j)
        K(i, j) = std::exp(-std::max(squares[i] + squares[j] - 2 * K(i, j), 0.0) / width);
  });
}

Nystroem nystroem(const Matrix<float>& A, double width, std::size_t count, std::uint64_t seed,
                  std::uint32_t stream) {
  Nystroem result;
  Random random(seed, Purpose::landmarks, stream);
  bool zero_taken = false;
  for (const std::uint32_t i : random.permutation(A.rows())) {
    if (result.landmarks.size() == count) break;
    const bool zero = std::all_of(A.row(i).begin(), A.row(i).end(), [](float x) { return x == 0; });
    if (zero && zero_taken) continue;
    zero_taken = zero_taken || zero;
    result.landmarks.push_back(i);
  }
  const std::size_t L = result.landmarks.size();
  result.points = Matrix<float>(L, A.cols());
  for (std::size_t l = 0; l < L; ++l)
    std::copy(A.row(result.landmarks[l]).begin(), A.row(result.landmarks[l]).end(),
              result.points.row(l).begin());
  Matrix<double> K(L, L);
  radial_kernel(result.points, width, K);
  for (std::size_t l = 0; l < L; ++l) K(l, l) += 1e-8;
  result.factor = Cholesky(std::move(K), "the kernel of the landmarks");
  // Rows of Φ are R⁻¹ k(x): solve with the transposed kernel, strip by strip.
  result.Phi = Matrix<double>(A.rows(), L);
  constexpr std::size_t kStrip = 512;
  for (std::size_t begin = 0; begin < A.rows(); begin += kStrip) {
    const std::size_t rows = std::min(kStrip, A.rows() - begin);
    Matrix<float> strip(L, rows);
    radial_kernel(result.points, A.view().slice(begin, rows), width, strip);
    Matrix<double> right(L, rows);
    for (std::size_t i = 0; i < strip.values().size(); ++i)
      right.values()[i] = static_cast<double>(strip.values()[i]);
    result.factor.solve_lower(right);
    for (std::size_t l = 0; l < L; ++l)
      for (std::size_t i = 0; i < rows; ++i) result.Phi(begin + i, l) = right(l, i);
  }
  return result;
}

std::vector<double> view_weights(const std::vector<double>& q, double lambda) {
  const double m = static_cast<double>(q.size());
  double sum = 0;
  for (const double value : q) sum += value;
  std::vector<double> theta(q.size());
  double total = 0;
  for (std::size_t v = 0; v < q.size(); ++v) {
    theta[v] = std::max((lambda + sum - m * q[v]) / (m * lambda), 1e-7);
    total += theta[v];
  }
  for (double& value : theta) value /= total;
  return theta;
}

float hamming_threshold(MatrixView<const float> scores, MatrixView<const float> truth) {
  float largest = 0;
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (const float s : scores.row(i)) largest = std::max(largest, s);
  std::vector<float> steps(51);
  for (std::size_t t = 0; t < 51; ++t) steps[t] = largest * static_cast<float>(t) / 50;
  // errors(t) = positives below + negatives at or above; counted by the first step above each score.
  std::vector<std::int64_t> positive(52), negative(52);
  std::int64_t negatives = 0;
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < scores.cols; ++j) {
      const auto above = std::upper_bound(steps.begin(), steps.end(), scores(i, j)) - steps.begin();
      if (truth(i, j) > .5f) {
        ++positive[static_cast<std::size_t>(above)];
      } else {
        ++negative[static_cast<std::size_t>(above)];
        ++negatives;
      }
    }
  // A score whose first step above it is `a` is predicted positive by the steps below a.
  std::int64_t missed = 0, fewest = -1, accepted = negatives;
  std::size_t best = 0;
  for (std::size_t t = 0; t < 51; ++t) {
    missed += positive[t];
    accepted -= negative[t];
    if (fewest < 0 || missed + accepted < fewest) fewest = missed + accepted, best = t;
  }
  return steps[best];
}

}  // namespace lacuna
