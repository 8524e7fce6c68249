// The verbs that run as one of several ranks of MPI (base/ranks.h): train divides a network, predict divides rows.
#pragma once

#include <string>

#include "base/ranks.h"
#include "cli/verbs.h"

namespace lacuna::cli {

constexpr const char* kMpi = "mpi";  // the flag that asks for MPI without mpirun

// Becomes one of several ranks where mpirun has started this process, or --mpi asks for it. Called before anything is
// said: of several ranks rank 0 alone speaks.
Ranks& join_speaking(const Arguments& arguments);

// Ranks of one machine share its processors, and compute there: what `threads` 0 and `device` auto mean among them.
void share_machine(const Ranks& ranks, int threads, const std::string& device);

}  // namespace lacuna::cli
