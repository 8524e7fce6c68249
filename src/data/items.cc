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

// Raw rows: all that lie between the first and the last of them.
Bytes bytes_of(const RawRows& raw, std::size_t begin, std::size_t count) {
  if (count == 0) return {};
  const std::size_t first = (*raw.where)[begin], rows = (*raw.where)[begin + count - 1] - first + 1;
  const auto slice = raw.table.view().slice(first, rows);
  return std::as_bytes(std::span(slice.data, (rows - 1) * slice.stride + slice.cols));
}

Bytes bytes_of_view(const Items& items, std::size_t v, std::size_t begin, std::size_t count) {
  return items.is_raw(v) ? bytes_of(items.raw[v], begin, count) : bytes_of(items.X[v], begin, count);
}

// f(bytes of the rows) for every array.
template <class F>
void for_arrays(const Items& items, std::size_t begin, std::size_t count, F&& f) {
  for (std::size_t v = 0; v < items.X.size(); ++v) f(bytes_of_view(items, v, begin, count));
  f(bytes_of(items.W, begin, count));
  if (!items.Y.empty()) f(bytes_of(items.Y, begin, count));
  if (!items.G.empty()) f(bytes_of(items.G, begin, count));
}

// An array (n, d) of rows(begin, count), in pieces where they come from files: in the engine's own memory, or in what it
// can read.
template <class T, class Rows>
EngineMatrix<T> sent(const Engine& engine, std::size_t n, std::size_t d, bool near, bool in_pieces,
                     Rows&& rows) {
  EngineMatrix<T> array = near ? EngineMatrix<T>(engine, n, d) : EngineMatrix<T>::mapped(engine, n, d);
  const std::size_t most = std::max<std::size_t>(1, kPieceBytes / std::max<std::size_t>(1, d * sizeof(T)));
  const std::size_t piece = in_pieces ? most : std::max<std::size_t>(1, n);
  for (std::size_t begin = 0; begin < n; begin += piece) {
    const std::size_t count = std::min(piece, n - begin);
    const MatrixView<const T> from = rows(begin, count);
    if (near)
      upload<T>(engine, from, array.view().slice(begin, count));
    else
      for (std::size_t i = 0; i < count; ++i)
        std::ranges::copy(from.row(i), array.view().row(begin + i).begin());
    release_mapped(std::as_bytes(std::span(from.data, count * d)));  // nothing where it is memory
  }
  return array;
}

}  // namespace

SharedMatrix<float> elsewhere(std::size_t rows, std::size_t cols) {
  const auto nothing = unreadable(rows * cols * sizeof(float));
  return {nothing, {static_cast<const float*>(nothing.get()), rows, cols}};
}

void Items::fetch(std::size_t begin, std::size_t count) const {
  if (mapped) for_arrays(*this, begin, count, fetch_mapped);
}

void Items::leave(std::size_t begin, std::size_t count) const {
  if (mapped) for_arrays(*this, begin, count, release_mapped);
}

RowSource Items::rows_of(std::size_t v) const {
  if (!is_raw(v)) return X[v].view();
  const RawRows& rows = raw[v];
  RowSource source = rows.table.view();
  source.where = *rows.where;
  source.shift = rows.shift.values();
  source.scale = rows.scale.values();
  source.clamp = rows.clamp;
  return source;
}

void Items::copy_rows(std::size_t v, std::size_t begin, MatrixView<float> out) const {
  const RowSource source = rows_of(v);
  parallel_for(out.rows, 64, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      if (W(begin + i, v) == 0)
        std::ranges::fill(out.row(i), 0.f);
      else
        source.copy(begin + i, out.row(i));
    }
  });
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
  const auto send = [&](const auto& matrix) {
    using T = std::remove_cvref_t<decltype(matrix(0, 0))>;
    return sent<T>(engine, matrix.rows(), matrix.cols(), true, items.mapped,
                   [&](std::size_t begin, std::size_t count) { return matrix.view().slice(begin, count); });
  };
  try {
    // Labels are read by losses as well, and are small; rows of views are gathered once per step.
    copy.Y = send(items.Y);
    copy.G = send(items.G);
    for (const auto& common : items.common) copy.common.push_back(send(SharedMatrix<float>(common)));
    std::size_t room = engine.room();
    Matrix<float> prepared;
    for (std::size_t v = 0; v < items.X.size(); ++v) {
      const std::size_t n = items.X[v].rows(), d = items.X[v].cols(), bytes = n * d * sizeof(float);
      const auto rows = [&](std::size_t begin, std::size_t count) -> MatrixView<const float> {
        if (!items.is_raw(v)) return items.X[v].view().slice(begin, count);
        if (prepared.rows() != count || prepared.cols() != d) prepared = Matrix<float>(count, d);
        items.copy_rows(v, begin, prepared);
        release_mapped(bytes_of(items.raw[v], begin, count));
        return std::as_const(prepared).view();
      };
      copy.X.push_back(sent<float>(engine, n, d, bytes <= room, items.mapped, rows));
      if (bytes <= room) room -= bytes;
    }
    engine.wait(engine.mark());  // other engines of the same device read it too
  } catch (...) {                // half a copy is none
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
