#include "data/items.h"

#include <numeric>

#include "base/error.h"

namespace lacuna {

const ItemsAway::Copy& ItemsAway::on(const Engine& engine, const Items& items) const {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = copies_.try_emplace(engine.place());
  Copy& copy = at->second;
  if (!is_new) return copy;
  const auto send = [&](const auto& matrix) {
    using T = std::remove_cvref_t<decltype(matrix(0, 0))>;
    EngineMatrix<T> array(engine, matrix.rows(), matrix.cols());
    upload<T>(engine, matrix, array);
    return array;
  };
  try {
    for (const auto& X : items.X) copy.X.push_back(send(X));
    for (const auto& common : items.common) copy.common.push_back(send(common));
    copy.Y = send(items.Y);
    copy.G = send(items.G);
    engine.wait(engine.mark());  // other engines of the same device read it too
  } catch (...) {  // half a copy is none
    copies_.erase(at);
    throw;
  }
  return copy;
}

Matrix<std::int8_t> truth_of(const Items& items) {
  Matrix<std::int8_t> truth(items.rows(), items.labels());
  for (std::size_t i = 0; i < truth.rows(); ++i)
    for (std::size_t j = 0; j < truth.cols(); ++j)
      truth(i, j) = items.G(i, j) ? static_cast<std::int8_t>(items.Y(i, j)) : kUnknown;
  return truth;
}

Selection select_all(const Dataset& data) {
  Selection selection;
  selection.data = &data;
  selection.rows.resize(data.rows);
  std::iota(selection.rows.begin(), selection.rows.end(), 0u);
  return selection;
}

Selection select_part(const Dataset& data, const Folds& folds, std::size_t fold, Part part) {
  if (fold >= folds.folds.size())
    fail(Exit::usage, "there is no fold {}: the folds file has {} (0 to {})", fold, folds.folds.size(),
         folds.folds.empty() ? 0 : folds.folds.size() - 1);
  Selection selection;
  selection.data = &data;
  selection.fold = &folds.folds[fold];
  selection.rows = folds.part_rows(fold, part);
  selection.hide_labels = part == Part::train;
  return selection;
}

}  // namespace lacuna
