// Random matrices, and the gaps and labels of a random batch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "base/random.h"
#include "ops/ops.h"

namespace lacuna {

// Of a property test.
#ifdef __SANITIZE_ADDRESS__
constexpr int kRounds = 3;
#else
constexpr int kRounds = 12;
#endif

template <class T>
Matrix<T> random_matrix(Random& random, std::size_t rows, std::size_t cols, double scale = 1) {
  Matrix<T> matrix(rows, cols);
  for (T& value : matrix.values()) value = static_cast<T>(static_cast<double>(random.normal()) * scale);
  return matrix;
}

// A batch's gaps and labels.
struct Gaps {
  std::size_t b, m, c, stack = 0;
  Matrix<std::int32_t> slots;
  Matrix<float> Y;
  Matrix<std::uint8_t> G;
  std::vector<std::uint32_t> rows;  // the batch's positions among more rows of labels
  Matrix<float> weights;            // (1, c) of labels

  explicit Gaps(Random& random)
      : b(1 + random.below(7)),
        m(1 + random.below(4)),
        c(1 + random.below(140)),  // one word of bits, or several
        slots(b, m),
        Y(b + 3, c),
        G(b + 3, c),
        weights(1, c) {
    for (float& w : weights.values()) w = .2f + 2 * random.uniform();
    for (std::size_t v = 0; v < m; ++v)
      for (std::size_t i = 0; i < b; ++i)
        slots(i, v) = random.uniform() < .6f ? static_cast<std::int32_t>(stack++) : kNoRow;
    stack += 2;  // rows that belong to nobody
    for (std::size_t i = 0; i < b + 3; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        G(i, j) = random.uniform() < .5f;
        Y(i, j) = G(i, j) && random.uniform() < .5f ? 1.f : 0.f;
      }
    for (std::size_t i = 0; i < b; ++i) rows.push_back(static_cast<std::uint32_t>((i * 2 + 1) % (b + 3)));
  }
  LabelRows labels() const { return {Y, G, rows}; }
  LabelRows weighted() const { return {Y, G, rows, weights.values()}; }
};

}  // namespace lacuna
