#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "ops/linalg.h"
#include "ops/linalg_kernels.h"
#include "ops/machine.h"

namespace lacuna {
namespace {

Matrix<double> random_matrix(std::size_t n, std::size_t d, std::uint32_t stream) {
  Random random(11, Purpose::test, stream);
  Matrix<double> X(n, d);
  for (double& x : X.values()) x = static_cast<double>(random.normal());
  return X;
}

Matrix<double> naive(const Matrix<double>& A, bool ta, const Matrix<double>& B, bool tb) {
  const std::size_t n = ta ? A.cols() : A.rows(), k = ta ? A.rows() : A.cols(), m = tb ? B.rows() : B.cols();
  Matrix<double> C(n, m);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t l = 0; l < k; ++l) C(i, j) += (ta ? A(l, i) : A(i, l)) * (tb ? B(j, l) : B(l, j));
  return C;
}

double distance(const Matrix<double>& A, const Matrix<double>& B) {
  double largest = 0;
  EXPECT_EQ(A.values().size(), B.values().size());
  for (std::size_t i = 0; i < A.values().size(); ++i)
    largest = std::max(largest, std::abs(A.values()[i] - B.values()[i]));
  return largest;
}

TEST(Linalg, ProductsEqualThePlainSums) {
  for (const std::size_t n : {1u, 7u, 130u}) {
    const std::size_t k = 19, m = 83;
    const Matrix<double> A = random_matrix(n, k, 1), B = random_matrix(k, m, 2), At = random_matrix(k, n, 3),
                         Bt = random_matrix(m, k, 4);
    Matrix<double> C(n, m);
    product(A, B, Transpose::none, false, C);
    EXPECT_LT(distance(C, naive(A, false, B, false)), 1e-12);
    product(At, B, Transpose::left, false, C);
    EXPECT_LT(distance(C, naive(At, true, B, false)), 1e-12);
    product(A, Bt, Transpose::right, false, C);
    EXPECT_LT(distance(C, naive(A, false, Bt, true)), 1e-12);
    product(A, Bt, Transpose::right, true, C);
    Matrix<double> twice = naive(A, false, Bt, true);
    for (double& x : twice.values()) x *= 2;
    EXPECT_LT(distance(C, twice), 1e-12);
  }
}

// The form of the products is chosen in one place, for linear algebra too.
TEST(Linalg, TheChosenInstructionSetIsTheOneThatComputes) {
  const Matrix<double> A = random_matrix(21, 40, 7), B = random_matrix(40, 9, 8);
  const Isa before = isa();
  for (const Isa form : available_isas()) {
    choose_isa(form);
    EXPECT_EQ(by_width(0, 1, 2), form >= Isa::avx512 ? 2 : form == Isa::avx2 ? 1 : 0);
    const LinalgKernels set = by_width(&linalg_kernels_plain, &linalg_kernels_avx2, &linalg_kernels_avx512)();
    Matrix<double> C(21, 9), direct(21, 9);
    product(A, B, Transpose::none, false, C);
    set.gemm_double(false, false, 21, 9, 40, A.data(), 40, B.data(), 9, false, direct.data(), 9);
    EXPECT_EQ(distance(C, direct), 0) << isa_name(form);
  }
  choose_isa(before);
}

// Every instruction set that this machine has does the same arithmetic.
TEST(Linalg, EveryInstructionSetAgrees) {
  std::vector<LinalgKernels> sets = {linalg_kernels_plain()};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(linalg_kernels_avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    sets.push_back(linalg_kernels_avx512());
  const Matrix<double> A = random_matrix(21, 21, 5), B = random_matrix(21, 9, 6);
  Matrix<double> spd(21, 21);
  gram_of_rows(A, spd);
  for (std::size_t i = 0; i < 21; ++i) spd(i, i) += 1;
  for (const LinalgKernels& set : sets) {
    Matrix<double> C(21, 9);
    set.gemm_double(false, false, 21, 9, 21, A.data(), 21, B.data(), 9, false, C.data(), 9);
    EXPECT_LT(distance(C, naive(A, false, B, false)), 1e-12);
    Matrix<double> x = B, factor = spd;
    ASSERT_TRUE(set.cholesky(21, factor.data()));
    set.cholesky_solve(21, factor.data(), true, true, 9, x.data(), 9);
    EXPECT_LT(distance(naive(spd, false, x, false), B), 1e-10);
    x = B;
    Matrix<double> work = A;
    set.lu_solve(21, work.data(), 21, 9, x.data(), 9);
    EXPECT_LT(distance(naive(A, false, x, false), B), 1e-9);
    work = spd;
    std::vector<double> values(21);
    ASSERT_TRUE(set.eigen(21, work.data(), true, values.data()));
    Matrix<double> scaled = work;
    for (std::size_t i = 0; i < 21; ++i)
      for (std::size_t j = 0; j < 21; ++j) scaled(i, j) *= values[j];
    EXPECT_LT(distance(naive(scaled, false, work, true), spd), 1e-10);
  }
}

TEST(Linalg, GramMatricesOfFloatsAreExactlySymmetric) {
  Random random(3, Purpose::test);
  Matrix<float> X(270, 530);
  Matrix<double> Xd(270, 530);
  for (std::size_t i = 0; i < X.values().size(); ++i) {
    X.values()[i] = random.normal();
    Xd.values()[i] = static_cast<double>(X.values()[i]);
  }
  Matrix<double> rows(270, 270), cols(530, 530);
  gram_of_rows(X, rows);
  gram_of_columns(X, cols);
  EXPECT_LT(distance(rows, naive(Xd, false, Xd, true)), 1e-9);
  EXPECT_LT(distance(cols, naive(Xd, true, Xd, false)), 1e-9);
  for (std::size_t i = 0; i < 270; ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(rows(i, j), rows(j, i));
}

// B Bᵀ, and x -> A x as leading_eigen asks for it.
Matrix<double> gram(const Matrix<double>& B) {
  Matrix<double> A(B.rows(), B.rows());
  gram_of_rows(B, A);
  return A;
}
auto multiplied_by(const Matrix<double>& A) {
  return [&A](MatrixView<const double> x, MatrixView<double> y) { product(A, x, Transpose::none, false, y); };
}

TEST(Linalg, LeadingPairsOfAnOperator) {
  const std::size_t n = 300;
  const Matrix<double> A = gram(random_matrix(n, n, 7));
  const Eigensystem all = symmetric_eigen(A);
  const Eigensystem some = leading_eigen(n, 10, {.residual = 1e-9}, 1, multiplied_by(A));
  EXPECT_LE(some.residual, 1e-9);
  for (std::size_t k = 0; k < 10; ++k) EXPECT_NEAR(some.values[k], all.values[k], 1e-8 * all.values[0]);
  // A matrix of low rank: the basis exhausts the space and the zeros are found.
  const Matrix<double> low = gram(random_matrix(60, 3, 8));
  const Eigensystem zeros = leading_eigen(60, 8, {.residual = 1e-9}, 1, multiplied_by(low));
  EXPECT_GT(zeros.values[2], 1);
  for (std::size_t k = 3; k < 8; ++k) EXPECT_NEAR(zeros.values[k], 0, 1e-9);
}

// Columns of falling length, so that A has falling eigenvalues; its rank is at most r.
Matrix<double> falling(std::size_t n, std::size_t r, double factor) {
  Matrix<double> B = random_matrix(n, r, 12);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < r; ++k) B(i, k) *= std::pow(factor, static_cast<double>(k));
  return gram(B);
}

// Where the basis is larger than the rank, what is left of new columns is rounding: they stay orthonormal all the same,
// and no pair is found twice.
TEST(Linalg, LeadingPairsOfALowRankAreFoundOnce) {
  const std::size_t n = 600;
  for (const std::size_t rank : {std::size_t{70}, std::size_t{150}}) {
    const Matrix<double> A = falling(n, rank, .9);
    const Eigensystem all = symmetric_eigen(A), some = leading_eigen(n, 60, {.residual = 1e-4}, 1, multiplied_by(A));
    EXPECT_LE(some.residual, 1e-4);
    for (std::size_t k = 0; k < 60; ++k)
      EXPECT_NEAR(some.values[k], all.values[k], 1e-6 * all.values[k]) << rank << " " << k;
    Matrix<double> overlap(60, 60);
    product(some.vectors.view(), some.vectors.view(), Transpose::left, false, overlap);
    for (std::size_t k = 0; k < 60; ++k)
      for (std::size_t l = 0; l < 60; ++l) ASSERT_NEAR(overlap(k, l), k == l ? 1 : 0, 1e-10) << rank;
  }
}

// Blocks are whole, whatever is counted: 51 pairs need hardly more products than 48.
TEST(Linalg, LeadingPairsOfAnyNumberConvergeAlike) {
  const std::size_t n = 900;
  const Matrix<double> A = falling(n, n, .99);
  const auto columns = [&](std::size_t count) {
    std::size_t sum = 0;
    leading_eigen(n, count, {.residual = 1e-4}, 1, [&](MatrixView<const double> x, MatrixView<double> y) {
      product(A, x, Transpose::none, false, y);
      sum += x.cols;
    });
    return sum;
  };
  EXPECT_LT(columns(51), columns(48) * 5 / 4);
  EXPECT_LT(columns(150), columns(144) * 5 / 4);
}

// A first basis that is smaller than a block grows from what it has.
TEST(Linalg, LeadingPairsOfASmallOperatorAreFoundFromAFewColumns) {
  const std::size_t n = 19;
  const Matrix<double> A = gram(random_matrix(n, n, 11));
  const Eigensystem all = symmetric_eigen(A);
  const auto apply = multiplied_by(A);
  for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{5}}) {
    const Eigensystem some = leading_eigen(n, count, {.growth = 1e-6}, 1, apply),
                      again = leading_eigen(n, count, {.growth = 1e-6}, 1, apply);
    for (std::size_t k = 0; k < count; ++k) {
      EXPECT_NEAR(some.values[k], all.values[k], 1e-3 * all.values[0]) << count;
      EXPECT_EQ(some.values[k], again.values[k]) << count;
    }
  }
}

