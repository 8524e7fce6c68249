#include "experiments/plots.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace lacuna {
namespace {

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

std::string value_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  return size >= 100 ? fmt::format("{:.0f}", value)
         : size >= 1 ? fmt::format("{:.3g}", value)
                     : fmt::format("{:.4g}", value);
}

// Moves labels apart so that no two are closer than `gap`, keeping their order and as near to their wish as
// possible.
std::vector<double> spread_labels(std::vector<double> wanted, double gap, double low, double high) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  // Blocks of touching labels, each centred on the mean of its wishes, merged while they overlap.
  struct Block {
    double center;
    std::size_t begin, end;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    blocks.push_back({wanted[order[i]], i, i + 1});
    while (blocks.size() > 1) {
      const Block &a = blocks[blocks.size() - 2], &b = blocks.back();
      const auto size_a = static_cast<double>(a.end - a.begin), size_b = static_cast<double>(b.end - b.begin);
      if (a.center + gap * size_a / 2 <= b.center - gap * size_b / 2) break;
      const Block merged{(a.center * size_a + b.center * size_b) / (size_a + size_b), a.begin, b.end};
      blocks.pop_back();
      blocks.back() = merged;
    }
  }
  std::vector<double> placed(wanted.size());
  for (const auto& block : blocks) {
    const double half = gap * static_cast<double>(block.end - block.begin) / 2;
    const double center = std::clamp(block.center, low + half, std::max(low + half, high - half));
    for (std::size_t i = block.begin; i < block.end; ++i)
      placed[order[i]] = center - half + gap * (static_cast<double>(i - block.begin) + .5);
  }
  return placed;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  double step = power;
  for (double factor : {1., 2., 2.5, 5., 10.})
    if (factor * power >= raw * .999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k)
    ticks.push_back(k * step);
  return ticks;
}

std::string tick_text(double value, double step) {
  const int digits = step <= 0 ? 3 : std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  const bool quarter = std::abs(step * std::pow(10, digits) - std::round(step * std::pow(10, digits))) > 1e-6;
  if (std::abs(value) < step * 1e-6) value = 0;  // steps that should meet at zero miss it by a hair
  return fmt::format("{:.{}f}", value, digits + (quarter ? 1 : 0));
}

Svg line_plot(const LinePlot& plot) {
  double names = 0;
  for (const auto& s : plot.series) names = std::max(names, text_width(s.name, s.lead ? 12.8 : 12));
  names = std::min(names, plot.width * .4);
  const double left = 64, right = names + 34, top = 14, bottom = 44;
  const double width = plot.width - left - right, height = plot.height - top - bottom;
  Extent xs, ys;
  for (const auto& s : plot.series)
    for (std::size_t i = 0; i < s.y.size(); ++i) {
      if (!std::isfinite(s.y[i]) || (plot.log_x && !(s.x[i] > 0))) continue;
      const double half = s.spread.empty() ? 0 : s.spread[i];
      xs.add(plot.log_x ? std::log10(s.x[i]) : s.x[i]);
      ys.add(s.y[i] - half);
      ys.add(s.y[i] + half);
    }
  if (plot.unit_square) xs = {0, 1}, ys = {0, 1};
  Svg svg(plot.width, plot.height, plot.title);
  if (xs.empty()) {
    svg.text(plot.width / 2, plot.height / 2, "nothing to show", Svg::Anchor::middle, "label");
    return svg;
  }
  if (xs.high == xs.low) xs = {xs.low - .5, xs.high + .5};
  if (ys.high == ys.low) ys = {ys.low - .01, ys.high + .01};
  const auto y_ticks = nice_ticks(ys.low, ys.high, 5);
  const double y_step = y_ticks.size() > 1 ? y_ticks[1] - y_ticks[0] : ys.high - ys.low;
  if (!plot.unit_square) {  // out to whole steps, so that grid lines frame the data
    ys.low = std::min(ys.low, std::floor(ys.low / y_step + 1e-9) * y_step);
    ys.high = std::max(ys.high, std::ceil(ys.high / y_step - 1e-9) * y_step);
  }
  const auto px = [&](double x) {
    return left + ((plot.log_x ? std::log10(x) : x) - xs.low) / (xs.high - xs.low) * width;
  };
  const auto py = [&](double y) { return top + (ys.high - y) / (ys.high - ys.low) * height; };

  for (double y : nice_ticks(ys.low, ys.high, 5)) {
    svg.line(left, py(y), left + width, py(y), "grid");
    svg.text(left - 8, py(y) + 4, tick_text(y, y_step), Svg::Anchor::end);
  }
  if (plot.log_x) {
    for (double e = std::ceil(xs.low - 1e-9); e <= xs.high + 1e-9; ++e) {
      svg.line(px(std::pow(10, e)), top + height, px(std::pow(10, e)), top + height + 4, "axis");
      svg.text(px(std::pow(10, e)), top + height + 17, fmt::format("{:.6g}", std::pow(10, e)),
               Svg::Anchor::middle);
    }
  } else {
    auto ticks = nice_ticks(xs.low, xs.high, 6);
    const auto whole = [](double x) { return x == std::round(x); };
    if (std::all_of(plot.series.begin(), plot.series.end(),
                    [&](const Series& s) { return std::all_of(s.x.begin(), s.x.end(), whole); }))
      std::erase_if(ticks, [&](double x) { return !whole(x); });  // there is no epoch 2.5
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
    for (double x : ticks) {
      svg.line(px(x), top + height, px(x), top + height + 4, "axis");
      svg.text(px(x), top + height + 17, tick_text(x, step), Svg::Anchor::middle);
    }
  }
  svg.line(left, top + height, left + width, top + height, "axis");
  svg.text(left + width / 2, plot.height - 8, plot.x_label, Svg::Anchor::middle, "label");
  svg.text(12, top + height / 2, plot.y_label, Svg::Anchor::middle, "label", -90);
  if (plot.diagonal) svg.line(px(0), py(0), px(1), py(1), "guide");

  std::vector<double> ends;
  for (const auto& s : plot.series) {
    double last = top + height / 2;
    for (std::size_t i = 0; i < s.y.size(); ++i)
      if (std::isfinite(s.y[i])) last = py(s.y[i]);
    ends.push_back(last);
  }
  const auto labels = spread_labels(ends, 15, top - 4, top + height + 10);
  for (std::size_t k = 0; k < plot.series.size(); ++k) {
    const Series& s = plot.series[k];
    svg.begin_group(fmt::format("s{}{}", s.style % kSeriesStyles, s.lead ? " lead" : ""), s.name);
    std::vector<std::pair<double, double>> points, band;
    for (std::size_t i = 0; i < s.y.size(); ++i)
      if (std::isfinite(s.y[i]) && (!plot.log_x || s.x[i] > 0)) points.emplace_back(px(s.x[i]), py(s.y[i]));
    if (!s.spread.empty()) {
      for (std::size_t i = 0; i < s.y.size(); ++i)
        if (std::isfinite(s.y[i])) band.emplace_back(px(s.x[i]), py(s.y[i] + s.spread[i]));
      for (std::size_t i = s.y.size(); i-- > 0;)
        if (std::isfinite(s.y[i])) band.emplace_back(px(s.x[i]), py(s.y[i] - s.spread[i]));
      svg.polyline(band, "area", true);
    }
    svg.polyline(points, "curve");
    // Marks tell the series apart without colour; on long curves only some of them, shifted from series to
    // series.
    const std::size_t every = std::max<std::size_t>(1, s.y.size() / 12);
    for (std::size_t i = 0; i < s.y.size(); ++i) {
      if (!std::isfinite(s.y[i]) || (plot.log_x && !(s.x[i] > 0))) continue;
      if (!plot.marks && i + 1 != s.y.size()) continue;
      if (s.y.size() > 24 && i % every != (k * 3) % every && i + 1 != s.y.size()) continue;
      svg.mark(px(s.x[i]), py(s.y[i]), s.style,
               fmt::format("{}\n{} {}: {} {}{}", s.name, plot.x_label, value_text(s.x[i]), plot.y_label,
                           value_text(s.y[i]), s.spread.empty() ? "" : " ± " + value_text(s.spread[i])));
    }
    if (!points.empty()) {
      const double x = left + width + 16;
      if (std::abs(labels[k] - ends[k]) > 5)
        svg.line(points.back().first + 5, points.back().second, x - 7, labels[k], "grid");
      svg.mark(x, labels[k], s.style);
      std::string name = s.name;
      if (text_width(name) > names + 1) name = name.substr(0, static_cast<std::size_t>(names / 7)) + "…";
      svg.text(x + 8, labels[k] + 4, name, Svg::Anchor::start, s.lead ? "strong" : "name");
    }
    svg.end_group();
  }
  return svg;
}

