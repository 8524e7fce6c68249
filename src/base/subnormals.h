// Subnormal numbers (below 1e-38 in f32) cost some CPUs more than a hundred cycles per instruction. The momentum of a
// weight that no longer gets a gradient (of a dead unit) decays into that range, and rounding keeps it there.
#pragma once

#include <xmmintrin.h>

namespace lacuna {

// As long as it lives, this thread takes them for zero, and parallel_for() with it.
class FlushSubnormals {
 public:
  FlushSubnormals() { _mm_setcsr(saved_ | kResultsToZero | kInputsAreZero); }
  ~FlushSubnormals() { _mm_setcsr(saved_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  static constexpr unsigned kResultsToZero = 1 << 15, kInputsAreZero = 1 << 6;
  unsigned saved_ = _mm_getcsr();
};

}  // namespace lacuna
