#include "cli/ranks.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/mpi.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/source.h"
#include "experiments/machine.h"
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

std::vector<Account> accounts_of(const Ranks& ranks) {
  if (ranks.alone()) return {};
  return all_gather(ranks, Account{ranks.traffic(), peak_memory()});
}

nlohmann::json accounts_json(const std::vector<Account>& accounts) {
  const auto counted = [](const Ranks::Count& count) -> nlohmann::json {
    return {{"exchanges", count.exchanges},
            {"sent", count.sent},
            {"received", count.received},
            {"seconds", count.seconds}};
  };
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [traffic, peak] : accounts) {
    nlohmann::json& entry = list.emplace_back(counted(traffic.total()));
    entry["peak_bytes"] = peak;
    for (std::size_t k = 0; k < traffic.of.size(); ++k)
      if (traffic.of[k].exchanges > 0) entry["parts"][Ranks::kCargoNames[k]] = counted(traffic.of[k]);
  }
  return list;
}

std::string accounts_text(const std::vector<Account>& accounts) {
  std::uint64_t peak = 0;
  for (const Account& rank : accounts) peak = std::max(peak, rank.peak_bytes);
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < Ranks::kCargoNames.size(); ++k) {
    Ranks::Count most;
    for (const auto& [traffic, memory] : accounts) {
      most.exchanges = std::max(most.exchanges, traffic.of[k].exchanges);
      most.sent = std::max(most.sent, traffic.of[k].sent);
      most.seconds = std::max(most.seconds, traffic.of[k].seconds);
    }
    if (most.exchanges > 0)
      parts.push_back(fmt::format("{} {} in {} exchanges, {} waited", Ranks::kCargoNames[k],
                                  bytes_text(static_cast<double>(most.sent)), most.exchanges,
                                  duration_text(most.seconds)));
  }
  return fmt::format("{} ranks, of each at most: {} of memory; sent: {}", accounts.size(),
                     bytes_text(static_cast<double>(peak)), join(parts, "; "));
}

}  // namespace lacuna::cli
