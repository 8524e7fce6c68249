#include "methods/blend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "data/metrics.h"
#include "methods/calibrate.h"
#include "methods/method.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kBlendDraws = 20;    // of the judged rows
constexpr int kShares = 8;                   // that are given on a draw, at most
constexpr double kLeast = .05;               // of all weights, that a candidate must have
constexpr std::size_t kMostValues = 200000;  // of a draw, so that many rows and labels take seconds
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

// 1 less the log loss of a row's known labels, on average; NaN where none is known.
std::vector<double> row_likelihoods(MatrixView<const float> Z, MatrixView<const std::int8_t> truth) {
  std::vector<double> result(Z.rows, std::nan(""));
  for (std::size_t i = 0; i < Z.rows; ++i) {
    double sum = 0, known = 0;
    for (std::size_t j = 0; j < Z.cols; ++j) {
      if (truth(i, j) == kUnknown) continue;
      const auto z = static_cast<double>(truth(i, j) == 1 ? Z(i, j) : -Z(i, j));
      sum += std::min(z, 0.) - std::log1p(std::exp(-std::abs(z)));
      ++known;
    }
    if (known > 0) result[i] = 1 + sum / known;
  }
  return result;
}

// Rows on which values can be right or wrong. Their order is judged where they have labels of both kinds.
struct Judged {
  std::vector<std::uint32_t> rows;
  bool by_order = true;

  explicit Judged(MatrixView<const std::int8_t> truth) {
    std::vector<std::uint32_t> known;
    for (std::uint32_t i = 0; i < truth.rows; ++i) {
      const auto row = truth.row(i);
      if (std::ranges::find(row, 1) != row.end() && std::ranges::find(row, 0) != row.end()) rows.push_back(i);
      if (std::ranges::any_of(row, [](std::int8_t y) { return y != kUnknown; })) known.push_back(i);
    }
    by_order = rows.size() >= kFewestJudged;
    if (!by_order) rows = std::move(known);
  }
  std::vector<double> each(MatrixView<const float> Z, MatrixView<const std::int8_t> truth) const {
    return by_order ? row_average_precisions(Z, truth) : row_likelihoods(Z, truth);
  }
};

template <class T>
Matrix<T> picked(MatrixView<const T> from, std::span<const std::uint32_t> rows) {
  Matrix<T> result(rows.size(), from.cols);
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(from.row(rows[i]), result.row(i).begin());
  return result;
}

Matrix<float> line_of(const Matrix<float>& X, const Line& line) {
  Matrix<float> result(X.rows(), X.cols());
  std::ranges::transform(X.values(), result.values().begin(), [&](float x) {
    return static_cast<float>(line.a * static_cast<double>(x) + line.b);
  });
  return result;
}

Matrix<float> weighted_sum(std::span<const Matrix<float>> Z, std::span<const double> weights) {
  Matrix<float> sum(Z[0].rows(), Z[0].cols());
  for (std::size_t k = 0; k < Z.size(); ++k) {
    if (weights[k] == 0) continue;
    const auto weight = static_cast<float>(weights[k]);
    for (std::size_t i = 0; i < sum.values().size(); ++i) sum.values()[i] += weight * Z[k].values()[i];
  }
  return sum;
}

std::vector<double> divided(std::vector<double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.);
  for (double& share : shares) share /= sum;
  return shares;
}

// One share at a time, to the candidate that it helps most; the best stage counts.
std::vector<double> give_shares(const Judged& judged, std::span<const Matrix<float>> Z,
                                MatrixView<const std::int8_t> truth) {
  std::vector<double> shares(Z.size()), best;
  double best_worth = -HUGE_VAL;
  for (int step = 0; step < kShares; ++step) {
    std::size_t next = 0;
    double next_worth = -HUGE_VAL;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      shares[k] += 1;
      const double worth = mean_of(judged.each(weighted_sum(Z, divided(shares)), truth));
      shares[k] -= 1;
      if (worth > next_worth) next_worth = worth, next = k;
    }
    shares[next] += 1;
    if (next_worth > best_worth) best_worth = next_worth, best = shares;
  }
  return divided(best);
}

// The mean over draws with replacement; candidates with little weight are dropped.
std::vector<double> mean_shares(const Judged& judged, std::span<const Matrix<float>> Z,
                                MatrixView<const std::int8_t> truth) {
  std::vector<double> weights(Z.size());
  std::vector<std::uint32_t> drawn(
      std::min(judged.rows.size(), std::max(kMostValues / truth.cols, kFewestJudged)));
  for (std::uint32_t draw = 0; draw < kBlendDraws; ++draw) {
    Random random(1, Purpose::bootstrap, draw);
    for (std::uint32_t& row : drawn) row = judged.rows[random.below(judged.rows.size())];
    std::vector<Matrix<float>> some;
    for (const Matrix<float>& z : Z) some.push_back(picked<float>(z, drawn));
    const std::vector<double> shares = give_shares(judged, some, picked(truth, drawn));
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] += shares[k] / kBlendDraws;
  }
  const double least = std::min(kLeast, std::ranges::max(weights));
  for (double& weight : weights)
    if (weight < least) weight = 0;
  return divided(weights);
}

// A mean of log-odds is too timid: one more line, of all together.
Blend blend_of(std::span<const double> weights, std::span<const Line> lines, const Line& last) {
  Blend blend;
  double intercept = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] == 0) continue;
    blend.slopes.push_back(static_cast<float>(last.a * weights[k] * lines[k].a));
    intercept += weights[k] * lines[k].b;
  }
  blend.intercept = static_cast<float>(last.a * intercept + last.b);
  return blend;
}

}  // namespace

BlendChoice choose_blend(std::span<const Matrix<float>> values, MatrixView<const std::int8_t> truth) {
  assert(!values.empty());
  const std::size_t candidates = values.size();
  const Judged judged(truth);
  const Matrix<std::int8_t> known = picked(truth, judged.rows);
  BlendChoice choice;
  choice.rows = judged.rows.size();
  choice.by_order = judged.by_order;
  choice.weights.assign(candidates, 0);
  choice.weights[0] = 1;
  std::vector<Line> lines;
  std::vector<Matrix<float>> Z;
  std::vector<std::vector<double>> alone;
  for (const Matrix<float>& X : values) {
    const Matrix<float>& z = Z.emplace_back(line_of(X, lines.emplace_back(pooled_line(X, truth))));
    choice.worth.push_back(mean_of(alone.emplace_back(judged.each(picked<float>(z, judged.rows), known))));
  }
  if (choice.rows >= kFewestJudged) choice.weights = mean_shares(judged, Z, truth);
  const Matrix<float> sum = weighted_sum(Z, choice.weights);
  const Line last = pooled_line(sum, truth);
  const std::vector<double> rows = judged.each(line_of(picked<float>(sum, judged.rows), last), known);
  const Gain gain = gain_of(rows, alone[0]);
  choice.gain = gain.mean;
  choice.error = gain.error;
  choice.blended = mean_of(rows);
  choice.blend = blend_of(choice.weights, lines, last);
  return choice;
}

void save_blend(const Blend& blend, Tensors& file) {
  file.put(kSlopes, std::span(blend.slopes));
  file.put(kIntercept, std::span(&blend.intercept, 1));
}

nlohmann::json blend_json(const Blend& blend) {
  return {{"slopes", blend.slopes}, {"intercept", blend.intercept}};
}

Blend blend_from_json(const nlohmann::json& from) {
  return {from.at("slopes").get<std::vector<float>>(), from.at("intercept").get<float>()};
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
