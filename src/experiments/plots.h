// The charts of the report. Each takes plain numbers and names and returns a drawing of a given width. Text is 11 to 12
// pixels high for any width, so a chart is drawn once for wide pages and once for telephones (ReportSink::plot). A
// series has the same style number in all charts of a page, so a method looks the same everywhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "experiments/scales.h"
#include "experiments/svg.h"

namespace lacuna {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kNarrow = 352;  // the space between the margins on a telephone of 390 pixels
constexpr double kColumn = 460;  // one of two columns of a wide page
constexpr double kFull = 940;    // both of them

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
  bool unit_square = false;     // both axes 0..1
  std::size_t most_marks = 12;  // on a curve, about
  double least_span = 0;        // of the y axis, so that noise does not look like an effect
  struct Guide {
    double x;
    std::string label;
  };
  std::optional<Guide> guide = {};  // a vertical line with its name
  double width = kColumn, height = 320;
};
Svg draw(const LinePlot& plot);

// Horizontal bars, one row per name, cut into parts; a legend where there are several parts.
struct BarPlot {
  std::string title = {}, x_label = {};
  std::vector<std::string> rows = {}, parts = {};
  Matrix<double> values = {};           // (rows, parts)
  std::vector<std::string> notes = {};  // behind each bar; empty = the sum
  double width = 640;
};
Svg draw(const BarPlot& plot);

// Values as dots on a common scale, one small panel per axis, one row per series: the same numbers as a radar, but
// every one of them can be read.
struct DotPlot {
  std::string title = {};
  std::vector<std::string> axes = {};
  std::vector<Series> series = {};  // y and spread have one value per axis
  double least_span = 0;
  double width = kColumn;
};
Svg draw(const DotPlot& plot);

// One axis per metric, from the worst of all series (centre) to the best (rim), as the paper draws it.
struct RadarPlot {
  std::string title = {};
  std::vector<std::string> axes = {};
  std::vector<Series> series = {};  // y has one value per axis
  double width = kColumn;
};
Svg draw(const RadarPlot& plot);

// One or several maps of the same rows and columns, with one bar of colours.
struct HeatMap {
  struct Panel {
    std::string title;
    Matrix<double> values;  // (rows, columns); NaN = nothing there
  };
  std::string title = {}, x_label = {}, y_label = {}, value_label = {};
  std::vector<std::string> columns = {}, rows = {};
  std::vector<Panel> panels = {};
  Extent colours = {};  // what the colours span; symmetric where values may be negative
  bool diverging =
      false;  // two colours around 0, by the square root, so that small values are seen beside large ones
  bool numbers = true;  // written into the cells
  bool mark_best = false;
  int digits = 3;
  double width = kColumn;
};
Svg draw(const HeatMap& plot);

// Mean ranks on a line, best at the left; bars join methods that do not differ by more than the critical difference.
struct RankPlot {
  std::string title = {};
  std::vector<std::string> names = {};
  std::vector<double> mean_ranks = {};
  double critical_difference = 0;
  std::vector<std::vector<std::size_t>> groups = {};
  std::string lead = {};  // this name is set strong
  double width = 720;
};
Svg draw(const RankPlot& plot);

// Shares of positives by score, with 95 % intervals (Wilson); below, how many decisions each tenth holds.
struct ReliabilityPlot {
  struct Curve {
    std::string name;
    std::vector<double> score, positive, count;  // of the bins that hold something
  };
  std::string title = {};
  std::vector<Curve> curves = {};
  double width = 420;
};
Svg draw(const ReliabilityPlot& plot);

// A forest of names as an indented list: each name is joined to its parent above by a bar whose thickness is the
// strength of the tie. In as many columns as fit, so that hundreds of names can be read.
struct ForestPlot {
  struct Row {
    std::string name;
    std::size_t depth = 0;  // 0: a root; otherwise its parent is the last row before it with depth - 1
    double tie = 0;         // strength of the tie to its parent, 0 to 1
    double size = 0;        // of its dot, 0 to 1
    std::string tip;
  };
  std::string title = {};
  std::vector<Row> rows = {};
  double width = kFull;
};
Svg draw(const ForestPlot& plot);

struct Bounds {
  double low = 0, high = 1;
};
Bounds wilson(double share, double count, double z = 1.959964);

}  // namespace lacuna
