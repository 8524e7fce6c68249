#include "data/items.h"

#include <numeric>

#include "base/error.h"

namespace lacuna {

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
