// The ranks of MPI: liblacuna_mpi.so, which the program loads when mpirun has started it (base/mpi.h). Messages between
// pairs alone: no sum is left to MPI, and MPI keeps the order of messages between two ranks.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/ranks.h"

namespace lacuna {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30;  // bytes of a message; MPI counts with int
constexpr int kSpins = 1000;                            // then others may run
constexpr double kPatience = .005;                      // seconds; then this rank sleeps between looks
constexpr useconds_t kNap = 100;

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  void transfer(std::span<const Part> parts) const override {
    requests_.clear();
    for (const Part& part : parts) {
      const bool everyone = part.reader == kEveryone;
      if (part.owner != rank_) {
        if (everyone || part.reader == rank_) in_pieces(part, part.owner, MPI_Irecv);
        continue;
      }
      for (int r = everyone ? 0 : part.reader; r < (everyone ? size_ : part.reader + 1); ++r)
        if (r != rank_) in_pieces(part, r, MPI_Isend);
    }
    wait();
  }

 private:
  template <class Start>
  void in_pieces(const Part& part, int other, Start start) const {
    for (std::size_t at = 0; at < part.bytes; at += kLargest)
      start(static_cast<char*>(part.data) + at, static_cast<int>(std::min(kLargest, part.bytes - at)),
            MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests_.emplace_back());
  }

  // Without burning a processor that another rank may need.
  void wait() const {
    const double begun = MPI_Wtime();
    for (int looks = 0;; ++looks) {
      int done = 0;
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) return;
      if (looks < kSpins) continue;
      sched_yield();
      if (MPI_Wtime() - begun < kPatience) continue;
      usleep(kNap);
      if (while_waiting) while_waiting();
    }
  }

  int rank_ = 0, size_ = 1;
  mutable std::vector<MPI_Request> requests_;
};

}  // namespace
}  // namespace lacuna

extern "C" {
__attribute__((visibility("default"))) lacuna::Ranks* lacuna_mpi_join() {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  return new lacuna::MpiRanks;
}
__attribute__((visibility("default"))) void lacuna_mpi_leave() {
  MPI_Finalize();
}
__attribute__((visibility("default"))) void lacuna_mpi_abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
}
}
