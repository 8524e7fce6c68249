// The definitions of docs/metrics.md, written down literally, without regard to speed: the ground truth of the tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/dataset.h"
#include "data/metrics.h"

namespace lacuna {

class MetricsReference {
 public:
  MetricsReference(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
              MatrixView<const std::uint8_t> decided, double threshold)
      : scores_(scores), truth_(truth), decided_(decided), threshold_(threshold) {}

  Metrics all() const {
    Metrics m;
    row_metrics(m);
    m.auc = adapted_auc();
    column_metrics(m);
    if (scores_.cols == 1) rank_items(m);
    return m;
  }

 private:
  static constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  static double count(std::size_t n) { return static_cast<double>(n); }
  static double share_of(double a, double b) { return b > 0 ? a / b : kUndefined; }

  bool known(std::size_t i, std::size_t j) const { return truth_(i, j) != kUnknown; }
  bool positive(std::size_t i, std::size_t j) const { return truth_(i, j) == 1; }
  bool negative(std::size_t i, std::size_t j) const { return truth_(i, j) == 0; }
  bool yes(std::size_t i, std::size_t j) const {
    return decided_.empty() ? static_cast<double>(scores_(i, j)) > threshold_ : decided_(i, j) != 0;
  }
  // Place of label j among the known labels of row i, 1 = best; of equal scores the larger index is better.
  std::size_t rank(std::size_t i, std::size_t j) const {
    std::size_t place = 1;
    for (std::size_t l = 0; l < scores_.cols; ++l)
      if (known(i, l) && (scores_(i, l) > scores_(i, j) || (scores_(i, l) == scores_(i, j) && l > j)))
        ++place;
    return place;
  }

  // AP, 1-RL, 1-OE, 1-Cov: means over the rows of which something is known.
  void row_metrics(Metrics& m) const {
    const std::size_t c = scores_.cols;
    double rows = 0, ap = 0, rl = 0, errors = 0, coverage = 0;
    for (std::size_t i = 0; i < scores_.rows; ++i) {
      double P = 0, N = 0, precision = 0, wrong_pairs = 0;
      std::size_t deepest = 0, top = c;
      for (std::size_t j = 0; j < c; ++j) {
        P += positive(i, j);
        N += negative(i, j);
        if (known(i, j) && (top == c || scores_(i, j) > scores_(i, top))) top = j;
        if (!positive(i, j)) continue;
        const std::size_t place = rank(i, j);
        deepest = std::max(deepest, place);
        double hits = 0;
        for (std::size_t l = 0; l < c; ++l) {
          hits += positive(i, l) && rank(i, l) <= place;
          wrong_pairs += negative(i, l) && scores_(i, l) >= scores_(i, j);
        }
        precision += hits / count(place);
      }
      if (top == c) continue;
      ++rows;
      if (P > 0) ap += precision / P;
      if (P > 0 && N > 0) rl += wrong_pairs / (P * N);
      errors += negative(i, top);
      coverage += (count(deepest) - 1) / (P + N);
    }
    m.ap = share_of(ap, rows);
    m.rl = 1 - share_of(rl, rows);
    m.oe = 1 - share_of(errors, rows);
    m.cov = coverage < -1e-9 * rows ? kUndefined : std::min(1 - share_of(coverage, rows), 1.);
  }

  // The T best-ranked known labels of every row count as predicted.
  double adapted_auc() const {
    const std::size_t c = scores_.cols;
    std::vector<double> tpr, fpr;
    for (std::size_t T = 1; T <= c; ++T) {
      double tp = 0, fp = 0, positives = 0, negatives = 0;
      for (std::size_t i = 0; i < scores_.rows; ++i)
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
    return c > 1 && fpr[c - 1] > fpr[0] ? area / (fpr[c - 1] - fpr[0]) : kUndefined;
  }

  // 1-HL, macro-AUC, macro-F1, micro-F1: down the columns.
  void column_metrics(Metrics& m) const {
    const std::size_t n = scores_.rows;
    double cells = 0, wrong = 0, hits = 0, macro_auc = 0, auc_labels = 0, macro_f1 = 0, f1_labels = 0;
    for (std::size_t j = 0; j < scores_.cols; ++j) {
      double P = 0, N = 0, tp = 0, fp = 0, fn = 0, won = 0;
      for (std::size_t i = 0; i < n; ++i) {
        P += positive(i, j);
        N += negative(i, j);
        tp += positive(i, j) && yes(i, j);
        fp += negative(i, j) && yes(i, j);
        fn += positive(i, j) && !yes(i, j);
        for (std::size_t l = 0; l < n; ++l)
          if (positive(i, j) && negative(l, j))
            won += scores_(i, j) > scores_(l, j) ? 1 : scores_(i, j) == scores_(l, j) ? .5 : 0;
      }
      cells += P + N;
      wrong += fp + fn;
      hits += tp;
      if (P > 0 && N > 0) macro_auc += won / (P * N), ++auc_labels;
      if (P > 0) macro_f1 += 2 * tp / (2 * tp + fp + fn), ++f1_labels;
    }
    m.hl = 1 - share_of(wrong, cells);
    m.macro_auc = share_of(macro_auc, auc_labels);
    m.macro_f1 = share_of(macro_f1, f1_labels);
    m.micro_f1 = share_of(2 * hits, 2 * hits + wrong);
  }

  // A single label: its items are ranked instead of the labels of a row; equal scores have one place.
  void rank_items(Metrics& m) const {
    m.auc = m.macro_auc;
    m.ap = m.rl = m.oe = m.cov = kUndefined;
    if (std::isnan(m.auc)) return;
    double P = 0, N = 0, best = 0, best_right = 0, precision = 0, wrong_pairs = 0, deepest = 0;
    for (std::size_t i = 0; i < scores_.rows; ++i) {
      if (!known(i, 0)) continue;
      P += positive(i, 0);
      N += negative(i, 0);
      double above = 0, at_least = 0,
             right = 0;  // known items with a larger score, with none smaller, positives of those
      for (std::size_t l = 0; l < scores_.rows; ++l) {
        if (!known(l, 0)) continue;
        above += scores_(l, 0) > scores_(i, 0);
        at_least += scores_(l, 0) >= scores_(i, 0);
        right += positive(l, 0) && scores_(l, 0) >= scores_(i, 0);
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
  }

  MatrixView<const float> scores_;
  MatrixView<const std::int8_t> truth_;
  MatrixView<const std::uint8_t> decided_;
  double threshold_;
};

inline Metrics evaluate_reference(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                  MatrixView<const std::uint8_t> decided = {}, double threshold = .5) {
  return MetricsReference(scores, truth, decided, threshold).all();
}

}  // namespace lacuna
