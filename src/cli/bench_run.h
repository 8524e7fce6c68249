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

// The first signal lets the running cell reach the end of its epoch; the second one kills.
void catch_bench_signals();
int interrupted_code();  // by the signal that was caught

// One line that is rewritten on a terminal; elsewhere plain lines for finished cells, and a sign of life from
// inside a long one.
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
      30;  // seconds without a line after which a log gets one from inside a cell
  bool terminal_ = isatty(STDERR_FILENO) == 1, drawn_ = false;
  Stopwatch quiet_;
  std::string last_;
};

}  // namespace lacuna::cli
