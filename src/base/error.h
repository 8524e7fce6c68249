// Mistakes in the input (wrong file, wrong flag, wrong sizes) are thrown as Error; our own bugs are asserted.
// A message names the thing, the place and both numbers, and says what to do. The program turns an Error into
// one line and an exit code; the library never exits.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace lacuna {

enum class Exit : int {
  ok = 0,
  failed = 1,
  usage = 2,         // the command line or a setting is wrong
  data = 3,          // a file is damaged or does not contain what it should
  mismatch = 4,      // model and data do not fit together
  diverged = 5,      // training produced NaN or infinity
  interrupted = 130, // SIGINT, checkpoint written
  terminated = 143,  // SIGTERM, checkpoint written
};

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// The device can no longer be used by this process, so there is no point in trying the next task.
class DeviceLost : public Error {
 public:
  explicit DeviceLost(const std::string& message) : Error(Exit::failed, message) {}
};

// fail(Exit::data, "{}: row {} has {} values, expected {}", path, i, got, expected);
template <class... Args>
[[noreturn]] void fail(Exit code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lacuna
