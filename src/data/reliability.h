// Calibration of scores: of all entries scored about p, is a share p positive?
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

struct Reliability {
  struct Bin {
    double low = 0, high = 1;  // of the score
    std::uint64_t count = 0;
    double score = 0, share = 0;  // mean score, share of positives; 0 where the bin is empty
  };
  std::vector<Bin> bins;  // of equal width over [0, 1]
  double ece = 0;         // expected calibration error: mean over entries of |score - share| of the bin
  double brier = 0;       // mean squared difference of score and truth
};

// scores (n, c) in [0, 1], truth (n, c): 1, 0, kUnknown (left out). Exit::mismatch for a score outside [0,
// 1].
Reliability reliability(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                        std::size_t bins = 10);

}  // namespace lacuna
