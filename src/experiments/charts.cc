// Charts without two number axes: radar, heat map, ranks, reliability.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "experiments/plots.h"

namespace lacuna {

Svg radar_plot(const RadarPlot& plot) {
  const std::size_t n = plot.axes.size();
  const double legend = 22 * std::ceil(static_cast<double>(plot.series.size()) / 3) + 8;
  Svg svg(plot.size, plot.size + legend - 40, plot.title);
  const double cx = plot.size / 2, cy = (plot.size - 36) / 2, radius = plot.size / 2 - 64;
  const auto at = [&](std::size_t axis, double share) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(axis) / static_cast<double>(n) - std::numbers::pi / 2;
    return std::pair(cx + share * radius * std::cos(angle), cy + share * radius * std::sin(angle));
  };
  std::vector<double> low(n, INFINITY), high(n, -INFINITY);
  for (const auto& s : plot.series)
    for (std::size_t a = 0; a < n; ++a)
      if (std::isfinite(s.y[a])) low[a] = std::min(low[a], s.y[a]), high[a] = std::max(high[a], s.y[a]);
  for (double share : {.25, .5, .75, 1.}) {
    std::vector<std::pair<double, double>> ring;
    for (std::size_t a = 0; a < n; ++a) ring.push_back(at(a, share));
    svg.polyline(ring, "grid", true);
  }
  for (std::size_t a = 0; a < n; ++a) {
    const auto [x, y] = at(a, 1);
    svg.line(cx, cy, x, y, "grid");
    const auto [lx, ly] = at(a, 1 + 24 / radius);
    const auto anchor = std::abs(lx - cx) < 2 ? Svg::Anchor::middle
                        : lx > cx             ? Svg::Anchor::start
                                              : Svg::Anchor::end;
    const double shift = anchor == Svg::Anchor::middle ? 0 : lx > cx ? -12 : 12;
    svg.text(lx + shift, ly, plot.axes[a], anchor, "strong");
    svg.text(lx + shift, ly + 12,
             std::isfinite(low[a]) ? fmt::format("{:.3f} – {:.3f}", low[a], high[a]) : "", anchor, "small");
  }
  // Thick ones last, so that they lie on top.
  std::vector<std::size_t> order(plot.series.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return plot.series[a].lead < plot.series[b].lead; });
  for (std::size_t k : order) {
    const Series& s = plot.series[k];
    svg.begin_group(fmt::format("s{}{}", s.style % kSeriesStyles, s.lead ? " lead" : ""), s.name);
    std::vector<std::pair<double, double>> points;
    for (std::size_t a = 0; a < n; ++a) {
      // A small hole in the middle keeps the worst values apart.
      const double share = !std::isfinite(s.y[a]) ? 0
                           : high[a] > low[a]     ? .08 + .92 * (s.y[a] - low[a]) / (high[a] - low[a])
                                                  : 1;
      points.push_back(at(a, share));
    }
    if (s.lead) svg.polyline(points, "area", true);
    svg.polyline(points, "curve", true);
    for (std::size_t a = 0; a < n; ++a)
      svg.mark(points[a].first, points[a].second, s.style,
               fmt::format("{}\n{} {:.4f}", s.name, plot.axes[a], s.y[a]), 3);
    svg.end_group();
  }
  const double column = plot.size / 3;
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const double x = column * static_cast<double>(k % 3) + 18,
                 y = plot.size - 36 + 22 * std::floor(static_cast<double>(k) / 3) + 12;
    const Series& s = plot.series[k];
    svg.begin_group(fmt::format("s{}", s.style % kSeriesStyles), s.name);
    svg.polyline({{x - 10, y}, {x + 10, y}}, "curve");
    svg.mark(x, y, s.style);
    svg.text(x + 15, y + 4, s.name, Svg::Anchor::start, s.lead ? "strong" : "name");
    svg.end_group();
  }
  return svg;
}

