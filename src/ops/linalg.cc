#include "ops/linalg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "ops/linalg_kernels.h"
#include "ops/machine.h"

namespace lacuna {
namespace {

const LinalgKernels& kernels() {
  static const LinalgKernels plain = linalg_kernels_plain(), avx2 = linalg_kernels_avx2(),
                             avx512 = linalg_kernels_avx512();
  return *by_width(&plain, &avx2, &avx512);
}

std::ptrdiff_t signed_size(std::size_t n) {
  return static_cast<std::ptrdiff_t>(n);
}

void gemm(bool ta, bool tb, MatrixView<const double> A, MatrixView<const double> B, std::size_t k,
          bool accumulate, MatrixView<double> C) {
  kernels().gemm_double(ta, tb, signed_size(C.rows), signed_size(C.cols), signed_size(k), A.data,
                        signed_size(A.stride), B.data, signed_size(B.stride), accumulate, C.data,
                        signed_size(C.stride));
}
void gemm(bool ta, bool tb, MatrixView<const float> A, MatrixView<const float> B, std::size_t k,
          bool accumulate, MatrixView<float> C) {
  kernels().gemm_float(ta, tb, signed_size(C.rows), signed_size(C.cols), signed_size(k), A.data,
                       signed_size(A.stride), B.data, signed_size(B.stride), accumulate, C.data,
                       signed_size(C.stride));
}

// Cuts C into blocks of rows, or of columns where it is wide; each block is one product in one thread.
template <class T>
void product_of(MatrixView<const T> A, MatrixView<const T> B, Transpose transpose, bool accumulate,
                MatrixView<T> C) {
  const bool ta = transpose == Transpose::left, tb = transpose == Transpose::right;
  const std::size_t k = ta ? A.rows : A.cols;
  assert((ta ? A.cols : A.rows) == C.rows && (tb ? B.rows : B.cols) == C.cols && (tb ? B.cols : B.rows) == k);
  if (C.empty()) return;
  if (k == 0) {
    if (!accumulate)
      for (std::size_t i = 0; i < C.rows; ++i) std::fill(C.row(i).begin(), C.row(i).end(), T(0));
    return;
  }
  const auto grain = [](std::size_t n) { return std::clamp<std::size_t>(n / 8, 64, 512); };
  if (C.rows >= C.cols) {
    parallel_for(C.rows, grain(C.rows), [&](std::size_t begin, std::size_t end) {
      gemm(ta, tb, ta ? A.columns(begin, end - begin) : A.slice(begin, end - begin), B, k, accumulate,
           C.slice(begin, end - begin));
    });
  } else {
    parallel_for(C.cols, grain(C.cols), [&](std::size_t begin, std::size_t end) {
      gemm(ta, tb, A, tb ? B.slice(begin, end - begin) : B.columns(begin, end - begin), k, accumulate,
           C.columns(begin, end - begin));
    });
  }
}

constexpr std::size_t kGramBlock = 256;

// C += S Sᵀ or SᵀS for a strip S, lower triangle by blocks.
void gram_add(MatrixView<const double> S, bool of_columns, MatrixView<double> C) {
  const std::size_t n = C.rows, blocks = (n - 1) / kGramBlock + 1, k = of_columns ? S.rows : S.cols;
  const auto part = [&](std::size_t block) {
    const std::size_t begin = block * kGramBlock, count = std::min(kGramBlock, n - begin);
    return of_columns ? S.columns(begin, count) : S.slice(begin, count);
  };
  parallel_for(blocks * (blocks + 1) / 2, 1, [&](std::size_t task, std::size_t) {
    std::size_t i = 0;
    while ((i + 1) * (i + 2) / 2 <= task) ++i;
    const std::size_t j = task - i * (i + 1) / 2, rows = std::min(kGramBlock, n - i * kGramBlock),
                      cols = std::min(kGramBlock, n - j * kGramBlock);
    gemm(of_columns, !of_columns, part(i), part(j), k, true,
         C.slice(i * kGramBlock, rows).columns(j * kGramBlock, cols));
  });
}

void mirror_lower(MatrixView<double> C) {
  parallel_for(C.rows, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = i + 1; j < C.cols; ++j) C(i, j) = C(j, i);
  });
}

