#pragma once

#include "base/threads.h"

namespace lacuna {

// Runs `body` here with parallel_for staying in this thread, as it does inside a chunk: for callers that have
// threads of their own, which would otherwise wait for each other.
void run_alone(FunctionRef<void()> body);

}  // namespace lacuna
