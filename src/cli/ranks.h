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

// Becomes one of several ranks if mpirun has started this process, or with --mpi. Called before any output, because
// only rank 0 prints.
Ranks& join_speaking(const Arguments& arguments);

// The meaning of `threads` 0 and `device` auto for several ranks: those on one machine share its processors, and all
// use the CPU.
void share_machine(const Ranks& ranks, int threads, const std::string& device);

// What a rank has sent and how long it has waited, in total and by kind, and its peak memory.
struct Account {
  Ranks::Traffic traffic;
  std::uint64_t peak_bytes = 0;
};
std::vector<Account> accounts_of(const Ranks& ranks);  // none of a process alone
nlohmann::json accounts_json(const std::vector<Account>& accounts);
std::string accounts_text(const std::vector<Account>& accounts);  // at most

}  // namespace lacuna::cli
