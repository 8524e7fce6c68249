#include "data/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace lacuna {

std::vector<std::uint16_t> resample_counts(std::size_t n, std::size_t r) {
  std::vector<std::uint16_t> counts(n);
  Random random(1, Purpose::bootstrap, static_cast<std::uint32_t>(r));
  for (std::size_t i = 0; i < n; ++i) {
    auto& count = counts[random.below(static_cast<std::uint32_t>(n))];
    if (count < std::numeric_limits<std::uint16_t>::max()) ++count;
  }
  return counts;
}

std::vector<std::uint32_t> resample_rows(std::size_t n, std::size_t r) {
  std::vector<std::uint32_t> rows;
  rows.reserve(n);
  const auto counts = resample_counts(n, r);
  for (std::size_t i = 0; i < n; ++i) rows.insert(rows.end(), counts[i], static_cast<std::uint32_t>(i));
  return rows;
}

Interval percentile_interval(std::vector<double> draws, double level) {
  std::erase_if(draws, [](double x) { return std::isnan(x); });
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (draws.empty()) return {kNaN, kNaN};
  std::ranges::sort(draws);
  const auto at = [&](double share) {  // linear between neighbours
    const double place = share * static_cast<double>(draws.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, draws.size() - 1);
    return draws[below] + (place - static_cast<double>(below)) * (draws[above] - draws[below]);
  };
  return {at((1 - level) / 2), at((1 + level) / 2)};
}

MetricIntervals bootstrap_metrics(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                  MatrixView<const std::uint8_t> decided) {
  const std::size_t n = scores.rows, c = scores.cols, names = metric_names().size();
  MetricIntervals result;
  // 200 resamples, fewer where there are so many entries that the interval is narrow anyway.
  result.resamples = std::clamp<std::size_t>(400'000'000 / std::max<std::size_t>(1, n * c), 40, 200);
  std::vector<std::vector<double>> draws(names);
  const std::vector<LabelMetrics> labels = evaluate_labels(scores, truth, decided);
  Matrix<float> s(n, c);
  Matrix<std::int8_t> y(n, c);
  Matrix<std::uint8_t> d(n, c);
  for (std::size_t r = 0; n > 0 && r < result.resamples; ++r) {
    const auto rows = resample_rows(n, r);
    for (std::size_t i = 0; i < n; ++i) {
      std::ranges::copy(scores.row(rows[i]), s.row(i).begin());
      std::ranges::copy(truth.row(rows[i]), y.row(i).begin());
      std::ranges::copy(decided.row(rows[i]), d.row(i).begin());
    }
    const auto values = evaluate(s, y, d, .5, labels).values();
    for (std::size_t k = 0; k < names; ++k) draws[k].push_back(values[k]);
  }
  for (auto& values : draws) result.intervals.push_back(percentile_interval(std::move(values), result.level));
  return result;
}

}  // namespace lacuna
