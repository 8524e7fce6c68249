#include "data/observed.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "data/principal.h"
#include "data/strips.h"

namespace lacuna {
namespace {

// Of d columns with variances v, (Σv)² / Σv² count: d if all are alike, 1 if one has all the variance. Below √d their
// units differ; descriptors, counts and embeddings have more (docs/results/auto.md).
bool units_differ(const Moments& m) {
  double columns = 0, sum = 0, squares = 0;
  for (std::size_t j = 0; j < m.mean.size(); ++j) {
    if (!(m.low[j] < m.high[j])) continue;
    const double variance = m.deviation[j] * m.deviation[j];
    columns += 1, sum += variance, squares += variance * variance;
  }
  return sum * sum < std::sqrt(columns) * squares;
}

}  // namespace

void centre(const Moments& m, Matrix<float>& shift, Matrix<float>& scale) {
  constexpr double kLeastDeviation = 1e-30;  // so that the scale is finite
  const bool level = units_differ(m);
  for (std::size_t j = 0; j < shift.cols(); ++j) {
    const bool constant = !(m.low[j] < m.high[j]);
    shift(0, j) = constant ? m.low[j] : static_cast<float>(m.mean[j]);
    scale(0, j) = constant ? 0.f
                  : level  ? static_cast<float>(1 / std::max(m.deviation[j], kLeastDeviation))
                           : 1.f;
  }
}

MatrixView<const float> CentredRows::X() {
  std::call_once(made_, [this] { make(); });
  return std::as_const(X_).view().columns(0, view_.columns());
}
const Matrix<float>& CentredRows::shift() {
  X();
  return shift_;
}
const Matrix<float>& CentredRows::scale() {
  X();
  return scale_;
}
const Matrix<double>& CentredRows::gram() {
  const MatrixView<const float> table = X();
  std::call_once(multiplied_, [&] { gram_ = smaller_gram(table); });
  return gram_;
}

void CentredRows::make() {
  const auto& table = std::get<Table<float>>(view_.features);
  X_ = Matrix<float>(rows_.size(), row_stride<float>(table.cols()));
  shift_ = Matrix<float>(1, table.cols());
  scale_ = Matrix<float>(1, table.cols());
  const MatrixView<float> X = X_.view().columns(0, table.cols());
  for_slabs(view_, rows_, [&](std::size_t first, std::size_t count) {
    parallel_for(count, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        std::ranges::copy(table.row(rows_[i]), X.row(i).begin());
        squash_.apply(X.row(i));
      }
    });
  });
  centre(moments(MemoryStrips(X)), shift_, scale_);
  parallel_for(X.rows, 64, [&](std::size_t begin, std::size_t end) {
    const auto shift = shift_.row(0), scale = scale_.row(0);
    for (std::size_t i = begin; i < end; ++i) {
      const auto row = X.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = (row[j] - shift[j]) * scale[j];
    }
  });
}

Observed::Observed(const Selection& train, std::size_t v, bool leaky) : view_(train.data->views[v]) {
  if (leaky) {
    for (std::size_t i = 0; i < train.data->rows; ++i)
      if (train.data->has(i, v)) rows_.push_back(static_cast<std::uint32_t>(i));
  } else {
    for (std::size_t i = 0; i < train.rows.size(); ++i)
      if (train.has(i, v)) rows_.push_back(train.rows[i]);
  }
}

const Reach& Observed::reach() {
  std::call_once(looked_, [this] { reach_ = reach_of(view_, rows_); });
  return reach_;
}

CentredRows& Observed::centred(const Squash& squash) {
  const std::lock_guard lock(mutex_);
  for (CentredRows& rows : centred_)
    if (rows.squash() == squash) return rows;
  return centred_.emplace_back(view_, rows_, squash);
}

}  // namespace lacuna
