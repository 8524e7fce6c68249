// Comparisons of methods: tables, ranks, radar charts, and the same numbers as dots, which are easier to read.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "experiments/published.h"
#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {
namespace {

TableCell rank_cell(const std::vector<double>& column, std::size_t i) {
  TableCell cell = TableCell::number(column[i], 2);
  cell.best = rank_place(column, i) == 0;
  cell.second = rank_place(column, i) == 1;
  return cell;
}

// Means as printed (thousandths), by metric and method; NaN where there is none.
std::vector<std::vector<double>> rounded_means(const ExperimentResults& results, const std::string& data) {
  std::vector<std::vector<double>> shown(paper_metrics().size());
  for (std::size_t m = 0; m < paper_metrics().size(); ++m)
    for (const auto& method : results.methods) {
      const auto values = results.values(data, method.key, paper_metrics()[m]);
      shown[m].push_back(values.empty() ? std::nan("") : std::round(mean(values) * 1000));
    }
  return shown;
}

// The k-th largest distinct mean among the ranked methods; -1 if there is none.
double largest_mean(const ExperimentResults& results, const std::vector<double>& means, std::size_t k) {
  std::set<double> values;
  for (std::size_t i = 0; i < means.size(); ++i)
    if (results.methods[i].ranked && std::isfinite(means[i])) values.insert(means[i]);
  return k < values.size() ? *std::next(values.rbegin(), static_cast<std::ptrdiff_t>(k)) : -1;
}

// What the paper prints for a method, and ours minus that.
std::vector<TableCell> printed_row(const MethodInfo& method, const PublishedSet& theirs, std::size_t at) {
  std::vector<TableCell> row = {TableCell(method.title + ", as printed")};
  for (std::size_t m = 0; m < paper_metrics().size(); ++m) {
    TableCell cell = TableCell::number(theirs.methods[at][m].mean, 3);
    cell.deviation = theirs.methods[at][m].deviation;
    row.push_back(cell);
  }
  row.push_back(TableCell::number(theirs.average_rank[at], 2));
  for (auto& cell : row) cell.theirs = true;
  return row;
}
std::vector<TableCell> difference_row(const ExperimentResults& results, const std::string& data,
                                      const MethodInfo& method, const PublishedSet& theirs, std::size_t at) {
  std::vector<TableCell> row = {TableCell(method.title + ", difference")};
  for (std::size_t m = 0; m < paper_metrics().size(); ++m) {
    const auto values = results.values(data, method.key, paper_metrics()[m]);
    row.push_back(values.empty() ? TableCell("-")
                                 : TableCell::signed_number(mean(values) - theirs.methods[at][m].mean, 3));
  }
  row.push_back("");
  return row;
}

ResultTable data_table(const ExperimentResults& results, const DataInfo& data) {
  ResultTable table;
  table.name = results.name + "-" + data.name;
  table.header = {"method"};
  for (const auto& metric : paper_metrics()) table.header.push_back(metric);
  table.header.push_back("Ave.R");
  const PublishedSet* theirs =
      results.kind == "table" ? published_set(data.name, data.rows, data.labels) : nullptr;
  const std::vector<double> ranking = average_ranks(results, data.name);
  std::size_t repetitions = 0, expected = 0;
  for (const auto& cell : results.cells)
    if (cell.data == data.name) expected = std::max(expected, cell.fold + 1);
  const auto shown = rounded_means(results, data.name);
  bool beside = false;
  for (std::size_t i = 0; i < results.methods.size(); ++i) {
    const MethodInfo& method = results.methods[i];
    std::vector<TableCell> row = {method.marked()};
    beside = beside || !method.ranked;
    std::size_t count = 0;
    for (std::size_t m = 0; m < paper_metrics().size(); ++m) {
      const auto values = results.values(data.name, method.key, paper_metrics()[m]);
      count = values.size();
      TableCell cell = mean_cell(values);
      cell.best = method.ranked && shown[m][i] == largest_mean(results, shown[m], 0);
      cell.second = method.ranked && shown[m][i] == largest_mean(results, shown[m], 1);
      row.push_back(cell);
    }
    repetitions = std::max(repetitions, count);
    row.push_back(rank_cell(ranking, i));
    if (count < expected && count > 0)
      table.notes.push_back(fmt::format("{}: {} of {} repetitions.", method.title, count, expected));
    table.rows.push_back(std::move(row));
    const std::size_t at = published_method(method.name);
    if (theirs != nullptr && at < published_methods().size()) {
      table.rows.push_back(printed_row(method, *theirs, at));
      table.rows.push_back(difference_row(results, data.name, method, *theirs, at));
    }
  }
  table.caption =
      fmt::format("{}, {}: means; the best value of each column is bold, the second best underlined; {}.",
                  data.name, results.gaps(data), spread_words(repetitions));
  table.notes.push_back(
      "Ave.R is the mean over the six metrics of a method's rank, by means rounded to three digits; methods "
      "that tie all get "
      "the best of their ranks, as in the paper that introduced MTD.");
  if (beside)
    table.notes.push_back(
        "† is neither ranked nor marked: the floor, standard baselines, or the default network.");
  if (theirs != nullptr)
    table.notes.push_back(
        "Rows in italics are the figures printed in the paper that introduced MTD (NeurIPS 2023); they are "
        "not ranked here, and their splits, gaps and test rows are not ours. The difference is ours minus "
        "theirs.");
  return table;
}

ResultTable rank_table(const ExperimentResults& results) {
  ResultTable table;
  table.name = results.name + "-ranks";
  table.caption =
      fmt::format("Ave.R over the six metrics (1 is best), {}: by data set, and its mean over all of them.",
                  results.gaps());
  table.header = {"method"};
  for (const auto& data : results.data) table.header.push_back(data.name);
  table.header.push_back("all");
  std::vector<std::vector<double>> columns;
  for (const auto& data : results.data) columns.push_back(average_ranks(results, data.name));
  columns.push_back(overall_ranks(results));
  for (std::size_t i = 0; i < results.methods.size(); ++i) {
    if (!results.methods[i].ranked) continue;
    std::vector<TableCell> row = {results.methods[i].title};
    for (const auto& column : columns) row.push_back(rank_cell(column, i));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void show_comparison(const ExperimentResults& results, ReportSink& sink) {
  sink.table_file(results.name + "-stacked", ".tex", stacked_latex(results, DeviationStyle::subscript));
  sink.table_file(results.name + "-stacked-pm", ".tex", stacked_latex(results, DeviationStyle::plus_minus));
  if (results.data.size() > 1) sink.table(rank_table(results));
  for (const auto& data : results.data) {
    sink.page().heading(data.name);
    sink.table(data_table(results, data));
  }
}

namespace {

// Means over repetitions, and deviations, of the six metrics; nothing where the method has no cell.
std::optional<Series> six_metrics(const ExperimentResults& results, const DataInfo& data,
                                  const MethodInfo& method) {
  Series series{.name = method.title, .style = method.style, .lead = method.key == results.lead().key};
  bool any = false;
  for (const auto& metric : paper_metrics()) {
    const auto values = results.values(data.name, method.key, metric);
    series.y.push_back(values.empty() ? kMissing : mean(values));
    series.spread.push_back(values.size() < 2 ? 0 : deviation(values));
    any = any || !values.empty();
  }
  return any ? std::optional(std::move(series)) : std::nullopt;
}

}  // namespace

void show_radars(const ExperimentResults& results, ReportSink& sink) {
  for (const auto& data : results.data) {
    RadarPlot radar{
        .title = fmt::format("Six metrics on {}", data.name), .axes = paper_metrics(), .series = {}};
    DotPlot dots{.title = fmt::format("Six metrics on {}, method by method", data.name),
                 .axes = paper_metrics(),
                 .series = {},
                 .least_span = .02};
    std::size_t repetitions = 0;
    for (const auto& method : results.methods) {
      if (!method.ranked) continue;
      const auto series = six_metrics(results, data, method);
      if (!series) continue;
      repetitions = std::max(repetitions, results.values(data.name, method.key, "AP").size());
      radar.series.push_back(*series);
      dots.series.push_back(*series);
    }
    if (radar.series.empty()) continue;
    sink.page().begin_gallery();
    sink.plot(
        results.name + "-radar-" + data.name, radar,
        fmt::format(
            "{}, {}. Each axis has its own scale, from the worst of the ranked methods at the centre to the "
            "best at the rim, with both values at its end. So equal lengths on two axes are not equal "
            "differences.",
            data.name, results.gaps(data)));
    sink.plot(
        results.name + "-dots-" + data.name, dots,
        fmt::format(
            "{}: the same numbers, each metric on its own scale; the dashed line is the best method{}.",
            data.name,
            repetitions > 1 ? ", bars are ± one deviation; " + spread_words(repetitions)
                            : "; " + spread_words(repetitions)));
    sink.page().end_gallery();
  }
}

}  // namespace lacuna
