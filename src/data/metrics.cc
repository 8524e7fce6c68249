// The fast form. All rank metrics of a row need only the places of its positives among its known labels, and
// those come from counting, for every negative, how many positives it beats: sort the positives, then one
// binary search a negative. That is O(c log |P|) a row. The AUC and AP of a label are the same count down its
// column.
#include "data/metrics.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/dataset.h"

namespace lacuna {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double a, double b) {
  return b > 0 ? a / b : kNaN;
}

// Unsigned integers in the order of the floats; -0 and +0 get the same one.
std::uint32_t ordered_bits(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.f);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
}

// How the negatives lie among the positives. Key is uint32 (the score alone) or uint64 (the score, then an
// index that decides ties).
template <class Key>
class Places {
 public:
  std::vector<Key> positives, negatives;  // filled by the caller, in any order
  std::vector<std::uint64_t>
      beats;  // beats[p]: negatives whose key is larger than that of exactly p positives
  std::vector<std::uint64_t>
      reaches;  // reaches[u]: negatives whose score is at least that of exactly u positives
  std::uint64_t beaten = 0, reached = 0;  // pairs: sum of p beats[p], sum of u reaches[u]

  void clear() {
    positives.clear();
    negatives.clear();
  }
  void count() {
    std::sort(positives.begin(), positives.end());
    const std::size_t size = positives.size();
    beats.assign(size + 1, 0);
    reaches.assign(size + 1, 0);
    beaten = reached = 0;
    if (size == 0) {
      beats[0] = reaches[0] = negatives.size();
      return;
    }
    tie_end_.resize(size);
    for (std::size_t q = size; q-- > 0;)
      tie_end_[q] = q + 1 < size && score(positives[q]) == score(positives[q + 1])
                        ? tie_end_[q + 1]
                        : static_cast<std::uint32_t>(q + 1);
    for (const Key key : negatives) {
      const Key* base = positives.data();  // branch-free lower bound
      for (std::size_t length = size; length > 1;) {
        const std::size_t half = length / 2;
        base += base[half - 1] < key ? half : 0;
        length -= half;
      }
      const std::size_t p = static_cast<std::size_t>(base - positives.data()) + (*base < key ? 1 : 0);
      const std::size_t u = p < size && score(positives[p]) == score(key) ? tie_end_[p] : p;
      ++beats[p];
      ++reaches[u];
      beaten += p;
      reached += u;
    }
  }

 private:
  static std::uint32_t score(Key key) {
    if constexpr (sizeof(Key) == 8) {
      return static_cast<std::uint32_t>(key >> 32);
    } else {
      return key;
    }
  }
  std::vector<std::uint32_t>
      tie_end_;  // tie_end_[q]: one past the last positive with the score of positive q
};

struct RowSums {
  double ap = 0, rl = 0, coverage = 0;
  std::uint64_t rows = 0, errors = 0;  // rows with a known label; rows whose top label is wrong
};

void check_shapes(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                  MatrixView<const std::uint8_t> decided) {
  if (scores.rows != truth.rows || scores.cols != truth.cols)
    fail(Exit::mismatch, "scores are {} x {}, true labels are {} x {}", scores.rows, scores.cols, truth.rows,
         truth.cols);
  if (!decided.empty() && (decided.rows != truth.rows || decided.cols != truth.cols))
    fail(Exit::mismatch, "decisions are {} x {}, true labels are {} x {}", decided.rows, decided.cols,
         truth.rows, truth.cols);
}

[[noreturn]] void refuse_nan(std::size_t row, std::size_t label) {
  fail(Exit::data, "the score of row {}, label {} (counted from 0) is not a number", row, label);
}

