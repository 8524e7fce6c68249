// Lists with ties, in columns.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/plots.h"

namespace lacuna {
namespace {

constexpr double kRow = 17, kGap = 18, kLeastColumn = 205, kMostColumn = 352, kDot = 4.2, kNumber = 30;

struct ForestFrame {
  std::size_t columns = 1, rows = 0;  // rows of a column
  double column = 0, indent = 0;
};

ForestFrame forest_frame(const ForestPlot& plot) {
  ForestFrame frame;
  std::size_t deepest = 0;
  for (const auto& row : plot.rows) deepest = std::max(deepest, row.depth);
  const auto wanted = static_cast<std::size_t>((plot.width + kGap) / (kLeastColumn + kGap));
  // A short list needs no second column.
  frame.columns = std::clamp<std::size_t>(std::min(wanted, plot.rows.size() / 8), 1, 6);
  frame.rows = (plot.rows.size() + frame.columns - 1) / frame.columns;
  const auto count = static_cast<double>(frame.columns);
  frame.column = std::min(kMostColumn, (plot.width - kGap * (count - 1)) / count);
  frame.indent = std::min(16., frame.column * .42 / static_cast<double>(std::max<std::size_t>(deepest, 1)));
  return frame;
}

// Whether something further down hangs on the same row as `at` does.
bool has_later_sibling(const ForestPlot& plot, std::size_t at) {
  for (std::size_t i = at + 1; i < plot.rows.size() && plot.rows[i].depth >= plot.rows[at].depth; ++i)
    if (plot.rows[i].depth == plot.rows[at].depth) return true;
  return false;
}

}  // namespace

Svg draw(const ForestPlot& plot) {
  const ForestFrame frame = forest_frame(plot);
  Svg svg(plot.width, kRow * static_cast<double>(frame.rows) + 6, plot.title);
  std::vector<std::uint8_t> goes_on;  // per depth: the line that those of this depth hang on has more below
  for (std::size_t at = 0; at < plot.rows.size(); ++at) {
    const auto& row = plot.rows[at];
    const double left = static_cast<double>(at / frame.rows) * (frame.column + kGap) + kDot + 1,
                 middle = kRow * (static_cast<double>(at % frame.rows) + .5) + 3;
    const auto x_of = [&](std::size_t depth) { return left + frame.indent * static_cast<double>(depth); };
    goes_on.resize(row.depth + 1);
    goes_on[row.depth] = row.depth > 0 && has_later_sibling(plot, at);
    for (std::size_t depth = 1; depth <= row.depth; ++depth) {
      const bool last = depth == row.depth && goes_on[depth] == 0;
      if (depth < row.depth && goes_on[depth] == 0) continue;
      svg.line(x_of(depth - 1), middle - kRow / 2, x_of(depth - 1), last ? middle : middle + kRow / 2,
               "grid");
    }
    const double x = x_of(row.depth), thick = 1 + 4 * std::clamp(row.tie, 0., 1.);
    if (row.depth > 0)
      svg.rect(x_of(row.depth - 1), middle - thick / 2, frame.indent, thick, "cold", .25 + .75 * row.tie,
               row.tip);
    svg.circle(x, middle, 1.6 + (kDot - 1.6) * std::sqrt(std::clamp(row.size, 0., 1.)), "dot", row.tip);
    const double room = left + frame.column - kDot - 1 - x - kDot - 4 - kNumber;
    const std::string name = fitting(row.name, room, 12);
    svg.text(x + kDot + 4, middle + 4, name, Svg::Anchor::start, row.depth == 0 ? "strong" : "name");
    if (row.depth > 0)
      svg.text(left + frame.column - kDot - 1, middle + 4, fmt::format("{:.2f}", row.tie), Svg::Anchor::end);
  }
  return svg;
}

}  // namespace lacuna
