// Charts of a shape of their own: radar, ranks, reliability.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "experiments/plots.h"

namespace lacuna {

// --- radar ---

namespace {

struct Wheel {
  double x, y, radius;
  std::size_t axes;
  std::pair<double, double> at(std::size_t axis, double share) const {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(axis) / static_cast<double>(axes) - std::numbers::pi / 2;
    return {x + share * radius * std::cos(angle), y + share * radius * std::sin(angle)};
  }
};

void draw_wheel(const RadarPlot& plot, const Wheel& wheel, const std::vector<Extent>& extents, Svg& svg) {
  for (double share : {.25, .5, .75, 1.}) {
    std::vector<std::pair<double, double>> ring;
    for (std::size_t a = 0; a < wheel.axes; ++a) ring.push_back(wheel.at(a, share));
    svg.polyline(ring, "grid", true);
  }
  for (std::size_t a = 0; a < wheel.axes; ++a) {
    const auto [x, y] = wheel.at(a, 1);
    svg.line(wheel.x, wheel.y, x, y, "grid");
    // Names outside the rim; those at the sides above and below it, where the page is wide enough for them.
    const bool top = a == 0, bottom = 2 * a == wheel.axes, right = 2 * a < wheel.axes;
    const auto anchor = top || bottom ? Svg::Anchor::middle : right ? Svg::Anchor::end : Svg::Anchor::start;
    const double edge = top || bottom ? x : right ? plot.width - 4 : 4;
    const double line = top ? y - 22 : bottom ? y + 18 : y < wheel.y ? y - 31 : y + 20;
    svg.text(edge, line, plot.axes[a], anchor, "strong");
    if (!extents[a].empty())
      svg.text(edge, line + 13, fmt::format("{:.3f} – {:.3f}", extents[a].low, extents[a].high), anchor);
  }
}

void draw_legend(const RadarPlot& plot, double top, double column, std::size_t columns, Svg& svg) {
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const double x = column * static_cast<double>(k % columns) + 14,
                 y = top + 20 * static_cast<double>(k / columns) + 8;
    const Series& s = plot.series[k];
    svg.begin_group(fmt::format("s{}", s.style % kSeriesStyles), s.name);
    svg.polyline({{x - 12, y}, {x + 12, y}}, "curve");
    svg.mark(x, y, s.style);
    svg.text(x + 17, y + 4, fitting(s.name, column - 34, 12.8), Svg::Anchor::start,
             s.lead ? "strong" : "name");
    svg.end_group();
  }
}

}  // namespace

Svg draw(const RadarPlot& plot) {
  const std::size_t n = plot.axes.size();
  double names = 0;
  for (const auto& s : plot.series) names = std::max(names, text_width(s.name, 12.8) + 36);
  const auto columns =
      std::clamp<std::size_t>(static_cast<std::size_t>(plot.width / std::max(names, 1.)), 1, 4);
  const double radius = std::min(plot.width / 2 - 40, 150.), height = 2 * radius + 84;
  const double legend =
      20 * std::ceil(static_cast<double>(plot.series.size()) / static_cast<double>(columns));
  Svg svg(plot.width, height + legend + 6, plot.title);
  const Wheel wheel{plot.width / 2, 42 + radius, radius, n};
  std::vector<Extent> extents(n);
  for (const auto& s : plot.series)
    for (std::size_t a = 0; a < n; ++a) extents[a].add(s.y[a]);
  draw_wheel(plot, wheel, extents, svg);
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
      const double share = !std::isfinite(s.y[a])  ? 0
                           : extents[a].span() > 0 ? .08 + .92 * extents[a].share(s.y[a])
                                                   : 1;
      points.push_back(wheel.at(a, share));
    }
    if (s.lead) svg.polyline(points, "area", true);
    svg.polyline(points, "curve", true);
    for (std::size_t a = 0; a < n; ++a)
      svg.mark(points[a].first, points[a].second, s.style,
               fmt::format("{}\n{} {:.4f}", s.name, plot.axes[a], s.y[a]), 3);
    svg.end_group();
  }
  draw_legend(plot, height, plot.width / static_cast<double>(columns), columns, svg);
  return svg;
}

