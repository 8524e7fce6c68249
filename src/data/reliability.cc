#include "data/reliability.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/dataset.h"

namespace lacuna {

Reliability reliability(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                        std::size_t bins) {
  Reliability result;
  result.bins.resize(bins);
  const auto width = 1.0 / static_cast<double>(bins);
  double entries = 0;
  for (std::size_t i = 0; i < scores.rows; ++i) {
    for (std::size_t j = 0; j < scores.cols; ++j) {
      if (truth(i, j) == kUnknown) continue;
      const double score = scores(i, j);
      if (!(score >= 0 && score <= 1))
        fail(Exit::mismatch,
             "row {}, label {}: score {} is not a probability; lacuna predict --calibrated writes probabilities", i, j,
             score);
      auto& bin = result.bins[std::min(bins - 1, static_cast<std::size_t>(score / width))];
      ++bin.count;
      bin.score += score;
      bin.share += truth(i, j);
      result.brier += (score - truth(i, j)) * (score - truth(i, j));
      ++entries;
    }
  }
  for (std::size_t b = 0; b < bins; ++b) {
    auto& bin = result.bins[b];
    bin.low = static_cast<double>(b) * width;
    bin.high = b + 1 == bins ? 1 : static_cast<double>(b + 1) * width;
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    result.ece += std::abs(bin.score - bin.share) / entries;
    bin.score /= count;
    bin.share /= count;
  }
  if (entries > 0) result.brier /= entries;
  return result;
}

}  // namespace lacuna
