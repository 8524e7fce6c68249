#include "cli/model_page.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/ceiling.h"
#include "cli/progress.h"
#include "data/bootstrap.h"
#include "data/metrics.h"
#include "data/protocol.h"
#include "experiments/details.h"
#include "experiments/report.h"
#include "methods/ensemble.h"
#include "methods/view_summary.h"

namespace lacuna::cli {
namespace {

// The share of the rows that do not have a view.
double missing_share(const Selection& rows, std::size_t view) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) missing += !rows.has(i, view);
  return rows.rows.empty() ? 0 : static_cast<double>(missing) / static_cast<double>(rows.rows.size());
}

double unknown_share(const Selection& rows) {
  std::size_t unknown = 0;
  const std::size_t labels = rows.data->label_count();
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    for (std::size_t j = 0; j < labels; ++j) unknown += rows.label(i, j) == kUnknown;
  return rows.rows.empty() ? 0
                           : static_cast<double>(unknown) / static_cast<double>(rows.rows.size() * labels);
}

std::string decision_words(const Model& model) {
  if (model.calibration().empty())
    return "Labels are decided by the method's own rule; 1-HL and F1, here and per label, use these "
           "decisions.";
  const Aim& aim = model.calibration().aim();
  const std::string rule =
      aim.kind == Aim::Kind::top
          ? fmt::format("the {} best labels of an item are assigned", aim.count)
          : fmt::format(
                "a label is assigned if its score exceeds the label's threshold, chosen on these rows for {}",
                aim.kind == Aim::Kind::f1 ? "F1" : fmt::format("a precision of {}", aim.precision));
  return fmt::format(
      "One rule decides throughout this page, that of lacuna predict --labels: {}. 1-HL and F1, here and per "
      "label, use these decisions.",
      rule);
}

// Metrics of the labels' frequencies alone, decided as they decide by themselves.
nlohmann::json floor_metrics(const Selection& learn, const Selection& val, const Matrix<std::int8_t>& truth) {
  Model floor("prior");
  FitContext context;
  floor.fit(learn, val, context);
  const Matrix<float> scores = floor.predict(val);
  return metrics_json(evaluate(scores, truth, floor.decide(scores)));
}

std::string rows_words(const nlohmann::json& rows) {
  std::string words =
      fmt::format("{} for training, {} for validation", rows["train"].dump(), rows["val"].dump());
  if (rows.contains("refit")) words += fmt::format("; then all {} in a second fit", rows["refit"].dump());
  if (rows.contains("unlabelled"))
    words +=
        fmt::format("; the views of {} that will be scored took part in training", rows["unlabelled"].dump());
  return words;
}

// Everything that is measured on the validation rows, with one rule for decisions.
void describe_validation(const Model& model, const Selection& learn, const Selection& val,
                         ModelReport& page) {
  const bool refitted = !model.refitted().is_null();
  const Matrix<float> scores = refitted ? *model.validation_scores() : model.predict(val);
  const Matrix<std::uint8_t> decided = model.decide(scores);
  const Matrix<std::int8_t> truth = true_labels(val);
  page.metrics = metrics_json(evaluate(scores, truth, decided));
  const MetricIntervals bootstrap = bootstrap_metrics(scores, truth, decided);
  for (std::size_t k = 0; k < metric_names().size(); ++k)
    page.intervals[metric_names()[k]] = {bootstrap.intervals[k].low, bootstrap.intervals[k].high};
  page.floor = floor_metrics(learn, val, truth);
  page.ceiling = ceiling_sentence(truth);
  page.decision = decision_words(model);
  page.caution =
      "These rows also chose the epoch, the thresholds and the calibration, so their figures are slightly "
      "optimistic. For unbiased figures use lacuna evaluate on a test part.";
  if (refitted)
    page.caution +=
        " They are of the first fit. The model itself has also learned from these rows, so that nothing here "
        "is left to measure it by.";
  page.details =
      prediction_details(scores, truth, decided, model.label_names(), model.method().traits().probabilities);
  try {
    page.importance = to_json(summarise_views(model, val));
  } catch (const Error& error) {  // no validation row has both a view and a known label
    if (error.code() != Exit::data) throw;
  }
  const auto& thresholds = model.calibration().thresholds();
  for (std::size_t j = 0; j < thresholds.size(); ++j) page.details["labels"][j]["threshold"] = thresholds[j];
  if (model.calibration().empty()) return;
  Matrix<float> calibrated = scores;
  model.calibrate(calibrated);
  page.details["calibrated"] = reliability_details(calibrated, truth);
  page.details["calibrated_on_these_rows"] = true;
}

}  // namespace

void write_model_page(const std::string& path, const TrainingFacts& facts, const Model& model,
                      const Selection& learn, const Selection& val) {
  const Traits traits = model.method().traits();
  const nlohmann::json& document = facts.document;
  ModelReport page;
  page.title = fmt::format("{} on {}", traits.title, val.data->name);
  page.command = facts.command;
  page.facts = {{"model", document["model"].get<std::string>()},
                {"method", traits.title + (model.preset().empty() ? "" : ", preset " + model.preset())},
                {"data", facts.data},
                {"rows", rows_words(document["rows"])},
                {"labels", fmt::format("{}; {} of the training ones are unknown", learn.data->label_count(),
                                       percent(unknown_share(learn)))},
                {"protocol", document["protocol"].get<std::string>() +
                                 (model.notes().contains("leaks") ? ", which leaks" : "")},
                {"seed", document["seed"].dump()},
                {"parameters", count_text(model.method().parameters())},
                {"base of the effects of views", base_of(model, {}) == Base::prior
                                                     ? "the label frequencies in training"
                                                     : "the model's output without views"},
                {"time", duration_text(document["seconds"])}};
  for (std::size_t v = 0; v < learn.data->views.size(); ++v)
    page.views.push_back({learn.data->views[v].name, learn.data->views[v].columns(), missing_share(learn, v),
                          missing_share(val, v)});
  page.metrics_part = "validation";
  page.choice = choice_of(model.method());
  page.history = document["history"];
  page.options = document["options"];
  if (!val.rows.empty()) describe_validation(model, learn, val, page);
  write_model_report(page, path);
}

}  // namespace lacuna::cli
