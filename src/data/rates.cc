#include "data/rates.h"

namespace lacuna {
namespace {

void add_views(const Dataset& data, const Folds& folds, std::size_t r, double weight, Rates& rates) {
  const Fold& fold = folds.folds[r];
  const std::size_t m = folds.views;
  for (const Part part : {Part::all, Part::train}) {
    const auto rows = folds.part_rows(r, part);
    for (std::size_t v = 0; v < m; ++v) {
      double existing = 0, hidden = 0;
      for (const auto i : rows) {
        existing += data.has(i, v);
        hidden += data.has(i, v) && fold.W(i, v) == 0;
      }
      (part == Part::all ? rates.hidden : rates.hidden_in_train)[v] += weight * share(hidden, existing);
      if (part == Part::all) rates.existing[v] += weight * existing;
    }
  }
  std::vector<double> rows_with(m + 1, 0);
  for (std::size_t i = 0; i < folds.rows; ++i) {
    std::size_t left = 0;
    for (std::size_t v = 0; v < m; ++v) left += data.has(i, v) && fold.W(i, v) != 0;
    ++rows_with[left];
  }
  for (std::size_t k = 0; k <= m; ++k)
    rates.rows_with_views[k] += weight * share(rows_with[k], static_cast<double>(folds.rows));
}

void add_labels(const Dataset& data, const Folds& folds, std::size_t r, double weight, Rates& rates) {
  const Fold& fold = folds.folds[r];
  double cells[2] = {0, 0}, hidden[2] = {0, 0}, bare_rows = 0, bare_labels = 0;
  std::vector<std::uint64_t> left(folds.labels, 0);
  const auto rows = folds.part_rows(r, Part::train);
  for (const auto i : rows) {
    bool any = false;
    for (std::size_t j = 0; j < folds.labels; ++j) {
      const std::int8_t y = data.labels(i, j);
      if (y == kUnknown) continue;
      const bool known = fold.G(i, j) != 0;
      ++cells[y];
      hidden[y] += !known;
      if (y == 1 && known) any = true, ++left[j];
    }
    bare_rows += !any;
  }
  for (const auto count : left) bare_labels += count == 0;
  rates.positives_hidden += weight * share(hidden[1], cells[1]);
  rates.negatives_hidden += weight * share(hidden[0], cells[0]);
  rates.rows_without_positive += weight * share(bare_rows, static_cast<double>(rows.size()));
  rates.labels_without_positive += weight * bare_labels;
}

}  // namespace

Rates rates_of(const Dataset& data, const Folds& folds) {
  Rates rates;
  rates.existing.assign(folds.views, 0);
  rates.hidden.assign(folds.views, 0);
  rates.hidden_in_train.assign(folds.views, 0);
  rates.rows_with_views.assign(folds.views + 1, 0);
  const double weight = 1 / static_cast<double>(folds.folds.size());
  for (std::size_t r = 0; r < folds.folds.size(); ++r) {
    add_views(data, folds, r, weight, rates);
    add_labels(data, folds, r, weight, rates);
  }
  return rates;
}

}  // namespace lacuna
