// How the drivers of the products divide their work: shared by gemm*.cc and sparse.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/matrix.h"

namespace lacuna {

// Scratch memory of a thread's products: it grows to the largest requested size, so that a training step allocates
// nothing once every shape has occurred.
class Scratch {
 public:
  std::uint32_t* words(std::size_t count) {
    if (memory_.cols() < count) memory_ = Matrix<std::uint32_t>(1, count);
    return memory_.data();
  }
  float* floats(std::size_t count) { return reinterpret_cast<float*>(words(count)); }

 private:
  Matrix<std::uint32_t> memory_;
};

inline std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

// [0, n) cut into ceil(n / most) parts of nearly equal length.
struct Parts {
  std::size_t n, count;
  Parts(std::size_t length, std::size_t most) : n(length), count(ceil_div(length, most)) {}
  std::size_t begin(std::size_t p) const { return n * p / count; }
  std::size_t size(std::size_t p) const { return begin(p + 1) - begin(p); }
};

// The same with parts that begin at multiples of `unit`.
struct Panels {
  std::size_t n, unit;
  Parts units;
  std::size_t count = units.count;
  Panels(std::size_t length, std::size_t most, std::size_t step)
      : n(length), unit(step), units(ceil_div(length, step), most / step) {}
  std::size_t begin(std::size_t p) const { return std::min(units.begin(p) * unit, n); }
  std::size_t size(std::size_t p) const { return begin(p + 1) - begin(p); }
};

// How workers share a product: ranges of its rows, cut at multiples of `side`, times ranges of its columns, cut
// at multiples of `unit`. Reading (and packing) its right factor costs as much as computing `reading` rows, packing
// the left one as much as `packing` columns. A tile takes the same time with fewer than its `tile` columns.
struct Split {
  Panels rows, columns;
};
struct SplitCosts {
  std::size_t reading, packing, tile = 1;
};
inline Split split_for(std::size_t rows, std::size_t side, std::size_t columns, std::size_t unit,
                       std::size_t workers, const SplitCosts& costs) {
  constexpr std::size_t kWidest = 2048;  // columns, at most, of a task
  const std::size_t sides = ceil_div(rows, side), units = ceil_div(columns, unit);
  std::size_t best = 1, least = 0;
  for (std::size_t r = 1; r <= std::min(workers, sides); ++r) {
    if (workers % r != 0) continue;
    const std::size_t part = ceil_div(units, workers / r) * unit;
    const std::size_t cost =
        (ceil_div(sides, r) * side + costs.reading) * (ceil_div(part, costs.tile) * costs.tile + costs.packing);
    if (least == 0 || cost < least) best = r, least = cost;
  }
  const std::size_t most = std::min(ceil_div(units, workers / best) * unit, kWidest);
  return {{rows, ceil_div(sides, best) * side, side}, {columns, most, unit}};
}

// The grain of `tasks` equal tasks: one task per chunk, or all in the calling thread if waking another would cost
// more than it gains.
inline std::size_t grain_for(std::size_t tasks, double multiply_adds) {
  constexpr double kWorthThreads = 2e5;
  return multiply_adds < kWorthThreads ? std::max<std::size_t>(tasks, 1) : 1;
}

}  // namespace lacuna
