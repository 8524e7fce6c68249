// Confidence intervals of metrics: percentiles over rows resampled with replacement. The seed is fixed, so the same
// rows give the same interval.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "data/metrics.h"

namespace lacuna {

struct Interval {
  double low = 0, high = 0;  // NaN where nothing could be computed
};

// How often each of n rows is drawn in resample r; the same for all callers that resample n rows, so differences are
// paired.
std::vector<std::uint32_t> resample_rows(std::size_t n, std::size_t r);       // n positions, rising
std::vector<std::uint16_t> resample_counts(std::size_t n, std::size_t r);     // how often each is drawn
Interval percentile_interval(std::vector<double> draws, double level = .95);  // NaN draws are left out

// Of every metric, in the order of metric_names(). A label without a positive in a resample keeps its value: left out,
// it would raise macro-F1 with every rare label that is never found, beyond what the rows themselves give.
struct MetricIntervals {
  std::size_t resamples = 0;
  double level = .95;
  std::vector<Interval> intervals;
};
MetricIntervals bootstrap_metrics(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                  MatrixView<const std::uint8_t> decided);

}  // namespace lacuna
