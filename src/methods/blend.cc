#include "methods/blend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/metrics.h"
#include "methods/calibrate.h"
#include "methods/method.h"

namespace lacuna {
namespace {

constexpr int kShares = 12;      // of which a blend is made, at most
constexpr double kCaution = .5;  // standard errors of a gain that are taken from it
constexpr double kLeast = 5e-4;  // of AP, that a candidate must add
constexpr const char* kSlopes = "blend.slopes";
constexpr const char* kIntercept = "blend.intercept";

// Mean and standard error of the differences of rows; rows of which nothing is known do not count.
struct Gain {
  double mean = 0, error = 0;
  std::size_t rows = 0;
};
Gain gain_of(std::span<const double> now, std::span<const double> before) {
  Gain gain;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (std::isnan(now[i]) || std::isnan(before[i])) continue;
    const double difference = now[i] - before[i];
    sum += difference;
    squares += difference * difference;
    ++gain.rows;
  }
  if (gain.rows < 2) return gain;
  const auto n = static_cast<double>(gain.rows);
  gain.mean = sum / n;
  gain.error = std::sqrt(std::max(0., squares / n - gain.mean * gain.mean) / (n - 1));
  return gain;
}

double mean_of(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values)
    if (!std::isnan(value)) sum += value, ++count;
  return count > 0 ? sum / count : 0;
}

// What weights are worth, on rows that nobody learned from.
struct Judge {
  const std::vector<Matrix<float>>& Z;  // of each candidate, as log-odds
  MatrixView<const std::int8_t> truth;
  const std::vector<double>& first;  // AP of each row by the first candidate

  std::vector<double> rows(std::span<const double> weights) const {
    Matrix<float> sum(truth.rows, truth.cols);
    for (std::size_t k = 0; k < Z.size(); ++k) {
      if (weights[k] == 0) continue;
      const auto weight = static_cast<float>(weights[k]);
      for (std::size_t i = 0; i < sum.values().size(); ++i) sum.values()[i] += weight * Z[k].values()[i];
    }
    return row_average_precisions(sum, truth);
  }
  double worth(std::span<const double> weights) const {
    const Gain gain = gain_of(rows(weights), first);
    return gain.mean - kCaution * gain.error;
  }
};

std::vector<double> divided(std::vector<double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.);
  for (double& share : shares) share /= sum;
  return shares;
}

// One share at a time, to whom it helps most; the best stage of all.
std::vector<double> add_shares(const Judge& judge) {
  std::vector<double> shares(judge.Z.size());
  shares[0] = 1;
  std::vector<double> best = shares;
  double best_worth = 0;
  for (int step = 1; step < kShares; ++step) {
    std::size_t next = 0;
    double next_worth = -HUGE_VAL;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      shares[k] += 1;
      const double worth = judge.worth(divided(shares));
      shares[k] -= 1;
      if (worth > next_worth) next_worth = worth, next = k;
    }
    shares[next] += 1;
    if (next_worth > best_worth) best_worth = next_worth, best = shares;
  }
  return divided(best);
}

// Who adds less than kLeast goes, the last of the plan first: a smaller model for nothing.
std::vector<double> prune(const Judge& judge, std::vector<double> weights) {
  double worth = judge.worth(weights);
  for (std::size_t k = weights.size(); k-- > 0;) {
    std::vector<double> without = weights;
    without[k] = 0;
    if (weights[k] == 0 || std::ranges::count(without, 0.) == std::ssize(without)) continue;
    without = divided(without);
    if (const double now = judge.worth(without); now > worth - kLeast)
      weights = without, worth = std::max(worth, now);
  }
  return weights;
}

Blend blend_of(std::span<const double> weights, std::span<const Line> lines) {
  Blend blend;
  double intercept = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] == 0) continue;
    blend.slopes.push_back(static_cast<float>(weights[k] * lines[k].a));
    intercept += weights[k] * lines[k].b;
  }
  blend.intercept = static_cast<float>(intercept);
  return blend;
}

}  // namespace

BlendChoice choose_blend(std::span<const Matrix<float>> values, MatrixView<const std::int8_t> truth) {
  assert(!values.empty());
  const std::size_t candidates = values.size(), n = truth.rows, c = truth.cols;
  BlendChoice choice;
  choice.weights.assign(candidates, 0);
  choice.weights[0] = 1;
  std::vector<Line> lines;
  std::vector<Matrix<float>> Z;
  std::vector<std::vector<double>> alone;
  for (const Matrix<float>& X : values) {
    const Line line = lines.emplace_back(pooled_line(X, truth));
    Matrix<float>& z = Z.emplace_back(n, c);
    for (std::size_t i = 0; i < z.values().size(); ++i)
      z.values()[i] = static_cast<float>(line.a * static_cast<double>(X.values()[i]) + line.b);
    choice.ap.push_back(mean_of(alone.emplace_back(row_average_precisions(z, truth))));
  }
  std::vector<double> rows = alone[0];
  choice.rows = gain_of(rows, rows).rows;
  if (choice.rows >= kFewestJudged) {
    const Judge judge{Z, truth, alone[0]};
    choice.weights = prune(judge, add_shares(judge));
    rows = judge.rows(choice.weights);
  }
  const Gain gain = gain_of(rows, alone[0]);
  choice.gain = gain.mean;
  choice.error = gain.error;
  choice.blended = mean_of(rows);
  choice.blend = blend_of(choice.weights, lines);
  return choice;
}

void save_blend(const Blend& blend, Tensors& file) {
  file.put(kSlopes, std::span(blend.slopes));
  file.put(kIntercept, std::span(&blend.intercept, 1));
}

bool has_blend(const Tensors& file) {
  return file.has(kSlopes);
}

Blend load_blend(const Tensors& file, std::size_t members) {
  const std::vector<float> slopes = file.floats(kSlopes), intercept = file.floats(kIntercept);
  if (slopes.size() != members || intercept.size() != 1 || !std::isfinite(intercept[0]) ||
      !std::ranges::all_of(slopes, [](float x) { return std::isfinite(x); }))
    fail(Exit::data, "{}: '{}' is {} values and '{}' {}; {} finite slopes and one intercept were expected",
         file.path(), kSlopes, slopes.size(), kIntercept, intercept.size(), members);
  return {slopes, intercept[0]};
}

void values_of(const Method& method, const Items& items, MatrixView<float> values) {
  method.predict(items, values);
  if (!method.traits().probabilities) return;
  for (std::size_t i = 0; i < values.rows; ++i)
    for (float& value : values.row(i)) value = log_odds(value);
}

void BlendedScore::add(MatrixView<const float> values) {
  const std::size_t k = count_++;
  for (std::size_t i = 0; i < values.rows; ++i)
    for (std::size_t j = 0; j < values.cols; ++j)
      sum_(i, j) += blend_.slopes.empty() ? values(i, j) : blend_.slopes[k] * values(i, j);
}

void BlendedScore::write(MatrixView<float> values, bool as_probability) const {
  const bool mean = blend_.slopes.empty();
  for (std::size_t i = 0; i < values.rows; ++i)
    for (std::size_t j = 0; j < values.cols; ++j) {
      const float x = mean ? sum_(i, j) / static_cast<float>(count_) : sum_(i, j) + blend_.intercept;
      values(i, j) = as_probability ? 1 / (1 + std::exp(-x)) : x;
    }
}

}  // namespace lacuna
