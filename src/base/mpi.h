// Makes this process one of several ranks (base/ranks.h), by liblacuna_mpi.so, which is loaded if mpirun has started
// the program. So one program serves machines with and without MPI.
#pragma once

#include "base/ranks.h"

namespace lacuna {

// If mpirun has started this process as one of several, or if MPI was requested (--mpi). Exit::usage if the library
// cannot be loaded.
void join_ranks(bool asked);
Ranks& joined_ranks();       // this process alone, before and without
void leave_ranks();          // at the end; waits for the others
void abort_ranks(int code);  // ends all of them with this exit code; returns only where this process is alone

}  // namespace lacuna
