// The one place of the engine that knows the program's errors: nvcc does not compile their header.
#include "base/error.h"

namespace lacuna::cuda {

[[noreturn]] void fail_with(const char* message);
void fail_with(const char* message) { throw Error(Exit::failed, message); }

}  // namespace lacuna::cuda