Svg heat_map(const HeatMap& plot) {
  double names = 0, tall = 0;
  for (const auto& name : plot.rows) names = std::max(names, text_width(name, 11));
  for (const auto& name : plot.columns) tall = std::max(tall, text_width(name, 11));
  const bool turned = tall > plot.cell - 4;  // long column names stand upright
  const double left = names + (plot.y_label.empty() ? 12 : 32),
               bottom = (turned ? tall + 10 : 20) + (plot.x_label.empty() ? 4 : 22);
  const double top = 8, width = plot.cell * static_cast<double>(plot.columns.size());
  const double cell_height = plot.numbers ? std::min(plot.cell, 30.) : plot.cell;
  const double height = cell_height * static_cast<double>(plot.rows.size());
  Svg svg(left + width + 10, top + height + bottom, plot.title);
  double low = INFINITY, high = -INFINITY;
  for (double value : plot.values.values())
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  if (plot.diverging) low = 0, high = 1;
  for (std::size_t i = 0; i < plot.rows.size(); ++i) {
    const double y = top + cell_height * static_cast<double>(i);
    svg.text(left - 6, y + cell_height / 2 + 4, plot.rows[i], Svg::Anchor::end);
    for (std::size_t j = 0; j < plot.columns.size(); ++j) {
      const double x = left + plot.cell * static_cast<double>(j), value = plot.values(i, j);
      if (!std::isfinite(value)) {
        svg.rect(x, y, plot.cell - 1, cell_height - 1, "faint");
        continue;
      }
      const double size = plot.diverging ? std::abs(value) : value;
      const double share = std::clamp(high > low ? (size - low) / (high - low) : 1., 0., 1.);
      const double strength = (plot.diverging ? 0 : .06) + (plot.diverging ? 1 : .94) * share;
      const bool best = plot.mark_best && value == high;
      svg.rect(x, y, plot.cell - 1, cell_height - 1, plot.diverging && value < 0 ? "warm" : "cold", strength,
               fmt::format("{} · {}\n{:.4f}", plot.rows[i], plot.columns[j], value));
      if (best) svg.rect(x + .5, y + .5, plot.cell - 2, cell_height - 2, "frame");
      if (plot.numbers)
        svg.text(x + plot.cell / 2, y + cell_height / 2 + 4, fmt::format("{:.{}f}", value, plot.digits),
                 Svg::Anchor::middle, strength > .58 ? "oncell" : "cell");
    }
  }
  for (std::size_t j = 0; j < plot.columns.size(); ++j) {
    const double x = left + plot.cell * (static_cast<double>(j) + .5), y = top + height;
    if (turned)
      svg.text(x + 4, y + 8, plot.columns[j], Svg::Anchor::end, "tick", -90);
    else
      svg.text(x, y + 15, plot.columns[j], Svg::Anchor::middle);
  }
  if (!plot.x_label.empty())
    svg.text(left + width / 2, top + height + bottom - 6, plot.x_label, Svg::Anchor::middle, "label");
  if (!plot.y_label.empty()) svg.text(12, top + height / 2, plot.y_label, Svg::Anchor::middle, "label", -90);
  return svg;
}

