// What the lower half of the program asks of the processor beyond C++. Outside ops/ and cuda/ no other file names an
// instruction (tests/test_modules.cc).
#pragma once

#include <xmmintrin.h>

namespace lacuna {

// How this thread computes with floating-point numbers: rounding, and what happens to subnormal numbers.
inline unsigned floating_point_mode() {
  return _mm_getcsr();
}
inline void set_floating_point_mode(unsigned mode) {
  _mm_setcsr(mode);
}
constexpr unsigned kFlushesResults = 1 << 15, kFlushesInputs = 1 << 6;  // bits of the mode: subnormal numbers become 0

// In a loop that waits for another thread.
inline void spin_pause() {
  _mm_pause();
}

}  // namespace lacuna
