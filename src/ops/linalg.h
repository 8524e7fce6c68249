// Dense linear algebra in double for the classical methods and for input preparation: products, symmetric
// eigenproblems, factorisations. The implementation is chosen at run time; results do not depend on the number of
// threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "base/threads.h"
#include "ops/gemm.h"

namespace lacuna {

Matrix<float> to_float(const Matrix<double>& from);

// C = A B, AᵀB or ABᵀ (+ C if accumulate). Sums in the element type.
void product(MatrixView<const double> A, MatrixView<const double> B, Transpose transpose, bool accumulate,
             MatrixView<double> C);
void product(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose, bool accumulate,
             MatrixView<float> C);

// The Gram matrix of the rows of X (n, d) in double, whatever the type of X: C = X Xᵀ (n, n), or of its
// columns: C = XᵀX (d, d). Exactly symmetric. Takes memory for C and a strip of X.
void gram_of_rows(MatrixView<const float> X, MatrixView<double> C);
void gram_of_rows(MatrixView<const double> X, MatrixView<double> C);
void gram_of_columns(MatrixView<const float> X, MatrixView<double> C);
void gram_of_columns(MatrixView<const double> X, MatrixView<double> C);

// Eigenvalues of a symmetric matrix in descending order, and the orthonormal eigenvectors as columns.
struct Eigensystem {
  std::vector<double> values;  // falling
  Matrix<double> vectors;      // (n, count)
  double residual = 0;         // largest |A v - λ v| / max(λ, 1e-9 λ_1) over the pairs; 0: solved directly
};
Eigensystem symmetric_eigen(MatrixView<const double> A);  // (n, n)

// The `count` leading eigenpairs of a positive semi-definite operator that is given by its products: apply(B, AB)
// with B and AB (n, b). Block Lanczos with full reorthogonalisation; the basis grows until the pairs are accurate.
// Deterministic in seed.
using SymmetricOperator = FunctionRef<void(MatrixView<const double>, MatrixView<double>)>;
struct EnoughPairs {
  double residual = 0;  // stops when every |A v - λ v| is at most this share of its λ; or, if `growth` is not 0,
  double growth = 0;    // when the last two blocks raised the sum of the wanted values by at most this share
  std::size_t block = 0;  // columns per block, if calls are expensive; 0 = the number with the least arithmetic
};
Eigensystem leading_eigen(std::size_t n, std::size_t count, const EnoughPairs& enough, std::uint64_t seed,
                          SymmetricOperator apply);

// A = L Lᵀ of a symmetric positive definite matrix. Throws Exit::diverged if it is not (`what` names it).
class Cholesky {
 public:
  Cholesky() = default;
  Cholesky(Matrix<double> A, const char* what);  // (n, n), only the lower triangle is read
  void solve(MatrixView<double> B) const;        // B <- A⁻¹ B, (n, r)
  void solve_lower(MatrixView<double> B) const;  // B <- L⁻¹ B
  void solve_upper(MatrixView<double> B) const;  // B <- L⁻ᵀ B
  bool empty() const { return L_.empty(); }

 private:
  Matrix<double> L_;
};

// B <- A⁻¹ B for a general A (n, n), which is destroyed. B (n, r). LU with partial pivoting.
void solve_general(MatrixView<double> A, MatrixView<double> B);

// Singular value soft-thresholding through the smaller Gram matrix: out = U max(Σ - t, 0) Vᵀ of A = U Σ Vᵀ.
// A and out (n, c) may be the same memory. Returns the nuclear norm of the result.
double singular_value_threshold(MatrixView<const double> A, double t, MatrixView<double> out);
double nuclear_norm(MatrixView<const double> A);
// The sub-gradient U₊V₊ᵀ of the nuclear norm over the singular values with σ² >= cut, which must be positive.
// out must not alias A.
struct NuclearNorm {
  double norm = 0, largest = 0;  // sum of the singular values, and the first of them
};
NuclearNorm nuclear_subgradient(MatrixView<const double> A, double cut, MatrixView<double> out);

}  // namespace lacuna
