// Comparisons of methods: significance tests.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {
namespace {

std::string p_text(double p) {
  return p < 1e-4 ? "p < 0.0001" : fmt::format("p = {:.4f}", p);
}

// What the tests compare: methods, and the data sets on which each of them has results.
struct Field {
  std::string metric;
  double level = .05;
  std::vector<const MethodInfo*> methods;
  std::vector<const DataInfo*> data;
  const MethodInfo* lead = nullptr;

  std::vector<const MethodInfo*> others() const {
    std::vector<const MethodInfo*> rest;
    for (const auto* method : methods)
      if (method->key != lead->key) rest.push_back(method);
    return rest;
  }
};

Field tested_field(const ExperimentResults& results) {
  Field field{
      results.header.value("metric", "AP"), results.header.value("level", .05), {}, {}, &results.lead()};
  for (const auto& method : results.methods)
    if (method.ranked) field.methods.push_back(&method);
  for (const auto& one : results.data)
    if (std::all_of(field.methods.begin(), field.methods.end(), [&](const auto* method) {
          return !results.values(one.name, method->key, field.metric).empty();
        }))
      field.data.push_back(&one);
  return field;
}

// Means over repetitions, (data sets, methods).
Matrix<double> means_of(const ExperimentResults& results, const Field& field) {
  Matrix<double> values(field.data.size(), field.methods.size());
  for (std::size_t i = 0; i < values.rows(); ++i)
    for (std::size_t j = 0; j < values.cols(); ++j)
      values(i, j) = mean(results.values(field.data[i]->name, field.methods[j]->key, field.metric));
  return values;
}

void show_friedman(const ExperimentResults& results, const Field& field, ReportSink& sink) {
  const std::size_t k = field.methods.size(), n = field.data.size();
  const Friedman test = friedman(means_of(results, field));
  const double difference = critical_difference(field.level, k, n);
  const std::string verdict = std::isinf(test.f)
                                  ? "Every data set ranks the methods alike, so F is unbounded."
                              : test.rejects(field.level) ? "The methods differ."
                                                          : "It cannot be ruled out that all methods are "
                                                            "alike.";
  sink.page().paragraph(fmt::format(
      "Friedman's test over {} data sets and {} methods: chi-squared {:.2f} ({}); with the correction of "
      "Iman and "
      "Davenport F({}, {}) = {:.2f} ({}). {} Nemenyi's critical difference of mean ranks is {:.2f}{}.",
      n, k, test.chi_squared, p_text(test.chi_squared_p), k - 1, (k - 1) * (n - 1), test.f, p_text(test.f_p),
      verdict, difference,
      difference > static_cast<double>(k - 1)
          ? ", more than ranks can differ: so few data sets cannot separate any pair"
          : ""));
  RankPlot plot{.title = "Mean ranks and critical difference",
                .names = {},
                .mean_ranks = test.mean_ranks,
                .critical_difference = difference,
                .groups = rank_groups(test.mean_ranks, difference),
                .lead = field.lead->title};
  for (const auto* method : field.methods) plot.names.push_back(method->title);
  sink.plot(
      results.name + "-critical-difference", plot,
      fmt::format(
          "Mean rank of each method by {} over {} data sets, best at the left. Methods joined by a bar do "
          "not differ significantly (Nemenyi, level {}).",
          field.metric, n, field.level));
}

void show_wilcoxon(const ExperimentResults& results, const Field& field, ReportSink& sink) {
  const std::size_t n = field.data.size();
  const auto column = [&](const MethodInfo& method) {
    std::vector<double> values;
    for (const auto* one : field.data)
      values.push_back(mean(results.values(one->name, method.key, field.metric)));
    return values;
  };
  const auto ours = column(*field.lead);
  const auto others = field.others();
  std::vector<Wilcoxon> tests;
  std::vector<double> p;
  for (const auto* method : others) {
    tests.push_back(wilcoxon(ours, column(*method)));
    p.push_back(tests.back().p);
  }
  const auto adjusted = holm(p);
  ResultTable table;
  table.name = results.name + "-wilcoxon";
  table.caption = fmt::format(
      "{} of {} against each other method over the data sets, {}: Wilcoxon's signed ranks, p adjusted by "
      "Holm.",
      field.metric, field.lead->title, results.gaps());
  table.header = {"against", "wins", "losses", "R+", "R-", "p", "p (Holm)", "significant"};
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto theirs = column(*others[i]);
    double wins = 0, losses = 0;
    for (std::size_t d = 0; d < n; ++d) wins += ours[d] > theirs[d], losses += ours[d] < theirs[d];
    table.rows.push_back({others[i]->title, TableCell::number(wins, 0), TableCell::number(losses, 0),
                          TableCell::number(tests[i].plus, 1), TableCell::number(tests[i].minus, 1),
                          TableCell::number(p[i], 4), TableCell::number(adjusted[i], 4),
                          adjusted[i] < field.level ? "yes" : "no"});
  }
  const double least = 2 / std::pow(2, static_cast<double>(n));
  if (least * static_cast<double>(others.size()) >= field.level)
    table.notes.push_back(
        fmt::format("With {} data sets the smallest possible p is {:.4f}, so after Holm's correction nothing "
                    "can be significant "
                    "here, however clear the differences are.",
                    n, least));
  sink.table(table);
}

