#include "base/random.h"

#include <cmath>

namespace lacuna {

float Random::normal() {
  // Box-Muller, one value a call: simple, and a row's draws stay independent of its neighbours'.
  const double u = 1.0 - uniform_double(), angle = 6.283185307179586 * uniform_double();
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

std::uint64_t Random::below(std::uint64_t n) {
  const std::uint64_t limit = n * ((~std::uint64_t{0}) / n);  // draws at or above it would favour small results
  for (;;) {
    const std::uint64_t high = bits(), low = bits(), draw = (high << 32) | low;
    if (draw < limit || limit == 0) return draw % n;
  }
}

}  // namespace lacuna
