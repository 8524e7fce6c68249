#include "methods/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/dataset.h"
#include "ops/scalar.h"

namespace lacuna {
namespace {

constexpr std::size_t kEnough = 8;  // positives, and negatives, that a label needs for values of its own

struct Point {
  float score;
  bool positive;
  double x;  // of the calibration
};

double feature(float score, bool probabilities) {
  if (!probabilities) return score;
  const double p = std::clamp(static_cast<double>(score), 1e-7, 1 - 1e-7);
  return std::log(p / (1 - p));
}

// Newton on the logistic loss plus pull/2 ((a - a0)² + (b - b0)²), with steps halved until the loss falls.
// Targets are smoothed by one count each way, so that separable points do not drive the slope to infinity.
Line fit_line(const std::vector<Point>& points, Line start, double pull) {
  double positives = 0;
  for (const auto& point : points) positives += point.positive;
  const double negatives = static_cast<double>(points.size()) - positives;
  const double high = (positives + 1) / (positives + 2), low = 1 / (negatives + 2);
  const auto loss = [&](Line line) {
    double sum =
        .5 * pull * ((line.a - start.a) * (line.a - start.a) + (line.b - start.b) * (line.b - start.b));
    for (const auto& point : points) {
      const double z = line.a * point.x + line.b, t = point.positive ? high : low;
      sum += std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - t * z;
    }
    return sum;
  };
  Line line = start;
  double value = loss(line);
  for (int iteration = 0; iteration < 50; ++iteration) {
    double ga = pull * (line.a - start.a), gb = pull * (line.b - start.b), haa = pull, hab = 0, hbb = pull;
    for (const auto& point : points) {
      const double x = point.x, p = sigmoid_of(line.a * x + line.b);
      const double d = p - (point.positive ? high : low), w = p * (1 - p);
      ga += d * x, gb += d, haa += w * x * x, hab += w * x, hbb += w;
    }
    const double ridge = 1e-9 * (haa + hbb) + 1e-12;
    haa += ridge, hbb += ridge;
    const double determinant = haa * hbb - hab * hab;
    if (!(determinant > 0)) break;
    const double da = (hbb * ga - hab * gb) / determinant, db = (haa * gb - hab * ga) / determinant;
    double step = 1, next = value;
    Line trial = line;
    for (; step > 1e-6; step /= 2) {
      trial = {line.a - step * da, line.b - step * db};
      next = loss(trial);
      if (next <= value) break;
    }
    const bool small = value - next <= 1e-10 * (1 + std::abs(value));
    if (next <= value) line = trial, value = next;
    if (small) break;
  }
  return line;
}

// The threshold that serves the aim best on these points; a tie goes to the higher one. Points above it are
// positive.
float choose_threshold(std::vector<Point>& points, const Aim& aim) {
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& x, const Point& y) { return x.score > y.score; });
  double positives = 0;
  for (const auto& point : points) positives += point.positive;
  double best = -1, hits = 0;
  float threshold = points.front().score;  // nothing is above it
  for (std::size_t k = 0; k < points.size(); ++k) {
    hits += points[k].positive;
    if (k + 1 < points.size() && points[k + 1].score == points[k].score)
      continue;  // equal scores stay together
    const double chosen = static_cast<double>(k + 1);
    const double value = aim.kind == Aim::Kind::f1        ? 2 * hits / (chosen + positives)
                         : hits / chosen >= aim.precision ? hits / std::max(positives, 1.0)  // recall
                                                          : -1;
    if (value <= best) continue;
    best = value;
    // Halfway to the next score below; below the last one there is nothing to keep out.
    threshold = k + 1 < points.size() ? points[k + 1].score + (points[k].score - points[k + 1].score) / 2
                                      : std::nextafter(points[k].score, -1e30f);
    if (!(threshold < points[k].score)) threshold = std::nextafter(points[k].score, -1e30f);
  }
  return threshold;
}

}  // namespace

Aim Aim::parse(const std::string& text) {
  const auto number = [&](const std::string& prefix) {
    return text.starts_with(prefix) ? parse_double(text.substr(prefix.size())) : std::nullopt;
  };
  if (text == "f1") return {};
  if (const auto p = number("precision="); p && *p > 0 && *p <= 1) return {Kind::precision, *p, 0};
  if (const auto k = number("top="); k && *k >= 1 && *k == std::floor(*k) && *k <= 1e6)
    return {Kind::top, 0, static_cast<std::size_t>(*k)};
  fail(Exit::usage, "--aim takes f1, precision=P with P from 0 to 1, or top=K with K from 1 on, not '{}'",
       text);
}

std::string Aim::text() const {
  return kind == Kind::f1          ? "f1"
         : kind == Kind::precision ? fmt::format("precision={}", precision)
                                   : fmt::format("top={}", count);
}

Line pooled_line(MatrixView<const float> values, MatrixView<const std::int8_t> truth) {
  std::vector<Point> points;
  double positive = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < values.rows; ++i)
    for (std::size_t j = 0; j < values.cols; ++j) {
      if (truth(i, j) == kUnknown || !std::isfinite(values(i, j))) continue;
      const auto x = static_cast<double>(values(i, j));
      points.push_back({values(i, j), truth(i, j) == 1, x});
      positive += truth(i, j) == 1;
      sum += x;
      squares += x * x;
    }
  const auto n = static_cast<double>(points.size());
  const double mean = sum / n, deviation = std::sqrt(std::max(0., squares / n - mean * mean));
  if (positive == 0 || positive == n || !(deviation > 0)) return {};
  for (Point& point : points) point.x = (point.x - mean) / deviation;  // steps of Newton are for such values
  const Line line = fit_line(points, {}, 0);
  if (!(line.a > 0)) return {};
  return {line.a / deviation, line.b - line.a * mean / deviation};
}

