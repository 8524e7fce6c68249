// Instructions of the processor that files outside the engines need. Except for ops/ and cuda/, no other file may name
// an instruction (tests/test_modules.cc).
#pragma once

#include <xmmintrin.h>

namespace lacuna {

// The floating-point mode of this thread: rounding, and the treatment of subnormal numbers.
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
