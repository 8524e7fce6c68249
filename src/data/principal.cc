#include "data/principal.h"

#include <algorithm>
#include <cmath>

#include "ops/linalg.h"

namespace lacuna {
namespace {

// Products with a table X̃ (n, d) whose columns are centred.
class Centred {
 public:
  virtual ~Centred() = default;
  virtual std::size_t rows() const = 0;
  virtual std::size_t cols() const = 0;
  virtual void times(MatrixView<const double> B, MatrixView<double> out) const = 0;             // out = X̃ B
  virtual void transposed_times(MatrixView<const double> B, MatrixView<double> out) const = 0;  // out = X̃ᵀ B
  virtual void gram_times(MatrixView<const double> B, MatrixView<double> out) const {  // out = X̃ᵀX̃ B
    Matrix<double> middle(rows(), B.cols);
    times(B, middle);
    transposed_times(middle, out);
  }
};

class DenseTable final : public Centred {
 public:
  explicit DenseTable(MatrixView<const float> X) : X_(X) {}
  std::size_t rows() const override { return X_.rows; }
  std::size_t cols() const override { return X_.cols; }
  void times(MatrixView<const double> B, MatrixView<double> out) const override {
    each_strip([&](std::size_t begin, MatrixView<const double> strip) {
      product(strip, B, Transpose::none, false, out.slice(begin, strip.rows));
    });
  }
  void transposed_times(MatrixView<const double> B, MatrixView<double> out) const override {
    each_strip([&](std::size_t begin, MatrixView<const double> strip) {
      product(strip, B.slice(begin, strip.rows), Transpose::left, begin > 0, out);
    });
  }

 private:
  template <class F>
  void each_strip(F&& body) const {
    constexpr std::size_t kStrip = 512;
    Matrix<double> strip;
    for (std::size_t begin = 0; begin < X_.rows; begin += kStrip) {
      const MatrixView<const float> part = X_.slice(begin, std::min(kStrip, X_.rows - begin));
      if (strip.rows() != part.rows) strip = Matrix<double>(part.rows, part.cols);
      for (std::size_t i = 0; i < part.rows; ++i)
        for (std::size_t j = 0; j < part.cols; ++j) strip(i, j) = static_cast<double>(part(i, j));
      body(begin, std::as_const(strip).view());
    }
  }
  MatrixView<const float> X_;
};

// The same with products in float, of one strip after the other: sums of a strip in float, of strips in double.
class FloatTable final : public Centred {
 public:
  explicit FloatTable(const Strips& X) : X_(X) {}
  std::size_t rows() const override { return X_.rows(); }
  std::size_t cols() const override { return X_.cols(); }
  void times(MatrixView<const double> B, MatrixView<double> out) const override {
    const Matrix<float> narrow = narrowed(B);
    X_.each([&](std::size_t begin, MatrixView<const float> strip) {
      Matrix<float> image(strip.rows, out.cols);
      multiply(strip, narrow, Transpose::none, false, image);
      each_row(strip.rows,
               [&](std::size_t i) { std::ranges::copy(image.row(i), out.row(begin + i).begin()); });
    });
  }
  void transposed_times(MatrixView<const double> B, MatrixView<double> out) const override {
    X_.each([&](std::size_t begin, MatrixView<const float> strip) {
      Matrix<float> narrow(B.cols, strip.rows);
      each_row(strip.rows, [&](std::size_t i) {
        for (std::size_t k = 0; k < B.cols; ++k) narrow(k, i) = to_narrow(B(begin + i, k));
      });
      add_image(narrow, strip, begin > 0, out);
    });
  }
  // Both in one pass.
  void gram_times(MatrixView<const double> B, MatrixView<double> out) const override {
    const Matrix<float> narrow = narrowed(B);
    X_.each([&](std::size_t begin, MatrixView<const float> strip) {
      Matrix<float> image(strip.rows, B.cols), turned(B.cols, strip.rows);
      multiply(strip, narrow, Transpose::none, false, image);
      each_row(strip.rows, [&](std::size_t i) {
        for (std::size_t k = 0; k < B.cols; ++k) turned(k, i) = image(i, k);
      });
      add_image(turned, strip, begin > 0, out);
    });
  }

