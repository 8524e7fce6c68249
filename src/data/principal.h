// Principal directions of a dense or sparse table of observed instances.
//
// Dense: eigenvectors of the smaller of the two Gram matrices in double. Up to kDirectSize its full
// eigensystem is computed; above, block Lanczos with each pair's residual |A v - λ v| / λ driven below
// kResidual. Where even the smaller Gram matrix would be larger than kGramSize, and for sparse tables, the
// same solver works on products with the table alone and no Gram matrix exists. The residual reached is
// returned.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "data/dataset.h"

namespace lacuna {

struct Principal {
  Matrix<float> directions;       // (d, K') orthonormal columns by falling variance; K' = kept, at least 1
  std::vector<double> variances;  // K' population variances
  double residual = 0;
};

constexpr std::size_t kDirectSize = 384, kGramSize = 5000;
constexpr double kResidual = 1e-4;

// X (n, d), its columns centred already. At most K directions; those with a variance of less than 1e-9 of the
// first are left out. The largest entry of each direction is positive.
Principal principal_directions(MatrixView<const float> X, std::size_t K, std::uint64_t seed);
// The rows of X less `mean` (d).
Principal principal_directions(const Csr& X, std::span<const float> mean, std::size_t K, std::uint64_t seed);

}  // namespace lacuna
