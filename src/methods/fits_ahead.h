// Runs several fits of an ensemble at the same time, each in a thread of its own, because small networks do not fill a
// GPU. To the FitContext they look like fits one after the other: the earliest unfinished fit reports to it, and the
// others store their reports until it is their turn. A checkpoint contains nothing of those.
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
  // learn(f, context) runs fit f, in any thread; fits are [begin, end).
  using Learn = std::function<void(std::size_t, FitContext&)>;
  FitsAhead(FitContext& outer, std::size_t begin, std::size_t end, std::size_t at_once, Learn learn);
  ~FitsAhead();  // stops running fits and discards their results
  FitsAhead(const FitsAhead&) = delete;
  FitsAhead& operator=(const FitsAhead&) = delete;

  // Now it is the turn of fit f, after all earlier ones. Returns when the fit has ended, and rethrows what it threw.
  void finish(std::size_t f);

 private:
  class Turn;  // the context that a fit sees
  void work();

  FitContext& outer_;
  const std::size_t begin_, end_;
  const Learn learn_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::size_t next_;  // the next fit to start
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
