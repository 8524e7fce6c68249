// The transformation of single values before the linear steps: at most one of logarithm and power. 0 remains 0.
#pragma once

#include <span>

namespace lacuna {

struct Squash {
  float log_scale = 0;  // s of sign(x) log(1 + s|x|); 0 = no logarithm
  float power = 0;      // of |x|; 0 = as it is
  bool operator==(const Squash&) const = default;
  bool any() const { return log_scale > 0 || power > 0; }
  float operator()(float x) const;
  void apply(std::span<float> values) const;  // the same bits, faster
};

}  // namespace lacuna
