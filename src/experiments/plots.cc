// Charts with number axes: lines, bars, dots.
#include "experiments/plots.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lacuna {
namespace {

constexpr double kLine = 15;  // from one label to the next

std::string group_style(const Series& series) {
  return fmt::format("s{}{}", series.style % kSeriesStyles, series.lead ? " lead" : "");
}

// --- lines ---

// Where the numbers of a line plot lie on the drawing.
struct LineFrame {
  double left = 56, top = 14, width = 0, height = 0, names = 0;
  Extent xs, ys;
  bool log_x = false;
  double y_step = 1;

  double x(double value) const { return left + xs.share(log_x ? std::log10(value) : value) * width; }
  double y(double value) const { return top + (1 - ys.share(value)) * height; }
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

bool is_shown(const LinePlot& plot, const Series& s, std::size_t i) {
  return std::isfinite(s.y[i]) && (!plot.log_x || s.x[i] > 0);
}

void find_extents(const LinePlot& plot, LineFrame& frame) {
  for (const auto& s : plot.series)
    for (std::size_t i = 0; i < s.y.size(); ++i) {
      if (!is_shown(plot, s, i)) continue;
      const double half = s.spread.empty() ? 0 : s.spread[i];
      frame.xs.add(plot.log_x ? std::log10(s.x[i]) : s.x[i]);
      frame.ys.add(s.y[i] - half);
      frame.ys.add(s.y[i] + half);
    }
  if (plot.unit_square) frame.xs = {0, 1}, frame.ys = {0, 1};
  if (frame.xs.empty()) return;
  if (frame.xs.span() == 0) frame.xs.widen(1);
  frame.ys.widen(std::max(plot.least_span, frame.ys.span() == 0 ? .02 : 0));
  frame.y_step = nice_step(frame.ys.span(), 5);
  if (!plot.unit_square) frame.ys.round_out(frame.y_step);
}

LineFrame line_frame(const LinePlot& plot) {
  LineFrame frame;
  for (const auto& s : plot.series)
    frame.names = std::max(frame.names, text_width(s.name, s.lead ? 12.8 : 12));
  frame.names = std::min(frame.names, plot.width * .36);
  frame.log_x = plot.log_x;
  if (plot.guide) frame.top += kLine;
  frame.width = plot.width - frame.left - frame.names - 34;
  frame.height = plot.height - frame.top - 46;
  find_extents(plot, frame);
  return frame;
}

void draw_y_axis(const LinePlot& plot, const LineFrame& frame, Svg& svg) {
  for (double y = frame.ys.low; y <= frame.ys.high + frame.y_step / 2; y += frame.y_step) {
    svg.line(frame.left, frame.y(y), frame.right(), frame.y(y), "grid");
    svg.text(frame.left - 8, frame.y(y) + 4, tick_text(y, frame.y_step), Svg::Anchor::end);
  }
  svg.text(13, frame.top + frame.height / 2, plot.y_label, Svg::Anchor::middle, "label", -90);
}

std::vector<double> x_ticks(const LinePlot& plot, const LineFrame& frame) {
  const int count = std::max(3, static_cast<int>(frame.width / 44));
  if (plot.log_x) return log_ticks(std::pow(10, frame.xs.low), std::pow(10, frame.xs.high), count);
  auto ticks = nice_ticks(frame.xs.low, frame.xs.high, std::min(count, 6));
  const auto whole = [](double x) { return x == std::round(x); };
  if (std::all_of(plot.series.begin(), plot.series.end(),
                  [&](const Series& s) { return std::all_of(s.x.begin(), s.x.end(), whole); }))
    std::erase_if(ticks, [&](double x) { return !whole(x); });  // there is no epoch 2.5
  return ticks;
}

void draw_x_axis(const LinePlot& plot, const LineFrame& frame, Svg& svg) {
  const auto ticks = x_ticks(plot, frame);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  for (double x : ticks) {
    svg.line(frame.x(x), frame.bottom(), frame.x(x), frame.bottom() + 4, "axis");
    svg.text(frame.x(x), frame.bottom() + 17, plot.log_x ? fmt::format("{:g}", x) : tick_text(x, step),
             Svg::Anchor::middle);
  }
  svg.line(frame.left, frame.bottom(), frame.right(), frame.bottom(), "axis");
  svg.text(frame.left + frame.width / 2, plot.height - 8, plot.x_label + (plot.log_x ? " (logarithmic)" : ""),
           Svg::Anchor::middle, "label");
}

void draw_guide(const LinePlot::Guide& guide, const LineFrame& frame, Svg& svg) {
  const double x = frame.x(guide.x), half = text_width(guide.label, 11) / 2;
  svg.line(x, frame.top, x, frame.bottom(), "guide");
  svg.text(std::clamp(x, frame.left + half, std::max(frame.left + half, frame.right() - half)), frame.top - 5,
           guide.label, Svg::Anchor::middle);
}

void draw_band(const LinePlot& plot, const LineFrame& frame, const Series& s, Svg& svg) {
  std::vector<std::pair<double, double>> band;
  for (std::size_t i = 0; i < s.y.size(); ++i)
    if (is_shown(plot, s, i)) band.emplace_back(frame.x(s.x[i]), frame.y(s.y[i] + s.spread[i]));
  for (std::size_t i = s.y.size(); i-- > 0;)
    if (is_shown(plot, s, i)) band.emplace_back(frame.x(s.x[i]), frame.y(s.y[i] - s.spread[i]));
  svg.polyline(band, "area", true);
}

// Marks tell the series apart without colour; on long curves only some of them, shifted from series to series.
void draw_marks(const LinePlot& plot, const LineFrame& frame, std::size_t at, Svg& svg) {
  const Series& s = plot.series[at];
  const std::size_t every = std::max<std::size_t>(1, s.y.size() / plot.most_marks);
  for (std::size_t i = 0; i < s.y.size(); ++i) {
    const bool last = i + 1 == s.y.size();
    if (!is_shown(plot, s, i)) continue;
    if (s.y.size() > 2 * plot.most_marks && i % every != (at * 3) % every && !last) continue;
    svg.mark(frame.x(s.x[i]), frame.y(s.y[i]), s.style,
             fmt::format("{}\n{} {}: {} {}{}", s.name, plot.x_label, value_text(s.x[i]), plot.y_label,
                         value_text(s.y[i]), s.spread.empty() ? "" : " ± " + value_text(s.spread[i])));
  }
}

// The name beside the end of its curve, with the mark; a thin line leads there where names had to make room.
void draw_name(const LineFrame& frame, const Series& s, std::pair<double, double> end, double y, Svg& svg) {
  const double x = frame.right() + 16;
  if (std::abs(y - end.second) > 5 || frame.right() - end.first > 4)
    svg.polyline({{end.first + 5, end.second}, {frame.right() + 3, end.second}, {x - 6, y}}, "grid");
  svg.mark(x, y, s.style);
  svg.text(x + 8, y + 4, fitting(s.name, frame.names + 1), Svg::Anchor::start, s.lead ? "strong" : "name");
}

}  // namespace

Svg draw(const LinePlot& plot) {
  const LineFrame frame = line_frame(plot);
  Svg svg(plot.width, plot.height, plot.title);
  if (frame.xs.empty()) {
    svg.text(plot.width / 2, plot.height / 2, "nothing to show", Svg::Anchor::middle, "label");
    return svg;
  }
  draw_y_axis(plot, frame, svg);
  draw_x_axis(plot, frame, svg);
  if (plot.guide) draw_guide(*plot.guide, frame, svg);

  std::vector<std::vector<std::pair<double, double>>> curves;
  std::vector<double> ends;
  for (const auto& s : plot.series) {
    auto& points = curves.emplace_back();
    for (std::size_t i = 0; i < s.y.size(); ++i)
      if (is_shown(plot, s, i)) points.emplace_back(frame.x(s.x[i]), frame.y(s.y[i]));
    ends.push_back(points.empty() ? frame.top + frame.height / 2 : points.back().second);
  }
  const auto labels = spread_labels(ends, kLine, frame.top - 6, frame.bottom() + 5);
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const Series& s = plot.series[k];
    if (curves[k].empty()) continue;
    svg.begin_group(group_style(s), s.name);
    if (!s.spread.empty()) draw_band(plot, frame, s, svg);
    svg.polyline(curves[k], "curve");
    draw_marks(plot, frame, k, svg);
    draw_name(frame, s, curves[k].back(), labels[k], svg);
    svg.end_group();
  }
  return svg;
}

