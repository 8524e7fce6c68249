// A loss of one's own (docs/extending.md): the Brier score of the known entries, Σ G (σ(x) - Y)² / ΣG.
#include <cmath>

#include "ops/ops.h"

namespace lacuna {

template <class T>
class ExampleLosses {
 public:
  using Input = MatrixView<const T>;
  using Output = MatrixView<T>;
#define LACUNA_LOSS(name, parameters, arguments) void name parameters const;
LACUNA_LOSS(brier_loss, (Input logits, const LabelRows& labels, double weight, Output dlogits, double* value),
            (logits, labels, weight, dlogits, value))
#undef LACUNA_LOSS
};

template <class T>
void ExampleLosses<T>::brier_loss(Input logits, const LabelRows& labels, double weight, Output dlogits,
                                  double* value) const {
  double known = 0, sum = 0;
  for (std::size_t i = 0; i < logits.rows; ++i)
    for (std::size_t j = 0; j < logits.cols; ++j) known += labels.G(labels.rows[i], j);
  for (std::size_t i = 0; i < logits.rows; ++i)
    for (std::size_t j = 0; j < logits.cols; ++j) {
      if (labels.G(labels.rows[i], j) == 0) continue;
      const double p = 1 / (1 + std::exp(-static_cast<double>(logits(i, j)))),
                   error = p - static_cast<double>(labels.Y(labels.rows[i], j));
      sum += error * error;
      dlogits(i, j) += static_cast<T>(weight * 2 * error * p * (1 - p) / known);
    }
  *value = known > 0 ? sum / known : 0;
}

}  // namespace lacuna
