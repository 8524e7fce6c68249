// The fast implementation (tests/metrics_reference.h has the naive one). The rank metrics of a row need only the ranks
// of its positives among its known labels; the AUC and AP of a label are the same count down its column.
#include "data/metrics.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/dataset.h"
#include "data/placing.h"

namespace lacuna {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double a, double b) {
  return b > 0 ? a / b : kNaN;
}

// Coverage is below 0, and meaningless, if rows without positives outweigh the others.
double within_one(double value) {
  constexpr double kRounding = 1e-9;
  return value > 1 + kRounding ? kNaN : std::min(value, 1.);
}

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
    Placing<std::uint64_t> placing;
    std::vector<float> negatives(c);
    std::vector<std::uint64_t> positive_ranks(c + 1, 0), widths(c + 1, 0);
    for (std::size_t i = begin; i < end; ++i) {
      const auto s = scores.row(i);
      const auto y = truth.row(i);
      placing.positives.clear();
      std::size_t known = 0;
      std::uint32_t best = 0;  // below every score
      std::int8_t best_label = kUnknown;
      for (std::size_t j = 0; j < c; ++j) {
        if (std::isnan(s[j])) refuse_nan(i, j);
        negatives[j] = y[j] == 0 ? s[j] : std::numeric_limits<float>::quiet_NaN();
        if (y[j] == kUnknown) continue;
        ++known;
        const std::uint32_t bits = ordered_bits(s[j]);
        if (y[j] == 1) placing.positives.push_back(std::uint64_t{bits} << 32 | j);
        if (bits > best) best = bits, best_label = y[j];  // the first of equal maxima
      }
      if (known == 0) continue;
      const std::size_t positives = placing.positives.size();
      ++sums.rows;
      ++widths[known];
      sums.errors += best_label == 0;
      placing.place(negatives);
      double precision = 0, wrong_pairs = 0;
      std::size_t rank = 0;
      for (std::size_t q = positives; q-- > 0;) {  // best first, so the last rank is the deepest
        rank = positives - q + placing.above[q];
        precision += static_cast<double>(positives - q) / static_cast<double>(rank);
        wrong_pairs += placing.at_least[q];
        ++positive_ranks[rank];
      }
      if (positives > 0) sums.ap += precision / static_cast<double>(positives);
      if (positives > 0 && positives < known)
        sums.rl += wrong_pairs / (static_cast<double>(positives) * static_cast<double>(known - positives));
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
  double positives = 0;
  for (std::size_t r = 1; r < positives_at.size(); ++r) positives += static_cast<double>(positives_at[r]);
  if (positives == 0) return kNaN;
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

struct MeanOfDefined {
  double sum = 0, count = 0;

  void add(double x, double otherwise) {
    if (std::isnan(x)) x = otherwise;
    if (!std::isnan(x)) sum += x, ++count;
  }
  double value() const { return ratio(sum, count); }
};

// Average precision over the thresholds that are scores of positives (equal scores enter together), and AUC
// (a tie is half a pair).
void rank_column(const Placing<std::uint32_t>& placing, Column& column) {
  const auto& positives = placing.positives;
  const std::size_t size = positives.size();
  double precision = 0, lost = 0;
  for (std::size_t end = size; end > 0;) {
    std::size_t begin = end - 1;
    while (begin > 0 && positives[begin - 1] == positives[end - 1]) --begin;
    const auto group = static_cast<double>(end - begin), reached = static_cast<double>(size - begin);
    precision += group * reached / (reached + placing.at_least[begin]);
    lost += group * (placing.above[begin] + placing.at_least[begin]) / 2;
    end = begin;
  }
  const auto negatives = static_cast<double>(column.known - column.positives);
  column.ap = ratio(precision, static_cast<double>(size));
  column.auc = ratio(static_cast<double>(size) * negatives - lost, static_cast<double>(size) * negatives);
}

std::vector<Column> sum_columns(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                MatrixView<const std::uint8_t> decided, double threshold) {
  constexpr std::size_t kBlock = 32, kTile = 512;  // a tile of scores and the index of a column stay in cache
  std::vector<Column> columns(scores.cols);
  parallel_for(scores.cols, kBlock, [&](std::size_t begin, std::size_t end) {
    std::vector<Placing<std::uint32_t>> placings(end - begin);
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = begin; j < end; ++j)
        if (truth(i, j) == 1) placings[j - begin].positives.push_back(ordered_bits(scores(i, j)));
    for (std::size_t j = begin; j < end; ++j) {
      columns[j].positives = placings[j - begin].positives.size();
      placings[j - begin].index();
    }
    for (std::size_t top = 0; top < scores.rows; top += kTile) {
      const std::size_t bottom = std::min(top + kTile, scores.rows);
      for (std::size_t j = begin; j < end; ++j) {
        auto& placing = placings[j - begin];
        Column column = columns[j];
        for (std::size_t i = top; i < bottom; ++i) {
          const float s = scores(i, j);
          if (std::isnan(s)) refuse_nan(i, j);
          const std::int8_t y = truth(i, j);
          const bool yes = decided.empty() ? static_cast<double>(s) > threshold : decided(i, j) != 0;
          column.known += y != kUnknown;
          column.tp += static_cast<std::uint64_t>(y == 1 && yes);
          column.fp += static_cast<std::uint64_t>(y == 0 && yes);
          if (y == 0) placing.add(ordered_bits(s));
        }
        columns[j] = column;
      }
    }
    for (std::size_t j = begin; j < end; ++j) {
      Column& column = columns[j];
      column.fn = column.positives - column.tp;
      placings[j - begin].finish();
      rank_column(placings[j - begin], column);
    }
  });
  return columns;
}