template <class T>
void gram(MatrixView<const T> X, bool of_columns, MatrixView<double> C) {
  assert(C.rows == C.cols && C.rows == (of_columns ? X.cols : X.rows));
  for (std::size_t i = 0; i < C.rows; ++i) std::fill(C.row(i).begin(), C.row(i).end(), 0.0);
  if (X.empty()) return;
  constexpr std::size_t kStrip = 512;
  const std::size_t length = of_columns ? X.rows : X.cols;
  Matrix<double> strip;
  for (std::size_t begin = 0; begin < length; begin += kStrip) {
    const std::size_t count = std::min(kStrip, length - begin);
    const MatrixView<const T> part = of_columns ? X.slice(begin, count) : X.columns(begin, count);
    if constexpr (std::is_same_v<T, double>) {
      gram_add(part, of_columns, C);
    } else {
      if (strip.rows() != part.rows || strip.cols() != part.cols)
        strip = Matrix<double>(part.rows, part.cols);
      parallel_for(part.rows, 64, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i)
          for (std::size_t j = 0; j < part.cols; ++j) strip(i, j) = static_cast<double>(part(i, j));
      });
      gram_add(std::as_const(strip).view(), of_columns, C);
    }
  }
  mirror_lower(C);
}

// Falling. A becomes its eigenvectors, by rising value, if they are asked for.
std::vector<double> solve_eigen(Matrix<double>& A, bool vectors) {
  std::vector<double> values(A.rows());
  if (A.rows() > 0 && !kernels().eigen(signed_size(A.rows()), A.data(), vectors, values.data()))
    fail(Exit::diverged,
         "an eigenvalue problem of size {} did not converge: its matrix holds non-finite numbers", A.rows());
  std::reverse(values.begin(), values.end());
  return values;
}

// The sum of the `count` largest eigenvalues.
double leading_sum(Matrix<double> A, std::size_t count) {
  const std::vector<double> values = solve_eigen(A, false);
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
}

// One pass of block Gram-Schmidt of the columns of B against those of Q.
void project_out(MatrixView<const double> Q, MatrixView<double> B) {
  Matrix<double> overlap(Q.cols, B.cols);
  product(Q, B, Transpose::left, false, overlap);
  for (double& value : overlap.values()) value = -value;
  product(Q, overlap, Transpose::none, true, B);
}

