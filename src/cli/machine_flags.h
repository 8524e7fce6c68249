// The flags for threads and device, declared once for all verbs.
#pragma once

#include <string>

#include "base/options.h"

namespace lacuna::cli {

inline Option& add_threads(Options& options, int& threads) {
  return options.add("threads", threads, "threads, 0 = all; does not change the result").range(0, 1024);
}

inline Option& add_device(Options& options, std::string& device) {
  return options.add("device", device, "device of networks: auto (a GPU if available), cpu, cuda or cuda:N")
      .metavar("DEVICE");
}

}  // namespace lacuna::cli