// --- bars ---

namespace {

// Boxes and names, in as many rows as the width needs; returns their height. Draws only where `svg` is given.
double draw_legend(const std::vector<std::string>& parts, double left, double width, Svg* svg) {
  double x = left, y = 8;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const double size = 32 + text_width(parts[p]);
    if (x > left && x + size - 14 > left + width) x = left, y += 18;
    if (svg != nullptr) {
      svg->begin_group(fmt::format("s{}", p), parts[p]);
      svg->rect(x, y, 11, 11, "mark");
      svg->end_group();
      svg->text(x + 16, y + 10, parts[p], Svg::Anchor::start, "label");
    }
    x += size;
  }
  return y + 24;
}

}  // namespace

Svg draw(const BarPlot& plot) {
  double names = 0, notes = 0;
  Extent sums;
  sums.add(0);
  std::vector<double> totals;
  std::vector<std::string> behind;
  for (std::size_t i = 0; i < plot.rows.size(); ++i) {
    names = std::max(names, text_width(plot.rows[i]));
    double total = 0;
    for (std::size_t p = 0; p < plot.parts.size(); ++p)
      total += std::isfinite(plot.values(i, p)) ? plot.values(i, p) : 0;
    totals.push_back(total);
    sums.add(total);
    behind.push_back(plot.notes.empty() ? value_text(total) : plot.notes[i]);
    notes = std::max(notes, text_width(behind.back(), 11));
  }
  names = std::min(names, plot.width * .35);
  const bool legend = plot.parts.size() > 1;
  const double row = 24, top = legend ? draw_legend(plot.parts, 8, plot.width - 8, nullptr) : 10;
  const double left = names + 18, height = row * static_cast<double>(plot.rows.size()),
               width = plot.width - left - notes - 14;
  Svg svg(plot.width, top + height + 42, plot.title);
  if (legend) draw_legend(plot.parts, 8, plot.width - 8, &svg);
  if (sums.high <= 0) sums.high = 1;
  const auto px = [&](double x) { return left + x / sums.high * width; };
  const auto ticks = nice_ticks(0, sums.high, width < 250 ? 3 : 5);
  for (double x : ticks) {
    svg.line(px(x), top, px(x), top + height, "grid");
    svg.text(px(x), top + height + 16, tick_text(x, ticks.size() > 1 ? ticks[1] : 1), Svg::Anchor::middle);
  }
  svg.text(left + width / 2, top + height + 34, plot.x_label, Svg::Anchor::middle, "label");
  for (std::size_t i = 0; i < plot.rows.size(); ++i) {
    const double y = top + row * static_cast<double>(i);
    svg.text(left - 8, y + row / 2 + 4, fitting(plot.rows[i], names), Svg::Anchor::end, "name");
    double x = 0;
    for (std::size_t p = 0; p < plot.parts.size(); ++p) {
      const double value = plot.values(i, p);
      if (!std::isfinite(value) || value <= 0) continue;
      svg.begin_group(fmt::format("s{}", p), plot.parts[p]);
      svg.rect(px(x), y + 4, std::max(1., px(x + value) - px(x) - 1), row - 8, "mark", 1,
               fmt::format("{}\n{}: {}", plot.rows[i], plot.parts[p], value_text(value)));
      svg.end_group();
      x += value;
    }
    svg.text(px(totals[i]) + 6, y + row / 2 + 4, behind[i], Svg::Anchor::start, "tick");
  }
  return svg;
}