// --- ranks ---

namespace {

// Where ranks lie and where names stand: on both sides of a wide drawing, on the left of a narrow one.
struct RankFrame {
  double left, right, line = 62, row = 21, rows, bars, names;
  std::size_t count;
  bool both_sides;
  double x(double rank) const {
    return left + (rank - 1) / static_cast<double>(std::max<std::size_t>(1, count - 1)) * (right - left);
  }
};

RankFrame rank_frame(const RankPlot& plot) {
  double names = 0;
  for (const auto& name : plot.names) names = std::max(names, text_width(name + "  10.00", 12.8));
  names = std::min(names, plot.width * .45);
  RankFrame frame{};
  frame.line = 62;
  frame.row = 21;
  frame.names = names;
  frame.count = plot.names.size();
  frame.both_sides = plot.width - 2 * names > 240;
  frame.left = names + 22;
  frame.right = plot.width - (frame.both_sides ? names + 22 : 14);
  frame.rows = static_cast<double>(frame.both_sides ? (frame.count + 1) / 2 : frame.count);
  frame.bars = 8 * static_cast<double>(plot.groups.size()) + 10;
  return frame;
}

void draw_rank_axis(const RankPlot& plot, const RankFrame& frame, Svg& svg) {
  svg.line(frame.left, frame.line, frame.right, frame.line, "axis");
  for (std::size_t r = 1; r <= frame.count; ++r) {
    const double x = frame.x(static_cast<double>(r));
    svg.line(x, frame.line - 5, x, frame.line, "axis");
    svg.text(x, frame.line - 9, fmt::format("{}", r), Svg::Anchor::middle);
  }
  if (!(plot.critical_difference > 0)) return;
  const double begin = frame.left, wanted = frame.x(1 + plot.critical_difference),
               end = std::min(wanted, plot.width - 8);
  svg.line(begin, 22, end, 22, "frame");
  svg.line(begin, 18, begin, 26, "frame");
  if (wanted <= end) svg.line(end, 18, end, 26, "frame");
  const std::string label = fmt::format("critical difference {:.2f}", plot.critical_difference);
  const double half = text_width(label) / 2;
  svg.text(std::clamp((begin + end) / 2, half + 4, plot.width - half - 4), 13, label, Svg::Anchor::middle,
           "label");
}

}  // namespace

Svg draw(const RankPlot& plot) {
  const RankFrame frame = rank_frame(plot);
  const std::size_t k = frame.count, half = frame.both_sides ? (k + 1) / 2 : k;
  Svg svg(plot.width, frame.line + frame.bars + frame.row * frame.rows + 14, plot.title);
  draw_rank_axis(plot, frame, svg);
  std::vector<std::size_t> order(k);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return plot.mean_ranks[a] < plot.mean_ranks[b]; });
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t at = order[i];
    const bool on_left = i < half;
    const double y = frame.line + frame.bars + frame.row * static_cast<double>(on_left ? i : k - 1 - i) + 8,
                 x = frame.x(plot.mean_ranks[at]), end = on_left ? frame.left - 10 : frame.right + 10;
    svg.begin_group("ranked", plot.names[at]);
    svg.polyline({{x, frame.line}, {x, y}, {end, y}}, "axis");
    svg.circle(x, frame.line, 3.2, "dot",
               fmt::format("{}\nmean rank {:.3f}", plot.names[at], plot.mean_ranks[at]));
    svg.text(on_left ? end - 5 : end + 5, y + 4,
             fmt::format("{}  {:.2f}", fitting(plot.names[at], frame.names - text_width("  10.00"), 12.8),
                         plot.mean_ranks[at]),
             on_left ? Svg::Anchor::end : Svg::Anchor::start,
             plot.names[at] == plot.lead ? "strong" : "name");
    svg.end_group();
  }
  for (std::size_t g = 0; g < plot.groups.size(); ++g) {
    const double y = frame.line + 9 + 8 * static_cast<double>(g);
    svg.line(frame.x(plot.mean_ranks[plot.groups[g].front()]) - 3, y,
             frame.x(plot.mean_ranks[plot.groups[g].back()]) + 3, y, "bar");
  }
  return svg;
}

