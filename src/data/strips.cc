#include "data/strips.h"

#include <algorithm>

#include "data/release.h"

namespace lacuna {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{32} << 20;

void leave_rows(const View& view, std::span<const std::uint32_t> rows) {
  if (rows.empty() || !std::ranges::is_sorted(rows)) return;
  release_rows(view, rows.front(), rows.back() - rows.front() + 1);
}

// Where a slab of rows that begins with `first` ends: after at most this many rows of the list, and of the file where they
// rise, as a system brings in what lies between them.
std::size_t slab_end(std::span<const std::uint32_t> rows, std::size_t first, std::size_t most) {
  const std::size_t end = std::min(first + most, rows.size());
  if (!std::ranges::is_sorted(rows.subspan(first, end - first))) return end;
  const auto beyond = std::ranges::lower_bound(rows.subspan(first, end - first), rows[first] + most);
  return first + static_cast<std::size_t>(beyond - rows.subspan(first).begin());
}

}  // namespace

void for_slabs(const View& view, std::span<const std::uint32_t> rows,
               FunctionRef<void(std::size_t, std::size_t)> body) {
  const std::size_t slab =
      std::max<std::size_t>(256, kSlabBytes / (sizeof(float) * std::max<std::size_t>(view.columns(), 1)));
  for (std::size_t first = 0, end = 0; first < rows.size(); first = end) {
    end = slab_end(rows, first, slab);
    body(first, end - first);
    if (end - first < rows.size()) leave_rows(view, rows.subspan(first, end - first));
  }
}

void Strips::each(FunctionRef<void(std::size_t, MatrixView<const float>)> body) const {
  for (std::size_t begin = 0; begin < rows(); begin += kRows)
    body(begin, strip(begin, std::min(kRows, rows() - begin)));
}

ViewStrips::ViewStrips(const View& view, std::span<const std::uint32_t> rows, Squash squash,
                       std::span<const float> shift, std::span<const float> scale)
    : view_(view),
      rows_(rows),
      squash_(squash),
      shift_(shift),
      scale_(scale),
      scratch_(std::min(kRows, rows.size()), row_stride<float>(view.columns())) {}

MatrixView<const float> ViewStrips::strip(std::size_t begin, std::size_t count) const {
  const auto& table = std::get<Table<float>>(view_.features);
  const MatrixView<float> X = scratch_.view().columns(0, table.cols()).top(count);
  for_slabs(view_, rows_.subspan(begin, count), [&](std::size_t slab, std::size_t slab_rows) {
    parallel_for(slab_rows, 64, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = slab + first; i < slab + end; ++i) {
        const auto row = X.row(i);
        std::ranges::copy(table.row(rows_[begin + i]), row.begin());
        squash_.apply(row);
        for (std::size_t j = 0; j < shift_.size(); ++j) row[j] = (row[j] - shift_[j]) * scale_[j];
      }
    });
  });
  leave_rows(view_, rows_.subspan(begin, count));
  return X;
}

}  // namespace lacuna
