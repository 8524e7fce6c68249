// How the drivers of the products cut their work: shared by gemm.cc and gemm_backward.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/matrix.h"

namespace lacuna {

// Memory that a thread's products use again and again: it grows to the largest size ever asked for, so that a
// training step allocates nothing once every shape has been seen.
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

// Grain of `tasks` equal tasks: one each, or all in the calling thread where waking another would cost more
// than it brings.
inline std::size_t grain_for(std::size_t tasks, double multiply_adds) {
  constexpr double kWorthThreads = 2e5;
  return multiply_adds < kWorthThreads ? std::max<std::size_t>(tasks, 1) : 1;
}

}  // namespace lacuna
