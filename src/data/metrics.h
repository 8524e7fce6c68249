// The six metrics of the paper (docs/metrics.md), and a few more. Unknown labels enter no sum; with all labels known
// the values are the paper's. Larger is better for every value: losses are reported as 1 - loss.
//
// To add a metric: a member here, its definition and its computation in metrics.cc, its literal computation in
// tests/metrics_reference.h, and its row in docs/metrics.md. Tables, JSON, pages and selection walk
// metric_definitions().
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

struct Metrics {
  double ap = 0, hl = 0, rl = 0, auc = 0, oe = 0, cov = 0;  // AP, 1-HL, 1-RL, AUC, 1-OE, 1-Cov
  double macro_auc = 0, macro_f1 = 0, micro_f1 = 0;
  std::vector<double> values() const;             // in the order of metric_names()
  double by_name(const std::string& name) const;  // Exit::usage with the nearest name
};
struct MetricDefinition {
  const char* name;
  double Metrics::*value;
  const char *words, *formula;  // as `lacuna metrics` prints them
};
std::span<const MetricDefinition> metric_definitions();
const std::vector<std::string>& metric_names();
nlohmann::json metrics_json(const Metrics& metrics);  // {"AP": ..., ...}; an undefined one is null

struct LabelMetrics {
  std::uint64_t positives = 0, known = 0;
  double ap = 0, auc = 0, f1 = 0;  // NaN where undefined (no positive, or no negative)
};

// scores (n, c): larger = more relevant. truth (n, c): 1, 0, kUnknown. decided (n, c), 0 or 1: predicted positive in HL
// and F1; empty: scores > threshold. otherwise: per label what macro-AUC and macro-F1 count where these rows do not
// define it; empty: such a label is left out.
Metrics evaluate(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                 MatrixView<const std::uint8_t> decided = {}, double threshold = .5,
                 std::span<const LabelMetrics> otherwise = {});

// The average precision of each row; their mean is AP. NaN if no label of the row is known.
std::vector<double> row_average_precisions(MatrixView<const float> scores,
                                           MatrixView<const std::int8_t> truth);

std::vector<LabelMetrics> evaluate_labels(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                          MatrixView<const std::uint8_t> decided = {}, double threshold = .5);

}  // namespace lacuna
