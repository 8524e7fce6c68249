// Common parts of kernel methods: rows of length 1, radial kernels, their low-rank form, thresholds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "ops/linalg.h"

namespace lacuna {

// Rows scaled to length 1; a zero row stays zero.
Matrix<float> unit_rows(MatrixView<const float> X);

// K_ij = exp(-|a_i - b_j|² / width). A (n, d), B (k, d), K (n, k).
void radial_kernel(MatrixView<const float> A, MatrixView<const float> B, double width, MatrixView<float> K);
// The same among the rows of A, in double and exactly symmetric.
void radial_kernel(MatrixView<const float> A, double width, MatrixView<double> K);

// The Nyström form of a kernel: K ≈ Φ Φᵀ with Φ = K_(n,L) R⁻ᵀ, where R Rᵀ = K_(L,L) + 1e-8 I over the
// landmarks L. A machine w on Φ is a machine γ = R⁻ᵀ w on the landmarks' kernels, so it predicts like an
// exact one.
struct Nystroem {
  std::vector<std::uint32_t> landmarks;
  Matrix<float> points;                                                        // (L, d) the landmarks' rows
  Matrix<double> Phi;                                                          // (n, L)
  Cholesky factor;                                                             // of K_(L,L) + 1e-8 I
  void to_coefficients(MatrixView<double> w) const { factor.solve_upper(w); }  // w (L, c) -> γ
};
// Landmarks are drawn among the rows that are not zero, plus one zero row if there is any (filled rows are all
// equal); `stream` separates the draws of different views.
Nystroem nystroem(const Matrix<float>& A, double width, std::size_t count, std::uint64_t seed,
                  std::uint32_t stream);

// θ_v = (λ + Σq - m q_v) / (mλ); negative ones become 1e-7, then all are scaled to sum 1.
std::vector<double> view_weights(const std::vector<double>& q, double lambda);

// Of 51 equally spaced values in [0, max score], the one for which "score >= value" makes the fewest errors against
// truth (n, c); of equal ones the smallest.
float hamming_threshold(MatrixView<const float> scores, MatrixView<const float> truth);

}  // namespace lacuna