// The largest singular value, by power iteration.
double spectral_norm(const Matrix<double>& A) {
  std::vector<double> x(A.cols(), 1), y(A.rows());
  double norm = 0;
  for (int step = 0; step < 2000; ++step) {
    double length = 0;
    for (const double each : x) length += each * each;
    for (double& each : x) each /= std::sqrt(length);
    norm = 0;
    for (std::size_t i = 0; i < A.rows(); ++i) {
      y[i] = 0;
      for (std::size_t j = 0; j < A.cols(); ++j) y[i] += A(i, j) * x[j];
      norm += y[i] * y[i];
    }
    std::ranges::fill(x, 0);
    for (std::size_t i = 0; i < A.rows(); ++i)
      for (std::size_t j = 0; j < A.cols(); ++j) x[j] += A(i, j) * y[i];
  }
  return std::sqrt(norm);
}

// The proximal operator's optimality: (A - Z)/t is in the sub-differential of the nuclear norm at Z: its
// spectral norm is at most 1 and its inner product with Z is the nuclear norm of Z.
TEST(Linalg, SingularValueThresholdIsTheProximalPoint) {
  for (const auto& [n, c] : {std::pair<std::size_t, std::size_t>{12, 5}, {5, 12}, {6, 6}}) {
    const Matrix<double> A = random_matrix(n, c, 9);
    Matrix<double> Z(n, c), D(n, c);
    const double t = 1.1, norm = singular_value_threshold(A, t, Z);
    double inner = 0;
    for (std::size_t i = 0; i < n * c; ++i) {
      D.values()[i] = (A.values()[i] - Z.values()[i]) / t;
      inner += D.values()[i] * Z.values()[i];
    }
    EXPECT_LE(spectral_norm(D), 1 + 1e-9);
    EXPECT_NEAR(inner, norm, 1e-9);
    EXPECT_NEAR(nuclear_norm(Z), norm, 1e-6);
    // All above the threshold: nothing survives.
    EXPECT_NEAR(singular_value_threshold(A, 1e3, Z), 0, 0);
    for (const double z : Z.values()) EXPECT_EQ(z, 0);
  }
}

