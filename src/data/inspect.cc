#include "data/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/files.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/ids.h"
#include "data/prepare.h"
#include "data/rates.h"
#include "data/release.h"

namespace lacuna {
namespace {

constexpr std::size_t kPieceRows = 256;  // rows of a mapped view that a thread keeps
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// "1 row has", "2 rows have".
std::string many(std::uint64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

std::string percent(double value) {
  return fmt::format("{:.1f} %", 100 * value);
}

// What one chunk of rows says about a view; chunks are merged in order.
struct Sums {
  std::uint64_t instances = 0, values = 0, nonzero = 0, zero_rows = 0, non_finite = 0;
  double sum = 0, squares = 0;
  float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();
  std::size_t bad_row = 0, bad_column = 0;
  std::vector<float> first;         // first finite value of each column
  std::vector<std::uint8_t> state;  // 0: no value yet, 1: one value, 2: varies

  void add_row(std::span<const float> row, std::size_t i) {
    ++instances;
    bool any = false;
    for (std::size_t j = 0; j < row.size(); ++j) {
      const float x = row[j];
      if (!std::isfinite(x)) {
        if (non_finite++ == 0) bad_row = i, bad_column = j;
        any = true;
        continue;
      }
      ++values;
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
      min = std::min(min, x);
      max = std::max(max, x);
      nonzero += x != 0;
      any = any || x != 0;
      note(j, x);
    }
    zero_rows += !any;
  }
  void note(std::size_t j, float x) {
    if (state[j] == 0) {
      first[j] = x;
      state[j] = 1;
    } else if (x != first[j]) {
      state[j] = 2;
    }
  }
  void merge(const Sums& later) {
    if (non_finite == 0) bad_row = later.bad_row, bad_column = later.bad_column;
    instances += later.instances;
    values += later.values;
    nonzero += later.nonzero;
    zero_rows += later.zero_rows;
    non_finite += later.non_finite;
    sum += later.sum;
    squares += later.squares;
    min = std::min(min, later.min);
    max = std::max(max, later.max);
    for (std::size_t j = 0; j < state.size(); ++j) {
      if (later.state[j] != 0) note(j, later.first[j]);
      state[j] = std::max(state[j], later.state[j]);
    }
  }
};

// The middle of the finite values of evenly spaced present rows.
double sample_median(const Dataset& data, std::size_t v) {
  const View& view = data.views[v];
  constexpr std::size_t kValues = 200000;
  const std::size_t rows = std::max<std::size_t>(1, kValues / std::max<std::size_t>(1, view.columns()));
  const std::size_t step = std::max<std::size_t>(1, data.rows / rows);
  std::vector<float> values, row(view.columns());
  for (std::size_t i = 0; i < data.rows; i += step) {
    if (!data.has(i, v)) continue;
    view.copy_row(i, row);
    std::copy_if(row.begin(), row.end(), std::back_inserter(values),
                 [](float x) { return std::isfinite(x); });
  }
  if (values.empty()) return kNoValue;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

ViewReport report_view(const Dataset& data, std::size_t v) {
  const View& view = data.views[v];
  const std::size_t grain = std::max<std::size_t>(64, (data.rows + 63) / 64), columns = view.columns();
  std::vector<Sums> parts(data.rows == 0 ? 0 : (data.rows - 1) / grain + 1);
  parallel_for(data.rows, grain, [&](std::size_t begin, std::size_t end) {
    Sums& sums = parts[begin / grain];
    sums.first.resize(columns);
    sums.state.resize(columns);
    std::vector<float> row(columns);
    for (std::size_t first = begin; first < end; first += kPieceRows) {
      const std::size_t piece_end = std::min(first + kPieceRows, end);
      for (std::size_t i = first; i < piece_end; ++i) {
        if (!data.has(i, v)) continue;
        view.copy_row(i, row);
        sums.add_row(row, i);
      }
      release_rows(view, first, piece_end - first);
    }
  });
  Sums total;
  total.first.resize(columns);
  total.state.resize(columns);
  for (const Sums& part : parts) total.merge(part);

  ViewReport r;
  r.name = view.name;
  r.type = view.source_type;
  r.columns = columns;
  r.sparse = view.sparse();
  r.missing = share(static_cast<double>(data.rows - total.instances), static_cast<double>(data.rows));
  const auto values = static_cast<double>(total.values);
  r.density = share(static_cast<double>(total.nonzero), values);
  const bool any = total.values > 0;
  r.min = any ? static_cast<double>(total.min) : kNoValue;
  r.max = any ? static_cast<double>(total.max) : kNoValue;
  r.mean = any ? total.sum / values : kNoValue;
  r.deviation = any ? std::sqrt(std::max(0., total.squares / values - r.mean * r.mean)) : kNoValue;
  r.median = sample_median(data, v);
  r.constant_columns = static_cast<std::uint64_t>(
      std::count_if(total.state.begin(), total.state.end(), [](std::uint8_t s) { return s < 2; }));
  r.zero_rows = total.zero_rows;
  r.non_finite = total.non_finite;
  r.bad_row = total.bad_row;
  r.bad_column = total.bad_column;
  return r;
}

// Equal rows give equal hashes: the same views, bit for bit the same features (-0 counts as 0).
std::uint64_t row_hash(const Dataset& data, std::size_t i, std::vector<float>& row) {
  std::uint64_t hash = 0;
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    if (!data.has(i, v)) continue;
    hash = mix_hash(hash, v);
    row.resize(data.views[v].columns());
    data.views[v].copy_row(i, row);
    for (const float x : row) hash = mix_hash(hash, std::bit_cast<std::uint32_t>(x + 0.f));
  }
  return hash;
}

bool same_row(const Dataset& data, std::size_t a, std::size_t b) {
  std::vector<float> x, y;
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    if (data.has(a, v) != data.has(b, v)) return false;
    if (!data.has(a, v)) continue;
    x.resize(data.views[v].columns());
    y.resize(x.size());
    data.views[v].copy_row(a, x);
    data.views[v].copy_row(b, y);
    const auto same = [](float p, float q) { return p == q || (std::isnan(p) && std::isnan(q)); };
    if (!std::equal(x.begin(), x.end(), y.begin(), same)) return false;
  }
  return true;
}

void count_duplicates(const Dataset& data, Report& report) {
  std::vector<std::uint64_t> hashes(data.rows);
  std::vector<std::uint8_t> bare(data.rows);  // rows without any view repeat nothing
  parallel_for(data.rows, kPieceRows, [&](std::size_t begin, std::size_t end) {
    std::vector<float> row;
    for (std::size_t i = begin; i < end; ++i) {
      bare[i] = 1;
      for (std::size_t v = 0; v < data.views.size(); ++v)
        if (data.has(i, v)) bare[i] = 0;
      hashes[i] = row_hash(data, i, row);
    }
    for (const View& view : data.views) release_rows(view, begin, end - begin);
  });
  std::unordered_multimap<std::uint64_t, std::size_t> seen;  // first rows of each kind
  for (std::size_t i = 0; i < data.rows; ++i) {
    if (bare[i] != 0) continue;
    const auto [begin, end] = seen.equal_range(hashes[i]);
    const auto twin =
        std::find_if(begin, end, [&](const auto& entry) { return same_row(data, entry.second, i); });
    if (twin == end) {
      seen.emplace(hashes[i], i);
    } else if (report.duplicates++ == 0) {
      report.duplicate_of = twin->second;
      report.duplicate = i;
    }
  }
}

void count_labels(const Dataset& data, Report& report) {
  const std::size_t c = data.labels.cols();
  for (std::size_t j = 0; j < c; ++j) report.labels.push_back({data.label_names[j], 0, 0});
  std::uint64_t known = 0, positives = 0;
  for (std::size_t i = 0; i < data.labels.rows(); ++i) {
    bool any = false;
    for (std::size_t j = 0; j < c; ++j) {
      const std::int8_t y = data.labels(i, j);
      if (y == kUnknown) continue;
      ++known;
      ++report.labels[j].known;
      if (y == 1) ++report.labels[j].positives, ++positives, any = true;
    }
    report.rows_without_positive += !any;
  }
  const auto rows = static_cast<double>(data.rows);
  report.cardinality = share(static_cast<double>(positives), rows);
  report.unknown = c == 0 ? 0 : 1 - share(static_cast<double>(known), rows * static_cast<double>(c));
}

void advise_views(const Report& r, bool empty_cells, std::vector<std::string>& advice) {
  const ViewReport *widest = nullptr, *narrowest = nullptr;
  for (const auto& view : r.views) {
    const auto say = [&](const std::string& text) { advice.push_back("view '" + view.name + "': " + text); };
    if (view.non_finite > 0)
      say(
          fmt::format("{} not finite, the first at row {}, column {} (from 0); training refuses them: {}",
                      many(view.non_finite, "value is", "values are"), view.bad_row, view.bad_column,
                      empty_cells ? "--empty mean or --empty zero fills empty cells"
                                  : "fix them, or mark the instance as missing"));
    if (view.constant_columns > 0)
      say(fmt::format("{} of {} columns are constant; they carry no information, and zscore turns them into 0",
                      view.constant_columns, view.columns));
    if (view.zero_rows > 0)
      say(fmt::format("{} all zeros; if that means 'missing', mark them as missing (W = 0)",
                      many(view.zero_rows, "instance is", "instances are")));
    if (view.missing > .6) say(fmt::format("{} of the rows lack it", percent(view.missing)));
    if (view.columns > r.rows)
      say(fmt::format("{} columns for {} rows: easy to overfit; the pca preparations reduce it",
                      view.columns, r.rows));
    if (view.deviation > 0 && (view.max - view.mean) / view.deviation > 50)
      say(fmt::format(
          "values reach {:.0f} standard deviations: a few large values dominate it; root-pca and log-pca "
          "dampen them, zscore does not",
          (view.max - view.mean) / view.deviation));
    if (!(view.deviation > 0)) continue;
    if (widest == nullptr || view.deviation > widest->deviation) widest = &view;
    if (narrowest == nullptr || view.deviation < narrowest->deviation) narrowest = &view;
  }
  if (widest != nullptr && widest->deviation > 100 * narrowest->deviation)
    advice.push_back(
        fmt::format("the scales of the views differ: the standard deviation is {:.3g} in '{}' and {:.3g} in "
                    "'{}'; do not switch off the preparation",
                    widest->deviation, widest->name, narrowest->deviation, narrowest->name));
  if (!r.views.empty() && r.rows_with_views[0] > 0)
    advice.push_back(
        fmt::format("{} no view at all: they cannot be used in training or predicted",
                    many(r.rows_with_views[0], "row has", "rows have")));
  if (r.duplicates > 0)
    advice.push_back(
        fmt::format("{} another row in every view (row {} repeats row {}): on both sides of a "
                    "split the test looks better than it is",
                    many(r.duplicates, "row repeats", "rows repeat"), r.duplicate, r.duplicate_of));
}

void advise_ids(const Dataset& data, Report& report) {
  constexpr std::size_t kMost = 1000, kShown = 5;
  for (const auto& [right, wrong] : misspelt_ids(data, kMost))
    report.misspelt.emplace_back(data.ids[right], data.ids[wrong]);
  if (report.misspelt.empty()) return;
  std::vector<std::string> pairs;
  for (std::size_t k = 0; k < std::min(kShown, report.misspelt.size()); ++k)
    pairs.push_back(fmt::format("'{}' and '{}'", report.misspelt[k].second, report.misspelt[k].first));
  if (report.misspelt.size() > kShown)
    pairs.push_back(fmt::format("{} more", report.misspelt.size() - kShown));
  report.advice.push_back(fmt::format(
      "{} of ids may be one item spelt in two ways, with its views and labels on different rows: {}",
      many(report.misspelt.size(), "pair", "pairs"), join(pairs, ", ")));
}

void advise_labels(const Report& r, std::vector<std::string>& advice) {
  std::uint64_t rare = 0;
  std::vector<std::string> never, no_negative;
  constexpr std::uint64_t kRare = 10;
  for (const auto& label : r.labels) {
    if (label.positives == 0) never.push_back(label.name);
    rare += label.positives > 0 && label.positives < kRare;
    if (label.positives > 0 && label.positives == label.known) no_negative.push_back(label.name);
  }
  const auto c = r.labels.size();
  if (!never.empty())
    advice.push_back(fmt::format("{} of {} labels without a known positive: they cannot be learned ({})",
                                 never.size(), c, some(never, 12)));
  if (rare > 0)
    advice.push_back(fmt::format(
        "{} of {} labels with fewer than {} known positives: hard to learn, and their figures vary from split "
        "to split",
        rare, c, kRare));
  if (!no_negative.empty())
    advice.push_back(
        fmt::format("{} of {} labels without a known negative: they cannot be told from the rest ({}); if "
                    "blank means no, use --blank-means no",
                    no_negative.size(), c, some(no_negative, 12)));
  const double bare = share(static_cast<double>(r.rows_without_positive), static_cast<double>(r.rows));
  if (r.rows_without_positive > 0)
    advice.push_back(fmt::format("{} no known positive label ({})",
                                 many(r.rows_without_positive, "row has", "rows have"), percent(bare)));
  if (r.unknown > .9) advice.push_back(fmt::format("{} of the label cells are unknown", percent(r.unknown)));
}

}  // namespace

Report inspect(const Dataset& data) {
  Report report;
  report.name = data.name;
  report.source = data.source;
  report.licence = data.licence;
  report.rows = data.rows;
  report.ids = !data.ids.empty();
  for (std::size_t v = 0; v < data.views.size(); ++v) report.views.push_back(report_view(data, v));
  report.rows_with_views.assign(data.views.size() + 1, 0);
  for (std::size_t i = 0; i < data.rows; ++i) {
    std::size_t count = 0;
    for (std::size_t v = 0; v < data.views.size(); ++v) count += data.has(i, v);
    ++report.rows_with_views[count];
  }
  const Selection all = select_all(data);
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    ViewReport& view = report.views[v];
    if (view.non_finite > 0) continue;  // training refuses it
    PrepareAdvice advice = advise_preparation(all, v);
    view.prepare = std::move(advice.kind);
    view.reason = std::move(advice.reason);
  }
  if (!data.views.empty()) count_duplicates(data, report);
  if (!data.labels.empty()) count_labels(data, report);

  if (report.rows == 0) report.advice.push_back("there are no rows");
  if (data.views.empty()) report.advice.push_back("there are no views: the data can be inspected, but not "
                                                  "trained on");
  if (data.labels.empty())
    report.advice.push_back("there are no labels: a model can predict them, but not be trained on these data");
  advise_ids(data, report);
  advise_views(report, data.empty_cells, report.advice);
  advise_labels(report, report.advice);
  return report;
}

}  // namespace lacuna
