#include "data/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/counted.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/checksums.h"
#include "data/label_graph.h"
#include "data/readers.h"
#include "experiments/report.h"
#include "methods/method.h"

namespace lacuna::cli {
namespace {

constexpr std::size_t kShownRows = 20;     // views, or pairs of labels, in a table: one screen
constexpr std::size_t kMostLabels = 1024;  // of a graph: half a million pairs

std::string figure(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}
std::string share_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

nlohmann::json number_json(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json view_json(const ViewReport& view) {
  nlohmann::json json = {{"name", view.name},
                         {"columns", view.columns},
                         {"type", view.type},
                         {"sparse", view.sparse},
                         {"missing", view.missing},
                         {"density", view.density},
                         {"min", number_json(view.min)},
                         {"median", number_json(view.median)},
                         {"max", number_json(view.max)},
                         {"mean", number_json(view.mean)},
                         {"deviation", number_json(view.deviation)},
                         {"constant_columns", view.constant_columns},
                         {"zero_rows", view.zero_rows},
                         {"non_finite", view.non_finite}};
  if (view.non_finite > 0) json["first_non_finite"] = {{"row", view.bad_row}, {"column", view.bad_column}};
  if (!view.prepare.empty()) json["auto"] = {{"prepare", view.prepare}, {"reason", view.reason}};
  return json;
}

// Every pair that some row knows, the strongest first.
nlohmann::json graph_json(const std::vector<std::string>& names, const LabelGraph& graph) {
  nlohmann::json labels = nlohmann::json::array(), pairs = nlohmann::json::array();
  for (std::size_t j = 0; j < names.size(); ++j)
    labels.push_back({{"name", names[j]}, {"positives", graph.positives(j)}, {"known", graph.known(j)}});
  for (const auto& [a, b] : pairs_by_strength(graph)) {
    const LabelPair pair = graph.pair(a, b);
    if (pair.known == 0) continue;
    pairs.push_back({{"a", names[a]},
                     {"b", names[b]},
                     {"known", pair.known},
                     {"both", pair.both},
                     {"expected", pair.expected()},
                     {"lift", number_json(pair.lift())},
                     {"correlation", number_json(pair.correlation())},
                     {"shrunk", graph.correlation(a, b)}});
  }
  return {{"labels", labels}, {"spread", graph.spread()}, {"pairs", pairs}};
}

void print_graph(const std::vector<std::string>& names, const LabelGraph& graph) {
  fmt::print(
      "\nlabels that go together, or exclude each other (shrunken correlation; --json has all pairs):\n");
  TextTable table({"label", "and", "correlation", "rows with both", "expected", "rows with both known"});
  std::size_t shown = 0;
  for (const auto& [a, b] : pairs_by_strength(graph)) {
    if (shown++ == kShownRows) break;
    const LabelPair pair = graph.pair(a, b);
    table.add({names[a], names[b], fmt::format("{:+.3f}", graph.correlation(a, b)), count_text(pair.both),
               fmt::format("{:.1f}", pair.expected()), count_text(pair.known)});
  }
  std::fputs(table.text().c_str(), stdout);
}

void print_json(const Report& r, const nlohmann::json& graph) {
  nlohmann::json views = nlohmann::json::array(), counts = nlohmann::json::array();
  for (const auto& view : r.views) views.push_back(view_json(view));
  for (const auto& label : r.labels)
    counts.push_back({{"name", label.name}, {"positives", label.positives}, {"known", label.known}});
  nlohmann::json document = {{"schema", "lacuna.inspect.1"},
                             {"name", r.name},
                             {"source", r.source},
                             {"licence", r.licence},
                             {"rows", r.rows},
                             {"ids", r.ids},
                             {"views", views},
                             {"rows_with_views", r.rows_with_views},
                             {"labels",
                              {{"count", r.labels.size()},
                               {"cardinality", r.cardinality},
                               {"unknown", r.unknown},
                               {"rows_without_positive", r.rows_without_positive},
                               {"each", counts}}},
                             {"duplicates", r.duplicates},
                             {"misspelt_ids", r.misspelt},
                             {"advice", r.advice}};
  if (!graph.is_null()) document["label_graph"] = graph;
  fmt::print("{}\n", document.dump(2));
}

void print_views(const Report& r) {
  TextTable table(
      {"view", "columns", "type", "missing", "nonzero", "min", "median", "max", "mean", "deviation"});
  for (std::size_t v = 0; v < std::min(r.views.size(), kShownRows); ++v) {
    const auto& view = r.views[v];
    table.add({view.name, std::to_string(view.columns), view.type + (view.sparse ? ", sparse" : ""),
               share_text(view.missing), share_text(view.density), figure(view.min), figure(view.median),
               figure(view.max), figure(view.mean), figure(view.deviation)});
  }
  std::fputs(table.text().c_str(), stdout);
  if (r.views.size() > kShownRows)
    fmt::print("... and {} more views (--json has them all)\n", r.views.size() - kShownRows);
  fmt::print("\nrows by the number of views they have:");
  for (std::size_t k = 0; k < r.rows_with_views.size(); ++k)
    if (r.rows_with_views[k] > 0)
      fmt::print("  {}: {} ({})", k, count_text(r.rows_with_views[k]),
                 share_text(static_cast<double>(r.rows_with_views[k]) / static_cast<double>(r.rows)));
  fmt::print("\n");
}

void print_preparation(const Report& r) {
  fmt::print("\nwhat --prepare auto would do (the default of train is {} for every view):\n",
             make_method(method_names().front())->traits().prepare);
  TextTable table({"view", "prepare", "because"});
  for (std::size_t v = 0; v < std::min(r.views.size(), kShownRows); ++v)
    if (const auto& view = r.views[v]; !view.prepare.empty())
      table.add({view.name, view.prepare, view.reason});
  std::fputs(table.text().c_str(), stdout);
}

void print_labels(const Report& r) {
  fmt::print("\n{}, {:.4f} known positives per row, {} of the cells unknown\n",
             counted(r.labels.size(), "label"), r.cardinality, share_text(r.unknown));
  std::vector<const LabelCount*> order;
  for (const auto& label : r.labels) order.push_back(&label);
  std::stable_sort(order.begin(), order.end(),
                   [](const LabelCount* a, const LabelCount* b) { return a->positives > b->positives; });
  const auto list = [](auto begin, auto end, std::size_t most) {
    std::vector<std::string> items;
    for (auto at = begin; at != end && items.size() < most; ++at)
      items.push_back(fmt::format("{} {}", (*at)->name, (*at)->positives));
    return join(items, ", ");
  };
  if (order.size() <= 10) {
    fmt::print("  {}\n", list(order.begin(), order.end(), order.size()));
    return;
  }
  fmt::print("  most frequent: {}\n  rarest:        {}\n", list(order.begin(), order.end(), 5),
             list(order.rbegin(), order.rend(), 5));
}

void print_text(const Report& r) {
  fmt::print("{}: {}, {}, {}{}\n", r.name, counted(r.rows, "row"), counted(r.views.size(), "view"),
             counted(r.labels.size(), "label"), r.ids ? ", with ids" : "");
  if (!r.source.empty()) fmt::print("source: {}\n", r.source);
  if (!r.licence.empty()) fmt::print("licence: {}\n", r.licence);
  if (!r.views.empty()) {
    fmt::print("\n");
    print_views(r);
    print_preparation(r);
  }
  if (!r.labels.empty()) print_labels(r);
  fmt::print("\n{}\n", r.advice.empty() ? "no problems found" : "likely problems:");
  for (const auto& line : r.advice) fmt::print("  - {}\n", line);
}

// Throws unless every block of every array is as it was written.
void check_blocks(const std::string& path) {
  const FolderCheck check = check_folder(path);
  for (const auto& line : check.damaged) fmt::print(stderr, "{}\n", line);
  if (!check.damaged.empty())
    fail(Exit::data, "{}: {} of its files or blocks are damaged; write it again from its source", path,
         check.damaged.size());
  fmt::print(stderr, "{}: {} bytes of {} files are as they were written\n", path, count_text(check.bytes),
             check.files);
}

LabelGraph graph_of(const Dataset& data, const std::string& path) {
  if (data.label_count() < 2 || data.labels.empty())
    fail(Exit::data, "{}: has {} labels; --label-graph needs two or more", path,
         data.labels.empty() ? 0 : data.label_count());
  if (data.label_count() > kMostLabels)
    fail(Exit::data, "{}: has {} labels, --label-graph takes {} at most: there would be {} pairs", path,
         data.label_count(), kMostLabels, count_text(data.label_count() * (data.label_count() - 1) / 2));
  return LabelGraph(data.labels);
}

}  // namespace

int data_inspect(const Arguments& arguments) {
  std::string path, page;
  bool json = false, check = false, label_graph = false;
  ReadOptions read;
  Options options;
  options.add("path", path, "data set").positional().metavar("PATH").required();
  options.add("json", json, "print one JSON document");
  options.add("label-graph", label_graph,
              "also which labels go together, counted on rows in which both are known");
  options.add("report", page, "write a page with charts").metavar("FILE.html").needs("label-graph");
  options.add("check", check, "native folder: verify the checksum of every block first");
  read.declare(options);
  parse_or_help(options, arguments, "data inspect",
                "Shows what a data set contains: rows, views, gaps, labels, and in plain words its likely "
                "problems.",
                "  lacuna data inspect photos.npz\n"
                "  lacuna data inspect corel5k_six_view.mat --json\n"
                "  lacuna data inspect photos.npz --label-graph --report labels.html\n");
  if (check) check_blocks(path);
  if (!page.empty()) check_writable(page);
  read.allow_non_finite = true;
  const Dataset data = load_dataset(path, read);
  std::optional<LabelGraph> graph;
  if (label_graph) graph = graph_of(data, path);
  const Report report = inspect(data);
  if (json) {
    print_json(report, graph ? graph_json(data.label_names, *graph) : nlohmann::json());
  } else {
    print_text(report);
    if (graph) print_graph(data.label_names, *graph);
  }
  if (!page.empty()) write_text(page, label_page_text(report.name, data.label_names, *graph));
  return 0;
}

}  // namespace lacuna::cli
