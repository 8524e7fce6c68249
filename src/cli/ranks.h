// The verbs that run as one of several ranks of MPI (base/ranks.h): train divides a network, predict divides rows.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/ranks.h"
#include "cli/verbs.h"

namespace lacuna::cli {

constexpr const char* kMpi = "mpi";  // the flag that asks for MPI without mpirun

// Becomes one of several ranks where mpirun has started this process, or --mpi asks for it. Called before anything is
// said: of several ranks rank 0 alone speaks.
Ranks& join_speaking(const Arguments& arguments);

// Ranks of one machine share its processors, and compute there: what `threads` 0 and `device` auto mean among them.
void share_machine(const Ranks& ranks, int threads, const std::string& device);

// What a rank has sent and waited for, in all and by its kind, and the most memory it has had.
struct Account {
  Ranks::Traffic traffic;
  std::uint64_t peak_bytes = 0;
};
std::vector<Account> accounts_of(const Ranks& ranks);  // none of a process alone
nlohmann::json accounts_json(const std::vector<Account>& accounts);
std::string accounts_text(const std::vector<Account>& accounts);  // at most

}  // namespace lacuna::cli
