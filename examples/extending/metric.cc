// A metric of one's own (docs/extending.md): the share of rows in which every known label is decided correctly.
#include <limits>

#include "base/matrix.h"
#include "base/threads.h"
#include "data/dataset.h"

namespace lacuna {

double exact_match(MatrixView<const float> scores, MatrixView<const std::int8_t> truth, double threshold) {
  double known_rows = 0, exact_rows = 0;
  for (std::size_t i = 0; i < truth.rows; ++i) {
    bool known = false, exact = true;
    for (std::size_t j = 0; j < truth.cols; ++j) {
      if (truth(i, j) == kUnknown) continue;
      known = true;
      exact = exact && (truth(i, j) == 1) == (static_cast<double>(scores(i, j)) > threshold);
    }
    known_rows += known;
    exact_rows += known && exact;
  }
  return known_rows > 0 ? exact_rows / known_rows : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace lacuna
