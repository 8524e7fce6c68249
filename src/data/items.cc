#include "data/items.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/mapping.h"

namespace lacuna {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{32} << 20;  // bytes of mapped rows that a pass keeps

template <class T>
Bytes bytes_of(const SharedMatrix<T>& matrix, std::size_t begin, std::size_t count) {
  return std::as_bytes(matrix.values().subspan(begin * matrix.cols(), count * matrix.cols()));
}

// f(bytes of the rows) for every array.
template <class F>
void for_arrays(const Items& items, std::size_t begin, std::size_t count, F&& f) {
  for (const auto& X : items.X) f(bytes_of(X, begin, count));
  f(bytes_of(items.W, begin, count));
  if (!items.Y.empty()) f(bytes_of(items.Y, begin, count));
  if (!items.G.empty()) f(bytes_of(items.G, begin, count));
}

}  // namespace

void Items::fetch(std::size_t begin, std::size_t count) const {
  if (mapped) for_arrays(*this, begin, count, fetch_mapped);
}

void Items::leave(std::size_t begin, std::size_t count) const {
  if (mapped) for_arrays(*this, begin, count, release_mapped);
}

std::size_t Items::row_bytes() const {
  std::size_t bytes = W.cols() + Y.cols() * sizeof(float) + G.cols();
  for (const auto& x : X) bytes += x.cols() * sizeof(float);
  return bytes;
}

void Items::for_rows(FunctionRef<void(std::size_t, std::size_t)> body) const {
  const std::size_t piece =
      mapped ? std::max<std::size_t>(1, kPieceBytes / std::max<std::size_t>(1, row_bytes())) : rows();
  for (std::size_t begin = 0; begin < rows(); begin += piece) {
    const std::size_t end = std::min(begin + piece, rows());
    body(begin, end);
    leave(begin, end - begin);
  }
}

const ItemsAway::Copy& ItemsAway::on(const Engine& engine, const Items& items) const {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = copies_.try_emplace(engine.place());
  Copy& copy = at->second;
  if (!is_new) return copy;
  const auto send = [&](const auto& matrix, bool near) {
    using T = std::remove_cvref_t<decltype(matrix(0, 0))>;
    EngineMatrix<T> array = near ? EngineMatrix<T>(engine, matrix.rows(), matrix.cols())
                                 : EngineMatrix<T>::mapped(engine, matrix.rows(), matrix.cols());
    const std::size_t piece =
        items.mapped ? std::max<std::size_t>(1, kPieceBytes / std::max<std::size_t>(1, matrix.cols() * sizeof(T)))
                     : std::max<std::size_t>(1, matrix.rows());
    for (std::size_t begin = 0; begin < matrix.rows(); begin += piece) {
      const std::size_t count = std::min(piece, matrix.rows() - begin);
      const MatrixView<const T> from = matrix.view().slice(begin, count);
      if (near)
        upload<T>(engine, from, array.view().slice(begin, count));
      else
        for (std::size_t i = 0; i < count; ++i) std::ranges::copy(from.row(i), array.view().row(begin + i).begin());
      if (items.mapped) release_mapped(bytes_of(matrix, begin, count));
    }
    return array;
  };
  try {
    // Labels are read by losses as well, and are small; rows of views are gathered once a step.
    copy.Y = send(items.Y, true);
    copy.G = send(items.G, true);
    for (const auto& common : items.common) copy.common.push_back(send(SharedMatrix<float>(common), true));
    std::size_t room = engine.room();
    for (const auto& X : items.X) {
      const std::size_t bytes = X.rows() * X.cols() * sizeof(float);
      copy.X.push_back(send(X, bytes <= room));
      if (bytes <= room) room -= bytes;
    }
    engine.wait(engine.mark());  // other engines of the same device read it too
  } catch (...) {  // half a copy is none
    copies_.erase(at);
    throw;
  }
  return copy;
}

Matrix<std::int8_t> truth_of(const Items& items) {
  Matrix<std::int8_t> truth(items.rows(), items.labels());
  items.for_rows([&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < truth.cols(); ++j)
        truth(i, j) = items.G(i, j) ? static_cast<std::int8_t>(items.Y(i, j)) : kUnknown;
  });
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
