// Studies: ablation and sensitivity of one method, and all methods against the share of missing data.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
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

// The most repetitions that any cell of a figure has.
std::size_t repetitions_of(const ExperimentResults& results, const std::string& data,
                           const std::string& figure) {
  std::size_t most = 0;
  for (const auto& cell : results.cells)
    if (cell.data == data && cell.place.value("figure", "") == figure && cell.result.is_object())
      most = std::max(most, cell.fold + 1);
  return most;
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
          fmt::format("{}, {}, {}: parts of the network and of its loss added and removed; {}.", data.name,
                      method.title, results.gaps(data), spread_words(repetitions));
      table.notes.push_back(
          "s_ch: one channel; d_ch: a shared and a proprietary channel; L_gc: label-guided graph; L_re: "
          "reconstruction; MTD: all "
          "of them and the cross-channel contrast; w/o mask: no fragment masking.");
      sink.table(table);
    }
}

namespace {

// Noise should not look like an effect: charts of metrics span at least this much.
constexpr double kLeastSpan = .02;

HeatMap alpha_beta_map(const ExperimentResults& results, const DataInfo& data, const MethodInfo& method,
                       const std::string& metric) {
  const auto alphas = coordinates<double>(results, "alpha", "alpha-beta");
  const auto betas = coordinates<double>(results, "beta", "alpha-beta");
  HeatMap map{.title = fmt::format("{} against alpha and beta on {}", metric, data.name),
              .x_label = "beta",
              .y_label = "alpha",
              .value_label = metric,
              .panels = {{"", Matrix<double>(alphas.size(), betas.size())}},
              .mark_best = true,
              .width = 520};
  for (double beta : betas) map.columns.push_back(fmt::format("{:g}", beta));
  for (std::size_t a = 0; a < alphas.size(); ++a) {
    map.rows.push_back(fmt::format("{:g}", alphas[a]));
    for (std::size_t b = 0; b < betas.size(); ++b) {
      double& value = map.panels[0].values(a, b);
      value = mean_or_missing(
          results.values(data.name, method.key, metric,
                         {{"figure", "alpha-beta"}, {"alpha", alphas[a]}, {"beta", betas[b]}}));
      map.colours.add(value);
    }
  }
  return map;
}

// The largest deviation over repetitions in a figure; NaN with one repetition.
double largest_deviation(const ExperimentResults& results, const DataInfo& data, const MethodInfo& method,
                         const std::string& metric, const std::string& figure) {
  double most = kMissing;
  for (const auto& cell : results.cells) {
    if (cell.fold != 0 || cell.place.value("figure", "") != figure || cell.method != method.key) continue;
    json where = {{"figure", figure}};
    for (const char* key : {"alpha", "beta"})
      if (cell.place.contains(key)) where[key] = cell.place[key];
    const auto values = results.values(data.name, method.key, metric, where);
    if (values.size() > 1) most = std::isnan(most) ? deviation(values) : std::max(most, deviation(values));
  }
  return most;
}

void show_alpha_beta(const ExperimentResults& results, const DataInfo& data, const MethodInfo& method,
                     const std::string& metric, const std::string& stem, ReportSink& sink) {
  HeatMap map = alpha_beta_map(results, data, method, metric);
  if (map.colours.empty()) return;
  const double differ = map.colours.span();
  const double noise = largest_deviation(results, data, method, metric, "alpha-beta");
  map.colours.widen(kLeastSpan);
  const std::size_t repetitions = repetitions_of(results, data.name, "alpha-beta");
  sink.plot(stem + "-alpha-beta", map,
            fmt::format(
                "{} against the weights of the graph loss (alpha) and of the contrast (beta), on logarithmic "
                "steps; the best is framed. The values range over {:.3f}; {}. The colours span {:.3f}.",
                metric, differ,
                std::isnan(noise)
                    ? "there was one repetition, so a difference of this size may be chance"
                    : fmt::format("the largest deviation over {} repetitions is {:.3f}", repetitions, noise),
                map.colours.span()));
}

}  // namespace

void show_sensitivity(const ExperimentResults& results, ReportSink& sink) {
  const std::string metric = results.header.value("metric", "AP");
  for (const auto& data : results.data)
    for (const auto& method : results.methods) {
      sink.page().heading(fmt::format("{}, {}", data.name, method.title));
      const std::string stem = fmt::format("{}-{}-{}", results.name, data.name, method.key);
      show_alpha_beta(results, data, method, metric, stem, sink);
      sink.page().begin_gallery();
      ExperimentResults one = results;
      one.methods = {method};
      for (const auto& [figure, label] : {std::pair("gamma", "gamma"), std::pair("sigma", "mask rate")}) {
        LinePlot plot{.title = fmt::format("{} against {} on {}", metric, label, data.name),
                      .x_label = label,
                      .y_label = metric,
                      .series = against(one, data, metric, figure, figure),
                      .log_x = std::string(figure) == "gamma",
                      .least_span = kLeastSpan,
                      .height = 280};
        if (!plot.series.empty())
          sink.plot(stem + "-" + figure, plot,
                    fmt::format(
                        "{} against the {}; {}{}.", metric,
                        std::string(figure) == "gamma" ? "weight of the reconstruction (gamma)" : "mask rate",
                        plot.series.front().spread.empty() ? "" : "the band is one deviation to each side; ",
                        spread_words(repetitions_of(results, data.name, figure))));
      }
      sink.page().end_gallery();
    }
  if (results.data.size() < 2) return;
  // All data sets in one plot, as the paper shows them.
  sink.page().heading("All data sets");
  sink.page().begin_gallery();
  for (const auto& [figure, label] : {std::pair("gamma", "gamma"), std::pair("sigma", "mask rate")}) {
    LinePlot plot{.title = fmt::format("{} against {}", metric, label),
                  .x_label = label,
                  .y_label = metric,
                  .series = {},
                  .log_x = std::string(figure) == "gamma",
                  .width = 520,
                  .height = 300};
    for (std::size_t d = 0; d < results.data.size(); ++d)
      for (Series& series : against(results, results.data[d], metric, figure, figure)) {
        series.name = results.methods.size() > 1 ? fmt::format("{}, {}", results.data[d].name, series.name)
                                                 : results.data[d].name;
        series.style = static_cast<int>(plot.series.size());
        series.lead = false;
        plot.series.push_back(std::move(series));
      }
    if (!plot.series.empty())
      sink.plot(fmt::format("{}-all-{}", results.name, figure), plot,
                fmt::format("{} against {}, all data sets.", metric, label));
  }
  sink.page().end_gallery();
}

