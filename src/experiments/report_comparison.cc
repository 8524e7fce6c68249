// Methods against methods: the tables, the ranks, the significance tests, the radar charts.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/published.h"
#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {
namespace {

std::string p_text(double p) {
  return p < 1e-4 ? "p < 0.0001" : fmt::format("p = {:.4f}", p);
}

ResultTable data_table(const ExperimentResults& results, const DataInfo& data) {
  ResultTable table;
  table.name = results.name + "-" + data.name;
  table.header = {"method"};
  for (const auto& metric : paper_metrics()) table.header.push_back(metric);
  table.header.push_back("avg. rank");
  const PublishedSet* theirs =
      results.kind == "table" ? published_set(data.name, data.rows, data.labels) : nullptr;
  const RankSummary ranking = rank_methods(results, data.name);
  std::size_t repetitions = 0, expected = 0;
  for (const auto& cell : results.cells)
    if (cell.data == data.name) expected = std::max(expected, cell.fold + 1);
  std::vector<std::vector<double>> shown(paper_metrics().size());  // means as printed, to mark the best
  for (std::size_t m = 0; m < paper_metrics().size(); ++m)
    for (const auto& method : results.methods) {
      const auto values = results.values(data.name, method.key, paper_metrics()[m]);
      shown[m].push_back(values.empty() ? std::nan("") : std::round(mean(values) * 1000));
    }
  const auto best = [&](std::size_t m) {
    double top = -1;
    for (double value : shown[m]) top = std::isfinite(value) ? std::max(top, value) : top;
    return top;
  };
  const double best_rank = *std::min_element(ranking.average.begin(), ranking.average.end());
  for (std::size_t i = 0; i < results.methods.size(); ++i) {
    const MethodInfo& method = results.methods[i];
    std::vector<TableCell> row = {method.title};
    std::size_t count = 0;
    for (std::size_t m = 0; m < paper_metrics().size(); ++m) {
      const auto values = results.values(data.name, method.key, paper_metrics()[m]);
      count = values.size();
      TableCell cell = mean_cell(values);
      cell.best = shown[m][i] == best(m);
      row.push_back(cell);
    }
    repetitions = std::max(repetitions, count);
    TableCell rank = count > 0 ? TableCell::number(ranking.average[i], 2) : TableCell("-");
    rank.best = count > 0 && ranking.average[i] == best_rank;
    row.push_back(rank);
    if (count < expected && count > 0)
      table.notes.push_back(fmt::format("{}: {} of {} repetitions.", method.title, count, expected));
    table.rows.push_back(std::move(row));
    const std::size_t at = published_method(method.name);
    if (theirs != nullptr && at < published_methods().size()) {
      std::vector<TableCell> printed = {TableCell(method.title + ", as printed")};
      for (std::size_t m = 0; m < paper_metrics().size(); ++m) {
        TableCell cell = TableCell::number(theirs->methods[at][m].mean, 3);
        cell.deviation = theirs->methods[at][m].deviation;
        printed.push_back(cell);
      }
      printed.push_back(TableCell::number(theirs->average_rank[at], 2));
      for (auto& cell : printed) cell.theirs = true;
      table.rows.push_back(std::move(printed));
    }
  }
  table.caption = fmt::format(
      "{}: mean and standard deviation over {} repetition{}; the best value of each column is bold.",
      data.name, repetitions, repetitions == 1 ? "" : "s");
  if (theirs != nullptr)
    table.notes.push_back(
        "Italic rows are the figures printed in the paper that introduced MTD (NeurIPS 2023), as facts about "
        "that paper; they "
        "are not ranked here, and their splits, gaps and test rows are not ours.");
  return table;
}

ResultTable rank_table(const ExperimentResults& results) {
  ResultTable table;
  table.name = results.name + "-ranks";
  table.caption = "Average rank over the six metrics (1 is best), by data set and over all of them.";
  table.header = {"method"};
  for (const auto& data : results.data) table.header.push_back(data.name);
  table.header.push_back("all");
  std::vector<std::vector<double>> columns;
  for (const auto& data : results.data) {
    columns.push_back(rank_methods(results, data.name).average);
    for (std::size_t i = 0; i < results.methods.size(); ++i)
      if (results.select(data.name, results.methods[i].key).empty()) columns.back()[i] = std::nan("");
  }
  columns.push_back(overall_ranks(results));
  for (std::size_t i = 0; i < results.methods.size(); ++i) {
    std::vector<TableCell> row = {results.methods[i].title};
    for (const auto& column : columns) {
      TableCell cell = TableCell::number(column[i], 2);
      cell.best = std::none_of(column.begin(), column.end(), [&](double rank) { return rank < column[i]; }) &&
                  std::isfinite(column[i]);
      row.push_back(cell);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void show_comparison(const ExperimentResults& results, ReportSink& sink) {
  if (results.data.size() > 1) sink.table(rank_table(results));
  for (const auto& data : results.data) {
    sink.page().heading(data.name);
    sink.table(data_table(results, data));
  }
}

void show_radars(const ExperimentResults& results, ReportSink& sink) {
  sink.page().begin_gallery();
  for (const auto& data : results.data) {
    RadarPlot plot{.title = fmt::format("Six metrics on {}", data.name),
                   .axes = paper_metrics(),
                   .series = {},
                   .size = 400};
    for (const auto& method : results.methods) {
      Series series{.name = method.title, .style = method.style, .lead = method.key == results.lead().key};
      bool any = false;
      for (const auto& metric : paper_metrics()) {
        const auto values = results.values(data.name, method.key, metric);
        series.y.push_back(values.empty() ? kMissing : mean(values));
        any = any || !values.empty();
      }
      if (any) plot.series.push_back(std::move(series));
    }
    if (plot.series.empty()) continue;
    sink.plot(results.name + "-radar-" + data.name, radar_plot(plot),
              fmt::format("{}. Each axis runs from the worst method (centre) to the best (rim).", data.name));
  }
  sink.page().end_gallery();
}

void show_significance(const ExperimentResults& results, ReportSink& sink) {
  const std::string metric = results.header.value("metric", "AP");
  const double level = results.header.value("level", .05);
  // Methods and data sets without holes.
  std::vector<const MethodInfo*> methods;
  std::vector<const DataInfo*> data;
  for (const auto& method : results.methods) methods.push_back(&method);
  for (const auto& one : results.data)
    if (std::all_of(methods.begin(), methods.end(),
                    [&](const auto* m) { return !results.values(one.name, m->key, metric).empty(); }))
      data.push_back(&one);
  const std::size_t k = methods.size(), n = data.size();
  if (k < 2) return;
  sink.page().paragraph(fmt::format("All tests use {} and the level {}.", metric, level));
  const MethodInfo& lead = results.lead();
  if (n >= 2) {
    Matrix<double> values(n, k);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < k; ++j)
        values(i, j) = mean(results.values(data[i]->name, methods[j]->key, metric));
    const Friedman test = friedman(values);
    const double difference = critical_difference(level, k, n);
    std::string verdict = test.rejects(level) ? "The methods are not all alike."
                                              : "That all methods are alike cannot be ruled out.";
    if (std::isinf(test.f)) verdict = "Every data set ranks the methods alike, so F has no bound.";
    sink.page().paragraph(fmt::format(
        "Friedman's test over {} data sets and {} methods: chi-squared {:.2f} ({}); with the correction of "
        "Iman and "
        "Davenport F({}, {}) = {:.2f} ({}). {} Nemenyi's critical difference of mean ranks is {:.2f}{}.",
        n, k, test.chi_squared, p_text(test.chi_squared_p), k - 1, (k - 1) * (n - 1), test.f,
        p_text(test.f_p), verdict, difference,
        difference > static_cast<double>(k - 1)
            ? ", more than ranks can differ: so few data sets cannot tell any pair apart"
            : ""));
    RankPlot plot{.title = "Mean ranks and critical difference",
                  .names = {},
                  .mean_ranks = test.mean_ranks,
                  .critical_difference = difference,
                  .groups = rank_groups(test.mean_ranks, difference),
                  .lead = lead.title};
    for (const auto* method : methods) plot.names.push_back(method->title);
    sink.plot(results.name + "-critical-difference", rank_plot(plot),
              fmt::format("Mean rank of each method by {} over {} data sets, best at the left. Methods "
                          "joined by a bar do not "
                          "differ significantly (Nemenyi, level {}).",
                          metric, n, level));
    ResultTable table;
    table.name = results.name + "-wilcoxon";
    table.caption = fmt::format(
        "{} against each other method over the data sets: Wilcoxon's signed ranks, p adjusted by Holm.",
        lead.title);
    table.header = {"against", "wins", "losses", "R+", "R-", "p", "p (Holm)", "significant"};
    std::vector<const MethodInfo*> others;
    std::vector<Wilcoxon> tests;
    std::vector<double> p;
    const auto means = [&](const MethodInfo& method) {
      std::vector<double> column;
      for (const auto* one : data) column.push_back(mean(results.values(one->name, method.key, metric)));
      return column;
    };
    const auto ours = means(lead);
    for (const auto* method : methods) {
      if (method->key == lead.key) continue;
      others.push_back(method);
      tests.push_back(wilcoxon(ours, means(*method)));
      p.push_back(tests.back().p);
    }
    const auto adjusted = holm(p);
    for (std::size_t i = 0; i < others.size(); ++i) {
      const auto theirs = means(*others[i]);
      double wins = 0, losses = 0;
      for (std::size_t d = 0; d < n; ++d) wins += ours[d] > theirs[d], losses += ours[d] < theirs[d];
      table.rows.push_back({others[i]->title, TableCell::number(wins, 0), TableCell::number(losses, 0),
                            TableCell::number(tests[i].plus, 1), TableCell::number(tests[i].minus, 1),
                            TableCell::number(p[i], 4), TableCell::number(adjusted[i], 4),
                            adjusted[i] < level ? "yes" : "no"});
    }
    const double least = 2 / std::pow(2, static_cast<double>(n));
    if (least * static_cast<double>(others.size()) >= level)
      table.notes.push_back(fmt::format(
          "With {} data sets the smallest possible p is {:.4f}, so after Holm's correction nothing "
          "can be significant here, however clear the differences are.",
          n, least));
    sink.table(table);
  } else {
    sink.page().paragraph(
        "Friedman's and Wilcoxon's tests compare over data sets and need at least two of them.");
  }
  // Repetitions on each data set.
  const auto& mask = results.header.at("mask");
  const double train = mask.value("train", .7), val = mask.value("val", .15);
  const bool authors = results.header.value("protocol", "strict") == "authors";
  const double test_share = authors ? 1 - train : 1 - train - val;
  for (const auto* one : data) {
    const auto ours = results.values(one->name, lead.key, metric);
    if (ours.size() < 2) continue;
    ResultTable table;
    table.name = results.name + "-resampled-t-" + one->name;
    table.caption = fmt::format(
        "{}: {} against each other method over {} repetitions; t corrected for overlapping training sets, p "
        "adjusted by Holm.",
        one->name, lead.title, ours.size());
    table.header = {"against", "difference", "t", "p", "p (Holm)", "significant"};
    std::vector<const MethodInfo*> others;
    std::vector<PairedT> tests;
    std::vector<double> p;
    for (const auto* method : methods) {
      const auto theirs = results.values(one->name, method->key, metric);
      if (method->key == lead.key || theirs.size() != ours.size()) continue;
      others.push_back(method);
      tests.push_back(corrected_resampled_t(ours, theirs, test_share / train));
      p.push_back(tests.back().p);
    }
    const auto adjusted = holm(p);
    for (std::size_t i = 0; i < others.size(); ++i)
      table.rows.push_back({others[i]->title, TableCell::number(tests[i].difference, 4),
                            TableCell::number(tests[i].t, 2), TableCell::number(p[i], 4),
                            TableCell::number(adjusted[i], 4),
                            adjusted[i] < level ? (tests[i].difference > 0 ? "better" : "worse") : "no"});
    if (!table.rows.empty()) sink.table(table);
  }
}

}  // namespace lacuna