double dot(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kSums = 16;  // that do not wait for each other
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums)
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += a[i + s] * b[i + s];
  for (std::size_t s = 0; i < a.size(); ++i, ++s) sums[s] += a[i] * b[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Orthonormal basis of the columns of B in place, orthogonal to those of Q too. A column that vanishes is replaced by a
// random one, so that the basis keeps its size. What little is left of a column has lost digits, also of what was
// orthogonal about it: all is done again until every column keeps half of its length.
void orthonormalise(MatrixView<const double> Q, MatrixView<double> B, Random& random) {
  constexpr double kVanished = 1e-10;
  Matrix<double> rows(B.cols, B.rows);
  for (int round = 0; round < 8; ++round) {
    std::vector<double> squares(B.cols);
    for (std::size_t i = 0; i < B.rows; ++i)
      for (std::size_t j = 0; j < B.cols; ++j) squares[j] += B(i, j) * B(i, j);
    project_out(Q, B);
    for (std::size_t i = 0; i < B.rows; ++i)
      for (std::size_t j = 0; j < B.cols; ++j) rows(j, i) = B(i, j);
    bool again = round == 0;
    for (std::size_t j = 0; j < B.cols; ++j) {
      const auto b = rows.row(j);
      for (std::size_t l = 0; l < j; ++l) {
        const auto other = rows.row(l);
        const double overlap = dot(b, other);
        for (std::size_t i = 0; i < b.size(); ++i) b[i] -= overlap * other[i];
      }
      const double norm = std::sqrt(dot(b, b)), length = std::sqrt(squares[j]);
      again = again || !(norm > .5 * length);
      if (norm > kVanished * length && norm > 0) {
        for (double& value : b) value /= norm;
      } else {
        for (double& value : b) value = static_cast<double>(random.normal());
        const double random_norm = std::sqrt(dot(b, b));
        for (double& value : b) value /= random_norm;
      }
    }
    for (std::size_t i = 0; i < B.rows; ++i)
      for (std::size_t j = 0; j < B.cols; ++j) B(i, j) = rows(j, i);
    if (!again) return;
  }
}

// The eigensystem of the smaller Gram matrix of A, and whether it is the one of the columns.
struct SmallGram {
  Eigensystem system;
  bool of_columns;
};
SmallGram small_gram(MatrixView<const double> A) {
  const bool of_columns = A.cols <= A.rows;
  Matrix<double> C(std::min(A.rows, A.cols), std::min(A.rows, A.cols));
  of_columns ? gram_of_columns(A, C) : gram_of_rows(A, C);
  return {symmetric_eigen(C), of_columns};
}

// out = U f(Σ) Vᵀ as A · V diag(f(σ)/σ) Vᵀ, or U diag(f(σ)/σ) Uᵀ · A: the other factor is never formed.
template <class F>
void map_singular_values(MatrixView<const double> A, const SmallGram& gram, F&& ratio,
                         MatrixView<double> out) {
  const Matrix<double>& V = gram.system.vectors;
  Matrix<double> scaled(V.rows(), V.cols());
  std::size_t kept = 0;
  for (; kept < V.cols(); ++kept) {
    const double r = ratio(std::sqrt(std::max(gram.system.values[kept], 0.0)));
    if (r == 0) break;
    for (std::size_t i = 0; i < V.rows(); ++i) scaled(i, kept) = V(i, kept) * r;
  }
  if (kept == 0) {
    for (std::size_t i = 0; i < out.rows; ++i) std::fill(out.row(i).begin(), out.row(i).end(), 0.0);
    return;
  }
  const MatrixView<const double> left = std::as_const(scaled).view().columns(0, kept),
                                 right = std::as_const(V).view().columns(0, kept);
  // A (n, c) times a map of rank r: through the (c, c) map, or through the r directions where they are few.
  const std::size_t other = gram.of_columns ? A.rows : A.cols, side = V.rows();
  Matrix<double> own;  // where A may not be overwritten yet
  if (out.data == A.data) own = Matrix<double>(out.rows, out.cols);
  const MatrixView<double> to = own.empty() ? out : own.view();
  if (2 * other * kept < side * kept + other * side) {
    Matrix<double> middle(gram.of_columns ? A.rows : kept, gram.of_columns ? kept : A.cols);
    if (gram.of_columns) {
      product(A, left, Transpose::none, false, middle);
      product(middle, right, Transpose::right, false, to);
    } else {
      product(left, A, Transpose::left, false, middle);
      product(right, middle, Transpose::none, false, to);
    }
  } else {
    Matrix<double> map(side, side);
    product(left, right, Transpose::right, false, map);
    gram.of_columns ? product(A, map, Transpose::none, false, to)
                    : product(map, A, Transpose::none, false, to);
  }
  if (own.empty()) return;
  for (std::size_t i = 0; i < out.rows; ++i)
    std::copy(own.row(i).begin(), own.row(i).end(), out.row(i).begin());
}

}  // namespace

Matrix<float> to_float(const Matrix<double>& from) {
  Matrix<float> to(from.rows(), from.cols());
  for (std::size_t i = 0; i < from.values().size(); ++i)
    to.values()[i] = static_cast<float>(from.values()[i]);
  return to;
}

