// For all verbs that run cells: signals that stop after the epoch, and a progress line.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "experiments/machine.h"

namespace lacuna::cli {

// The first signal lets the running cell finish its epoch; the second one ends the process.
void catch_bench_signals();
int interrupted_code();  // the exit code of the caught signal

// One line that is rewritten on a terminal; elsewhere plain lines for finished cells, and now and then one from a long
// running cell.
class BenchDisplay {
 public:
  ~BenchDisplay() { clear(); }
  void show(const std::string& line, bool inside) {
    if (terminal_) {
      fmt::print(stderr, "\r\033[K{}", clipped(line, terminal_width(STDERR_FILENO) - 1));
      drawn_ = true;
    } else if (inside ? quiet_.seconds() > kSignOfLife : line != last_) {
      fmt::print(stderr, "{}\n", line);
      quiet_ = Stopwatch();
      last_ = line;
    }
    std::fflush(stderr);
  }
  void clear() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
    drawn_ = false;
  }

 private:
  static constexpr double kSignOfLife =
      30;  // seconds without a line after which a log gets one about the running cell
  bool terminal_ = isatty(STDERR_FILENO) == 1, drawn_ = false;
  Stopwatch quiet_;
  std::string last_;
};

}  // namespace lacuna::cli
