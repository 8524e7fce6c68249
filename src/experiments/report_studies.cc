// One method looked at closely: ablation, sensitivity, channel similarity, and all of them against missing
// data.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/published.h"
#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {

using nlohmann::json;

namespace {

// Distinct values of one coordinate among the cells that have it, in order of appearance.
template <class T>
std::vector<T> coordinates(const ExperimentResults& results, const std::string& key,
                           const std::string& figure) {
  std::vector<T> found;
  for (const auto& cell : results.cells) {
    if (!cell.place.contains(key) || (!figure.empty() && cell.place.value("figure", "") != figure)) continue;
    const T value = cell.place.at(key).get<T>();
    if (std::find(found.begin(), found.end(), value) == found.end()) found.push_back(value);
  }
  return found;
}

double mean_or_missing(const std::vector<double>& values) {
  return values.empty() ? kMissing : mean(values);
}

std::vector<Series> against(const ExperimentResults& results, const DataInfo& data, const std::string& metric,
                            const std::string& figure, const std::string& key) {
  std::vector<Series> all;
  for (const auto& method : results.methods) {
    Series series{.name = method.title,
                  .x = {},
                  .y = {},
                  .spread = {},
                  .style = method.style,
                  .lead = method.key == results.lead().key};
    bool spread = false;
    for (double x : coordinates<double>(results, key, figure)) {
      const auto values = results.values(data.name, method.key, metric, {{"figure", figure}, {key, x}});
      if (values.empty()) continue;
      series.x.push_back(x);
      series.y.push_back(mean(values));
      series.spread.push_back(deviation(values));
      spread = spread || values.size() > 1;
    }
    if (!spread || results.methods.size() > 3) series.spread.clear();  // many bands hide each other
    if (!series.x.empty()) all.push_back(std::move(series));
  }
  return all;
}

}  // namespace

void show_ablation(const ExperimentResults& results, ReportSink& sink) {
  for (const auto& data : results.data)
    for (const auto& method : results.methods) {
      ResultTable table;
      table.name = fmt::format("{}-{}-{}", results.name, data.name, method.key);
      table.header = {"variant"};
      for (const auto& metric : paper_metrics()) table.header.push_back(metric);
      const bool theirs = published_set(data.name, data.rows, data.labels) != nullptr && data.rows == 4999;
      const auto rows = coordinates<std::string>(results, "row", "");
      std::vector<double> best(paper_metrics().size(), -1);
      for (const auto& row : rows)
        for (std::size_t m = 0; m < best.size(); ++m)
          if (const auto values = results.values(data.name, method.key, paper_metrics()[m], {{"row", row}});
              !values.empty())
            best[m] = std::max(best[m], std::round(mean(values) * 1000));
      std::size_t repetitions = 0;
      for (const auto& row : rows) {
        std::vector<TableCell> line = {row};
        for (std::size_t m = 0; m < best.size(); ++m) {
          const auto values = results.values(data.name, method.key, paper_metrics()[m], {{"row", row}});
          repetitions = std::max(repetitions, values.size());
          TableCell cell = mean_cell(values);
          cell.best = !values.empty() && std::round(mean(values) * 1000) == best[m];
          line.push_back(cell);
        }
        table.rows.push_back(std::move(line));
        const PublishedAblation* printed = theirs ? published_ablation(row) : nullptr;
        if (printed == nullptr) continue;
        std::vector<TableCell> italic = {TableCell(row + ", as printed")};
        for (double value : printed->means) italic.push_back(TableCell::number(value, 3));
        for (auto& cell : italic) cell.theirs = true;
        table.rows.push_back(std::move(italic));
      }
      table.caption =
          fmt::format("{}, {}: parts of the network and of its loss added and taken away; {} repetition{}.",
                      data.name, method.title, repetitions, repetitions == 1 ? "" : "s");
      table.notes.push_back(
          "s_ch: one channel; d_ch: a shared and a proprietary channel; L_gc: label-guided graph; L_re: "
          "reconstruction; MTD: all "
          "of them and the cross-channel contrast; w/o mask: no fragment masking.");
      sink.table(table);
    }
}

