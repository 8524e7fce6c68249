#include "experiments/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "experiments/distributions.h"

namespace lacuna {
namespace {

// Positions 0..n-1 sorted by `before`, stably.
template <class Before>
std::vector<std::size_t> sorted_positions(std::size_t n, Before before) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

// The probability that at most `limit` is reached by the sum of a random half of signs over ranks given
// doubled (so that mid-ranks are whole).
double exact_lower_tail(const std::vector<std::size_t>& doubled, double limit) {
  const std::size_t total = std::accumulate(doubled.begin(), doubled.end(), std::size_t{0});
  std::vector<double> share(total + 1, 0);
  share[0] = 1;
  std::size_t reached = 0;
  for (std::size_t r : doubled) {
    reached += r;
    for (std::size_t s = reached + 1; s-- > 0;) share[s] = .5 * (share[s] + (s >= r ? share[s - r] : 0));
  }
  double tail = 0;
  for (std::size_t s = 0; s <= total && static_cast<double>(s) <= limit; ++s) tail += share[s];
  return tail;
}

}  // namespace

std::vector<double> ranks(std::span<const double> values) {
  const auto better = [&](std::size_t a, std::size_t b) {
    if (std::isnan(values[a]) || std::isnan(values[b]))
      return !std::isnan(values[a]) && std::isnan(values[b]);
    return values[a] > values[b];
  };
  const auto order = sorted_positions(values.size(), better);
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && !better(order[begin], order[end])) ++end;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    begin = end;
  }
  return result;
}

std::vector<double> best_ranks(std::span<const double> values) {
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[i] = 1;
    for (const double other : values)
      result[i] += std::isnan(values[i]) ? !std::isnan(other) : other > values[i];
  }
  return result;
}

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
}

double deviation(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0;
  for (double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double sample_deviation(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return n < 2 ? 0 : deviation(values) * std::sqrt(n / (n - 1));
}

Friedman friedman(MatrixView<const double> values) {
  assert(values.rows >= 2 && values.cols >= 2);
  const auto n = static_cast<double>(values.rows), k = static_cast<double>(values.cols);
  Friedman result{
      .blocks = values.rows, .methods = values.cols, .mean_ranks = std::vector<double>(values.cols, 0)};
  double squares = 0;
  for (std::size_t i = 0; i < values.rows; ++i) {
    const auto row = ranks(values.row(i));
    for (std::size_t j = 0; j < values.cols; ++j) result.mean_ranks[j] += row[j] / n;
  }
  for (double rank : result.mean_ranks) squares += rank * rank;
  result.chi_squared = 12 * n / (k * (k + 1)) * (squares - k * (k + 1) * (k + 1) / 4);
  result.chi_squared_p = chi_squared_tail(result.chi_squared, k - 1);
  const double rest = n * (k - 1) - result.chi_squared;
  result.f =
      rest <= 1e-12 * n * k ? std::numeric_limits<double>::infinity() : (n - 1) * result.chi_squared / rest;
  result.f_p = f_tail(result.f, k - 1, (k - 1) * (n - 1));
  return result;
}

double critical_difference(double alpha, std::size_t methods, std::size_t blocks) {
  const auto k = static_cast<double>(methods), n = static_cast<double>(blocks);
  return range_critical(alpha, static_cast<int>(methods)) / std::numbers::sqrt2 *
         std::sqrt(k * (k + 1) / (6 * n));
}

std::vector<std::vector<std::size_t>> rank_groups(std::span<const double> mean_ranks, double difference) {
  const auto order = sorted_positions(
      mean_ranks.size(), [&](std::size_t a, std::size_t b) { return mean_ranks[a] < mean_ranks[b]; });
  std::vector<std::vector<std::size_t>> groups;
  std::size_t last_end = 0;
  for (std::size_t begin = 0; begin < order.size(); ++begin) {
    std::size_t end = begin + 1;
    while (end < order.size() && mean_ranks[order[end]] - mean_ranks[order[begin]] <= difference) ++end;
    if (end - begin > 1 && end > last_end)  // not inside the group before
      groups.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                          order.begin() + static_cast<std::ptrdiff_t>(end));
    last_end = std::max(last_end, end);
  }
  return groups;
}

Wilcoxon wilcoxon(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  std::vector<double> differences;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    // Values closer than rounding noise are equal: .1 + .2 against .3 must not decide a rank.
    const double d = a[i] - b[i], scale = std::max(std::abs(a[i]), std::abs(b[i]));
    differences.push_back(std::abs(d) <= 1e-12 * scale ? 0 : d);
    zeros += differences.back() == 0;
  }
  if (zeros % 2 == 1) differences.erase(std::find(differences.begin(), differences.end(), 0.)), --zeros;
  const std::size_t n = differences.size();
  const auto order = sorted_positions(
      n, [&](std::size_t x, std::size_t y) { return std::abs(differences[x]) < std::abs(differences[y]); });
  Wilcoxon result{.used = n - zeros};
  std::vector<std::size_t> doubled;  // twice the ranks of the pairs that differ
  double shared = 0;                 // rank sum of the pairs that do not, half to each side
  for (std::size_t begin = 0; begin < n;) {
    const double size = std::abs(differences[order[begin]]);
    std::size_t end = begin + 1;
    while (end < n && std::abs(differences[order[end]]) <= size * (1 + 1e-9)) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      const double rank = static_cast<double>(begin + 1 + end) / 2, d = differences[order[i]];
      if (d == 0) {
        shared += rank / 2;
      } else {
        (d > 0 ? result.plus : result.minus) += rank;
        doubled.push_back(begin + 1 + end);
      }
    }
    begin = end;
  }
  const double smaller = std::min(result.plus, result.minus);
  result.plus += shared;
  result.minus += shared;
  result.statistic = std::min(result.plus, result.minus);
  const auto count = static_cast<double>(n);
  if (n > 0)
    result.z =
        (result.statistic - count * (count + 1) / 4) / std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  if (doubled.empty()) return result;
  constexpr std::size_t kExact = 60;
  result.p =
      doubled.size() <= kExact ? 2 * exact_lower_tail(doubled, 2 * smaller + .5) : 2 * normal_cdf(result.z);
  result.p = std::min(1., result.p);
  return result;
}

std::vector<double> holm(std::span<const double> p) {
  const auto order = sorted_positions(p.size(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double running = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    running = std::max(running, std::min(1., static_cast<double>(p.size() - i) * p[order[i]]));
    adjusted[order[i]] = running;
  }
  return adjusted;
}

PairedT corrected_resampled_t(std::span<const double> a, std::span<const double> b, double test_to_train) {
  assert(a.size() == b.size());
  PairedT result;
  const auto n = static_cast<double>(a.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  if (differences.empty()) return result;
  result.difference = mean(differences);
  result.freedom = n - 1;
  if (a.size() < 2) return result;
  const double spread = sample_deviation(differences) * std::sqrt(1 / n + test_to_train);
  if (spread == 0) {
    result.t = result.difference == 0
                   ? 0
                   : std::copysign(std::numeric_limits<double>::infinity(), result.difference);
  } else {
    result.t = result.difference / spread;
  }
  result.p = student_two_sided(result.t, result.freedom);
  return result;
}

}  // namespace lacuna