// The metrics that look along a row. The histograms over ranks (index 0 is not used) hold integers, so the
// order in which chunks add to them does not matter.
RowSums sum_rows(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                 std::vector<std::uint64_t>& positives_at, std::vector<std::uint64_t>& known_at) {
  const std::size_t n = scores.rows, c = scores.cols;
  positives_at.assign(c + 1, 0);
  known_at.assign(c + 1, 0);
  const std::size_t grain = std::max<std::size_t>(64, (n + 255) / 256);
  std::vector<RowSums> parts(n == 0 ? 0 : (n - 1) / grain + 1);
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
    RowSums sums;
    Places<std::uint64_t> places;
    std::vector<std::uint64_t> positive_ranks(c + 1, 0), widths(c + 1, 0);
    for (std::size_t i = begin; i < end; ++i) {
      const auto s = scores.row(i);
      const auto y = truth.row(i);
      places.clear();
      float best = 0;
      std::int8_t best_label = kUnknown;
      for (std::size_t j = 0; j < c; ++j) {
        if (std::isnan(s[j])) refuse_nan(i, j);
        if (y[j] == kUnknown) continue;
        const std::uint64_t key = std::uint64_t{ordered_bits(s[j])} << 32 | j;
        (y[j] == 1 ? places.positives : places.negatives).push_back(key);
        if (best_label == kUnknown || s[j] > best)
          best = s[j], best_label = y[j];  // the first of equal maxima
      }
      const std::size_t positives = places.positives.size(), known = positives + places.negatives.size();
      if (known == 0) continue;
      ++sums.rows;
      ++widths[known];
      sums.errors += best_label == 0;
      places.count();
      double precision = 0;
      std::uint64_t better = 0;  // negatives ranked before the positive at hand; positives come best first
      std::size_t rank = 0;
      for (std::size_t q = positives; q-- > 0;) {
        better += places.beats[q + 1];
        rank = positives - q + better;
        precision += static_cast<double>(positives - q) / static_cast<double>(rank);
        ++positive_ranks[rank];
      }
      if (positives > 0) sums.ap += precision / static_cast<double>(positives);
      if (positives > 0 && positives < known)
        sums.rl += static_cast<double>(places.reached) /
                   (static_cast<double>(positives) * static_cast<double>(known - positives));
      sums.coverage += (static_cast<double>(rank) - 1) / static_cast<double>(known);
    }
    parts[begin / grain] = sums;
    std::uint64_t wide_enough = 0;
    for (std::size_t r = c; r > 0; --r) {
      wide_enough += widths[r];
      if (positive_ranks[r] != 0) std::atomic_ref(positives_at[r]).fetch_add(positive_ranks[r]);
      if (wide_enough != 0) std::atomic_ref(known_at[r]).fetch_add(wide_enough);
    }
  });
  RowSums total;
  for (const RowSums& part : parts) {
    total.ap += part.ap;
    total.rl += part.rl;
    total.coverage += part.coverage;
    total.rows += part.rows;
    total.errors += part.errors;
  }
  return total;
}

// The adapted AUC from the numbers of positives and of known labels at each rank.
double adapted_auc(const std::vector<std::uint64_t>& positives_at,
                   const std::vector<std::uint64_t>& known_at) {
  double positives = 0, known = 0;
  for (std::size_t r = 1; r < known_at.size(); ++r) {
    positives += static_cast<double>(positives_at[r]);
    known += static_cast<double>(known_at[r]);
  }
  const double negatives = known - positives;
  if (known_at.size() < 2 || positives == 0 || negatives == 0) return kNaN;
  double tp = static_cast<double>(positives_at[1]), fp = static_cast<double>(known_at[1]) - tp, area = 0;
  const double fp_first = fp;
  for (std::size_t r = 2; r < known_at.size(); ++r) {
    const double more_tp = static_cast<double>(positives_at[r]),
                 more_fp = static_cast<double>(known_at[r]) - more_tp;
    area += more_fp * (tp + more_tp / 2);
    tp += more_tp;
    fp += more_fp;
  }
  return fp > fp_first ? area / positives / (fp - fp_first) : kNaN;
}

// One label, down its column.
struct Column {
  std::uint64_t positives = 0, known = 0;
  std::uint64_t tp = 0, fp = 0, fn = 0;
  double ap = kNaN, auc = kNaN;

  double f1() const {
    return positives > 0 ? 2 * static_cast<double>(tp) / static_cast<double>(2 * tp + fp + fn) : kNaN;
  }
};

// Average precision over the thresholds that are scores of positives; equal scores enter together.
double column_ap(const Places<std::uint32_t>& places) {
  const std::size_t size = places.positives.size();
  double sum = 0;
  std::uint64_t negatives = 0;  // with a score at least that of the group at hand
  for (std::size_t end = size; end > 0;) {
    std::size_t begin = end - 1;
    while (begin > 0 && places.positives[begin - 1] == places.positives[end - 1]) --begin;
    // A negative that reaches exactly u positives stands in or above the group that ends at u, never inside a
    // group.
    negatives += places.reaches[end];
    sum += static_cast<double>(end - begin) * static_cast<double>(size - begin) /
           static_cast<double>(size - begin + negatives);
    end = begin;
  }
  return sum / static_cast<double>(size);
}

