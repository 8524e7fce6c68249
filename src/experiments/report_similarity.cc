// The channels of a two-channel network: how alike they are, epoch by epoch.
#include <fmt/core.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "experiments/report.h"

namespace lacuna {

using nlohmann::json;

namespace {

// The cosines of one kind ("sample", "mean") at all epochs, as maps beside each other. A channel's cosine with itself
// is 1 by definition and would leave no colour for the others: it is left out.
HeatMap similarity_maps(const json& found, const char* what, const std::vector<std::string>& names) {
  const std::size_t h = names.size();
  HeatMap map{.title = "Channel similarity by epoch",
              .value_label = "cosine",
              .columns = names,
              .rows = names,
              .diverging = true,
              .numbers = false,
              .width = kFull};
  Extent sizes;
  sizes.add(.1);
  for (const auto& epoch : found.at("epochs")) {
    HeatMap::Panel panel{fmt::format("after epoch {}", epoch.at("epoch").get<int>()), Matrix<double>(h, h)};
    for (std::size_t a = 0; a < h; ++a)
      for (std::size_t b = 0; b < h; ++b) {
        const auto& value = epoch.at(what)[a][b];
        panel.values(a, b) = a != b && value.is_number() ? value.get<double>() : kMissing;
        sizes.add(std::abs(panel.values(a, b)));
      }
    map.panels.push_back(std::move(panel));
  }
  map.colours = {-sizes.high, sizes.high};
  return map;
}

}  // namespace

ResultTable similarity_table(const ExperimentResults& results, const DataInfo& data,
                             const MethodInfo& method) {
  ResultTable table;
  const auto cells = results.select(data.name, method.key);
  if (cells.empty() || !cells[0]->result.contains("similarity")) return table;
  const json& found = cells[0]->result["similarity"];
  const std::size_t views = found.at("views").size();
  table.name = fmt::format("{}-{}-cosines", results.name, data.name);
  table.caption =
      fmt::format("{}, {}, {}: mean cosines between channels over all test items of repetition {}.",
                  data.name, results.gaps(data), method.title, cells[0]->fold + 1);
  table.header = {"epoch", "shared with shared", "proprietary with proprietary",
                  "shared with proprietary, same view", "shared with proprietary, other views"};
  for (const auto& epoch : found.at("epochs")) {
    std::array<double, 4> sum{}, count{};
    for (std::size_t a = 0; a < 2 * views; ++a)
      for (std::size_t b = 0; b < a; ++b) {
        const auto& value = epoch.at("mean")[a][b];
        if (!value.is_number()) continue;
        const bool own_a = a >= views, own_b = b >= views;
        const std::size_t kind = own_a == own_b ? (own_a ? 1 : 0) : a % views == b % views ? 2 : 3;
        sum[kind] += value.get<double>();
        ++count[kind];
      }
    std::vector<TableCell> row = {TableCell::number(epoch.at("epoch").get<double>(), 0)};
    for (std::size_t kind = 0; kind < 4; ++kind)
      row.push_back(count[kind] > 0 ? TableCell::number(sum[kind] / count[kind], 3) : TableCell("-"));
    table.rows.push_back(std::move(row));
  }
  return table;
}

void show_similarity(const ExperimentResults& results, ReportSink& sink) {
  for (const auto& data : results.data)
    for (const auto& method : results.methods) {
      const auto cells = results.select(data.name, method.key);
      if (cells.empty() || !cells[0]->result.contains("similarity")) continue;
      const json& found = cells[0]->result["similarity"];
      if (found.at("epochs").empty()) continue;
      const std::size_t m = found.at("views").size(), h = found["epochs"][0].at("sample").size();
      std::vector<std::string> names, views;
      for (std::size_t v = 0; v < h; ++v) names.push_back(fmt::format("{}{}", v < m ? "S" : "O", v % m + 1));
      for (std::size_t v = 0; v < m; ++v)
        views.push_back(fmt::format("{} {}", v + 1, found["views"][v].get<std::string>()));
      sink.page().heading(fmt::format("{}, {}", data.name, method.title));
      sink.page().paragraph(fmt::format(
          "Cosines between channels: S is the shared embedding of a view, O its proprietary one; views: {}. "
          "Blue is alike, orange opposite, by the square root of the cosine, so that small ones are visible; "
          "grey where there is nothing to compare, and on the diagonal, which is 1.",
          join(views, ", ")));
      const std::string stem = fmt::format("{}-{}", results.name, data.name);
      for (const auto& [what, words] : {std::pair("sample", "one item with the largest number of views"),
                                        std::pair("mean", "mean over all test items")})
        sink.plot(fmt::format("{}-{}", stem, what), similarity_maps(found, what, names),
                  fmt::format("{}, {}.", data.name, words));
      sink.table(similarity_table(results, data, method));
    }
}

}  // namespace lacuna