// A single label leaves nothing to rank in a row: the items are ranked by it instead. Items with equal scores have
// one place. Undefined without a positive or without a negative.
void rank_items(MatrixView<const float> scores, MatrixView<const std::int8_t> truth, Metrics& metrics) {
  std::vector<std::pair<float, std::int8_t>> items;
  items.reserve(scores.rows);
  double P = 0;
  for (std::size_t i = 0; i < scores.rows; ++i)
    if (truth(i, 0) != kUnknown) {
      items.emplace_back(scores(i, 0), truth(i, 0));
      P += truth(i, 0);
    }
  const double known = static_cast<double>(items.size()), N = known - P;
  metrics.auc = metrics.macro_auc;
  metrics.ap = metrics.rl = metrics.oe = metrics.cov = kNaN;
  if (P == 0 || N == 0) return;
  std::ranges::sort(items, std::greater<>(), &std::pair<float, std::int8_t>::first);
  double positives = 0, negatives = 0, precision = 0, wrong_pairs = 0, deepest = 0;
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    double here = 0;  // positives with this score
    for (end = begin; end < items.size() && items[end].first == items[begin].first; ++end)
      here += items[end].second;
    const auto size = static_cast<double>(end - begin);
    positives += here;
    negatives += size - here;
    precision += here * positives / (positives + negatives);
    wrong_pairs += here * negatives;
    if (here > 0) deepest = positives + negatives;
    if (begin == 0) metrics.oe = here / size;
  }
  metrics.ap = precision / P;
  metrics.rl = 1 - wrong_pairs / (P * N);
  metrics.cov = 1 - (deepest - 1) / known;
}

}  // namespace

std::span<const MetricDefinition> metric_definitions() {
  static constexpr MetricDefinition kDefinitions[] = {
      {"AP", &Metrics::ap,
       "average precision: how many of the labels ranked down to each true one are true, mean over items",
       "mean_i (1/|P_i|) sum_{j in P_i} #{l in P_i: rank_l <= rank_j} / rank_j; a row without positives "
       "adds 0"},
      {"1-HL", &Metrics::hl, "1 - Hamming loss: share of correct yes/no decisions",
       "1 - #{known ij: [S_ij > threshold] != Y_ij} / #{known ij}"},
      {"1-RL", &Metrics::rl,
       "1 - ranking loss: share of pairs of a true and a false label in the right order",
       "1 - mean_i #{(j in P_i, l in N_i): S_il >= S_ij} / (|P_i| |N_i|); a tie is an error, a row with one "
       "kind of label adds 0"},
      {"AUC", &Metrics::auc, "area under the ROC curve over the T best labels of every item, T = 1..c",
       "trapezoids over T of TPR(T) against FPR(T), divided by FPR(c) - FPR(1); all rows pooled"},
      {"1-OE", &Metrics::oe, "1 - one-error: share of items whose top label is true",
       "1 - mean_i [Y_i,top = 0], top = the first label with the largest score"},
      {"1-Cov", &Metrics::cov, "1 - coverage: how little of the ranking must be read to find all true labels",
       "1 - mean_i (max_{j in P_i} rank_j - 1) / |K_i|; without positives the rank is 0"},
      {"macro-AUC", &Metrics::macro_auc,
       "area under the ROC curve of each label over items, mean over labels",
       "mean_j (#{pairs in order} + ties / 2) / (|P_j| |N_j|), labels with both kinds"},
      {"macro-F1", &Metrics::macro_f1, "F1 of each label's decisions, mean over labels",
       "mean_j 2 TP_j / (2 TP_j + FP_j + FN_j), labels with a positive"},
      {"micro-F1", &Metrics::micro_f1, "F1 of all decisions together", "2 TP / (2 TP + FP + FN)"},
  };
  return kDefinitions;
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const MetricDefinition& metric : metric_definitions()) all.emplace_back(metric.name);
    return all;
  }();
  return names;
}

