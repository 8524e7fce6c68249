// Which labels occur together: a page for a data set, a section for a model.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "experiments/report.h"

namespace lacuna {
namespace {

constexpr double kLeastTie = .1;                         // that is drawn
constexpr std::size_t kMostWide = 48, kMostNarrow = 14;  // labels of a map whose names can be read
constexpr std::size_t kMostPairs = 200, kMostSingle = 400;

ForestPlot forest_plot(const std::vector<std::string>& labels, const LabelGraph& graph,
                       const LabelForest& forest) {
  ForestPlot plot{.title = "The strongest correlations between labels", .rows = {}};
  double most = 1;
  for (std::size_t j = 0; j < graph.labels(); ++j) most = std::max<double>(most, graph.positives(j));
  std::vector<std::size_t> above;
  for (std::size_t at = 0; at + forest.single < forest.nodes.size(); ++at) {
    const auto& node = forest.nodes[at];
    above.resize(node.depth);
    std::string tip = fmt::format("{}: {} of {} known rows", labels[node.label], graph.positives(node.label),
                                  graph.known(node.label));
    if (node.depth > 0) {
      const LabelPair pair = graph.pair(above.back(), node.label);
      tip += fmt::format("\nwith {}: {} rows, {:.1f} expected", labels[above.back()], pair.both,
                         pair.expected());
    }
    plot.rows.push_back({labels[node.label], node.depth, node.tie, graph.positives(node.label) / most, tip});
    above.push_back(node.label);
  }
  return plot;
}

// The first labels of the forest against each other: those that hang together are neighbours.
HeatMap correlation_map(const std::vector<std::string>& labels, const LabelGraph& graph,
                        const LabelForest& forest, std::size_t most, double width) {
  const std::size_t count = std::min(most, forest.nodes.size());
  HeatMap map{.title = "Correlation of labels",
              .value_label = "correlation",
              .diverging = true,
              .numbers = false,
              .digits = 2,
              .width = width};
  Matrix<double> values(count, count);
  map.colours.add(0);
  map.colours.add(.05);
  for (std::size_t a = 0; a < count; ++a) {
    map.rows.push_back(labels[forest.nodes[a].label]);
    for (std::size_t b = 0; b < count; ++b) {
      values(a, b) = a == b ? kMissing : graph.correlation(forest.nodes[a].label, forest.nodes[b].label);
      map.colours.add(std::abs(values(a, b)));
    }
  }
  map.columns = map.rows;
  map.panels.push_back({"", std::move(values)});
  return map;
}

ResultTable pair_table(const std::vector<std::string>& labels, const LabelGraph& graph) {
  auto strong = pairs_by_strength(graph);
  ResultTable table;
  table.name = "label-pairs";
  const std::size_t all = strong.size();
  if (all > kMostPairs) strong.resize(kMostPairs);
  table.caption =
      all > kMostPairs
          ? fmt::format("The {} strongest of {} pairs of labels, positive or negative.", strong.size(), count_text(all))
          : fmt::format("All {} pairs of labels, the strongest first, positive or negative.", all);
  table.header = {"label",          "and",      "correlation",        "before shrinking",
                  "rows with both", "expected", "rows with both known"};
  for (const auto& [a, b] : strong) {
    const LabelPair pair = graph.pair(a, b);
    table.rows.push_back({labels[a], labels[b], TableCell::signed_number(graph.correlation(a, b), 3),
                          TableCell::signed_number(pair.correlation(), 3), TableCell::number(pair.both, 0),
                          TableCell::number(pair.expected(), 1), TableCell::number(pair.known, 0)});
  }
  table.filter = table.rows.size() > 12;
  table.notes.push_back(
      "Counted on the rows in which both labels are known. Expected: rows with both if the two were "
      "independent. The fewer rows were expected, the more the correlation is shrunk towards 0.");
  return table;
}

}  // namespace

void show_label_graph(const std::vector<std::string>& labels, const LabelGraph& graph, ReportSink& sink) {
  Page& page = sink.page();
  const LabelForest forest = strongest_ties(graph, kLeastTie);
  if (const ForestPlot plot = forest_plot(labels, graph, forest); !plot.rows.empty())
    sink.plot("label-forest", plot,
              fmt::format("A maximum spanning forest of the correlations. Each label hangs on the one above "
                          "it, by a bar whose thickness is the correlation, given at the right; dots grow "
                          "with the number of rows that have the label. Columns are read from top to bottom. "
                          "Correlations below {} are not drawn.",
                          kLeastTie));
  if (forest.single > 0) {
    std::vector<std::string> names;
    for (std::size_t at = forest.nodes.size() - forest.single;
         at < forest.nodes.size() && names.size() < kMostSingle; ++at)
      names.push_back(labels[forest.nodes[at].label]);
    page.paragraph(fmt::format(
        "Without a correlation of at least {} with any other label: {}{}.", kLeastTie, join(names, ", "),
        forest.single > names.size() ? fmt::format(" and {} more", forest.single - names.size()) : ""));
  }
  if (graph.labels() > 1) {
    page.heading("Map");
    page.figure(
        draw(correlation_map(labels, graph, forest, kMostWide, kFull)),
        draw(correlation_map(labels, graph, forest, kMostNarrow, kNarrow)),
        fmt::format(
            "Correlation of labels, in the order of the chart above{}. Blue pairs go together, orange ones "
            "exclude each other; colours follow the square root, so that small values are visible.",
            graph.labels() > kMostWide ? fmt::format("; the first {} of {}", kMostWide, graph.labels())
                                       : ""));
    sink.table(pair_table(labels, graph));
  }
}

std::string label_page_text(const std::string& name, const std::vector<std::string>& labels,
                            const LabelGraph& graph) {
  Page page(fmt::format("Labels of {}", name), "A report by Lacuna about how labels go together");
  ReportSink sink(page, "");
  std::size_t pairs = 0, never = 0;
  for (std::size_t k = 1; k < graph.labels(); ++k)
    for (std::size_t j = 0; j < k; ++j) ++pairs, never += graph.pair(j, k).known == 0;
  page.section("Labels together");
  page.lead(fmt::format(
      "{} labels, {} pairs{}.", graph.labels(), count_text(pairs),
      never > 0 ? fmt::format("; {} of them are known together in no row", count_text(never)) : ""));
  show_label_graph(labels, graph, sink);
  return page.text();
}

}  // namespace lacuna
