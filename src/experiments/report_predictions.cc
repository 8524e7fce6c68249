// What stands behind the figures: how learning went, single labels, whether scores are probabilities.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "data/metrics.h"
#include "experiments/published.h"
#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {

using nlohmann::json;

namespace {

// The course of a metric on the validation rows, of the first member where there are several.
Series validation_curve(const json& history, const std::string& metric) {
  Series series;
  for (const auto& line : history) {
    if (!line.contains("validation") || line.value("member", 0) != 0) continue;
    const auto& validation = line["validation"];
    if (!validation.is_object() || !validation.contains(metric) || !validation[metric].is_number()) continue;
    series.x.push_back(line.value("epoch", 0.));
    series.y.push_back(validation[metric].get<double>());
  }
  return series;
}

}  // namespace

bool has_learning(const ExperimentResults& results) {
  const std::string metric = results.header.value("metric", "AP");
  return std::any_of(results.cells.begin(), results.cells.end(), [&](const ResultCell& cell) {
    return cell.fold == 0 && cell.result.is_object() && cell.result.contains("history") &&
           validation_curve(cell.result["history"], metric).x.size() > 1;
  });
}

void show_learning(const ExperimentResults& results, ReportSink& sink) {
  const std::string metric = results.header.value("metric", "AP");
  sink.page().begin_gallery(true);
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
      sink.plot(results.name + "-learning-" + data.name, line_plot(plot),
                fmt::format("{}, first repetition; methods without epochs have no curve.", data.name));
  }
  sink.page().end_gallery();
}

void show_details(const std::string& name, const json& details, ReportSink& sink) {
  if (!details.is_object()) return;
  const auto number = [](const json& value, int digits) {
    return value.is_number() ? TableCell::number(value.get<double>(), digits) : TableCell("-");
  };
  if (const auto& labels = details.at("labels"); !labels.empty()) {
    // The page shows the most frequent labels; the files hold all of them.
    constexpr std::size_t kShown = 400;
    ResultTable table;
    table.name = name + "-labels";
    table.header = {"label", "positives", "AP", "AUC", "F1"};
    std::vector<const json*> order;
    for (const auto& label : labels) order.push_back(&label);
    std::stable_sort(order.begin(), order.end(), [](const json* a, const json* b) {
      return a->at("positives").get<std::uint64_t>() > b->at("positives").get<std::uint64_t>();
    });
    for (const json* label : order)
      table.rows.push_back({TableCell(label->at("name").get<std::string>()),
                            number(label->at("positives"), 0), number(label->at("AP"), 3),
                            number(label->at("AUC"), 3), number(label->at("F1"), 3)});
    table.filter = table.rows.size() > 12;
    const std::size_t all = table.rows.size();
    table.caption =
        all > kShown ? fmt::format("The {} most frequent of {} labels; the table's files hold all of them.",
                                   kShown, all)
                     : fmt::format("Each of the {} labels, most frequent first.", all);
    sink.table(table, kShown);
  }
  sink.page().begin_gallery();
  if (const auto& curves = details.at("curves"); !curves.empty()) {
    LinePlot plot{.title = "Precision against recall",
                  .x_label = "recall",
                  .y_label = "precision",
                  .series = {},
                  .unit_square = true,
                  .marks = false,
                  .width = 500,
                  .height = 380};
    int style = 0;
    for (const auto& curve : curves) {
      Series series{.name = fmt::format("{} ({})", curve.at("label").get<std::string>(),
                                        curve.at("positives").get<int>()),
                    .style = style++ % 8};
      for (const auto& point : curve.at("points")) {
        series.x.push_back(point[0].get<double>());
        series.y.push_back(point[1].get<double>());
      }
      plot.series.push_back(std::move(series));
    }
    sink.plot(name + "-precision-recall", line_plot(plot),
              "Precision against recall of the three most frequent labels and the three rarest with at least "
              "five positives (in "
              "brackets: how many).");
  }
  if (details.contains("reliability")) {
    ReliabilityPlot plot{.title = "Reliability of the scores", .score = {}, .positive = {}, .count = {}};
    for (const auto& bin : details["reliability"].at("bins")) {
      plot.score.push_back(bin.at("score"));
      plot.positive.push_back(bin.at("positive"));
      plot.count.push_back(bin.at("count"));
    }
    sink.plot(
        name + "-reliability", reliability_plot(plot),
        fmt::format(
            "Do scores mean what they say? On the dashed line they are probabilities. Mean distance from it, "
            "weighted by "
            "count: {:.4f}. Bars below: how many label decisions fall into each tenth (square-root scale).",
            details["reliability"].at("error").get<double>()));
  }
  sink.page().end_gallery();
}

