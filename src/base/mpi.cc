#include "base/mpi.h"

#include <cstdlib>

#include "base/error.h"
#include "base/library.h"
#include "base/text.h"

namespace lacuna {
namespace {

constexpr const char* kLibraryFile = "liblacuna_mpi.so";

struct Mpi {
  Ranks* ranks = nullptr;  // null: not joined
  void (*leave)() = nullptr;
  void (*abort)(int) = nullptr;
};
Mpi& mpi() {
  static Mpi joined;
  return joined;
}

// What starters of MPI programs say: Open MPI's mpirun, and those that speak PMI.
std::int64_t started_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* text = std::getenv(variable))
      if (const auto size = parse_int(text)) return *size;
  return 1;
}

}  // namespace

void join_ranks(bool asked) {
  const std::int64_t started = started_ranks();
  if (mpi().ranks != nullptr || (started < 2 && !asked)) return;
  const auto library = load_library(kLibraryFile, "LACUNA_MPI_LIBRARY",
                                    {"lacuna_mpi_join", "lacuna_mpi_leave", "lacuna_mpi_abort"});
  if (!library.why.empty())
    fail(Exit::usage,
         "{}: {}{}; start the program without mpirun and --mpi, or build it where MPI is installed",
         started < 2 ? std::string("--mpi") : fmt::format("started as one of {} ranks", started), library.why,
         library.missing ? " (it is built where MPI is found)" : "");
  mpi().leave = reinterpret_cast<void (*)()>(library.functions[1]);
  mpi().abort = reinterpret_cast<void (*)(int)>(library.functions[2]);
  mpi().ranks = reinterpret_cast<Ranks* (*)()>(library.functions[0])();
}

Ranks& joined_ranks() {
  return mpi().ranks != nullptr ? *mpi().ranks : one_rank();
}

void leave_ranks() {
  if (mpi().ranks != nullptr) mpi().leave();
}

void abort_ranks(int code) {
  if (mpi().ranks != nullptr && !mpi().ranks->alone()) mpi().abort(code);
}

}  // namespace lacuna
