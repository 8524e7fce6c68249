// The definitions of docs/metrics.md, written down literally, without regard to speed: the ground truth of the tests.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/dataset.h"
#include "data/metrics.h"

namespace lacuna {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double count(std::size_t n) {
  return static_cast<double>(n);
}

}  // namespace

Metrics evaluate_reference(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                           MatrixView<const std::uint8_t> decided, double threshold) {
  const std::size_t n = scores.rows, c = scores.cols;
  const auto known = [&](std::size_t i, std::size_t j) { return truth(i, j) != kUnknown; };
  const auto positive = [&](std::size_t i, std::size_t j) { return truth(i, j) == 1; };
  const auto negative = [&](std::size_t i, std::size_t j) { return truth(i, j) == 0; };
  const auto yes = [&](std::size_t i, std::size_t j) {
    return decided.empty() ? static_cast<double>(scores(i, j)) > threshold : decided(i, j) != 0;
  };
  // Place of label j among the known labels of row i, 1 = best; of equal scores the larger index is better.
  const auto rank = [&](std::size_t i, std::size_t j) {
    std::size_t place = 1;
    for (std::size_t l = 0; l < c; ++l)
      if (known(i, l) && (scores(i, l) > scores(i, j) || (scores(i, l) == scores(i, j) && l > j))) ++place;
    return place;
  };

  double rows = 0, ap = 0, rl = 0, errors = 0, coverage = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double P = 0, N = 0, precision = 0, wrong_pairs = 0;
    std::size_t deepest = 0, top = c;
    for (std::size_t j = 0; j < c; ++j) {
      P += positive(i, j);
      N += negative(i, j);
      if (known(i, j) && (top == c || scores(i, j) > scores(i, top))) top = j;
      if (!positive(i, j)) continue;
      const std::size_t place = rank(i, j);
      deepest = std::max(deepest, place);
      double hits = 0;
      for (std::size_t l = 0; l < c; ++l) {
        hits += positive(i, l) && rank(i, l) <= place;
        wrong_pairs += negative(i, l) && scores(i, l) >= scores(i, j);
      }
      precision += hits / count(place);
    }
    if (top == c) continue;  // nothing is known about this row
    ++rows;
    if (P > 0) ap += precision / P;
    if (P > 0 && N > 0) rl += wrong_pairs / (P * N);
    errors += negative(i, top);
    coverage += (count(deepest) - 1) / (P + N);
  }

  // Adapted AUC: the T best-ranked known labels of every row count as predicted.
  std::vector<double> tpr, fpr;
  for (std::size_t T = 1; T <= c; ++T) {
    double tp = 0, fp = 0, positives = 0, negatives = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        positives += positive(i, j);
        negatives += negative(i, j);
        tp += positive(i, j) && rank(i, j) <= T;
        fp += negative(i, j) && rank(i, j) <= T;
      }
    tpr.push_back(positives > 0 ? tp / positives : kUndefined);
    fpr.push_back(negatives > 0 ? fp / negatives : kUndefined);
  }
  double area = 0;
  for (std::size_t t = 0; t + 1 < c; ++t) area += (fpr[t + 1] - fpr[t]) * (tpr[t + 1] + tpr[t]) / 2;

  double cells = 0, wrong = 0, hits = 0, macro_auc = 0, auc_labels = 0, macro_f1 = 0, f1_labels = 0;
  for (std::size_t j = 0; j < c; ++j) {
    double P = 0, N = 0, tp = 0, fp = 0, fn = 0, won = 0;
    for (std::size_t i = 0; i < n; ++i) {
      P += positive(i, j);
      N += negative(i, j);
      tp += positive(i, j) && yes(i, j);
      fp += negative(i, j) && yes(i, j);
      fn += positive(i, j) && !yes(i, j);
      for (std::size_t l = 0; l < n; ++l)
        if (positive(i, j) && negative(l, j))
          won += scores(i, j) > scores(l, j) ? 1 : scores(i, j) == scores(l, j) ? .5 : 0;
    }
    cells += P + N;
    wrong += fp + fn;
    hits += tp;
    if (P > 0 && N > 0) macro_auc += won / (P * N), ++auc_labels;
    if (P > 0) macro_f1 += 2 * tp / (2 * tp + fp + fn), ++f1_labels;
  }
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : kUndefined; };
  Metrics m;
  m.ap = ratio(ap, rows);
  m.hl = 1 - ratio(wrong, cells);
  m.rl = 1 - ratio(rl, rows);
  m.auc = c > 1 && fpr[c - 1] > fpr[0] ? area / (fpr[c - 1] - fpr[0]) : kUndefined;
  m.oe = 1 - ratio(errors, rows);
  m.cov = coverage < -1e-9 * rows ? kUndefined : std::min(1 - ratio(coverage, rows), 1.);
  m.macro_auc = ratio(macro_auc, auc_labels);
  m.macro_f1 = ratio(macro_f1, f1_labels);
  m.micro_f1 = ratio(2 * hits, 2 * hits + wrong);
  if (c != 1) return m;
  // A single label: its items are ranked instead of the labels of a row; equal scores have one place.
  m.auc = m.macro_auc;
  m.ap = m.rl = m.oe = m.cov = kUndefined;
  if (std::isnan(m.auc)) return m;
  double P = 0, N = 0, best = 0, best_right = 0, precision = 0, wrong_pairs = 0, deepest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!known(i, 0)) continue;
    P += positive(i, 0);
    N += negative(i, 0);
    double above = 0, at_least = 0,
           right = 0;  // known items with a larger score, with none smaller, positives of those
    for (std::size_t l = 0; l < n; ++l) {
      if (!known(l, 0)) continue;
      above += scores(l, 0) > scores(i, 0);
      at_least += scores(l, 0) >= scores(i, 0);
      right += positive(l, 0) && scores(l, 0) >= scores(i, 0);
    }
    best += above == 0;
    best_right += above == 0 && positive(i, 0);
    if (!positive(i, 0)) continue;
    precision += right / at_least;
    wrong_pairs += at_least - right;
    deepest = std::max(deepest, at_least);
  }
  m.ap = precision / P;
  m.rl = 1 - wrong_pairs / (P * N);
  m.oe = best_right / best;
  m.cov = 1 - (deepest - 1) / (P + N);
  return m;
}

}  // namespace lacuna
