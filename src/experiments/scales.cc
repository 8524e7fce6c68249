#include "experiments/scales.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lacuna {

void Extent::add(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Extent::widen(double least) {
  if (empty() || span() >= least) return;
  const double middle = (low + high) / 2;
  low = middle - least / 2;
  high = middle + least / 2;
}

void Extent::round_out(double step) {
  low = std::floor(low / step + 1e-9) * step;
  high = std::ceil(high / step - 1e-9) * step;
}

double nice_step(double span, int count) {
  const double raw = span / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1., 2., 2.5, 5.})
    if (factor * power >= raw * .999) return factor * power;
  return 10 * power;
}

std::vector<double> nice_ticks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double step = nice_step(high - low, count);
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k)
    ticks.push_back(k * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  for (const auto& factors : {std::vector<double>{1, 2, 5}, std::vector<double>{1}}) {
    ticks.clear();
    for (double e = std::floor(std::log10(low)); e <= std::ceil(std::log10(high)); ++e)
      for (double factor : factors)
        if (const double tick = factor * std::pow(10, e);
            tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9))
          ticks.push_back(tick);
    if (static_cast<int>(ticks.size()) <= count) break;
  }
  return ticks;
}

std::string tick_text(double value, double step) {
  const int digits = step <= 0 ? 3 : std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  const bool quarter = std::abs(step * std::pow(10, digits) - std::round(step * std::pow(10, digits))) > 1e-6;
  if (std::abs(value) < step * 1e-6) value = 0;  // steps that should meet at zero miss it by a hair
  return fmt::format("{:.{}f}", value, digits + (quarter ? 1 : 0));
}

std::string value_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  return size >= 100 ? fmt::format("{:.0f}", value)
         : size >= 1 ? fmt::format("{:.3g}", value)
                     : fmt::format("{:.4g}", value);
}

std::string short_count(double value) {
  const char* unit = "";
  for (const char* next : {"k", "M", "G"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return *unit != '\0' && value < 9.95 ? fmt::format("{:.1f}{}", value, unit)
                                       : fmt::format("{:.0f}{}", value, unit);
}

std::vector<double> spread_labels(const std::vector<double>& wanted, double gap, double low, double high) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  // Blocks of touching labels, each centred on the mean of its wishes and inside the limits, merged while they overlap.
  struct Block {
    double sum;
    std::size_t begin, end;
  };
  const auto size = [](const Block& block) { return static_cast<double>(block.end - block.begin); };
  const auto center = [&](const Block& block) {
    const double half = gap * size(block) / 2;
    return std::clamp(block.sum / size(block), low + half, std::max(low + half, high - half));
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    blocks.push_back({wanted[order[i]], i, i + 1});
    while (blocks.size() > 1) {
      const Block a = blocks[blocks.size() - 2], b = blocks.back();
      if (center(a) + gap * size(a) / 2 <= center(b) - gap * size(b) / 2) break;
      blocks.pop_back();
      blocks.back() = {a.sum + b.sum, a.begin, b.end};
    }
  }
  std::vector<double> placed(wanted.size());
  for (const auto& block : blocks)
    for (std::size_t i = block.begin; i < block.end; ++i)
      placed[order[i]] =
          center(block) - gap * size(block) / 2 + gap * (static_cast<double>(i - block.begin) + .5);
  return placed;
}

}  // namespace lacuna
