#include "cli/ranks.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/mpi.h"
#include "base/threads.h"
#include "cli/source.h"
#include "ops/device.h"

namespace lacuna::cli {

Ranks& join_speaking(const Arguments& arguments) {
  join_ranks(std::ranges::find(arguments, std::string("--") + kMpi) != arguments.end());
  Ranks& ranks = joined_ranks();
  if (ranks.leads()) return ranks;
  tell_nothing();
  if (std::freopen("/dev/null", "w", stdout) == nullptr) fail(Exit::failed, "/dev/null cannot be opened");
  return ranks;
}

void share_machine(const Ranks& ranks, int threads, const std::string& device) {
  if (ranks.alone()) return;
  if (const int share = threads_beside(ranks); threads == 0) set_threads(share);
  if (device == "auto") set_device({});
}

}  // namespace lacuna::cli