void product(MatrixView<const double> A, MatrixView<const double> B, Transpose transpose, bool accumulate,
             MatrixView<double> C) {
  product_of(A, B, transpose, accumulate, C);
}
void product(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose, bool accumulate,
             MatrixView<float> C) {
  product_of(A, B, transpose, accumulate, C);
}
void gram_of_rows(MatrixView<const float> X, MatrixView<double> C) {
  gram(X, false, C);
}
void gram_of_rows(MatrixView<const double> X, MatrixView<double> C) {
  gram(X, false, C);
}
void gram_of_columns(MatrixView<const float> X, MatrixView<double> C) {
  gram(X, true, C);
}
void gram_of_columns(MatrixView<const double> X, MatrixView<double> C) {
  gram(X, true, C);
}

Eigensystem symmetric_eigen(MatrixView<const double> A) {
  const std::size_t n = A.rows;
  Eigensystem result;
  Matrix<double> work(n, n);
  work.copy_from(A);
  result.values = solve_eigen(work, true);
  for (std::size_t i = 0; i < n; ++i) std::reverse(work.row(i).begin(), work.row(i).end());
  result.vectors = std::move(work);
  return result;
}

Eigensystem leading_eigen(std::size_t n, std::size_t count, const EnoughPairs& enough, std::uint64_t seed,
                          SymmetricOperator apply) {
  count = std::min(count, n);
  // Small blocks converge with a smaller basis, large ones multiply faster. A test of convergence takes longer than
  // products do, with the cube of the basis: the first one is made where it usually succeeds.
  const bool coarse = enough.growth > 0;
  const std::size_t usual = coarse ? count / 3 : count / 8;
  const std::size_t block = std::min(n, std::max<std::size_t>(16, enough.block > 0 ? enough.block : usual));
  // Size of the basis at the next test, in whole blocks: a block that is cut short would stay so.
  const std::size_t wanted = coarse ? 2 * count : std::max(13 * count / 4, 8 * block);
  std::size_t goal = std::min(n, (wanted + block - 1) / block * block);
  double sum_before = 0;
  Random random(seed, Purpose::projection);
  Matrix<double> Q(n, goal), AQ(n, goal);
  std::size_t have = 0;
  for (;;) {
    if (Q.cols() < goal) {
      Matrix<double> wider_Q(n, goal), wider_AQ(n, goal);
      for (std::size_t i = 0; i < n; ++i) {
        std::copy_n(Q.row(i).begin(), have, wider_Q.row(i).begin());
        std::copy_n(AQ.row(i).begin(), have, wider_AQ.row(i).begin());
      }
      Q.swap(wider_Q);
      AQ.swap(wider_AQ);
    }
    while (have < goal) {
      // The images of as many columns as there are: a first basis may be smaller than a block.
      const std::size_t b = std::min({block, goal - have, have == 0 ? goal : have});
      const MatrixView<double> next = Q.view().columns(have, b);
      if (have == 0) {
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < b; ++j) next(i, j) = static_cast<double>(random.normal());
      } else {
        const MatrixView<double> last = AQ.view().columns(have - b, b);
        for (std::size_t i = 0; i < n; ++i) std::copy_n(last.row(i).begin(), b, next.row(i).begin());
      }
      orthonormalise(Q.view().columns(0, have), next, random);
      Matrix<double> in(n, b), out(n, b);
      in.copy_from(next);
      apply(in, out);
      for (std::size_t i = 0; i < n; ++i)
        std::copy_n(out.row(i).begin(), b, AQ.view().columns(have, b).row(i).begin());
      have += b;
    }
    Matrix<double> T(have, have);
    product(Q.view(), AQ.view(), Transpose::left, false, T);
    for (std::size_t i = 0; i < have; ++i)
      for (std::size_t j = 0; j < i; ++j) T(i, j) = T(j, i) = .5 * (T(i, j) + T(j, i));
    if (coarse && have < n) {  // whether it is enough is seen without vectors
      const double sum = leading_sum(T, count), grown = sum - std::exchange(sum_before, sum);
      if (grown > enough.growth * sum) {
        goal = std::min(n, goal + 2 * block);
        continue;
      }
    }
    Eigensystem small = symmetric_eigen(T);
    const MatrixView<const double> S = std::as_const(small.vectors).view().columns(0, count);
    Eigensystem result;
    result.values.assign(small.values.begin(), small.values.begin() + static_cast<std::ptrdiff_t>(count));
    result.vectors = Matrix<double>(n, count);
    Matrix<double> image(n, count);
    product(Q.view(), S, Transpose::none, false, result.vectors);
    product(AQ.view(), S, Transpose::none, false, image);
    std::vector<double> squares(count);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < count; ++j) {
        const double r = image(i, j) - result.values[j] * result.vectors(i, j);
        squares[j] += r * r;
      }
    for (std::size_t j = 0; j < count; ++j) {
      const double own = std::max(result.values[j], 1e-9 * result.values[0]);
      if (own > 0) result.residual = std::max(result.residual, std::sqrt(squares[j]) / own);
    }
    if (coarse || result.residual <= enough.residual || have == n) return result;
    goal = std::min(n, goal + 2 * block);
  }
}