// --- reliability ---

Bounds wilson(double share, double count, double z) {
  if (!(count > 0)) return {};
  const double z2 = z * z, scale = 1 + z2 / count, middle = (share + z2 / (2 * count)) / scale,
               half = z * std::sqrt(share * (1 - share) / count + z2 / (4 * count * count)) / scale;
  return {std::max(0., middle - half), std::min(1., middle + half)};
}

namespace {

struct UnitSquare {
  double left, top, side;
  double x(double value) const { return left + value * side; }
  double y(double value) const { return top + (1 - value) * side; }
};

void draw_curve(const ReliabilityPlot::Curve& curve, std::size_t style, const UnitSquare& square, Svg& svg) {
  svg.begin_group(fmt::format("s{}", style), curve.name);
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < curve.score.size(); ++i)
    points.emplace_back(square.x(curve.score[i]), square.y(curve.positive[i]));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Bounds interval = wilson(curve.positive[i], curve.count[i]);
    svg.line(points[i].first, square.y(interval.low), points[i].first, square.y(interval.high), "whisker");
  }
  svg.polyline(points, "curve");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Bounds interval = wilson(curve.positive[i], curve.count[i]);
    svg.mark(points[i].first, points[i].second, static_cast<int>(style),
             fmt::format(
                 "{}\nmean score {:.3f}\nshare of positives {:.3f} ({:.3f} – {:.3f})\n{:.0f} decisions",
                 curve.name, curve.score[i], curve.positive[i], interval.low, interval.high, curve.count[i]));
  }
  svg.end_group();
}

// How many decisions each tenth of the scores holds, a line of numbers per curve.
void draw_counts(const ReliabilityPlot::Curve& curve, std::size_t style, double y, const UnitSquare& square,
                 Svg& svg) {
  svg.begin_group(fmt::format("s{}", style), curve.name);
  svg.mark(square.left - 12, y - 4, static_cast<int>(style));
  svg.end_group();
  for (std::size_t i = 0; i < curve.score.size(); ++i) {
    const double slot = std::min(9., std::floor(curve.score[i] * 10));
    svg.text(square.x((slot + .5) / 10), y, short_count(curve.count[i]), Svg::Anchor::middle);
  }
}

}  // namespace

Svg draw(const ReliabilityPlot& plot) {
  const UnitSquare square{58, 10 + 18 * static_cast<double>(plot.curves.size() > 1 ? plot.curves.size() : 0),
                          plot.width - 70};
  const double base = square.top + square.side, counts = base + 54;
  Svg svg(plot.width, counts + 16 * static_cast<double>(plot.curves.size()), plot.title);
  for (double t : {0., .25, .5, .75, 1.}) {
    svg.line(square.left, square.y(t), square.x(1), square.y(t), "grid");
    svg.text(square.left - 6, square.y(t) + 4, tick_text(t, .25), Svg::Anchor::end);
    svg.text(square.x(t), base + 16, tick_text(t, .25), Svg::Anchor::middle);
  }
  svg.line(square.x(0), square.y(0), square.x(1), square.y(1), "guide");
  svg.line(square.left, base, square.x(1), base, "axis");
  svg.text(square.x(.5), base + 34, "score", Svg::Anchor::middle, "label");
  svg.text(13, square.y(.5), "share of positives", Svg::Anchor::middle, "label", -90);
  for (std::size_t c = 0; c < plot.curves.size(); ++c) {
    draw_curve(plot.curves[c], c, square, svg);
    draw_counts(plot.curves[c], c, counts + 16 * static_cast<double>(c), square, svg);
    if (plot.curves.size() < 2) continue;
    const double y = 8 + 18 * static_cast<double>(c);
    svg.begin_group(fmt::format("s{}", c), plot.curves[c].name);
    svg.polyline({{square.left, y}, {square.left + 24, y}}, "curve");
    svg.mark(square.left + 12, y, static_cast<int>(c));
    svg.text(square.left + 32, y + 4, plot.curves[c].name, Svg::Anchor::start, "name");
    svg.end_group();
  }
  return svg;
}

}  // namespace lacuna
