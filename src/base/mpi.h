// How this process becomes one of several ranks (base/ranks.h): through liblacuna_mpi.so, which is loaded when mpirun
// has started the program. One program serves machines with and without MPI.
#pragma once

#include "base/ranks.h"

namespace lacuna {

// Where mpirun has started this process as one of several, or where MPI was asked for (--mpi). Exit::usage where the
// library cannot be loaded.
void join_ranks(bool asked);
Ranks& joined_ranks();       // this process alone, before and without
void leave_ranks();          // at the end; waits for the others
void abort_ranks(int code);  // ends all of them with this exit code; returns only where this process is alone

}  // namespace lacuna