Cholesky::Cholesky(Matrix<double> A, const char* what) : L_(std::move(A)) {
  if (!L_.empty() && !kernels().cholesky(signed_size(L_.rows()), L_.data()))
    fail(Exit::diverged, "{} is not positive definite (size {})", what, L_.rows());
}

namespace {

void triangular(const Matrix<double>& L, bool lower, bool upper, MatrixView<double> B) {
  assert(B.rows == L.rows());
  parallel_for(B.cols, 64, [&](std::size_t begin, std::size_t end) {
    kernels().cholesky_solve(signed_size(L.rows()), L.data(), lower, upper, signed_size(end - begin),
                             B.data + begin, signed_size(B.stride));
  });
}

}  // namespace

void Cholesky::solve(MatrixView<double> B) const {
  triangular(L_, true, true, B);
}
void Cholesky::solve_lower(MatrixView<double> B) const {
  triangular(L_, true, false, B);
}
void Cholesky::solve_upper(MatrixView<double> B) const {
  triangular(L_, false, true, B);
}

void solve_general(MatrixView<double> A, MatrixView<double> B) {
  assert(A.rows == A.cols && B.rows == A.rows);
  kernels().lu_solve(signed_size(A.rows), A.data, signed_size(A.stride), signed_size(B.cols), B.data,
                     signed_size(B.stride));
}

double singular_value_threshold(MatrixView<const double> A, double t, MatrixView<double> out) {
  if (A.empty()) return 0;
  const SmallGram gram = small_gram(A);
  map_singular_values(
      A, gram, [&](double sigma) { return sigma > t ? 1 - t / sigma : 0; }, out);
  double norm = 0;
  for (const double value : gram.system.values) norm += std::max(std::sqrt(std::max(value, 0.0)) - t, 0.0);
  return norm;
}

double nuclear_norm(MatrixView<const double> A) {
  if (A.empty()) return 0;
  double norm = 0;
  for (const double value : small_gram(A).system.values) norm += std::sqrt(std::max(value, 0.0));
  return norm;
}

NuclearNorm nuclear_subgradient(MatrixView<const double> A, double cut, MatrixView<double> out) {
  if (A.empty()) return {};
  const SmallGram gram = small_gram(A);
  map_singular_values(
      A, gram, [&](double sigma) { return sigma * sigma >= cut ? 1 / sigma : 0; }, out);
  NuclearNorm result;
  for (const double value : gram.system.values) result.norm += std::sqrt(std::max(value, 0.0));
  result.largest = std::sqrt(std::max(gram.system.values[0], 0.0));
  return result;
}

}  // namespace lacuna