std::vector<Column> sum_columns(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                MatrixView<const std::uint8_t> decided, double threshold) {
  constexpr std::size_t kBlock = 16;  // columns side by side: one cache line of scores a row
  std::vector<Column> columns(scores.cols);
  parallel_for(scores.cols, kBlock, [&](std::size_t begin, std::size_t end) {
    std::vector<Places<std::uint32_t>> places(end - begin);
    for (std::size_t i = 0; i < scores.rows; ++i) {
      for (std::size_t j = begin; j < end; ++j) {
        const float s = scores(i, j);
        if (std::isnan(s)) refuse_nan(i, j);
        const std::int8_t y = truth(i, j);
        if (y == kUnknown) continue;
        const bool yes = decided.empty() ? static_cast<double>(s) > threshold : decided(i, j) != 0;
        Column& column = columns[j];
        column.tp += static_cast<std::uint64_t>(y == 1 && yes);
        column.fp += static_cast<std::uint64_t>(y == 0 && yes);
        column.fn += static_cast<std::uint64_t>(y == 1 && !yes);
        auto& place = places[j - begin];
        (y == 1 ? place.positives : place.negatives).push_back(ordered_bits(s));
      }
    }
    for (std::size_t j = begin; j < end; ++j) {
      auto& place = places[j - begin];
      Column& column = columns[j];
      column.positives = place.positives.size();
      column.known = column.positives + place.negatives.size();
      if (column.positives == 0) continue;
      place.count();
      column.ap = column_ap(place);
      const double pairs =
          static_cast<double>(column.positives) * static_cast<double>(place.negatives.size());
      column.auc = ratio(pairs - static_cast<double>(place.beaten + place.reached) / 2, pairs);
    }
  });
  return columns;
}

}  // namespace

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"AP",    "1-HL",      "1-RL",     "AUC",     "1-OE",
                                                 "1-Cov", "macro-AUC", "macro-F1", "micro-F1"};
  return names;
}

std::vector<double> Metrics::values() const {
  return {ap, hl, rl, auc, oe, cov, macro_auc, macro_f1, micro_f1};
}

double Metrics::by_name(const std::string& name) const {
  const auto& names = metric_names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    fail(Exit::usage, "there is no metric '{}'{} (there are {})", name, did_you_mean(name, names),
         join(names, ", "));
  return values()[static_cast<std::size_t>(at - names.begin())];
}

Metrics evaluate(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                 MatrixView<const std::uint8_t> decided, double threshold) {
  check_shapes(scores, truth, decided);
  Metrics metrics;
  std::vector<std::uint64_t> positives_at, known_at;
  const RowSums rows = sum_rows(scores, truth, positives_at, known_at);
  const auto n = static_cast<double>(rows.rows);
  metrics.ap = ratio(rows.ap, n);
  metrics.rl = 1 - ratio(rows.rl, n);
  metrics.oe = 1 - ratio(static_cast<double>(rows.errors), n);
  metrics.cov = 1 - ratio(rows.coverage, n);
  metrics.auc = adapted_auc(positives_at, known_at);

  double known = 0, tp = 0, wrong = 0, auc = 0, auc_labels = 0, f1 = 0, f1_labels = 0;
  for (const Column& column : sum_columns(scores, truth, decided, threshold)) {
    known += static_cast<double>(column.known);
    tp += static_cast<double>(column.tp);
    wrong += static_cast<double>(column.fp + column.fn);
    if (!std::isnan(column.auc)) auc += column.auc, ++auc_labels;
    if (column.positives > 0) f1 += column.f1(), ++f1_labels;
  }
  metrics.hl = 1 - ratio(wrong, known);
  metrics.macro_auc = ratio(auc, auc_labels);
  metrics.macro_f1 = ratio(f1, f1_labels);
  metrics.micro_f1 = ratio(2 * tp, 2 * tp + wrong);
  return metrics;
}

std::vector<LabelMetrics> evaluate_labels(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                          MatrixView<const std::uint8_t> decided, double threshold) {
  check_shapes(scores, truth, decided);
  std::vector<LabelMetrics> labels;
  for (const Column& column : sum_columns(scores, truth, decided, threshold))
    labels.push_back({column.positives, column.known, column.ap, column.auc, column.f1()});
  return labels;
}

}  // namespace lacuna
