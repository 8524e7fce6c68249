// Fits of an ensemble that are under way at the same time, each in a thread of its own: small networks do not fill a
// GPU. To their surroundings they are fits one after the other: the first that is not over speaks to them, the others
// keep what they have to say until their turn comes. A checkpoint knows nothing of those.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "nn/fit.h"

namespace lacuna {

class FitsAhead {
 public:
  // learn(f, context) does fit f, in whatever thread; fits are [begin, end).
  using Learn = std::function<void(std::size_t, FitContext&)>;
  FitsAhead(FitContext& outer, std::size_t begin, std::size_t end, std::size_t at_once, Learn learn);
  ~FitsAhead();  // fits that are under way are stopped; what they learned is discarded
  FitsAhead(const FitsAhead&) = delete;
  FitsAhead& operator=(const FitsAhead&) = delete;

  // It is the turn of fit f, after those before it. Returns when the fit has ended, and throws what it threw.
  void finish(std::size_t f);

 private:
  class Turn;  // what a fit sees of the surroundings
  void work();

  FitContext& outer_;
  const std::size_t begin_, end_;
  const Learn learn_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::size_t next_;  // to be begun
  std::atomic<std::size_t> turn_;
  std::atomic<bool> stop_{false};
  struct Outcome {
    bool over = false;
    std::exception_ptr error;
  };
  std::vector<Outcome> outcomes_;
  std::vector<std::unique_ptr<Turn>> turns_;
  std::vector<std::jthread> threads_;
};

}  // namespace lacuna
