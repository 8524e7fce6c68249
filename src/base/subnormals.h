// Subnormal numbers (below 1e-38 in f32) cost some CPUs more than a hundred cycles per instruction. The momentum of a
// weight that no longer gets a gradient (that of a dead unit) decays into that range, and rounding keeps it there.
#pragma once

#include "base/processor.h"

namespace lacuna {

// During its lifetime this thread and the chunks of its parallel_for() treat subnormal numbers as zero.
class FlushSubnormals {
 public:
  FlushSubnormals() { set_floating_point_mode(saved_ | kFlushesResults | kFlushesInputs); }
  ~FlushSubnormals() { set_floating_point_mode(saved_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned saved_ = floating_point_mode();
};

}  // namespace lacuna