// Repetitions on one data set, whose training sets overlap.
void show_resampled_t(const ExperimentResults& results, const Field& field, const DataInfo& data,
                      ReportSink& sink) {
  const auto ours = results.values(data.name, field.lead->key, field.metric);
  if (ours.size() < 2) return;
  std::vector<const MethodInfo*> others;
  std::vector<PairedT> tests;
  std::vector<double> p;
  for (const auto* method : field.others()) {
    const auto theirs = results.values(data.name, method->key, field.metric);
    if (theirs.size() != ours.size()) continue;
    others.push_back(method);
    tests.push_back(corrected_resampled_t(ours, theirs, data.test / data.train));
    p.push_back(tests.back().p);
  }
  const auto adjusted = holm(p);
  ResultTable table;
  table.name = results.name + "-resampled-t-" + data.name;
  table.caption = fmt::format(
      "{}, {}: {} of {} against each other method over {} repetitions; t corrected for overlapping training "
      "sets, p "
      "adjusted by Holm, level {}.",
      data.name, results.gaps(data), field.metric, field.lead->title, ours.size(), field.level);
  table.header = {"against", "difference", "t", "p", "p (Holm)", "significant"};
  for (std::size_t i = 0; i < others.size(); ++i)
    table.rows.push_back({others[i]->title, TableCell::number(tests[i].difference, 4),
                          TableCell::number(tests[i].t, 2), TableCell::number(p[i], 4),
                          TableCell::number(adjusted[i], 4),
                          adjusted[i] >= field.level ? "no"
                          : tests[i].difference > 0  ? "better"
                                                     : "worse"});
  if (!table.rows.empty()) sink.table(table);
}

}  // namespace

void show_significance(const ExperimentResults& results, ReportSink& sink) {
  const Field field = tested_field(results);
  if (field.methods.size() < 2) {
    sink.page().paragraph(fmt::format(
        "Tests compare ranked methods, and here {}; those marked † are not part of the comparison.",
        field.methods.empty() ? "is none" : fmt::format("{} is the only one", field.methods[0]->title)));
    return;
  }
  sink.page().paragraph(fmt::format("All tests use {} and the level {}.", field.metric, field.level));
  if (field.data.size() >= 2) {
    show_friedman(results, field, sink);
    show_wilcoxon(results, field, sink);
  } else {
    sink.page().paragraph(
        "Friedman's and Wilcoxon's tests compare over data sets and need at least two of them.");
  }
  for (const auto* one : field.data) show_resampled_t(results, field, *one, sink);
}

}  // namespace lacuna
