// How the step size and the averaging of parameters change over a training, as pure functions of the step: a
// resumed run needs no state for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace lacuna {

enum class Schedule { constant, cosine };

// The factor on the learning rate at step t = 0, 1, ... of `total`: rises linearly to 1 over the first
// `warm_up` steps, then is constant, or falls to 0 along half a cosine.
inline double rate_factor(Schedule schedule, std::int64_t t, double warm_up, std::int64_t total) {
  const auto at = static_cast<double>(t);
  if (at < warm_up) return std::min(1.0, (at + 1) / warm_up);
  if (schedule == Schedule::constant) return 1;
  const double rest = std::max(1.0, static_cast<double>(total) - warm_up);
  return .5 * (1 + std::cos(std::numbers::pi * std::min(1.0, (at - warm_up) / rest)));
}

// The decay of the running average after step t = 1, 2, ...: small at first, so that the initial values are soon
// forgotten.
inline double average_decay(double decay, std::int64_t t) {
  return std::min(decay, static_cast<double>(1 + t) / static_cast<double>(10 + t));
}

}  // namespace lacuna