TEST(Linalg, SubgradientOfTheNuclearNorm) {
  const Matrix<double> A = random_matrix(9, 4, 10);
  Matrix<double> S(9, 4);
  const double largest = nuclear_subgradient(A, 1e-6, S).largest;
  EXPECT_NEAR(largest, spectral_norm(A), 1e-12);
  for (std::size_t i = 0; i < 36; ++i) {
    Matrix<double> up = A, down = A;
    up.values()[i] += 1e-5;
    down.values()[i] -= 1e-5;
    EXPECT_NEAR((nuclear_norm(up) - nuclear_norm(down)) / 2e-5, S.values()[i], 1e-6);
  }
}

TEST(Linalg, CholeskyRefusesIndefinite) {
  Matrix<double> A(2, 2);
  A(0, 0) = 1, A(1, 1) = -1;
  EXPECT_THROW(Cholesky(A, "a test"), Error);
}

TEST(Linalg, SameBitsForAnyThreads) {
  const Matrix<double> A = random_matrix(700, 90, 12), B = random_matrix(90, 150, 13);
  Matrix<double> first(700, 150), gram(700, 700);
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    Matrix<double> C(700, 150), G(700, 700);
    product(A, B, Transpose::none, false, C);
    gram_of_rows(A, G);
    if (count == 1) first = C, gram = G;
    EXPECT_EQ(distance(C, first), 0);
    EXPECT_EQ(distance(G, gram), 0);
  }
  set_threads(0);
}

}  // namespace
}  // namespace lacuna
