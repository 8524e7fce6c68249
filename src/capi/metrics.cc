// Metrics of scores.
#include "data/metrics.h"

#include <algorithm>
#include <cmath>

#include "capi/handles.h"

namespace lacuna::capi {
namespace {

struct Compared {
  MatrixView<const float> scores;
  MatrixView<const std::int8_t> truth;
  MatrixView<const std::uint8_t> decided;
  // Where some rows are left out: those that are kept.
  Matrix<float> kept_scores;
  Matrix<std::int8_t> kept_truth;
  Matrix<std::uint8_t> kept_decided;
};

// Items without any view were scored as nothing: they are left out, as `lacuna evaluate` does.
void leave_out_unscored(Compared& all) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < all.scores.rows; ++i)
    if (!all_nan(all.scores.row(i))) rows.push_back(i);
  if (rows.size() == all.scores.rows) return;
  if (rows.empty()) fail(Exit::data, "none of the {} items has scores: all are NaN", all.scores.rows);
  const auto keep = [&](auto& view, auto& kept) {
    if (view.empty()) return;
    kept = {rows.size(), view.cols};
    for (std::size_t k = 0; k < rows.size(); ++k) std::ranges::copy(view.row(rows[k]), kept.row(k).begin());
    view = kept;
  };
  keep(all.scores, all.kept_scores);
  keep(all.truth, all.kept_truth);
  keep(all.decided, all.kept_decided);
}

Compared compared(const float* scores, const std::int8_t* truth, const std::uint8_t* decided,
                  std::size_t rows, std::size_t labels) {
  if (rows == 0 || labels == 0)
    fail(Exit::data, "there is nothing to evaluate: {} rows, {} labels", rows, labels);
  if (std::size_t count = 0; __builtin_mul_overflow(rows, labels, &count))
    fail(Exit::data, "{} rows and {} labels are more than any memory", rows, labels);
  Compared views{
      {&need(scores, "scores"), rows, labels}, {&need(truth, "truth"), rows, labels}, {}, {}, {}, {}};
  if (decided != nullptr) views.decided = {decided, rows, labels};
  for (std::size_t i = 0; i < rows; ++i) {
    const bool scored = !all_nan(views.scores.row(i));
    for (std::size_t j = 0; j < labels; ++j) {
      if (scored && std::isnan(views.scores(i, j)))
        fail(Exit::data, "the score of row {}, label {} is NaN", i, j);
      if (truth[i * labels + j] < kUnknown || truth[i * labels + j] > 1)
        fail(Exit::data, "the true label {} of row {} is {}, expected 1, 0 or -1 (unknown)", j, i,
             static_cast<int>(truth[i * labels + j]));
      if (decided != nullptr && decided[i * labels + j] > 1)
        fail(Exit::data, "the decision on row {}, label {} is {}, expected 1 or 0", i, j,
             decided[i * labels + j]);
    }
  }
  leave_out_unscored(views);
  return views;
}

}  // namespace
}  // namespace lacuna::capi

using namespace lacuna;

const char* lacuna_metric_name(size_t metric) {
  return metric < LACUNA_METRICS ? metric_names()[metric].c_str() : nullptr;
}

lacuna_status lacuna_evaluate(const float* scores, const int8_t* truth, const uint8_t* decided, size_t rows,
                              size_t labels, double threshold, double* values, lacuna_error** error) {
  return capi::guarded(error, [&] {
    const auto views = capi::compared(scores, truth, decided, rows, labels);
    const std::vector<double> found = evaluate(views.scores, views.truth, views.decided, threshold).values();
    std::copy_n(found.begin(), LACUNA_METRICS, &capi::need(values, "values"));
  });
}

lacuna_status lacuna_evaluate_labels(const float* scores, const int8_t* truth, const uint8_t* decided,
                                     size_t rows, size_t labels, double threshold, double* values,
                                     lacuna_error** error) {
  return capi::guarded(error, [&] {
    const auto views = capi::compared(scores, truth, decided, rows, labels);
    double* out = &capi::need(values, "values");
    for (const LabelMetrics& label : evaluate_labels(views.scores, views.truth, views.decided, threshold)) {
      for (const double value : {static_cast<double>(label.positives), static_cast<double>(label.known),
                                 label.ap, label.auc, label.f1})
        *out++ = value;
    }
  });
}
