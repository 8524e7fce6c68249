// Details behind the figures: learning curves, single labels, calibration of the scores.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/report.h"

namespace lacuna {

using nlohmann::json;

bool of_first_fit(const json& line) {
  return line.value("pass", 0) == 0 && line.value("member", 0) == 0 && line.value("view", 0) == 0;
}

Series validation_curve(const json& history, const std::string& metric) {
  Series series;
  for (const auto& line : history) {
    if (!line.contains("validation") || !of_first_fit(line)) continue;
    const auto& validation = line["validation"];
    if (!validation.is_object() || !validation.contains(metric) || !validation[metric].is_number()) continue;
    series.x.push_back(line.value("epoch", 0.));
    series.y.push_back(validation[metric].get<double>());
  }
  return series;
}

bool has_learning(const ExperimentResults& results) {
  const std::string metric = results.header.value("metric", "AP");
  return std::any_of(results.cells.begin(), results.cells.end(), [&](const ResultCell& cell) {
    return cell.fold == 0 && cell.result.is_object() && cell.result.contains("history") &&
           validation_curve(cell.result["history"], metric).x.size() > 1;
  });
}

void show_learning(const ExperimentResults& results, ReportSink& sink) {
  const std::string metric = results.header.value("metric", "AP");
  sink.page().begin_gallery();
  for (const auto& data : results.data) {
    LinePlot plot{.title = fmt::format("Learning curves on {}", data.name),
                  .x_label = "epoch or iteration",
                  .y_label = metric + " on validation rows",
                  .series = {},
                  .log_x = true};
    for (const auto& method : results.methods) {
      const auto cells = results.select(data.name, method.key);
      if (cells.empty() || !cells[0]->result.contains("history")) continue;
      Series series = validation_curve(cells[0]->result["history"], metric);
      if (series.x.size() < 2) continue;
      series.name = method.title;
      series.style = method.style;
      series.lead = method.key == results.lead().key;
      plot.series.push_back(std::move(series));
    }
    if (!plot.series.empty())
      sink.plot(
          results.name + "-learning-" + data.name, plot,
          fmt::format(
              "{}, first repetition, on a logarithmic scale of epochs; methods without epochs have no curve.",
              data.name));
  }
  sink.page().end_gallery();
}

namespace {

TableCell number_cell(const json& value, int digits) {
  return value.is_number() ? TableCell::number(value.get<double>(), digits) : TableCell("-");
}

// The page shows the most frequent labels; the files hold all of them.
void show_labels(const std::string& name, const std::string& owner, const json& labels, ReportSink& sink) {
  constexpr std::size_t kShown = 400;
  ResultTable table;
  table.name = name + "-labels";
  const bool thresholds = labels.front().contains("threshold");
  table.header = {"label", "positives", "AP", "AUC", "F1"};
  if (thresholds) table.header.push_back("threshold");
  std::vector<const json*> order;
  for (const auto& label : labels) order.push_back(&label);
  std::stable_sort(order.begin(), order.end(), [](const json* a, const json* b) {
    return a->at("positives").get<std::uint64_t>() > b->at("positives").get<std::uint64_t>();
  });
  for (const json* label : order) {
    table.rows.push_back({TableCell(label->at("name").get<std::string>()),
                          number_cell(label->at("positives"), 0), number_cell(label->at("AP"), 3),
                          number_cell(label->at("AUC"), 3), number_cell(label->at("F1"), 3)});
    if (thresholds) table.rows.back().push_back(number_cell(label->value("threshold", json()), 3));
  }
  table.filter = table.rows.size() > 12;
  const std::size_t all = table.rows.size();
  table.caption =
      all > kShown ? fmt::format("{}: the {} most frequent of {} labels; the table's files contain all of "
                                 "them.",
                                 owner, kShown, all)
                   : fmt::format("{}: each of the {} labels, most frequent first.", owner, all);
  table.notes.push_back(
      "Positives: rows that have the label. AP: average precision of the rows ranked by this label's score; "
      "the share of "
      "positives is its floor. AUC: area under the ROC curve, floor .5. F1: of the decisions.");
  sink.table(table, kShown);
}

void show_precision_recall(const std::string& name, const json& curves, ReportSink& sink) {
  LinePlot plot{.title = "Precision against recall",
                .x_label = "recall",
                .y_label = "precision",
                .series = {},
                .unit_square = true,
                .most_marks = 5,
                .height = 360};
  int style = 0;
  for (const auto& curve : curves) {
    Series series{.name = fmt::format("{} ({})", curve.at("label").get<std::string>(),
                                      curve.at("positives").get<int>()),
                  .style = style++};
    for (const auto& point : curve.at("points")) {
      series.x.push_back(point[0].get<double>());
      series.y.push_back(point[1].get<double>());
    }
    plot.series.push_back(std::move(series));
  }
  sink.plot(name + "-precision-recall", plot,
            "Precision against recall of the three most frequent labels and the three rarest with at least "
            "five positives "
            "(in brackets: how many).");
}

ReliabilityPlot::Curve reliability_curve(const std::string& name, const json& found) {
  ReliabilityPlot::Curve curve{name, {}, {}, {}};
  for (const auto& bin : found.at("bins")) {
    curve.score.push_back(bin.at("score"));
    curve.positive.push_back(bin.at("positive"));
    curve.count.push_back(bin.at("count"));
  }
  return curve;
}

void show_reliability(const std::string& name, const json& details, ReportSink& sink) {
  ReliabilityPlot plot{.title = "Reliability of the scores", .curves = {}};
  std::string errors;
  for (const auto& [key, words] :
       {std::pair("reliability", "scores"), std::pair("calibrated", "calibrated")}) {
    if (!details.contains(key)) continue;
    plot.curves.push_back(reliability_curve(words, details[key]));
    errors += fmt::format("{}{:.4f} ({})", errors.empty() ? "" : ", ", details[key].at("error").get<double>(),
                          words);
  }
  sink.plot(
      name + "-reliability", plot,
      fmt::format(
          "Are the scores calibrated? On the dashed line they are probabilities. Mean distance from it, "
          "weighted by count: {}. Bars are 95 % intervals (Wilson) as if decisions were independent; the "
          "numbers below count the decisions, one per item and label, in each tenth.{}",
          errors,
          details.value("calibrated_on_these_rows", false)
              ? " The calibration was fitted on these rows: on others it will be less exact."
              : ""));
}

}  // namespace

void show_details(const std::string& name, const std::string& owner, const json& details, ReportSink& sink) {
  if (!details.is_object()) return;
  if (const auto& labels = details.at("labels"); !labels.empty()) show_labels(name, owner, labels, sink);
  sink.page().begin_gallery();
  if (const auto& curves = details.at("curves"); !curves.empty()) show_precision_recall(name, curves, sink);
  if (details.contains("reliability") || details.contains("calibrated"))
    show_reliability(name, details, sink);
  sink.page().end_gallery();
}

}  // namespace lacuna