namespace {

// The shares at which a figure has no cell though another has: they could not be drawn.
std::string dropped_rates(const ExperimentResults& results, const std::string& figure, const DataInfo& data) {
  std::set<double> here, all;
  for (const auto& cell : results.cells) {
    if (cell.data != data.name || !cell.place.contains("rate")) continue;
    all.insert(cell.place["rate"].get<double>());
    if (cell.place.value("figure", "") == figure) here.insert(cell.place["rate"].get<double>());
  }
  std::vector<std::string> gone;
  for (double rate : all)
    if (!here.contains(rate)) gone.push_back(fmt::format("{:g}", rate));
  if (gone.empty()) return "";
  return fmt::format(
      " Not shown: {}. With {} views at most {:.3g} of them can be missing if every item keeps one.",
      join(gone, ", "), data.views.size(), 1 - 1 / static_cast<double>(data.views.size()));
}

// What is missing besides the gaps that a figure varies.
std::string beside_words(const ExperimentResults& results, const DataInfo& data, const std::string& figure) {
  const GapFacts& gaps = data.gaps;
  std::string text =
      figure == "labels"
          ? fmt::format("{} of the views missing throughout", percent(gaps.views))
          : fmt::format("{} of the training labels missing throughout", percent(gaps.train_labels));
  if (const double own = figure == "labels" ? gaps.own_labels : gaps.own_views; own > 0)
    text += fmt::format(", in addition to {} of the {} that the data lack", percent(own), figure);
  if (const std::string draw = draw_words(results.header, true); !draw.empty()) text += ", " + draw;
  return text;
}

ResultTable rates_table(const ExperimentResults& results, const DataInfo& data, const std::string& figure,
                        const std::string& metric) {
  ResultTable table;
  table.name = fmt::format("{}-{}-{}", results.name, data.name, figure);
  table.caption = fmt::format("{}: {} by share of {} that is hidden, {}; {}.{}", data.name, metric, figure,
                              beside_words(results, data, figure),
                              spread_words(repetitions_of(results, data.name, figure)),
                              dropped_rates(results, figure, data));
  table.header = {"method"};
  const auto rates = coordinates<double>(results, "rate", figure);
  for (double rate : rates) table.header.push_back(fmt::format("{:g}", rate));
  if (rates.empty()) return table;
  for (const auto& method : results.methods) {
    std::vector<TableCell> row = {method.title};
    for (double rate : rates)
      row.push_back(
          mean_cell(results.values(data.name, method.key, metric, {{"figure", figure}, {"rate", rate}})));
    table.rows.push_back(std::move(row));
  }
  return table;
}

ResultTable without_table(const ExperimentResults& results, const DataInfo& data, const std::string& metric) {
  std::vector<std::string> left_out = {""};
  for (const auto& view : data.views) left_out.push_back(view.first);
  ResultTable table;
  table.name = fmt::format("{}-{}-without", results.name, data.name);
  table.caption = fmt::format(
      "{}: {} with one view left out everywhere and no other view hidden, {}; the difference from all views "
      "in brackets.",
      data.name, metric, beside_words(results, data, "views"));
  table.header = {"method"};
  for (const auto& view : left_out) table.header.push_back(view.empty() ? "all views" : "without " + view);
  bool any = false;
  for (const auto& method : results.methods) {
    std::vector<TableCell> row = {method.title};
    double all = kMissing;
    for (const auto& view : left_out) {
      const auto values =
          results.values(data.name, method.key, metric, {{"figure", "without"}, {"view", view}});
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
  if (!any) table.rows.clear();
  return table;
}

}  // namespace

void show_missing(const ExperimentResults& results, ReportSink& sink) {
  const std::string metric = results.header.value("metric", "AP");
  for (const auto& data : results.data) {
    sink.page().heading(data.name);
    sink.page().begin_gallery();
    for (const char* figure : {"views", "labels"}) {
      LinePlot plot{
          .title = fmt::format("{} against the share of missing {} on {}", metric, figure, data.name),
          .x_label = fmt::format("share of missing {}", figure),
          .y_label = metric,
          .series = against(results, data, metric, figure, "rate"),
          .least_span = kLeastSpan};
      const bool banded = !plot.series.empty() && !plot.series.front().spread.empty();
      if (!plot.series.empty())
        sink.plot(fmt::format("{}-{}-{}", results.name, data.name, figure), plot,
                  fmt::format("{} against the share of missing {}{}.{}", metric, figure,
                              banded ? "; the band is one deviation to each side; " +
                                           spread_words(repetitions_of(results, data.name, figure))
                                     : "",
                              dropped_rates(results, figure, data)));
    }
    sink.page().end_gallery();
    for (const ResultTable& table :
         {rates_table(results, data, "views", metric), rates_table(results, data, "labels", metric),
          without_table(results, data, metric)})
      if (!table.rows.empty()) sink.table(table);
  }
}

}  // namespace lacuna
