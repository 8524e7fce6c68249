// Shared by the charts: extents, round ticks, number formats, labels that avoid each other.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace lacuna {

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value);  // what is not finite is left out
  bool empty() const { return low > high; }
  double span() const { return high - low; }
  double share(double value) const { return (value - low) / (high - low); }
  void widen(double least);     // to at least this span, around its middle
  void round_out(double step);  // to whole steps, so that ticks frame the data
};

// A round step (1, 2, 2.5 or 5 times a power of ten) of which about `count` cover `span`, and its multiples.
double nice_step(double span, int count);
std::vector<double> nice_ticks(double low, double high, int count);
// For a logarithmic axis: powers of ten, with 2 and 5 times them where there is room for `count`.
std::vector<double> log_ticks(double low, double high, int count);
std::string tick_text(double value, double step);
std::string value_text(double value);   // three or four digits
std::string short_count(double value);  // "950", "1.2k", "38k", "4M": at most four characters

// Moves labels apart so that no two are closer than `gap`, keeping their order and as near to their wish as possible.
std::vector<double> spread_labels(const std::vector<double>& wanted, double gap, double low, double high);

}  // namespace lacuna
