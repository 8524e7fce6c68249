// Maps of numbers by colour, with a colour bar.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/plots.h"

namespace lacuna {
namespace {

constexpr double kBar = 12, kBarRoom = 78;  // the bar of colours, and what it takes with its numbers

struct HeatFrame {
  double left, head, cell, cell_height, foot, names, tall;
  std::size_t beside, floors;
  bool upright;  // column names stand upright
  double panel_width, panel_height, gap = 14;
};

HeatFrame heat_frame(const HeatMap& plot) {
  HeatFrame frame{};
  frame.gap = 14;
  double names = 0, tall = 0;
  for (const auto& name : plot.rows) names = std::max(names, text_width(name, 11));
  for (const auto& name : plot.columns) tall = std::max(tall, text_width(name, 11));
  names = frame.names = std::min(names, plot.width * .34);
  tall = frame.tall = std::min(tall, 150.);
  const auto n = static_cast<double>(plot.columns.size());
  frame.left = names + (plot.y_label.empty() ? 10 : 30);
  const double room = plot.width - frame.left - kBarRoom;
  // Panels side by side while their cells keep a size that can be seen.
  const double least = plot.numbers ? 40 : 13;
  frame.beside = std::clamp<std::size_t>(
      static_cast<std::size_t>((room + frame.gap) / (least * n + frame.gap)), 1, plot.panels.size());
  frame.floors = (plot.panels.size() + frame.beside - 1) / frame.beside;
  const auto beside = static_cast<double>(frame.beside);
  frame.cell = std::min(plot.numbers ? 58. : 30., (room - frame.gap * (beside - 1)) / (beside * n));
  frame.cell_height = plot.numbers ? std::min(frame.cell, 30.) : frame.cell;
  frame.upright = tall > frame.cell - 3;
  frame.head = plot.panels.size() > 1 ? 22 : 8;
  frame.foot = (frame.upright ? tall + 10 : 20) + (plot.x_label.empty() ? 4 : 20);
  frame.panel_width = frame.cell * n;
  frame.panel_height = frame.cell_height * static_cast<double>(plot.rows.size());
  return frame;
}

struct Shade {
  const char* style;
  double strength;
};
Shade shade(const HeatMap& plot, double value) {
  if (plot.diverging)
    return {value < 0 ? "warm" : "cold", std::sqrt(std::clamp(std::abs(value) / plot.colours.high, 0., 1.))};
  return {"cold", .06 + .94 * std::clamp(plot.colours.span() > 0 ? plot.colours.share(value) : 1., 0., 1.)};
}

void draw_cells(const HeatMap& plot, const HeatMap::Panel& panel, const HeatFrame& frame, double left,
                double top, Svg& svg) {
  double best = -INFINITY;
  for (double value : panel.values.values()) best = std::isfinite(value) ? std::max(best, value) : best;
  for (std::size_t i = 0; i < plot.rows.size(); ++i)
    for (std::size_t j = 0; j < plot.columns.size(); ++j) {
      const double x = left + frame.cell * static_cast<double>(j),
                   y = top + frame.cell_height * static_cast<double>(i), value = panel.values(i, j);
      if (!std::isfinite(value)) {
        svg.rect(x, y, frame.cell - 1, frame.cell_height - 1, "faint");
        continue;
      }
      const Shade of = shade(plot, value);
      svg.rect(x, y, frame.cell - 1, frame.cell_height - 1, of.style, of.strength,
               fmt::format("{} · {}\n{:.4f}", plot.rows[i], plot.columns[j], value));
      if (plot.mark_best && value == best)
        svg.rect(x + .5, y + .5, frame.cell - 2, frame.cell_height - 2, "frame");
      if (!plot.numbers) continue;
      std::string number = fmt::format("{:.{}f}", value, plot.digits);
      if (frame.cell < 38 && number.starts_with("0.")) number.erase(0, 1);
      svg.text(x + frame.cell / 2, y + frame.cell_height / 2 + 4, number, Svg::Anchor::middle,
               of.strength > .74 ? "oncell" : "cell");
    }
}

void draw_names(const HeatMap& plot, const HeatFrame& frame, double left, double top, bool rows, Svg& svg) {
  const double base = top + frame.panel_height;
  for (std::size_t i = 0; rows && i < plot.rows.size(); ++i)
    svg.text(left - 6, top + frame.cell_height * (static_cast<double>(i) + .5) + 4,
             fitting(plot.rows[i], frame.names + 1, 11), Svg::Anchor::end);
  for (std::size_t j = 0; j < plot.columns.size(); ++j) {
    const double x = left + frame.cell * (static_cast<double>(j) + .5);
    if (frame.upright)
      svg.text(x + 4, base + 8, fitting(plot.columns[j], frame.tall + 1, 11), Svg::Anchor::end, "tick", -90);
    else
      svg.text(x, base + 15, plot.columns[j], Svg::Anchor::middle);
  }
  if (!plot.x_label.empty())
    svg.text(left + frame.panel_width / 2, base + frame.foot - 6, plot.x_label, Svg::Anchor::middle, "label");
  if (rows && !plot.y_label.empty())
    svg.text(12, top + frame.panel_height / 2, plot.y_label, Svg::Anchor::middle, "label", -90);
}

// The label stands upright beside the bar, which may be shorter.
double bar_label_length(const HeatMap& plot) {
  return text_width(plot.value_label, 13) + 8;
}

void draw_colour_bar(const HeatMap& plot, double left, double top, double height, Svg& svg) {
  constexpr int kSteps = 32;
  const double low = plot.diverging ? -plot.colours.high : plot.colours.low, high = plot.colours.high;
  const double step = height / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const Shade of = shade(plot, high - (i + .5) / kSteps * (high - low));
    svg.rect(left, top + step * i, kBar, step + .3, of.style, of.strength);
  }
  const auto ticks = nice_ticks(low, high, height < 120 ? 3 : 5);
  const double by = ticks.size() > 1 ? ticks[1] - ticks[0] : high - low;
  for (double tick : ticks)
    svg.text(left + kBar + 5, top + (high - tick) / (high - low) * height + 4, tick_text(tick, by));
  const double middle = std::max(top + height / 2, bar_label_length(plot) / 2);
  svg.text(left + kBar + 50, middle, plot.value_label, Svg::Anchor::middle, "label", -90);
}

}  // namespace

Svg draw(const HeatMap& plot) {
  const HeatFrame frame = heat_frame(plot);
  const double storey = frame.head + frame.panel_height + frame.foot;
  const auto beside = static_cast<double>(frame.beside);
  const double maps = frame.left + frame.panel_width * beside + frame.gap * (beside - 1);
  Svg svg(maps + kBarRoom, std::max(storey * static_cast<double>(frame.floors), bar_label_length(plot)),
          plot.title);
  for (std::size_t p = 0; p < plot.panels.size(); ++p) {
    const double left = frame.left + (frame.panel_width + frame.gap) * static_cast<double>(p % frame.beside),
                 top = storey * static_cast<double>(p / frame.beside) + frame.head;
    if (plot.panels.size() > 1)
      svg.text(left + frame.panel_width / 2, top - 7, plot.panels[p].title, Svg::Anchor::middle, "name");
    draw_cells(plot, plot.panels[p], frame, left, top, svg);
    draw_names(plot, frame, left, top, p % frame.beside == 0, svg);
  }
  draw_colour_bar(plot, maps + 10, frame.head, std::min(frame.panel_height, 220.), svg);
  return svg;
}

}  // namespace lacuna
