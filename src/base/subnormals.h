// Numbers below 1e-38 (f32): some CPUs take more than a hundred cycles for an instruction that meets one. The
// momentum of a weight that gets no gradient any more (of a unit that never fires) ends there, and rounding
// keeps it there for ever.
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
