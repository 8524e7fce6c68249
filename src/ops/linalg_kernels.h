// The arithmetic of ops/linalg.h for one instruction set: Eigen, single-threaded, on plain pointers. Each of
// linalg_{plain,avx2,avx512}.cc defines LACUNA_ISA and includes this file once; Eigen's namespace is renamed
// with it, so that no inline function of one instruction set can stand in for another's at link time.
#pragma once

#include <cstddef>

namespace lacuna {

// Row-major; ld = stride of the rows.
struct LinalgKernels {
  // C (m, n) = op(A) op(B) (+ C); k is the inner size.
  void (*gemm_double)(bool transpose_a, bool transpose_b, std::ptrdiff_t m, std::ptrdiff_t n,
                      std::ptrdiff_t k, const double* A, std::ptrdiff_t lda, const double* B,
                      std::ptrdiff_t ldb, bool accumulate, double* C, std::ptrdiff_t ldc);
  void (*gemm_float)(bool transpose_a, bool transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                     const float* A, std::ptrdiff_t lda, const float* B, std::ptrdiff_t ldb, bool accumulate,
                     float* C, std::ptrdiff_t ldc);
  // A (n, n) symmetric -> its eigenvectors as columns if they are asked for, values rising. False if it did not
  // converge.
  bool (*eigen)(std::ptrdiff_t n, double* A, bool vectors, double* values);
  // A (n, n) -> L in the lower triangle. False if A is not positive definite.
  bool (*cholesky)(std::ptrdiff_t n, double* A);
  // B <- L⁻¹ B if lower, then B <- L⁻ᵀ B if upper.
  void (*cholesky_solve)(std::ptrdiff_t n, const double* L, bool lower, bool upper, std::ptrdiff_t r,
                         double* B, std::ptrdiff_t ldb);
  void (*lu_solve)(std::ptrdiff_t n, double* A, std::ptrdiff_t lda, std::ptrdiff_t r, double* B,
                   std::ptrdiff_t ldb);
};

LinalgKernels linalg_kernels_plain();
LinalgKernels linalg_kernels_avx2();
LinalgKernels linalg_kernels_avx512();

}  // namespace lacuna

#ifdef LACUNA_ISA
#define LACUNA_JOIN_(a, b) a##b
#define LACUNA_JOIN(a, b) LACUNA_JOIN_(a, b)
#define Eigen LACUNA_JOIN(Eigen_, LACUNA_ISA)
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

namespace lacuna {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstMap = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;

template <class T>
void gemm(bool transpose_a, bool transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          const T* A, std::ptrdiff_t lda, const T* B, std::ptrdiff_t ldb, bool accumulate, T* C,
          std::ptrdiff_t ldc) {
  Map<T> c(C, m, n, Eigen::OuterStride<>(ldc));
  ConstMap<T> a(A, transpose_a ? k : m, transpose_a ? m : k, Eigen::OuterStride<>(lda));
  ConstMap<T> b(B, transpose_b ? n : k, transpose_b ? k : n, Eigen::OuterStride<>(ldb));
  if (!accumulate) c.setZero();
  if (transpose_a) {
    c.noalias() += a.transpose() * b;
  } else if (transpose_b) {
    c.noalias() += a * b.transpose();
  } else {
    c.noalias() += a * b;
  }
}

bool eigen(std::ptrdiff_t n, double* A, bool vectors, double* values) {
  Map<double> a(A, n, n, Eigen::OuterStride<>(n));
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(n);
  solver.compute(a, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return false;
  if (vectors) a = solver.eigenvectors();
  Eigen::Map<Eigen::VectorXd>(values, n) = solver.eigenvalues();
  return true;
}

bool cholesky(std::ptrdiff_t n, double* A) {
  Eigen::Map<RowMajor<double>> a(A, n, n);
  Eigen::LLT<Eigen::Ref<RowMajor<double>>, Eigen::Lower> factor(a);
  return factor.info() == Eigen::Success;
}

void cholesky_solve(std::ptrdiff_t n, const double* L, bool lower, bool upper, std::ptrdiff_t r, double* B,
                    std::ptrdiff_t ldb) {
  Eigen::Map<const RowMajor<double>> l(L, n, n);
  Map<double> b(B, n, r, Eigen::OuterStride<>(ldb));
  if (lower) l.triangularView<Eigen::Lower>().solveInPlace(b);
  if (upper) l.triangularView<Eigen::Lower>().adjoint().solveInPlace(b);
}

void lu_solve(std::ptrdiff_t n, double* A, std::ptrdiff_t lda, std::ptrdiff_t r, double* B,
              std::ptrdiff_t ldb) {
  Map<double> a(A, n, n, Eigen::OuterStride<>(lda)), b(B, n, r, Eigen::OuterStride<>(ldb));
  Eigen::PartialPivLU<Eigen::Ref<RowMajor<double>>> factor(a);
  const RowMajor<double> x = factor.solve(b);
  b = x;
}

}  // namespace

LinalgKernels LACUNA_JOIN(linalg_kernels_, LACUNA_ISA)() {
  return {gemm<double>, gemm<float>, eigen, cholesky, cholesky_solve, lu_solve};
}

}  // namespace lacuna
#pragma GCC diagnostic pop
#endif
