#include "methods/member_fit.h"

#include <algorithm>

namespace lacuna {
namespace {

template <class T>
Matrix<T> some_rows(const SharedMatrix<T>& from, std::span<const std::uint32_t> rows) {
  if (from.empty()) return {};
  Matrix<T> result(rows.size(), from.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(from.row(rows[i]), result.row(i).begin());
  return result;
}

}  // namespace

Items member_rows(const Items& items, std::size_t form, const SharedMatrix<float>& Q,
                  std::span<const std::uint32_t> rows) {
  Items result;
  const Items& own = items.form(form);
  for (std::size_t v = 0; v < own.X.size(); ++v) {
    Matrix<float> X(rows.size(), own.X[v].cols());
    for (std::size_t i = 0; i < rows.size(); ++i) own.copy_rows(v, rows[i], X.view().slice(i, 1));
    result.X.emplace_back(std::move(X));
  }
  result.W = some_rows(items.W, rows);
  result.Y = some_rows(items.Y, rows);
  result.G = some_rows(items.G, rows);
  result.Q = some_rows(Q, rows);
  result.common = own.common;
  return result;
}

// Labels belong to the first form alone; a member sees them, and what teachers say, with its own form.
Items member_items(const Items& items, std::size_t form, const SharedMatrix<float>& Q) {
  Items result;  // shares everything
  result.mapped = items.mapped;
  result.X = items.form(form).X;
  result.raw = items.form(form).raw;
  result.W = items.W;
  result.Y = items.Y;
  result.G = items.G;
  result.Q = Q;
  return result;
}

}  // namespace lacuna