// --- dots ---

namespace {

struct DotPanel {
  double left, top, width, height, row;
  Extent xs = {};
  double step = 1;
  double x(double value) const { return left + xs.share(value) * width; }
  double y(std::size_t i) const { return top + row * (static_cast<double>(i) + .5); }
};

void draw_panel(const DotPlot& plot, std::size_t axis, const DotPanel& panel, Svg& svg) {
  svg.text(panel.left + panel.width / 2, panel.top - 7, plot.axes[axis], Svg::Anchor::middle, "strong");
  for (double tick = panel.xs.low; tick <= panel.xs.high + panel.step / 2; tick += panel.step) {
    svg.line(panel.x(tick), panel.top, panel.x(tick), panel.top + panel.height, "grid");
    svg.text(panel.x(tick), panel.top + panel.height + 14, tick_text(tick, panel.step), Svg::Anchor::middle);
  }
  double best = -INFINITY;
  for (const auto& s : plot.series) best = std::isfinite(s.y[axis]) ? std::max(best, s.y[axis]) : best;
  if (std::isfinite(best))
    svg.line(panel.x(best), panel.top, panel.x(best), panel.top + panel.height, "guide");
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    svg.line(panel.left, panel.y(i), panel.left + panel.width, panel.y(i), "hair");
    if (!std::isfinite(s.y[axis])) continue;
    const double spread = s.spread.empty() || !std::isfinite(s.spread[axis]) ? 0 : s.spread[axis];
    svg.begin_group(group_style(s), s.name);
    if (spread > 0)
      svg.line(panel.x(s.y[axis] - spread), panel.y(i), panel.x(s.y[axis] + spread), panel.y(i), "whisker");
    svg.mark(panel.x(s.y[axis]), panel.y(i), s.style,
             fmt::format("{}\n{} {:.4f}{}", s.name, plot.axes[axis], s.y[axis],
                         spread > 0 ? fmt::format(" ± {:.4f}", spread) : ""));
    svg.end_group();
  }
}

}  // namespace

