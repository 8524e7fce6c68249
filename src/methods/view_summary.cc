#include "methods/view_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"

namespace lacuna {
namespace {

constexpr std::size_t kResamples = 200;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Counts = std::vector<std::vector<std::uint16_t>>;  // of each resample

Counts draw(std::size_t n) {
  Counts counts;
  for (std::size_t r = 0; r < kResamples; ++r) counts.push_back(resample_counts(n, r));
  return counts;
}

double weighted_mean(std::span<const double> values, std::span<const std::uint16_t> counts) {
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += counts[i] * values[i], weight += counts[i];
  return weight > 0 ? sum / weight : kNaN;
}

Estimate estimate_mean(std::span<const double> values, const Counts& counts) {
  Estimate estimate{values.empty() ? kNaN : 0, {}};
  for (double value : values) estimate.value += value / static_cast<double>(values.size());
  std::vector<double> draws;
  for (const auto& resample : counts) draws.push_back(weighted_mean(values, resample));
  estimate.interval = percentile_interval(std::move(draws));
  return estimate;
}

// The average precision of one label over items of given weights; equal scores enter together (docs/metrics.md).
class LabelRanking {
 public:
  LabelRanking(std::span<const float> scores, std::span<const std::int8_t> truth) : truth_(truth) {
    for (std::uint32_t i = 0; i < scores.size(); ++i)
      if (truth[i] != kUnknown) order_.push_back(i);
    std::ranges::stable_sort(order_, [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
    for (std::size_t k = 0; k < order_.size(); ++k)
      ends_.push_back(k + 1 == order_.size() || scores[order_[k + 1]] != scores[order_[k]]);
  }
  template <class Weight>
  double ap(Weight weight) const {
    double positives = 0, all = 0, fresh = 0, sum = 0;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const double w = weight(order_[k]);
      all += w;
      if (truth_[order_[k]] == 1) fresh += w;
      if (!ends_[k]) continue;
      positives += fresh;
      if (fresh > 0) sum += fresh * positives / all;
      fresh = 0;
    }
    return positives > 0 ? sum / positives : kNaN;
  }

 private:
  std::span<const std::int8_t> truth_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> ends_;
};

// Scores (k, c) of the given rows of the items, each with a set of views of its own.
Matrix<float> scores_of(const Model& model, const Items& items, const std::vector<std::uint32_t>& rows,
                        FunctionRef<bool(std::size_t row, std::size_t view)> keeps) {
  ViewSets sets{rows, Matrix<std::uint8_t>(rows.size(), items.views())};
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (std::size_t v = 0; v < items.views(); ++v)
      sets.W(k, v) = items.W(rows[k], v) != 0 && keeps(rows[k], v);
  Matrix<float> values(rows.size(), model.label_names().size());
  model.method().predict_sets(items, sets, values);
  return values;
}

template <class T>
Matrix<T> take(const Matrix<T>& from, const std::vector<std::uint32_t>& rows) {
  Matrix<T> part(rows.size(), from.cols());
  for (std::size_t k = 0; k < rows.size(); ++k) std::ranges::copy(from.row(rows[k]), part.row(k).begin());
  return part;
}

template <class T>
Matrix<T> transposed(const Matrix<T>& from) {
  Matrix<T> to(from.cols(), from.rows());
  for (std::size_t i = 0; i < from.rows(); ++i)
    for (std::size_t j = 0; j < from.cols(); ++j) to(j, i) = from(i, j);
  return to;
}

ViewPattern pattern_of(std::vector<std::string> views, MatrixView<const float> scores,
                       MatrixView<const std::int8_t> truth) {
  const auto ap = row_average_precisions(scores, truth);
  return {std::move(views), scores.rows, estimate_mean(ap, draw(scores.rows))};
}

// Labels of rows in the model's order, found by name; one that the data does not have is unknown.
class LabelsByName {
 public:
  LabelsByName(const Model& model, const Dataset& data) : count_(data.label_names.size()) {
    for (const auto& name : model.label_names())
      places_.push_back(
          static_cast<std::size_t>(std::ranges::find(data.label_names, name) - data.label_names.begin()));
  }
  std::int8_t of(const Selection& rows, std::size_t i, std::size_t j) const {
    return places_[j] < count_ ? rows.label(i, places_[j]) : kUnknown;
  }
  bool any_known(const Selection& rows, std::size_t i) const {
    for (std::size_t j = 0; j < places_.size(); ++j)
      if (of(rows, i, j) != kUnknown) return true;
    return false;
  }
  Matrix<std::int8_t> all(const Selection& rows) const {
    Matrix<std::int8_t> truth(rows.rows.size(), places_.size());
    for (std::size_t i = 0; i < truth.rows(); ++i)
      for (std::size_t j = 0; j < truth.cols(); ++j) truth(i, j) = of(rows, i, j);
    return truth;
  }

