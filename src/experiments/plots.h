// The charts of the report. Each takes plain numbers and names and gives a drawing; none knows where they
// come from. A series keeps its style number in all charts of a page, so one method looks the same
// everywhere.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "experiments/svg.h"

namespace lacuna {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

struct Series {
  std::string name = {};
  std::vector<double> x = {}, y = {};
  std::vector<double> spread = {};  // empty, or half the height of a band around y
  int style = 0;
  bool lead = false;  // drawn thick
};

struct LinePlot {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<Series> series = {};
  bool log_x = false;
  bool unit_square = false;  // both axes 0..1
  bool diagonal = false;
  bool marks = true;
  double width = 640, height = 340;
};
Svg line_plot(const LinePlot& plot);

// Horizontal bars, one row a name, cut into parts; a legend where there are several parts. With log scale one
// part only.
struct BarPlot {
  std::string title = {}, x_label = {};
  std::vector<std::string> rows = {}, parts = {};
  Matrix<double> values = {};           // (rows, parts)
  std::vector<std::string> notes = {};  // behind each bar; empty = the sum
  double width = 640;
};
Svg bar_plot(const BarPlot& plot);

// One axis a metric, from the worst of all series (centre) to the best (rim), as the paper draws it.
struct RadarPlot {
  std::string title = {};
  std::vector<std::string> axes = {};
  std::vector<Series> series = {};  // y has one value an axis
  double size = 400;
};
Svg radar_plot(const RadarPlot& plot);

struct HeatMap {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<std::string> columns = {}, rows = {};
  Matrix<double> values = {};  // (rows, columns); NaN = nothing there
  bool diverging = false;      // from -1 to 1 around 0; otherwise from the least to the greatest value
  bool numbers = true;         // written into the cells
  bool mark_best = false;
  int digits = 3;
  double cell = 46;
};
Svg heat_map(const HeatMap& plot);

// Mean ranks on a line, best at the left; bars join methods that do not differ by more than the critical
// difference.
struct RankPlot {
  std::string title = {};
  std::vector<std::string> names = {};
  std::vector<double> mean_ranks = {};
  double critical_difference = 0;
  std::vector<std::vector<std::size_t>> groups = {};
  std::string lead = {};  // this name is set strong
};
Svg rank_plot(const RankPlot& plot);

struct ReliabilityPlot {
  std::string title = {};
  std::vector<double> score = {}, positive = {}, count = {};
  double width = 340;
};
Svg reliability_plot(const ReliabilityPlot& plot);

// Round numbers that cover [low, high], about `count` of them.
std::vector<double> nice_ticks(double low, double high, int count);
std::string tick_text(double value, double step);

}  // namespace lacuna
