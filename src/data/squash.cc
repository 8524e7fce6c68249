#include "data/squash.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lacuna {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

float signed_log(float x, float s) {
  return x == 0 ? 0.f : std::copysign(std::log1p(std::min(s * std::abs(x), kLargest)), x);
}
float fourth_root(float x) {
  return std::copysign(std::sqrt(std::sqrt(std::abs(x))), x);
}
float signed_power(float x, float power) {
  return std::copysign(std::pow(std::abs(x), power), x);
}

}  // namespace

float Squash::operator()(float x) const {
  if (log_scale > 0) return signed_log(x, log_scale);
  if (power == .25f) return fourth_root(x);
  return power > 0 ? signed_power(x, power) : x;
}

// The choice stands outside of the loops, so that the compiler can take several values at once.
void Squash::apply(std::span<float> values) const {
  if (log_scale > 0) {
    for (float& x : values) x = signed_log(x, log_scale);
  } else if (power == .25f) {
    for (float& x : values) x = fourth_root(x);
  } else if (power > 0) {
    for (float& x : values) x = signed_power(x, power);
  }
}

}  // namespace lacuna
