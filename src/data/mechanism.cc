#include "data/mechanism.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

// Projections of the rows of view v on a random direction, with mean 0 and deviation 1; all 0 where the rows
// do not differ along it. Columns are brought to one scale first, so that none of them decides alone.
std::vector<double> projections(const Dataset& data, std::size_t v, const std::vector<std::uint32_t>& rows,
                                Random& random) {
  const View& view = data.views[v];
  const auto n = static_cast<double>(rows.size());
  std::vector<float> row(view.columns());
  std::vector<double> mean(view.columns()), square(view.columns()), direction(view.columns());
  for (double& x : direction) x = static_cast<double>(random.normal());
  for (const auto i : rows) {
    view.copy_row(i, row);
    for (std::size_t j = 0; j < row.size(); ++j) {
      const auto x = static_cast<double>(row[j]);
      mean[j] += x / n;
      square[j] += x * x / n;
    }
  }
  for (std::size_t j = 0; j < row.size(); ++j) {
    const double variance = square[j] - mean[j] * mean[j];
    direction[j] = variance > 1e-12 * square[j] ? direction[j] / std::sqrt(variance) : 0;
  }
  std::vector<double> result;
  double total = 0, spread = 0;
  for (const auto i : rows) {
    view.copy_row(i, row);
    double sum = 0;
    for (std::size_t j = 0; j < row.size(); ++j)
      sum += direction[j] * (static_cast<double>(row[j]) - mean[j]);
    result.push_back(sum);
    total += sum / n;
  }
  for (double& x : result) x -= total, spread += x * x / n;
  for (double& x : result) x = spread > 0 ? x / std::sqrt(spread) : 0;
  return result;
}

}  // namespace

// Exponential times with the weights as their rates, in order, are a draw without replacement.
void draw_by_value(const Dataset& data, std::size_t v, double strength, std::vector<std::uint32_t>& rows,
                   Random& random) {
  if (rows.empty()) return;
  const std::vector<double> z = projections(data, v, rows, random);
  std::vector<std::pair<double, std::uint32_t>> keys;
  for (std::size_t k = 0; k < rows.size(); ++k)
    keys.emplace_back(-std::log(1 - random.uniform_double()) * std::exp(-strength * z[k]), rows[k]);
  std::sort(keys.begin(), keys.end());
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = keys[k].second;
}

void refuse_idle(Options& flags, const MaskOptions& mask) {
  const auto idle = [&](const char* flag, bool has_effect, const std::string& why) {
    if (!has_effect && flags.find(flag)->given) fail(Exit::usage, "--{} has no effect: {}", flag, why);
  };
  const bool pattern = mask.mechanism == "pattern";
  idle("missing-views", !pattern,
       "--mechanism pattern hides views by the shares of --patterns; leave it out");
  idle("patterns", pattern,
       fmt::format("it belongs to --mechanism pattern, and the mechanism is {}", mask.mechanism));
  idle("strength", mask.mechanism == "mnar",
       fmt::format("it belongs to --mechanism mnar, and the mechanism is {}", mask.mechanism));
  idle("scope", mask.test_views != "complete",
       "with --test-views complete only training rows lose views, exactly their share of each; leave it out");
}

std::vector<Pattern> parse_patterns(const std::vector<std::string>& texts, const Dataset& data) {
  std::vector<std::string> names;
  for (const auto& view : data.views) names.push_back(view.name);
  std::vector<Pattern> patterns;
  double sum = 0;
  for (const auto& text : texts) {
    const auto equals = text.rfind('=');
    const auto share = equals == std::string::npos ? std::nullopt : parse_double(text.substr(equals + 1));
    if (!share || !(*share >= 0 && *share <= 1))
      fail(Exit::usage, "--patterns takes VIEW+VIEW=SHARE with a share from 0 to 1, not '{}'", text);
    Pattern& pattern = patterns.emplace_back();
    pattern.share = *share;
    for (const auto part : split(std::string_view(text).substr(0, equals), '+')) {
      const std::string name(part);
      const std::size_t v = data.view_index(name);
      if (v == data.views.size())
        fail(Exit::usage, "--patterns: {} has no view '{}'{} (it has {})", data.name, name,
             did_you_mean(name, names), join(names, ", "));
      pattern.views.push_back(v);
    }
    sum += *share;
  }
  if (patterns.empty()) fail(Exit::usage, "--mechanism pattern needs --patterns VIEW+VIEW=SHARE,...");
  if (std::abs(sum - 1) > 1e-6) fail(Exit::usage, "--patterns: the shares add up to {}, expected 1", sum);
  return patterns;
}

void draw_patterns(const Dataset& data, const std::vector<Pattern>& patterns, std::vector<std::uint32_t> rows,
                   Random& random, Matrix<std::uint8_t>& W) {
  random.shuffle(rows);
  const auto keep = [&](std::uint32_t i, const Pattern& pattern) {
    bool any = false;
    for (const auto v : pattern.views)
      if (data.has(i, v)) W(i, v) = 1, any = true;
    return any;
  };
  double sum = 0;
  std::size_t begin = 0;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    sum += patterns[p].share;
    const std::size_t end =
        p + 1 == patterns.size()
            ? rows.size()
            : std::min(rows.size(),
                       static_cast<std::size_t>(std::llround(sum * static_cast<double>(rows.size()))));
    for (; begin < end; ++begin) {
      bool kept = false;
      for (std::size_t k = 0; k < patterns.size() && !kept; ++k)
        kept = keep(rows[begin], patterns[(p + k) % patterns.size()]);
      for (std::size_t v = 0; v < data.views.size() && !kept; ++v)
        if (data.has(rows[begin], v)) W(rows[begin], v) = 1;
    }
  }
}

}  // namespace lacuna
