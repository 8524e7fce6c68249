// Rows that engines gather.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/matrix.h"

namespace lacuna {

// Prepared coordinates lie within ±this. They are about 1, so no reasonable value is changed. Squares of much larger
// ones exceed f32, and an item with such a value would be scored like one without views.
constexpr float kMostPrepared = 1e15f;
inline void keep_within(std::span<float> values, float most) {  // NaN stays NaN
  for (float& x : values) x = std::clamp(x, -most, most);
}

// A table (n, d) whose rows are read by their numbers. If they lie in a file of raw data, row i is row where[i] of it
// and becomes (x - shift) * scale while it is read, within ±kMostPrepared, or [0, 1] if it is clamped; rows on a device
// need neither.
struct RowSource {
  MatrixView<const float> table;
  std::span<const std::uint32_t> where = {};      // empty: row i is at i
  std::span<const float> shift = {}, scale = {};  // (d) both, or empty
  bool clamp = false;

  RowSource() = default;
  RowSource(MatrixView<const float> rows) : table(rows) {}  // NOLINT: rows that are ready are a source
  void copy(std::size_t i, std::span<float> to) const {
    std::ranges::copy(table.row(where.empty() ? i : where[i]), to.begin());
    for (std::size_t j = 0; j < shift.size(); ++j) to[j] = (to[j] - shift[j]) * scale[j];
    if (clamp)
      for (float& x : to) x = std::clamp(x, 0.f, 1.f);
    else if (!where.empty())
      keep_within(to, kMostPrepared);
  }
};

}  // namespace lacuna