Svg rank_plot(const RankPlot& plot) {
  const std::size_t k = plot.names.size();
  double names = 0;
  for (const auto& name : plot.names) names = std::max(names, text_width(name + " 10.00", 12));
  const double width = 720, left = names + 20, right = names + 20, line = 62, row = 21, step = 8;
  const std::size_t half = (k + 1) / 2;
  const double bars = step * static_cast<double>(plot.groups.size()) + 10;
  const double height = line + bars + row * static_cast<double>(half) + 14;
  Svg svg(width, height, plot.title);
  const auto px = [&](double rank) {
    return left + (rank - 1) / static_cast<double>(std::max<std::size_t>(1, k - 1)) * (width - left - right);
  };
  svg.line(px(1), line, px(static_cast<double>(k)), line, "axis");
  for (std::size_t r = 1; r <= k; ++r) {
    svg.line(px(static_cast<double>(r)), line - 5, px(static_cast<double>(r)), line, "axis");
    svg.text(px(static_cast<double>(r)), line - 9, fmt::format("{}", r), Svg::Anchor::middle);
  }
  if (plot.critical_difference > 0) {
    const double end = std::min(px(1 + plot.critical_difference), width - 10);
    svg.line(px(1), 22, end, 22, "frame");
    svg.line(px(1), 18, px(1), 26, "frame");
    svg.line(end, 18, end, 26, "frame");
    svg.text((px(1) + end) / 2, 14, fmt::format("critical difference {:.2f}", plot.critical_difference),
             Svg::Anchor::middle, "label");
  }
  std::vector<std::size_t> order(k);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return plot.mean_ranks[a] < plot.mean_ranks[b]; });
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t at = order[i];
    const bool first_half = i < half;
    const double y = line + bars + row * static_cast<double>(first_half ? i : k - 1 - i) + 8,
                 x = px(plot.mean_ranks[at]);
    const double end = first_half ? left - 8 : width - right + 8;
    const char* style = plot.names[at] == plot.lead ? "strong" : "name";
    svg.begin_group("ranked", plot.names[at]);
    svg.polyline({{x, line}, {x, y}, {end, y}}, "axis");
    svg.circle(x, line, 3.2, "dot", fmt::format("{}\nmean rank {:.3f}", plot.names[at], plot.mean_ranks[at]));
    svg.text(first_half ? end - 5 : end + 5, y + 4,
             fmt::format("{}  {:.2f}", plot.names[at], plot.mean_ranks[at]),
             first_half ? Svg::Anchor::end : Svg::Anchor::start, style);
    svg.end_group();
  }
  for (std::size_t g = 0; g < plot.groups.size(); ++g) {
    const double y = line + 9 + step * static_cast<double>(g);
    svg.line(px(plot.mean_ranks[plot.groups[g].front()]) - 3, y,
             px(plot.mean_ranks[plot.groups[g].back()]) + 3, y, "bar");
  }
  return svg;
}

Svg reliability_plot(const ReliabilityPlot& plot) {
  const double left = 56, right = 12, top = 10, side = plot.width - left - right, gap = 10, bars = 46,
               bottom = 42;
  Svg svg(plot.width, top + side + gap + bars + bottom, plot.title);
  const auto px = [&](double x) { return left + x * side; };
  const auto py = [&](double y) { return top + (1 - y) * side; };
  for (double t : {0., .25, .5, .75, 1.}) {
    svg.line(left, py(t), left + side, py(t), "grid");
    svg.text(left - 6, py(t) + 4, tick_text(t, .25), Svg::Anchor::end);
    svg.text(px(t), top + side + gap + bars + 16, tick_text(t, .25), Svg::Anchor::middle);
  }
  svg.line(px(0), py(0), px(1), py(1), "guide");
  svg.begin_group("s0", "reliability");
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < plot.score.size(); ++i)
    points.emplace_back(px(plot.score[i]), py(plot.positive[i]));
  svg.polyline(points, "curve");
  const double most = plot.count.empty() ? 1 : *std::max_element(plot.count.begin(), plot.count.end());
  const double base = top + side + gap + bars, bin = side / 10;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string tip =
        fmt::format("mean score {:.3f}\nshare of positives {:.3f}\n{:.0f} label decisions", plot.score[i],
                    plot.positive[i], plot.count[i]);
    svg.mark(points[i].first, points[i].second, 0, tip);
    // Square roots: most decisions are easy negatives, and the other bins would vanish beside them.
    const double tall = std::sqrt(plot.count[i] / most) * bars,
                 slot = std::min(9., std::floor(plot.score[i] * 10));
    svg.rect(left + bin * slot + 1, base - tall, bin - 2, tall, "mark", .45, tip);
  }
  svg.end_group();
  svg.line(left, base, left + side, base, "axis");
  svg.text(left + side / 2, base + 34, "score", Svg::Anchor::middle, "label");
  svg.text(11, top + side / 2, "share of positives", Svg::Anchor::middle, "label", -90);
  svg.text(left - 6, base - bars / 2 + 4, "count", Svg::Anchor::end, "small");
  return svg;
}

}  // namespace lacuna