 private:
  // out (d, k) += (Bᵀ X̃)ᵀ of a strip's part Bᵀ (k, r).
  static void add_image(const Matrix<float>& B, MatrixView<const float> strip, bool adds,
                        MatrixView<double> out) {
    Matrix<float> image(out.cols, out.rows);
    multiply(B, strip, Transpose::none, false, image);
    each_row(out.rows, [&](std::size_t j) {
      for (std::size_t k = 0; k < out.cols; ++k)
        out(j, k) = (adds ? out(j, k) : 0) + static_cast<double>(image(k, j));
    });
  }
  static Matrix<float> narrowed(MatrixView<const double> B) {
    Matrix<float> narrow(B.rows, B.cols);
    each_row(B.rows,
             [&](std::size_t i) { std::ranges::transform(B.row(i), narrow.row(i).begin(), to_narrow); });
    return narrow;
  }
  static float to_narrow(double x) { return static_cast<float>(x); }
  template <class F>
  static void each_row(std::size_t n, F&& body) {
    parallel_for(n, 512, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i);
    });
  }
  const Strips& X_;
};

// Compressed rows, and a transposed copy so that both products write each element in one thread.
class SparseTable final : public Centred {
 public:
  SparseTable(const Csr& X, std::span<const float> mean) : X_(X), mean_(mean), n_(X.start.cols() - 1) {
    start_.assign(X.columns + 1, 0);
    for (std::size_t p = 0; p < X.index.cols(); ++p) ++start_[X.index(0, p) + 1];
    for (std::size_t j = 0; j < X.columns; ++j) start_[j + 1] += start_[j];
    row_.resize(X.index.cols());
    value_.resize(X.index.cols());
    std::vector<std::uint64_t> next(start_.begin(), start_.end() - 1);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::uint64_t p = X.start(0, i); p < X.start(0, i + 1); ++p) {
        const std::uint64_t to = next[X.index(0, p)]++;
        row_[to] = static_cast<std::uint32_t>(i);
        value_[to] = X.value(0, p);
      }
  }
  std::size_t rows() const override { return n_; }
  std::size_t cols() const override { return X_.columns; }

  // X B - 1 (meanᵀ B)
  void times(MatrixView<const double> B, MatrixView<double> out) const override {
    std::vector<double> offset(B.cols);
    for (std::size_t j = 0; j < B.rows; ++j)
      for (std::size_t k = 0; k < B.cols; ++k) offset[k] += static_cast<double>(mean_[j]) * B(j, k);
    parallel_for(n_, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto to = out.row(i);
        for (std::size_t k = 0; k < to.size(); ++k) to[k] = -offset[k];
        for (std::uint64_t p = X_.start(0, i); p < X_.start(0, i + 1); ++p)
          add(static_cast<double>(X_.value(0, p)), B.row(X_.index(0, p)), to);
      }
    });
  }
  // Xᵀ B - mean (1ᵀ B)
  void transposed_times(MatrixView<const double> B, MatrixView<double> out) const override {
    std::vector<double> sum(B.cols);
    for (std::size_t i = 0; i < B.rows; ++i) add(1, B.row(i), sum);
    parallel_for(X_.columns, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) {
        const auto to = out.row(j);
        for (std::size_t k = 0; k < to.size(); ++k) to[k] = -static_cast<double>(mean_[j]) * sum[k];
        for (std::uint64_t p = start_[j]; p < start_[j + 1]; ++p)
          add(static_cast<double>(value_[p]), B.row(row_[p]), to);
      }
    });
  }

 private:
  static void add(double factor, std::span<const double> from, std::span<double> to) {
    for (std::size_t k = 0; k < to.size(); ++k) to[k] += factor * from[k];
  }
  const Csr& X_;
  std::span<const float> mean_;
  std::size_t n_;
  std::vector<std::uint64_t> start_;
  std::vector<std::uint32_t> row_;
  std::vector<float> value_;
};

// A = X̃X̃ᵀ where the table has fewer rows than columns, else X̃ᵀX̃, by products alone.
void apply_gram(const Centred& X, MatrixView<const double> B, MatrixView<double> out) {
  if (X.rows() < X.cols()) {
    Matrix<double> middle(X.cols(), B.cols);
    X.transposed_times(B, middle);
    X.times(middle, out);
  } else {
    X.gram_times(B, out);
  }
}

