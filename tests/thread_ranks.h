// Ranks that are threads of one process: what MPI does between machines, for tests without mpirun.
#pragma once

#include <atomic>
#include <barrier>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/ranks.h"

namespace lacuna {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : lists_(static_cast<std::size_t>(size)), barrier_(size) {}

  // Calls body on every rank. Throws what the first of them has thrown; the others then end at their next exchange.
  void run(const std::function<void(Ranks&)>& body) {
    std::vector<std::exception_ptr> errors(lists_.size());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < lists_.size(); ++r)
      threads.emplace_back([&, r] {
        Rank rank(*this, static_cast<int>(r));
        try {
          body(rank);
        } catch (const Left&) {
        } catch (...) {
          errors[r] = std::current_exception();
          broken_ = true;
        }
        barrier_.arrive_and_drop();
      });
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
  }

 private:
  struct Left {};
  class Rank final : public Ranks {
   public:
    Rank(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(all_.lists_.size()); }

   protected:
    void transfer(std::span<const Part> parts) const override {
      all_.lists_[static_cast<std::size_t>(rank_)] = parts;
      meet();
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const Part& part = parts[k];
        const auto& theirs = all_.lists_[static_cast<std::size_t>(part.owner)];
        if (theirs.size() != parts.size() || theirs[k].owner != part.owner ||
            theirs[k].reader != part.reader || theirs[k].bytes != part.bytes)
          throw std::logic_error("ranks exchange different parts");
        if (part.owner != rank_ && (part.reader == kEveryone || part.reader == rank_) && part.bytes > 0)
          std::memcpy(part.data, theirs[k].data, part.bytes);
      }
      meet();
    }

   private:
    void meet() const {
      all_.barrier_.arrive_and_wait();
      if (all_.broken_) throw Left();
    }
    ThreadRanks& all_;
    int rank_;
  };

  std::vector<std::span<const Ranks::Part>> lists_;
  std::barrier<> barrier_;
  std::atomic<bool> broken_{false};
};

}  // namespace lacuna
