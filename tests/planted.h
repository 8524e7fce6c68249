// A table whose principal directions are known to be few.
#pragma once

#include <cstdint>

#include "base/matrix.h"
#include "base/random.h"

namespace lacuna {

// (n, d) with five strong directions, some noise and one constant column.
inline Matrix<float> planted(std::size_t n, std::size_t d, std::uint64_t seed) {
  Random random(seed, Purpose::test);
  const std::size_t r = 5;
  Matrix<float> A(n, r), B(r, d), X(n, d);
  for (float& x : A.values()) x = random.normal();
  for (float& x : B.values()) x = random.normal();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t k = 0; k < r; ++k) X(i, j) += A(i, k) * B(k, j) * static_cast<float>(r - k);
      X(i, j) += .3f * random.normal() + 2;
    }
  for (std::size_t i = 0; i < n; ++i) X(i, d / 2) = .1f;
  return X;
}

}  // namespace lacuna