Calibration Calibration::fit(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                             bool probabilities, const Aim& aim) {
  const std::size_t labels = scores.cols;
  const auto counts = [&](std::size_t i, std::size_t j) {
    return truth(i, j) != kUnknown && std::isfinite(scores(i, j));
  };
  const auto point = [&](std::size_t i, std::size_t j) {
    return Point{scores(i, j), truth(i, j) == 1, feature(scores(i, j), probabilities)};
  };
  // Of many rows and labels these are the largest thing in memory: they take what they need, and those of a label are
  // made when it is its turn.
  std::size_t known = 0;
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < labels; ++j) known += counts(i, j);
  std::vector<Point> all;
  all.reserve(known);
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < labels; ++j)
      if (counts(i, j)) all.push_back(point(i, j));
  const auto of_label = [&](std::size_t j) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < scores.rows; ++i)
      if (counts(i, j)) points.push_back(point(i, j));
    return points;
  };
  const auto positives = [](const std::vector<Point>& points) {
    return static_cast<std::size_t>(
        std::count_if(points.begin(), points.end(), [](const Point& p) { return p.positive; }));
  };
  Calibration result;
  result.aim_ = aim;
  result.probabilities_ = probabilities;
  const std::size_t positive = positives(all);
  if (positive == 0 || positive == all.size()) return result;

  const Line identity{};
  Line pooled = fit_line(all, identity, 0);
  if (!(pooled.a > 0)) pooled = identity;  // scores that say nothing: leave the order alone
  const float common = aim.kind == Aim::Kind::top ? 0 : choose_threshold(all, aim);
  result.slope_.assign(labels, static_cast<float>(pooled.a));
  result.intercept_.assign(labels, static_cast<float>(pooled.b));
  if (aim.kind != Aim::Kind::top) result.thresholds_.assign(labels, common);
  parallel_for(labels, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      std::vector<Point> points = of_label(j);
      const std::size_t own = positives(points);
      if (own < kEnough || points.size() - own < kEnough) continue;
      const Line line = fit_line(points, pooled, 1);
      if (line.a > 0) {
        result.slope_[j] = static_cast<float>(line.a);
        result.intercept_[j] = static_cast<float>(line.b);
      }
      if (aim.kind != Aim::Kind::top) result.thresholds_[j] = choose_threshold(points, aim);
    }
  });
  return result;
}

void Calibration::decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const {
  if (aim_.kind != Aim::Kind::top) {
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) decided(i, j) = scores(i, j) > thresholds_[j];
    return;
  }
  std::vector<std::uint32_t> order(scores.cols);
  const auto count = static_cast<std::ptrdiff_t>(std::min(aim_.count, scores.cols));
  for (std::size_t i = 0; i < scores.rows; ++i) {
    std::iota(order.begin(), order.end(), 0u);
    const auto row = scores.row(i);
    std::partial_sort(
        order.begin(), order.begin() + count, order.end(),
        [&](std::uint32_t a, std::uint32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    std::fill_n(decided.row(i).begin(), scores.cols, std::uint8_t{0});
    for (std::ptrdiff_t k = 0; k < count; ++k) decided(i, order[static_cast<std::size_t>(k)]) = 1;
  }
}

double Calibration::probability(std::size_t label, double x) const {
  if (probabilities_) x = std::clamp(x, feature(0, true), feature(1, true));  // as apply() sees them
  return sigmoid_of(static_cast<double>(slope_[label]) * x + static_cast<double>(intercept_[label]));
}

void Calibration::apply(MatrixView<float> scores) const {
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < scores.cols; ++j)
      scores(i, j) = static_cast<float>(sigmoid_of(log_odds(j, scores(i, j))));
}

double Calibration::log_odds(std::size_t label, float score) const {
  return static_cast<double>(slope_[label]) * feature(score, probabilities_) +
         static_cast<double>(intercept_[label]);
}

float Calibration::moved(std::size_t label, float score, double shift) const {
  const auto slope = static_cast<double>(slope_[label]);
  if (shift == 0 || !(slope > 0)) return score;  // fit() gives no other slope, a file might
  const double x = feature(score, probabilities_) + shift / slope;
  return static_cast<float>(probabilities_ ? sigmoid_of(x) : x);
}

void Calibration::save(Tensors& file) const {
  if (empty()) return;
  file.put("calibration.slope", std::span(slope_));
  file.put("calibration.intercept", std::span(intercept_));
  if (!thresholds_.empty()) file.put("thresholds", std::span(thresholds_));
  file.metadata["calibration"] = {{"aim", aim_.text()}, {"probabilities", probabilities_}};
}

Calibration Calibration::load(const Tensors& file, std::size_t labels) {
  Calibration result;
  if (!file.has("calibration.slope")) return result;
  const auto meta = file.metadata.value("calibration", nlohmann::json::object());
  result.aim_ = Aim::parse(meta.value("aim", "f1"));
  result.probabilities_ = meta.value("probabilities", true);
  result.slope_ = file.floats("calibration.slope");
  result.intercept_ = file.floats("calibration.intercept");
  if (result.aim_.kind != Aim::Kind::top) result.thresholds_ = file.floats("thresholds");
  for (const auto* values : {&result.slope_, &result.intercept_, &result.thresholds_})
    if (values->size() != labels && !(values == &result.thresholds_ && result.aim_.kind == Aim::Kind::top))
      fail(Exit::data, "{}: {} calibration values or thresholds for {} labels", file.path(), values->size(),
           labels);
  return result;
}

}  // namespace lacuna
