#include "data/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads.h"

namespace lacuna {
namespace {

// Columns that a thread takes at once: wide enough that memory is read in long pieces.
std::size_t grain(std::size_t columns) {
  return std::clamp<std::size_t>(columns / 8, 64, 512);
}

// Adds columns begin..end of `count` rows, of which row(i) is the i-th; the mean is a sum until all are added.
template <class Row>
void add_means(bool first, std::size_t count, std::size_t begin, std::size_t end, Row&& row, Moments& m) {
  if (first)
    for (std::size_t j = begin; j < end; ++j) m.low[j] = m.high[j] = row(0)[j];
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const float> x = row(i);
    for (std::size_t j = begin; j < end; ++j) {
      m.mean[j] += static_cast<double>(x[j]);
      m.low[j] = std::min(m.low[j], x[j]);
      m.high[j] = std::max(m.high[j], x[j]);
    }
  }
}
// The same for deviations, which are sums of squares until all are added.
template <class Row>
void add_squares(std::size_t count, std::size_t begin, std::size_t end, Row&& row, Moments& m) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const float> x = row(i);
    for (std::size_t j = begin; j < end; ++j) {
      const double difference = static_cast<double>(x[j]) - m.mean[j];
      m.deviation[j] += difference * difference;
    }
  }
}
void divide(std::vector<double>& sums, std::size_t n) {
  for (double& sum : sums) sum /= static_cast<double>(n);
}

Moments moments_dense(const View& view, const std::vector<std::uint32_t>& rows) {
  const auto& table = std::get<Table<float>>(view.features);
  const std::size_t d = table.cols();
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  for_slabs(view, rows, [&](std::size_t first, std::size_t count) {
    parallel_for(d, grain(d), [&](std::size_t begin, std::size_t end) {
      add_means(
          first == 0, count, begin, end, [&](std::size_t i) { return table.row(rows[first + i]); }, m);
    });
  });
  divide(m.mean, rows.size());
  for_slabs(view, rows, [&](std::size_t first, std::size_t count) {
    parallel_for(d, grain(d), [&](std::size_t begin, std::size_t end) {
      add_squares(
          count, begin, end, [&](std::size_t i) { return table.row(rows[first + i]); }, m);
    });
  });
  divide(m.deviation, rows.size());
  for (double& deviation : m.deviation) deviation = std::sqrt(deviation);
  return m;
}

Moments moments_sparse(const View& view, const std::vector<std::uint32_t>& rows) {
  const auto& csr = std::get<Csr>(view.features);
  const std::size_t d = csr.columns;
  const double n = static_cast<double>(rows.size());
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  std::vector<std::size_t> count(d);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::fill(m.low.begin(), m.low.end(), kInfinity);
  std::fill(m.high.begin(), m.high.end(), -kInfinity);
  const auto each = [&](auto&& body) {
    for_slabs(view, rows, [&](std::size_t first, std::size_t n_rows) {
      for (std::size_t r = first; r < first + n_rows; ++r)
        for (std::uint64_t p = csr.start(0, rows[r]); p < csr.start(0, rows[r] + 1); ++p)
          body(csr.index(0, p), csr.value(0, p));
    });
  };
  each([&](std::uint32_t j, float x) {
    ++count[j];
    m.mean[j] += static_cast<double>(x);
    m.low[j] = std::min(m.low[j], x);
    m.high[j] = std::max(m.high[j], x);
  });
  for (std::size_t j = 0; j < d; ++j) m.mean[j] /= n;
  each([&](std::uint32_t j, float x) {
    const double difference = static_cast<double>(x) - m.mean[j];
    m.deviation[j] += difference * difference;
  });
  for (std::size_t j = 0; j < d; ++j) {
    const std::size_t zeros = rows.size() - count[j];
    if (zeros > 0) m.low[j] = std::min(m.low[j], 0.f), m.high[j] = std::max(m.high[j], 0.f);
    m.deviation[j] = std::sqrt((m.deviation[j] + static_cast<double>(zeros) * m.mean[j] * m.mean[j]) / n);
  }
  return m;
}

}  // namespace

Moments moments(const View& view, const std::vector<std::uint32_t>& rows) {
  return view.sparse() ? moments_sparse(view, rows) : moments_dense(view, rows);
}

Moments moments(const Strips& X) {
  const std::size_t d = X.cols();
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  X.each([&](std::size_t first, MatrixView<const float> strip) {
    parallel_for(d, grain(d), [&](std::size_t begin, std::size_t end) {
      add_means(
          first == 0, strip.rows, begin, end, [&](std::size_t i) { return strip.row(i); }, m);
    });
  });
  divide(m.mean, X.rows());
  X.each([&](std::size_t, MatrixView<const float> strip) {
    parallel_for(d, grain(d), [&](std::size_t begin, std::size_t end) {
      add_squares(
          strip.rows, begin, end, [&](std::size_t i) { return strip.row(i); }, m);
    });
  });
  divide(m.deviation, X.rows());
  for (double& deviation : m.deviation) deviation = std::sqrt(deviation);
  return m;
}

}  // namespace lacuna
