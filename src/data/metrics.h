// The six metrics of the paper, exactly (docs/metrics.md), and a few more. Unknown true labels are left out of every
// sum; with all labels known the values are the paper's. Higher is better for every value: losses are
// reported as 1 - loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

struct Metrics {
  double ap = 0, hl = 0, rl = 0, auc = 0, oe = 0, cov = 0;  // AP, 1-HL, 1-RL, AUC, 1-OE, 1-Cov
  double macro_auc = 0, macro_f1 = 0, micro_f1 = 0;
  // In the order of metric_names(): AP, 1-HL, 1-RL, AUC, 1-OE, 1-Cov, macro-AUC, macro-F1, micro-F1.
  std::vector<double> values() const;
  double by_name(const std::string& name) const;  // Exit::usage with the nearest name
};
const std::vector<std::string>& metric_names();

// scores (n, c): larger = more relevant. truth (n, c): 1, 0, kUnknown. decided (n, c), 0 or 1: what counts as predicted
// positive in HL and F1; an empty view means scores > threshold.
Metrics evaluate(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                 MatrixView<const std::uint8_t> decided = {}, double threshold = .5);
Metrics evaluate_reference(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                           MatrixView<const std::uint8_t> decided = {},
                           double threshold = .5);  // the tests' truth

// The average precision of each row by itself, whose mean is AP; NaN where no label of the row is known.
std::vector<double> row_average_precisions(MatrixView<const float> scores,
                                           MatrixView<const std::int8_t> truth);

struct LabelMetrics {
  std::uint64_t positives = 0, known = 0;
  double ap = 0, auc = 0, f1 = 0;  // NaN where undefined (no positive, or no negative)
};
std::vector<LabelMetrics> evaluate_labels(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                          MatrixView<const std::uint8_t> decided = {}, double threshold = .5);

}  // namespace lacuna