void show_sensitivity(const ExperimentResults& results, ReportSink& sink) {
  const std::string metric = results.header.value("metric", "AP");
  for (const auto& data : results.data)
    for (const auto& method : results.methods) {
      sink.page().heading(fmt::format("{}, {}", data.name, method.title));
      sink.page().begin_gallery(true);
      const auto alphas = coordinates<double>(results, "alpha", "alpha-beta");
      const auto betas = coordinates<double>(results, "beta", "alpha-beta");
      HeatMap surface{.title = fmt::format("{} against alpha and beta on {}", metric, data.name),
                      .x_label = "beta",
                      .y_label = "alpha",
                      .columns = {},
                      .rows = {},
                      .values = Matrix<double>(alphas.size(), betas.size()),
                      .mark_best = true,
                      .cell = 58};
      for (double beta : betas) surface.columns.push_back(fmt::format("{:g}", beta));
      bool any = false;
      for (std::size_t a = 0; a < alphas.size(); ++a) {
        surface.rows.push_back(fmt::format("{:g}", alphas[a]));
        for (std::size_t b = 0; b < betas.size(); ++b) {
          surface.values(a, b) = mean_or_missing(
              results.values(data.name, method.key, metric,
                             {{"figure", "alpha-beta"}, {"alpha", alphas[a]}, {"beta", betas[b]}}));
          any = any || std::isfinite(surface.values(a, b));
        }
      }
      const std::string stem = fmt::format("{}-{}-{}", results.name, data.name, method.key);
      if (any)
        sink.plot(stem + "-alpha-beta", heat_map(surface),
                  fmt::format("{} against the weights of the graph loss (alpha) and of the contrast (beta); "
                              "the best is framed.",
                              metric));
      for (const auto& [figure, label] : {std::pair("gamma", "gamma"), std::pair("sigma", "mask rate")}) {
        ExperimentResults one = results;
        one.methods = {method};
        LinePlot plot{.title = fmt::format("{} against {} on {}", metric, label, data.name),
                      .x_label = label,
                      .y_label = metric,
                      .series = against(one, data, metric, figure, figure),
                      .log_x = std::string(figure) == "gamma",
                      .width = 520,
                      .height = 300};
        if (!plot.series.empty())
          sink.plot(stem + "-" + figure, line_plot(plot), fmt::format("{} against {}.", metric, label));
      }
      sink.page().end_gallery();
    }
}

void show_similarity(const ExperimentResults& results, ReportSink& sink) {
  for (const auto& data : results.data)
    for (const auto& method : results.methods) {
      const auto cells = results.select(data.name, method.key);
      if (cells.empty() || !cells[0]->result.contains("similarity")) continue;
      const json& found = cells[0]->result["similarity"];
      if (found.at("epochs").empty()) continue;
      const std::size_t m = found.at("views").size(), h = found["epochs"][0].at("sample").size();
      std::vector<std::string> names;
      for (std::size_t v = 0; v < h; ++v) names.push_back(fmt::format("{}{}", v < m ? "S" : "O", v % m + 1));
      std::string views;
      for (std::size_t v = 0; v < m; ++v)
        views += fmt::format("{}{} {}", v ? ", " : "", v + 1, found["views"][v].get<std::string>());
      sink.page().heading(fmt::format("{}, {}", data.name, method.title));
      sink.page().paragraph(
          fmt::format("Cosines between channels: S is the shared feature of a view, O its own; views: {}. "
                      "Blue is alike, orange "
                      "opposite; grey where the item lacks a view.",
                      views));
      for (const char* what : {"sample", "mean"}) {
        sink.page().begin_gallery();
        for (const auto& epoch : found.at("epochs")) {
          HeatMap map{.title = fmt::format("Channel similarity after epoch {}", epoch.at("epoch").get<int>()),
                      .columns = names,
                      .rows = names,
                      .values = Matrix<double>(h, h),
                      .diverging = true,
                      .numbers = false,
                      .cell = std::clamp(300. / static_cast<double>(h), 8., 30.)};
          for (std::size_t a = 0; a < h; ++a)
            for (std::size_t b = 0; b < h; ++b) {
              const auto& value = epoch.at(what)[a][b];
              map.values(a, b) = value.is_number() ? value.get<double>() : kMissing;
            }
          sink.plot(fmt::format("{}-{}-{}-{}", results.name, data.name, what, epoch.at("epoch").get<int>()),
                    heat_map(map),
                    fmt::format("{}, epoch {}",
                                std::string(what) == "sample" ? "one item" : "mean over all test items",
                                epoch.at("epoch").get<int>()));
        }
        sink.page().end_gallery();
      }
    }
}