 private:
  std::size_t count_;
  std::vector<std::size_t> places_;
};

// Rows with a view that the model knows and a known label.
Selection rows_to_judge(const Model& model, const Selection& selection, const LabelsByName& labels) {
  Selection used = selection;
  used.rows.clear();
  const Items items = model.prepare(selection);
  for (std::size_t i = 0; i < selection.rows.size(); ++i)
    if (labels.any_known(selection, i) &&
        std::ranges::find(items.W.row(i), std::uint8_t{1}) != items.W.row(i).end())
      used.rows.push_back(selection.rows[i]);
  if (used.rows.empty())
    fail(Exit::data, "{}: no row has both a view and a known label of the model", selection.data->name);
  return used;
}

// What is compared: items with all their views, their scores, and what the model owes to each view.
struct JudgedItems {
  const Model& model;
  Items items;
  Matrix<std::int8_t> truth;
  Explanation explanation;
  std::vector<std::uint32_t> all;
  Matrix<float> full;
  std::vector<double> full_ap;  // of each item

  JudgedItems(const Model& m, const Selection& used, const LabelsByName& labels,
              const ExplainOptions& options)
      : model(m),
        items(m.prepare(used)),
        truth(labels.all(used)),
        explanation(explain(m, used, options)),
        all(used.rows.size()) {
    std::iota(all.begin(), all.end(), 0u);
    full = scores_of(model, items, all, [](std::size_t, std::size_t) { return true; });
    full_ap = row_average_precisions(full, truth);
  }
  std::vector<std::uint32_t> rows_with(std::size_t v) const {
    std::vector<std::uint32_t> rows;
    for (const std::uint32_t i : all)
      if (items.W(i, v) != 0) rows.push_back(i);
    return rows;
  }
};

// Mean effect and loss over the items that have view v; `without`: their scores without it.
void estimate_items(const JudgedItems& judged, std::size_t v, const std::vector<std::uint32_t>& rows,
                    const Matrix<float>& without, const Matrix<std::int8_t>& truth, const Counts& counts,
                    ViewImportance& view) {
  const auto ap_without = row_average_precisions(without, truth);
  std::vector<double> loss, effect;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    loss.push_back(judged.full_ap[rows[k]] - ap_without[k]);
    double sum = 0;
    for (double value : judged.explanation.values[v].row(rows[k])) sum += std::abs(value);
    effect.push_back(sum / static_cast<double>(truth.cols()));
  }
  view.ap_loss = estimate_mean(loss, counts);
  view.effect = estimate_mean(effect, counts);
}

// The same of each label.
void estimate_labels(const JudgedItems& judged, std::size_t v, const std::vector<std::uint32_t>& rows,
                     const Matrix<float>& without, const Matrix<std::int8_t>& truth, const Counts& counts,
                     ViewImportance& view) {
  const Matrix<float> with_columns = transposed(take(judged.full, rows)),
                      without_columns = transposed(without);
  const Matrix<std::int8_t> truth_columns = transposed(truth);
  view.label_effect.resize(truth.cols());
  view.label_ap_loss.resize(truth.cols());
  parallel_for(truth.cols(), 4, [&](std::size_t begin, std::size_t end) {
    std::vector<double> moved(rows.size()), draws(kResamples);
    for (std::size_t j = begin; j < end; ++j) {
      for (std::size_t k = 0; k < rows.size(); ++k)
        moved[k] = std::abs(judged.explanation.values[v](rows[k], j));
      view.label_effect[j] = estimate_mean(moved, counts);
      const LabelRanking a(with_columns.row(j), truth_columns.row(j)),
          b(without_columns.row(j), truth_columns.row(j));
      const auto loss_of = [&](auto weight) { return a.ap(weight) - b.ap(weight); };
      view.label_ap_loss[j].value = loss_of([](std::uint32_t) { return 1.; });
      for (std::size_t r = 0; r < kResamples; ++r)
        draws[r] = loss_of([&](std::uint32_t i) { return static_cast<double>(counts[r][i]); });
      view.label_ap_loss[j].interval = percentile_interval(draws);
    }
  });
}

ViewImportance importance_of(const JudgedItems& judged, std::size_t v, const std::string& name) {
  const auto rows = judged.rows_with(v);
  const Counts counts = draw(rows.size());
  const Matrix<float> without =
      scores_of(judged.model, judged.items, rows, [&](std::size_t, std::size_t u) { return u != v; });
  const Matrix<std::int8_t> truth = take(judged.truth, rows);
  ViewImportance view;
  view.view = name;
  view.items = rows.size();
  estimate_items(judged, v, rows, without, truth, counts, view);
  estimate_labels(judged, v, rows, without, truth, counts, view);
  return view;
}

ViewPattern alone(const JudgedItems& judged, std::size_t v, const std::string& name) {
  const auto rows = judged.rows_with(v);
  return pattern_of(
      {name}, scores_of(judged.model, judged.items, rows, [&](std::size_t, std::size_t u) { return u == v; }),
      take(judged.truth, rows));
}

// The sets of views that items have, most frequent first.
std::vector<ViewPattern> patterns_of(const JudgedItems& judged) {
  const auto& maps = judged.model.preparation().views();
  std::map<std::string, std::vector<std::uint32_t>> groups;
  for (const std::uint32_t i : judged.all)
    groups[std::string(judged.items.W.row(i).begin(), judged.items.W.row(i).end())].push_back(i);
  std::vector<ViewPattern> patterns;
  for (const auto& [present, rows] : groups) {
    std::vector<std::string> names;
    for (std::size_t v = 0; v < maps.size(); ++v)
      if (present[v] != 0) names.push_back(maps[v].name);
    patterns.push_back(pattern_of(std::move(names), take(judged.full, rows), take(judged.truth, rows)));
  }
  std::ranges::stable_sort(patterns, std::greater<>(), &ViewPattern::items);
  return patterns;
}

nlohmann::json interval_json(const Interval& interval) {
  return {interval.low, interval.high};
}

nlohmann::json patterns_json(const std::vector<ViewPattern>& patterns) {
  auto list = nlohmann::json::array();
  for (const auto& pattern : patterns)
    list.push_back({{"views", pattern.views},
                    {"items", pattern.items},
                    {"AP", pattern.ap.value},
                    {"AP_interval", interval_json(pattern.ap.interval)}});
  return list;
}

}  // namespace

ViewSummary summarise_views(const Model& model, const Selection& selection, const ExplainOptions& options) {
  if (selection.data->labels.empty())
    fail(Exit::data, "{} has no labels, which a summary needs", selection.data->name);
  const LabelsByName labels(model, *selection.data);
  const Selection used = rows_to_judge(model, selection, labels);
  const JudgedItems judged(model, used, labels, options);

  ViewSummary summary;
  summary.items = judged.all.size();
  summary.resamples = kResamples;
  summary.unit = options.calibrated                      ? "probability"
                 : model.method().traits().probabilities ? "log-odds"
                                                         : "score";
  summary.base = base_name(base_of(model, options));
  summary.label_names = model.label_names();
  summary.ap = estimate_mean(judged.full_ap, draw(summary.items));
  const auto& maps = model.preparation().views();
  for (std::size_t v = 0; v < maps.size(); ++v) {
    summary.views.push_back(importance_of(judged, v, maps[v].name));
    summary.alone.push_back(alone(judged, v, maps[v].name));
  }
  summary.patterns = patterns_of(judged);
  return summary;
}

nlohmann::json to_json(const ViewSummary& summary) {
  auto views = nlohmann::json::array();
  for (const auto& view : summary.views) {
    auto labels = nlohmann::json::array();
    for (std::size_t j = 0; j < summary.label_names.size(); ++j)
      labels.push_back({{"label", summary.label_names[j]},
                        {"effect", view.label_effect[j].value},
                        {"effect_interval", interval_json(view.label_effect[j].interval)},
                        {"ap_loss", view.label_ap_loss[j].value},
                        {"ap_loss_interval", interval_json(view.label_ap_loss[j].interval)}});
    views.push_back({{"view", view.view},
                     {"items", view.items},
                     {"effect", view.effect.value},
                     {"effect_interval", interval_json(view.effect.interval)},
                     {"ap_loss", view.ap_loss.value},
                     {"ap_loss_interval", interval_json(view.ap_loss.interval)},
                     {"labels", labels}});
  }
  return {{"items", summary.items},
          {"unit", summary.unit},
          {"base", summary.base},
          {"AP", summary.ap.value},
          {"AP_interval", interval_json(summary.ap.interval)},
          {"level", .95},
          {"resamples", summary.resamples},
          {"views", views},
          {"patterns", patterns_json(summary.patterns)},
          {"alone", patterns_json(summary.alone)}};
}

}  // namespace lacuna