void write_model_report(const ModelReport& report, const std::string& path) {
  Page page(report.title, "A report by Lacuna about one model");
  ReportSink sink(page, "");
  page.section("Overview");
  const auto metric = [&](const char* name) {
    return report.metrics.is_object() ? report.metrics.value(name, json()) : json();
  };
  std::string lead = report.title + ".";
  if (metric("AP").is_number())
    lead += fmt::format(
        " On the {} rows the average precision is {:.3f} and the best-ranked label is right for {} of the "
        "items.",
        report.metrics_part, metric("AP").get<double>(),
        metric("1-OE").is_number() ? percent(metric("1-OE").get<double>()) : "an unknown share");
  if (report.details.is_object() && report.details.contains("reliability"))
    lead += fmt::format(" Scores differ from the observed shares of positives by {:.3f} on average.",
                        report.details["reliability"].value("error", 0.));
  page.lead(lead);
  page.definitions(report.facts);
  if (report.metrics.is_object() && !report.metrics.empty()) {
    page.section("Metrics");
    ResultTable table;
    table.name = "metrics";
    table.caption = fmt::format("On the {} rows; higher is better for all of them.", report.metrics_part);
    table.header = {"metric", "value"};
    for (const auto& name : metric_names())
      if (const json value = report.metrics.value(name, json()); !value.is_null())
        table.rows.push_back(
            {name, value.is_number() ? TableCell::number(value.get<double>(), 4) : TableCell("-")});
    sink.table(table);
  }
  if (report.history.is_array() && report.history.size() > 1) {
    page.section("Learning");
    page.begin_gallery(true);
    LinePlot curves{
        .title = "Metrics on validation rows", .x_label = "epoch", .y_label = "value", .series = {}};
    int style = 0;
    for (const char* name : {"AP", "1-RL", "AUC", "1-OE", "1-Cov"}) {
      Series series = validation_curve(report.history, name);
      series.name = name;
      series.style = style++;
      series.lead = series.style == 0;
      if (series.x.size() > 1) curves.series.push_back(std::move(series));
    }
    if (!curves.series.empty()) page.figure(line_plot(curves), "Metrics on validation rows by epoch.");
    LinePlot losses{.title = "Losses", .x_label = "epoch", .y_label = "loss", .series = {}};
    for (const auto& line : report.history) {
      if (line.value("member", 0) != 0 || !line.contains("losses")) continue;
      for (const auto& [name, value] : line["losses"].items()) {
        if (!value.is_number()) continue;
        auto at = std::find_if(losses.series.begin(), losses.series.end(),
                               [&](const Series& s) { return s.name == name; });
        if (at == losses.series.end()) {
          losses.series.push_back(
              {.name = name, .style = static_cast<int>(losses.series.size()), .lead = name == "total"});
          at = losses.series.end() - 1;
        }
        at->x.push_back(line.value("epoch", 0.));
        at->y.push_back(value.get<double>());
      }
    }
    if (!losses.series.empty()) page.figure(line_plot(losses), "Training losses by epoch, before weighting.");
    page.end_gallery();
  }
  if (report.details.is_object()) {
    page.section("Labels");
    show_details("model", report.details, sink);
  }
  page.section("How to make it again");
  page.code(report.command);
  if (report.options.is_object() && !report.options.empty()) {
    page.begin_details("all settings");
    std::vector<std::pair<std::string, std::string>> settings;
    for (const auto& [name, value] : report.options.items())
      settings.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    page.definitions(settings);
    page.end_details();
  }
  write_text(path, page.text());
}

}  // namespace lacuna
