#include "methods/label_links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "data/dataset.h"
#include "data/label_graph.h"
#include "data/metrics.h"

namespace lacuna {
namespace {

constexpr const char* kCoupling = "label_links.coupling";
constexpr const char* kAbout = "label_links";
constexpr std::size_t kDraws = 4;        // of the labels that are told on validation rows
constexpr std::size_t kMostRows = 2000;  // of the validation rows
constexpr std::uint32_t kStream = 1u << 17;

// Half of what is known: told, and the rest, to be judged.
struct Halves {
  Matrix<std::int8_t> told, rest;
};

Halves halves_of(MatrixView<const std::int8_t> truth, std::uint64_t seed, std::size_t draw) {
  Halves halves{Matrix<std::int8_t>(truth.rows, truth.cols), Matrix<std::int8_t>(truth.rows, truth.cols)};
  Random random(seed, Purpose::label_gaps, kStream, static_cast<std::uint32_t>(draw));
  for (std::size_t i = 0; i < truth.rows; ++i)
    for (std::size_t j = 0; j < truth.cols; ++j) {
      const bool tell = random.uniform() < .5f;
      halves.told(i, j) = tell ? truth(i, j) : kUnknown;
      halves.rest(i, j) = tell ? kUnknown : truth(i, j);
    }
  return halves;
}

}  // namespace

LabelLinks LabelLinks::fit(MatrixView<const std::int8_t> labels, MatrixView<const float> scores,
                           MatrixView<const std::int8_t> truth, const Calibration& calibration,
                           std::uint64_t seed) {
  LabelLinks links;
  const std::size_t c = labels.cols;
  if (calibration.empty() || c < 2 || c > kMostLabels) return links;
  const std::size_t n = std::min(kMostRows, scores.rows);
  scores = scores.top(n);
  truth = truth.top(n);
  const LabelGraph graph(labels);
  links.coupling_ = Matrix<float>(c, c);
  parallel_for(c, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j)
      for (std::size_t k = 0; k < c; ++k)
        if (j != k) links.coupling_(j, k) = static_cast<float>(graph.log_odds_ratio(j, k));
  });
  std::vector<Halves> draws;
  std::vector<Matrix<float>> shifts;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    draws.push_back(halves_of(truth, seed, draw));
    shifts.push_back(links.shifts(draws.back().told, calibration, scores));
  }
  // A row's precision is the mean over the draws that left something to judge.
  const auto precisions = [&](double weight) {
    std::vector<double> mean(n, 0), count(n, 0);
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      Matrix<float> moved(n, c);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < c; ++j)
          moved(i, j) = calibration.moved(j, scores(i, j), weight * static_cast<double>(shifts[draw](i, j)));
      const std::vector<double> rows = row_average_precisions(moved, draws[draw].rest);
      for (std::size_t i = 0; i < n; ++i)
        if (!std::isnan(rows[i])) mean[i] += rows[i], count[i] += 1;
    }
    for (std::size_t i = 0; i < n; ++i)
      mean[i] = count[i] > 0 ? mean[i] / count[i] : std::numeric_limits<double>::quiet_NaN();
    return mean;
  };
  links.rows_ = judged(precisions(0));
  links.chosen_ = choose_weight(try_weights(precisions), links.rows_);
  if (links.chosen_.weight == 0) links.coupling_ = Matrix<float>();
  return links;
}

Matrix<float> LabelLinks::shifts(MatrixView<const std::int8_t> known, const Calibration& calibration,
                                 MatrixView<const float> scores) const {
  Matrix<float> shift(scores.rows, scores.cols);
  parallel_for(scores.rows, 8, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t k = 0; k < scores.cols; ++k) {
        if (known(i, k) == kUnknown) continue;
        const double odds = calibration.log_odds(k, scores(i, k));
        const auto surprise = static_cast<float>(known(i, k) - 1 / (1 + std::exp(-odds)));
        const float* of = coupling_.row(k).data();
        float* to = shift.row(i).data();
        for (std::size_t j = 0; j < scores.cols; ++j) to[j] += surprise * of[j];
      }
  });
  return shift;
}

void LabelLinks::refine(MatrixView<const std::int8_t> known, const Calibration& calibration,
                        MatrixView<float> scores) const {
  if (empty()) return;
  const Matrix<float> shift = shifts(known, calibration, scores);
  for (std::size_t i = 0; i < scores.rows; ++i) {
    if (std::ranges::all_of(known.row(i), [](std::int8_t y) { return y == kUnknown; })) continue;
    for (std::size_t j = 0; j < scores.cols; ++j)
      if (known(i, j) == kUnknown)
        scores(i, j) = calibration.moved(j, scores(i, j), chosen_.weight * static_cast<double>(shift(i, j)));
  }
}

void LabelLinks::save(Tensors& file) const {
  if (!learned()) return;
  file.metadata[kAbout] = about();
  if (!empty()) file.put(kCoupling, coupling_.view());
}

LabelLinks LabelLinks::load(const Tensors& file, std::size_t labels) {
  LabelLinks links;
  const auto about = file.metadata.value(kAbout, nlohmann::json());
  if (about.is_null()) return links;
  links.rows_ = about.at("rows").get<std::size_t>();
  links.chosen_ = {.weight = about.at("weight"), .gain = about.at("gain"), .error = about.at("error")};
  if (!(links.chosen_.weight >= 0) || !std::isfinite(links.chosen_.weight) ||
      (links.chosen_.weight > 0) != file.has(kCoupling))
    fail(Exit::data, "{}: '{}' has the weight {} and {} tensor '{}'", file.path(), kAbout,
         links.chosen_.weight, file.has(kCoupling) ? "a" : "no", kCoupling);
  if (!file.has(kCoupling)) return links;
  links.coupling_ = file.matrix(kCoupling);
  if (links.coupling_.rows() != labels || links.coupling_.cols() != labels ||
      !std::ranges::all_of(links.coupling_.values(), [](float x) { return std::isfinite(x); }))
    fail(Exit::data, "{}: '{}' is ({}, {}), expected ({}, {}) finite values", file.path(), kCoupling,
         links.coupling_.rows(), links.coupling_.cols(), labels, labels);
  return links;
}

nlohmann::json LabelLinks::about() const {
  if (!learned()) return nullptr;
  return {{"weight", chosen_.weight}, {"gain", chosen_.gain}, {"error", chosen_.error}, {"rows", rows_}};
}

}  // namespace lacuna
