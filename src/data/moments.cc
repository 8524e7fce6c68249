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

// Columns begin..end of n rows, of which row(i) is the i-th.
template <class Row>
void means_dense(std::size_t n, std::size_t begin, std::size_t end, Row&& row, Moments& m) {
  for (std::size_t j = begin; j < end; ++j) m.low[j] = m.high[j] = row(0)[j];
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const float> x = row(i);
    for (std::size_t j = begin; j < end; ++j) {
      m.mean[j] += static_cast<double>(x[j]);
      m.low[j] = std::min(m.low[j], x[j]);
      m.high[j] = std::max(m.high[j], x[j]);
    }
  }
  for (std::size_t j = begin; j < end; ++j) m.mean[j] /= static_cast<double>(n);
}

Moments moments_dense(const Table<float>& table, const std::vector<std::uint32_t>& rows) {
  const std::size_t d = table.cols();
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  parallel_for(d, grain(d), [&](std::size_t begin, std::size_t end) {
    means_dense(
        rows.size(), begin, end, [&](std::size_t i) { return table.row(rows[i]); }, m);
    for (const std::uint32_t i : rows) {
      const auto row = table.row(i);
      for (std::size_t j = begin; j < end; ++j) {
        const double difference = static_cast<double>(row[j]) - m.mean[j];
        m.deviation[j] += difference * difference;
      }
    }
    for (std::size_t j = begin; j < end; ++j)
      m.deviation[j] = std::sqrt(m.deviation[j] / static_cast<double>(rows.size()));
  });
  return m;
}

Moments moments_sparse(const Csr& csr, const std::vector<std::uint32_t>& rows) {
  const std::size_t d = csr.columns;
  const double n = static_cast<double>(rows.size());
  Moments m{std::vector<double>(d), std::vector<double>(d), std::vector<float>(d), std::vector<float>(d)};
  std::vector<std::size_t> count(d);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::fill(m.low.begin(), m.low.end(), kInfinity);
  std::fill(m.high.begin(), m.high.end(), -kInfinity);
  const auto each = [&](auto&& body) {
    for (const std::uint32_t i : rows)
      for (std::uint64_t p = csr.start(0, i); p < csr.start(0, i + 1); ++p)
        body(csr.index(0, p), csr.value(0, p));
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
  if (const auto* table = std::get_if<Table<float>>(&view.features)) return moments_dense(*table, rows);
  return moments_sparse(std::get<Csr>(view.features), rows);
}

Moments means_of(MatrixView<const float> X) {
  Moments m{std::vector<double>(X.cols), {}, std::vector<float>(X.cols), std::vector<float>(X.cols)};
  parallel_for(X.cols, grain(X.cols), [&](std::size_t begin, std::size_t end) {
    means_dense(
        X.rows, begin, end, [&](std::size_t i) { return X.row(i); }, m);
  });
  return m;
}

}  // namespace lacuna
