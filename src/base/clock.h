// A monotonic clock, for durations.
#pragma once

#include <chrono>

namespace lacuna {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Counts from its construction.
class Stopwatch {
 public:
  double seconds() const { return steady_seconds() - start_; }

 private:
  double start_ = steady_seconds();
};

}  // namespace lacuna