void show_missing(const ExperimentResults& results, ReportSink& sink) {
  const std::string main_metric = results.header.value("metric", "AP");
  for (const auto& data : results.data) {
    sink.page().heading(data.name);
    sink.page().begin_gallery(true);
    for (const auto& [figure, label] :
         {std::pair("views", "share of missing views"), std::pair("labels", "share of missing labels")}) {
      LinePlot plot{.title = fmt::format("{} against the {} on {}", main_metric, label, data.name),
                    .x_label = label,
                    .y_label = main_metric,
                    .series = against(results, data, main_metric, figure, "rate")};
      if (!plot.series.empty())
        sink.plot(fmt::format("{}-{}-{}", results.name, data.name, figure), line_plot(plot),
                  fmt::format("{} against the {}.", main_metric, label));
    }
    sink.page().end_gallery();
    for (const auto& [figure, label] : {std::pair("views", "views"), std::pair("labels", "labels")}) {
      ResultTable table;
      table.name = fmt::format("{}-{}-{}", results.name, data.name, figure);
      table.caption = fmt::format("{}: {} by share of missing {}.", data.name, main_metric, label);
      table.header = {"method"};
      const auto rates = coordinates<double>(results, "rate", figure);
      for (double rate : rates) table.header.push_back(fmt::format("{:g}", rate));
      for (const auto& method : results.methods) {
        std::vector<TableCell> row = {method.title};
        for (double rate : rates)
          row.push_back(mean_cell(
              results.values(data.name, method.key, main_metric, {{"figure", figure}, {"rate", rate}})));
        table.rows.push_back(std::move(row));
      }
      if (!rates.empty()) sink.table(table);
    }
    std::vector<std::string> left_out = {""};
    for (const auto& view : data.views) left_out.push_back(view.first);
    ResultTable table;
    table.name = fmt::format("{}-{}-without", results.name, data.name);
    table.caption = fmt::format(
        "{}: {} with one view left out everywhere, no other view missing; the difference to all views in "
        "brackets.",
        data.name, main_metric);
    table.header = {"method"};
    for (const auto& view : left_out) table.header.push_back(view.empty() ? "all views" : "without " + view);
    bool any = false;
    for (const auto& method : results.methods) {
      std::vector<TableCell> row = {method.title};
      double all = kMissing;
      for (const auto& view : left_out) {
        const auto values =
            results.values(data.name, method.key, main_metric, {{"figure", "without"}, {"view", view}});
        TableCell cell = mean_cell(values);
        cell.deviation = kMissing;
        any = any || !values.empty();
        if (view.empty())
          all = mean_or_missing(values);
        else if (!values.empty() && std::isfinite(all))
          cell.text += fmt::format(" ({:+.3f})", mean(values) - all);
        row.push_back(cell);
      }
      table.rows.push_back(std::move(row));
    }
    if (any) sink.table(table);
  }
}

}  // namespace lacuna
