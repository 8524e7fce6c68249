// Principal directions of a dense or sparse table of observed instances.
//
// Dense tables: eigenvectors of the smaller of the two Gram matrices in double. Up to kDirectSize its full
// eigensystem is computed; above, block Lanczos runs until each pair's residual |A v - λ v| / λ is below
// kResidual. For sparse tables, and if forming the Gram matrix would be most of the work (kGramWork), the same
// solver uses products with the table itself. The products of such a dense table are in float, and the basis grows
// until two more blocks explain less than kGrowth more: the directions then explain .998 or more of the variance
// that the best ones would (tests/test_prepare.cc). The residual is returned.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "data/dataset.h"
#include "data/strips.h"

namespace lacuna {

struct Principal {
  Matrix<float> directions;       // (d, K') orthonormal columns by falling variance; K' = kept, at least 1
  std::vector<double> variances;  // K' population variances
  double residual = 0;
};

constexpr std::size_t kDirectSize = 384, kGramSize = 5000;
constexpr double kResidual = 1e-4;
constexpr double kGramWork = 2e10;         // multiplications: a fraction of a second
constexpr std::size_t kFewDirections = 6;  // columns a direction; a matrix with fewer is solved directly
constexpr double kGrowth = 1e-3;           // of the explained variance, by the last two blocks of the basis

// X (n, d), its columns centred already. At most K directions; those with a variance of less than 1e-9 of the
// first are left out. The largest entry of each direction is positive. A table that is not in memory is read in passes:
// one for a Gram matrix, otherwise one (two where it has fewer rows than columns) for each block of K columns.
Principal principal_directions(const Strips& X, std::size_t K, std::uint64_t seed,
                               double gram_work = kGramWork);
inline Principal principal_directions(MatrixView<const float> X, std::size_t K, std::uint64_t seed,
                                      double gram_work = kGramWork) {
  return principal_directions(MemoryStrips(X), K, seed, gram_work);
}
// The same for several K in two steps: whether a table (n, d) in memory needs its smaller Gram matrix; and with it.
bool needs_gram(std::size_t n, std::size_t d, std::size_t K, double gram_work = kGramWork);
Matrix<double> smaller_gram(MatrixView<const float> X);
Principal principal_directions(MatrixView<const float> X, const Matrix<double>& gram, std::size_t K,
                               std::uint64_t seed);
// The rows of X minus `mean` (d).
Principal principal_directions(const Csr& X, std::span<const float> mean, std::size_t K, std::uint64_t seed);

}  // namespace lacuna