Svg draw(const DotPlot& plot) {
  double names = 0;
  for (const auto& s : plot.series) names = std::max(names, text_width(s.name, s.lead ? 12.8 : 12));
  names = std::min(names, plot.width * .34);
  constexpr double kLeast = 88, kGap = 28, kRow = 19, kHead = 26, kFoot = 26;
  const double left = names + 16, room = plot.width - left - 17;
  const std::size_t n = plot.axes.size(),
                    beside = std::clamp<std::size_t>(
                        static_cast<std::size_t>((room + kGap) / (kLeast + kGap)), 1, n);
  const std::size_t floors = (n + beside - 1) / beside;
  const double width = (room - kGap * static_cast<double>(beside - 1)) / static_cast<double>(beside),
               height = kRow * static_cast<double>(plot.series.size()), storey = kHead + height + kFoot;
  Svg svg(plot.width, storey * static_cast<double>(floors), plot.title);
  for (std::size_t axis = 0; axis < n; ++axis) {
    const auto column = static_cast<double>(axis % beside), floor = static_cast<double>(axis / beside);
    DotPanel panel{left + (width + kGap) * column, kHead + storey * floor, width, height, kRow};
    for (const auto& s : plot.series) {
      const double spread = s.spread.empty() || !std::isfinite(s.spread[axis]) ? 0 : s.spread[axis];
      panel.xs.add(s.y[axis] - spread);
      panel.xs.add(s.y[axis] + spread);
    }
    if (panel.xs.empty()) panel.xs = {0, 1};
    panel.xs.widen(std::max(plot.least_span, panel.xs.span() == 0 ? .02 : 0));
    panel.step = nice_step(panel.xs.span(), width < 150 ? 2 : 4);
    panel.xs.round_out(panel.step);
    draw_panel(plot, axis, panel, svg);
    if (axis % beside != 0) continue;
    for (std::size_t i = 0; i < plot.series.size(); ++i)
      svg.text(left - 10, panel.y(i) + 4, fitting(plot.series[i].name, names + 1), Svg::Anchor::end,
               plot.series[i].lead ? "strong" : "name");
  }
  return svg;
}

}  // namespace lacuna
