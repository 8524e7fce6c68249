// Batches waiting requests into one call of the model, because a batch costs little more than a row. A batch is
// submitted when it is full, when its oldest request has waited for the maximum delay, or at once if no further
// request is being read. While a worker is busy, requests wait for it for a few delays before another worker takes
// them. Each worker predicts in its own thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/matrix.h"
#include "serve/counters.h"
#include "serve/limits.h"
#include "serve/registry.h"
#include "serve/rows.h"

namespace lacuna::serve {

using Clock = std::chrono::steady_clock;

// Scores of a batch, shared by its requests; this one's are rows begin to begin + count.
struct Outcome {
  std::shared_ptr<const Matrix<float>> scores;
  std::size_t begin = 0, count = 0;
  std::string error;  // empty if all is well
  MatrixView<const float> rows() const { return scores->view().slice(begin, count); }
};

struct Job {
  ModelPointer model;
  Rows rows;
  std::function<void(const Outcome&)> done;  // in the worker's thread; must not throw
  Clock::time_point since = {};
};

class BatchQueue {
 public:
  BatchQueue(const Limits& limits, Counters& counters, std::size_t workers);
  ~BatchQueue();  // answers all queued requests, then ends

  // False, and the job untouched, if too many rows are waiting already.
  bool submit(Job& job);
  // Requests that are being read and may join a batch soon.
  void arriving(int change);
  // From now on every prediction fails.
  bool device_lost() const { return device_lost_; }

 private:
  void work();
  std::vector<Job> take(std::unique_lock<std::mutex>& lock);  // waits; empty: the end
  struct Scratch;
  void predict(std::vector<Job>& jobs, Scratch& scratch);

  const Limits& limits_;
  Counters& counters_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Job> jobs_;
  std::size_t rows_ = 0;
  int busy_ = 0;  // workers that predict
  std::atomic<int> arriving_{0};
  std::atomic<bool> device_lost_{false};
  bool ending_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace lacuna::serve