Svg bar_plot(const BarPlot& plot) {
  double names = 0;
  Extent sums;
  sums.add(0);
  std::vector<double> totals;
  for (std::size_t i = 0; i < plot.rows.size(); ++i) {
    names = std::max(names, text_width(plot.rows[i]));
    double total = 0;
    for (std::size_t p = 0; p < plot.parts.size(); ++p)
      total += std::isfinite(plot.values(i, p)) ? plot.values(i, p) : 0;
    totals.push_back(total);
    sums.add(total);
  }
  names = std::min(names, plot.width * .35);
  const double row = 24, top = plot.parts.size() > 1 ? 34 : 10, bottom = 42, left = names + 18, right = 96;
  const double height = row * static_cast<double>(plot.rows.size()), width = plot.width - left - right;
  Svg svg(plot.width, top + height + bottom, plot.title);
  if (sums.high <= 0) sums.high = 1;
  const auto px = [&](double x) { return left + x / sums.high * width; };
  const auto ticks = nice_ticks(0, sums.high, 5);
  for (double x : ticks) {
    svg.line(px(x), top, px(x), top + height, "grid");
    svg.text(px(x), top + height + 16, tick_text(x, ticks.size() > 1 ? ticks[1] : 1), Svg::Anchor::middle);
  }
  svg.text(left + width / 2, top + height + 34, plot.x_label, Svg::Anchor::middle, "label");
  if (plot.parts.size() > 1) {
    double x = left;
    for (std::size_t p = 0; p < plot.parts.size(); ++p) {
      svg.begin_group(fmt::format("s{}", p), plot.parts[p]);
      svg.rect(x, 8, 11, 11, "mark");
      svg.end_group();
      svg.text(x + 16, 18, plot.parts[p], Svg::Anchor::start, "label");
      x += 32 + text_width(plot.parts[p]);
    }
  }
  for (std::size_t i = 0; i < plot.rows.size(); ++i) {
    const double y = top + row * static_cast<double>(i);
    svg.text(left - 8, y + row / 2 + 4, plot.rows[i], Svg::Anchor::end, "name");
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
    svg.text(px(totals[i]) + 6, y + row / 2 + 4, plot.notes.empty() ? value_text(totals[i]) : plot.notes[i],
             Svg::Anchor::start, "tick");
  }
  return svg;
}

}  // namespace lacuna