std::vector<double> Metrics::values() const {
  std::vector<double> all;
  for (const MetricDefinition& metric : metric_definitions()) all.push_back(this->*metric.value);
  return all;
}

nlohmann::json metrics_json(const Metrics& metrics) {
  nlohmann::json values = nlohmann::json::object();
  for (const MetricDefinition& metric : metric_definitions()) values[metric.name] = metrics.*metric.value;
  return values;
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
                 MatrixView<const std::uint8_t> decided, double threshold,
                 std::span<const LabelMetrics> otherwise) {
  check_shapes(scores, truth, decided);
  Metrics metrics;
  std::vector<std::uint64_t> positives_at, known_at;
  const RowSums rows = sum_rows(scores, truth, positives_at, known_at);
  const auto n = static_cast<double>(rows.rows);
  metrics.ap = ratio(rows.ap, n);
  metrics.rl = 1 - ratio(rows.rl, n);
  metrics.oe = 1 - ratio(static_cast<double>(rows.errors), n);
  metrics.cov = within_one(1 - ratio(rows.coverage, n));
  metrics.auc = adapted_auc(positives_at, known_at);

  double known = 0, tp = 0, wrong = 0;
  MeanOfDefined auc, f1;
  const std::vector<Column> columns = sum_columns(scores, truth, decided, threshold);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const Column& column = columns[j];
    known += static_cast<double>(column.known);
    tp += static_cast<double>(column.tp);
    wrong += static_cast<double>(column.fp + column.fn);
    auc.add(column.auc, otherwise.empty() ? kNaN : otherwise[j].auc);
    f1.add(column.f1(), otherwise.empty() ? kNaN : otherwise[j].f1);
  }
  metrics.hl = 1 - ratio(wrong, known);
  metrics.macro_auc = auc.value();
  metrics.macro_f1 = f1.value();
  metrics.micro_f1 = ratio(2 * tp, 2 * tp + wrong);
  if (scores.cols == 1) rank_items(scores, truth, metrics);
  return metrics;
}

std::vector<double> row_average_precisions(MatrixView<const float> scores,
                                           MatrixView<const std::int8_t> truth) {
  check_shapes(scores, truth, {});
  std::vector<double> result(scores.rows, kNaN);
  parallel_for(scores.rows, 64, [&](std::size_t begin, std::size_t end) {
    Placing<std::uint64_t> placing;
    std::vector<float> negatives(scores.cols);
    for (std::size_t i = begin; i < end; ++i) {
      placing.positives.clear();
      std::size_t known = 0;
      for (std::size_t j = 0; j < scores.cols; ++j) {
        if (std::isnan(scores(i, j))) refuse_nan(i, j);
        negatives[j] = truth(i, j) == 0 ? scores(i, j) : std::numeric_limits<float>::quiet_NaN();
        known += truth(i, j) != kUnknown;
        if (truth(i, j) == 1)
          placing.positives.push_back(std::uint64_t{ordered_bits(scores(i, j))} << 32 | j);
      }
      if (known == 0) continue;
      const std::size_t positives = placing.positives.size();
      placing.place(negatives);
      double precision = 0;
      for (std::size_t q = positives; q-- > 0;)
        precision +=
            static_cast<double>(positives - q) / static_cast<double>(positives - q + placing.above[q]);
      result[i] = positives > 0 ? precision / static_cast<double>(positives) : 0;
    }
  });
  return result;
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