Eigensystem leading_pairs(const Centred& X, const Matrix<double>* gram, std::size_t K, EnoughPairs enough,
                          std::uint64_t seed) {
  const std::size_t size = std::min(X.rows(), X.cols());
  if (size > kDirectSize && (gram == nullptr || size > kFewDirections * K))
    return leading_eigen(size, K, enough, seed, [&](MatrixView<const double> B, MatrixView<double> out) {
      gram != nullptr ? product(gram->view(), B, Transpose::none, false, out) : apply_gram(X, B, out);
    });
  if (gram != nullptr) return symmetric_eigen(*gram);
  Matrix<double> identity(size, size), A(size, size);
  for (std::size_t i = 0; i < size; ++i) identity(i, i) = 1;
  apply_gram(X, identity, A);
  return symmetric_eigen(A);
}

Principal directions_of(const Centred& X, const Matrix<double>* gram, std::size_t K, EnoughPairs enough,
                        std::uint64_t seed) {
  const std::size_t n = X.rows(), d = X.cols();
  K = std::min({K, n, d});
  Principal result;
  result.directions = Matrix<float>(d, 1);
  result.variances = {0};
  if (K == 0) return result;
  const Eigensystem pairs = leading_pairs(X, gram, K, enough, seed);
  std::size_t kept = 0;
  while (kept < K && pairs.values[kept] > 1e-9 * pairs.values[0] && pairs.values[kept] > 0) ++kept;
  if (kept == 0) return result;  // nothing varies
  result.residual = pairs.residual;
  result.variances.resize(kept);
  for (std::size_t k = 0; k < kept; ++k) result.variances[k] = pairs.values[k] / static_cast<double>(n);
  Matrix<double> directions(d, kept);
  if (n < d) {
    X.transposed_times(pairs.vectors.view().columns(0, kept), directions);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < kept; ++k) directions(j, k) /= std::sqrt(pairs.values[k]);
  } else {
    directions.copy_from(pairs.vectors.view().columns(0, kept));
  }
  result.directions = Matrix<float>(d, kept);
  for (std::size_t k = 0; k < kept; ++k) {
    double largest = 0;
    for (std::size_t j = 0; j < d; ++j)
      if (std::abs(directions(j, k)) > std::abs(largest)) largest = directions(j, k);
    for (std::size_t j = 0; j < d; ++j)
      result.directions(j, k) = static_cast<float>(largest < 0 ? -directions(j, k) : directions(j, k));
  }
  return result;
}

}  // namespace

bool needs_gram(std::size_t n, std::size_t d, std::size_t K, double gram_work) {
  const std::size_t size = std::min(n, d);
  const double work = static_cast<double>(n * d) * static_cast<double>(size);
  return size <= kGramSize && (work <= gram_work || size <= kFewDirections * K);
}

Matrix<double> smaller_gram(MatrixView<const float> X) {
  Matrix<double> gram(std::min(X.rows, X.cols), std::min(X.rows, X.cols));
  X.rows < X.cols ? gram_of_rows(X, gram) : gram_of_columns(X, gram);
  return gram;
}

Principal principal_directions(MatrixView<const float> X, const Matrix<double>& gram, std::size_t K,
                               std::uint64_t seed) {
  return directions_of(DenseTable(X), &gram, K, {.residual = kResidual}, seed);
}

Principal principal_directions(const Strips& X, std::size_t K, std::uint64_t seed, double gram_work) {
  const MatrixView<const float> whole = X.whole();
  const bool away = whole.data == nullptr, wide = X.rows() < X.cols();
  if (!needs_gram(X.rows(), X.cols(), K, gram_work) || (away && wide))
    return directions_of(FloatTable(X), nullptr, K, {kResidual, kGrowth, away ? K : 0}, seed);
  if (!away) return principal_directions(whole, smaller_gram(whole), K, seed);
  const std::size_t size = std::min(X.rows(), X.cols());
  Matrix<double> gram(size, size), part(size, size);
  X.each([&](std::size_t, MatrixView<const float> strip) {
    gram_of_columns(strip, part);
    for (std::size_t i = 0; i < part.values().size(); ++i) gram.values()[i] += part.values()[i];
  });
  return directions_of(FloatTable(X), &gram, K, {.residual = kResidual}, seed);
}

Principal principal_directions(const Csr& X, std::span<const float> mean, std::size_t K, std::uint64_t seed) {
  return directions_of(SparseTable(X, mean), nullptr, K, {.residual = kResidual}, seed);
}

}  // namespace lacuna
