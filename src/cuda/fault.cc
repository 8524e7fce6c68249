// The one place of the engine that knows the program's errors: nvcc does not compile their header.
#include "base/error.h"

namespace lacuna::cuda {

[[noreturn]] void fail_with(const char* message);
[[noreturn]] void lose_with(const char* message);
void fail_with(const char* message) { throw Error(Exit::failed, message); }
void lose_with(const char* message) { throw DeviceLost(message); }

}  // namespace lacuna::cuda
