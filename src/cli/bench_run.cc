#include "cli/bench_run.h"

#include <atomic>
#include <csignal>

#include "experiments/work.h"

namespace lacuna::cli {
namespace {

std::atomic<int> bench_signal{0};

void on_bench_signal(int number) {
  bench_signal = number;
  stop_requested = true;
}

}  // namespace

void catch_bench_signals() {
  struct sigaction action {};
  action.sa_handler = on_bench_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interrupted_code() {
  return static_cast<int>(bench_signal == SIGTERM ? Exit::terminated : Exit::interrupted);
}

}  // namespace lacuna::cli
