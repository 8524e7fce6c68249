// Processes that work together on one task, numbered from 0: the ranks of MPI, on one machine or on many. Every rank
// runs the same program on the same input and receives the results of others by exchange(). Exchanging sums nothing,
// so results do not depend on how the work was divided.
//
// One function does everything, so a test can replace MPI with a few lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.h"

namespace lacuna {

class Ranks {
 public:
  static constexpr int kEveryone = -1;
  // Bytes that one rank owns and others read. Each rank gives their place in its own memory.
  struct Part {
    void* data = nullptr;
    std::size_t bytes = 0;
    int owner = 0, reader = kEveryone;
  };
  // What this rank has sent and received since the start, and how long it has waited.
  struct Count {
    std::uint64_t exchanges = 0, sent = 0, received = 0;  // bytes
    double seconds = 0;
  };
  // The use of an exchange; each is counted separately.
  enum Cargo { other, embeddings, gradients, logits, validation };
  static constexpr std::array kCargoNames = {"other", "embeddings", "gradients", "logits", "validation"};
  struct Traffic {
    std::array<Count, kCargoNames.size()> of = {};
    Count total() const {
      Count sum;
      for (const Count& one : of) {
        sum.exchanges += one.exchanges;
        sum.sent += one.sent;
        sum.received += one.received;
        sum.seconds += one.seconds;
      }
      return sum;
    }
  };

  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool leads() const { return rank() == 0; }  // the rank that writes files and messages
  bool alone() const { return size() == 1; }

  // All ranks must call it with the same parts in the same order, each from one thread.
  void exchange(std::span<const Part> parts, Cargo cargo = other) const {
    if (alone()) return;
    const Stopwatch watch;
    transfer(parts);
    Count& count = traffic_.of[cargo];
    ++count.exchanges;
    for (const Part& part : parts) {
      const auto readers = static_cast<std::uint64_t>(part.reader == kEveryone ? size() - 1 : 1);
      if (part.reader == part.owner) continue;
      if (part.owner == rank()) count.sent += part.bytes * readers;
      if (part.owner != rank() && (part.reader == kEveryone || part.reader == rank()))
        count.received += part.bytes;
    }
    count.seconds += watch.seconds();
  }
  const Traffic& traffic() const { return traffic_; }

  // Called repeatedly while this rank waits for others. If it throws, this rank stops waiting and must end.
  std::function<void()> while_waiting;

 protected:
  virtual void transfer(std::span<const Part> parts) const = 0;

 private:
  mutable Traffic traffic_;
};

Ranks& one_rank();  // this process alone

// Everybody gets rank 0's value.
template <class T>
void broadcast(const Ranks& ranks, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const Ranks::Part part{&value, sizeof(T)};
  ranks.exchange({&part, 1});
}

// One value of each rank, in their order, on every rank.
template <class T>
std::vector<T> all_gather(const Ranks& ranks, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(static_cast<std::size_t>(ranks.size()), own);
  std::vector<Ranks::Part> parts;
  for (int r = 0; r < ranks.size(); ++r)
    parts.push_back({&values[static_cast<std::size_t>(r)], sizeof(T), r});
  ranks.exchange(parts);
  return values;
}
std::vector<std::string> all_gather(const Ranks& ranks, const std::string& own);

// The number of threads of each rank: ranks that may run on the same processors of a machine divide them.
int threads_beside(const Ranks& ranks);

class Tensors;
// The union of the ranks' tensors, on every rank or on rank 0 alone; of several with the same name, that of the lowest
// rank. Metadata are not exchanged.
enum class Wanted { by_leader, by_everyone };
void gather(const Ranks& ranks, Wanted wanted, Tensors& tensors);

}  // namespace lacuna
