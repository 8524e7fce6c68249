// Charts: axes, intervals, labels, and colours that everybody can tell apart.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "experiments/plots.h"
#include "experiments/statistics.h"

namespace lacuna {
namespace {

TEST(Charts, LogAxesHaveSeveralTicksAndSayWhatTheyAre) {
  EXPECT_EQ(log_ticks(1, 60, 8), (std::vector<double>{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(log_ticks(1, 1000, 6), (std::vector<double>{1, 10, 100, 1000}));
  LinePlot plot{.title = "t", .x_label = "epoch", .y_label = "AP", .series = {}, .log_x = true};
  plot.series.push_back({.name = "one", .x = {1, 10, 60}, .y = {.1, .2, .3}});
  plot.guide = LinePlot::Guide{10, "kept: epoch 10"};
  const std::string text = draw(plot).file_text();
  EXPECT_NE(text.find("epoch (logarithmic)"), std::string::npos);
  EXPECT_NE(text.find("kept: epoch 10"), std::string::npos);
  EXPECT_NE(text.find(">one</text>"), std::string::npos);  // the name beside its curve
}

TEST(Charts, NoiseDoesNotFillTheAxis) {
  LinePlot plot{.title = "t", .x_label = "x", .y_label = "AP", .series = {}, .least_span = .02};
  plot.series.push_back({.name = "one", .x = {0, 1, 2}, .y = {.4423, .4431, .4427}});
  const std::string text = draw(plot).file_text();
  EXPECT_NE(text.find(">0.430<"), std::string::npos) << text;
  EXPECT_NE(text.find(">0.455<"), std::string::npos) << text;
}

TEST(Charts, IntervalsOfSharesAreWilsons) {
  const Bounds half = wilson(.5, 10), none = wilson(0, 20);
  EXPECT_NEAR(half.low, .2366, 1e-4);
  EXPECT_NEAR(half.high, .7634, 1e-4);
  EXPECT_DOUBLE_EQ(none.low, 0);
  EXPECT_NEAR(none.high, .1611, 1e-4);
  EXPECT_EQ(short_count(38), "38");
  EXPECT_EQ(short_count(999.6), "1.0k");
  EXPECT_EQ(short_count(12345), "12k");
}

TEST(Charts, LabelsMakeRoomAndStayInside) {
  EXPECT_TRUE(rc::check("no two labels touch, none leaves, order stays", [] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 12);
    std::vector<double> wanted;
    for (std::size_t i = 0; i < count; ++i) wanted.push_back(*rc::gen::inRange(-20, 220));
    const auto placed = spread_labels(wanted, 15, 0, 200);
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(placed[i] >= 7.5 - 1e-9 && placed[i] <= 192.5 + 1e-9);
      for (std::size_t j = 0; j < count; ++j) {
        if (i != j) RC_ASSERT(std::abs(placed[i] - placed[j]) >= 15 - 1e-9);
        if (wanted[i] < wanted[j]) RC_ASSERT(placed[i] < placed[j]);
      }
    }
  }));
}

// The colours as people see them: OKLab of a colour after the simulation of Machado et al. (2009), full severity.
using Lab = std::array<double, 3>;
Lab seen(const std::string& hex, const std::array<double, 9>& eye) {
  const auto channel = [&](std::size_t at) {
    const double c = std::stoi(hex.substr(at, 2), nullptr, 16) / 255.;
    return c <= .04045 ? c / 12.92 : std::pow((c + .055) / 1.055, 2.4);
  };
  const double r = channel(1), g = channel(3), b = channel(5);
  std::array<double, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i)
    rgb[i] = std::clamp(eye[3 * i] * r + eye[3 * i + 1] * g + eye[3 * i + 2] * b, 0., 1.);
  const double l = std::cbrt(.4122214708 * rgb[0] + .5363325363 * rgb[1] + .0514459929 * rgb[2]),
               m = std::cbrt(.2119034982 * rgb[0] + .6806995451 * rgb[1] + .1073969566 * rgb[2]),
               s = std::cbrt(.0883024619 * rgb[0] + .2817188376 * rgb[1] + .6299787005 * rgb[2]);
  return {.2104542553 * l + .7936177850 * m - .0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + .4505937099 * s,
          .0259040371 * l + .7827717662 * m - .8086757660 * s};
}

TEST(Charts, ThirteenSeriesCanBeToldApart) {
  constexpr std::array<double, 9> kNormal = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                  kProtan = {.152286, 1.052583, -.204868, .114503, .786281,
                                             .099216, -.003882, -.048116, 1.051998},
                                  kDeutan = {.367322, .860646,  -.227968, .280085, .672501,
                                             .047413, -.011820, .042940,  .968881};
  const std::string style = page_colours();
  const auto colours = [&](const std::string& scheme) {
    std::vector<std::string> found;
    const auto at = style.find(scheme);
    for (int i = 0; i < kSeriesStyles; ++i)
      found.push_back(style.substr(style.find(fmt::format("--s{}:", i), at) + (i < 10 ? 5 : 6), 7));
    return found;
  };
  for (const char* scheme : {"color-scheme:light", "color-scheme:dark"}) {
    const auto list = colours(scheme);
    for (const auto& eye : {kNormal, kProtan, kDeutan})
      for (std::size_t a = 0; a < list.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
          const Lab x = seen(list[a], eye), y = seen(list[b], eye);
          EXPECT_GE(100 * std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]), 7.9)
              << scheme << " " << a << " " << list[a] << " and " << b << " " << list[b];
        }
  }
  // And without any colour: no two marks or dashes are the same.
  std::set<std::string> marks, dashes;
  const std::string plot = plot_style();
  for (int i = 0; i < kSeriesStyles; ++i) {
    Svg svg(10, 10, "");
    svg.mark(5, 5, i);
    marks.insert(svg.inline_text());
    const auto at = plot.find(fmt::format(".plot .s{} .curve", i));
    dashes.insert(plot.substr(plot.find("stroke-dasharray", at),
                              plot.find('}', at) - plot.find("stroke-dasharray", at)));
  }
  EXPECT_EQ(marks.size(), static_cast<std::size_t>(kSeriesStyles));
  EXPECT_EQ(dashes.size(), static_cast<std::size_t>(kSeriesStyles));
}

}  // namespace
}  // namespace lacuna
