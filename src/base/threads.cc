#include "base/threads.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace lacuna {
namespace {

thread_local bool inside_chunk = false;

using Body = FunctionRef<void(std::size_t, std::size_t)>;

// Workers wait for a new job number, spinning shortly (a training step has hundreds of jobs, a few microseconds apart)
// and then sleeping.
class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stopping_ = true;
    announce();
    for (auto& thread : threads_) thread.join();
  }
  int size() const { return static_cast<int>(threads_.size()) + 1; }

  void run(std::size_t n, std::size_t grain, Body body) {
    n_ = n;
    grain_ = grain;
    body_ = &body;
    error_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(threads_.size(), std::memory_order_relaxed);
    announce();
    take_chunks();
    for (int spins = 0; busy_.load(std::memory_order_acquire) != 0;)
      if (++spins > kSpins) {
        std::this_thread::yield();
      } else {
        __builtin_ia32_pause();
      }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr int kSpins = 4000;

  void announce() {
    job_.fetch_add(1, std::memory_order_release);
    job_.notify_all();
  }
  void take_chunks() {
    inside_chunk = true;
    for (;;) {
      const std::size_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= n_) break;
      try {
        (*body_)(begin, std::min(begin + grain_, n_));
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
    inside_chunk = false;
  }
  void work() {
    std::uint32_t seen = 0;
    for (;;) {
      for (int spins = 0; job_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins)
        __builtin_ia32_pause();
      job_.wait(seen, std::memory_order_acquire);
      seen = job_.load(std::memory_order_acquire);
      if (stopping_) return;
      take_chunks();
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<std::uint32_t> job_{0};
  std::atomic<std::size_t> next_{0}, busy_{0};
  std::atomic<bool> stopping_{false};
  std::size_t n_ = 0, grain_ = 1;
  Body* body_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_;
};

std::unique_ptr<Pool> pool;
std::mutex pool_mutex;  // one job at a time, also when several of the user's threads call the library

int machine_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

void set_threads(int count) {
  const std::lock_guard lock(pool_mutex);
  const int wanted = count > 0 ? count : machine_threads();
  if (!pool || pool->size() != wanted) {
    pool.reset();
    pool = std::make_unique<Pool>(wanted - 1);
  }
}

int threads() {
  const std::lock_guard lock(pool_mutex);
  return pool ? pool->size() : machine_threads();
}

void parallel_for(std::size_t n, std::size_t grain, Body body) {
  if (n == 0) return;
  grain = std::max<std::size_t>(grain, 1);
  if (inside_chunk || n <= grain) {
    for (std::size_t begin = 0; begin < n; begin += grain) body(begin, std::min(begin + grain, n));
    return;
  }
  const std::lock_guard lock(pool_mutex);
  if (!pool) pool = std::make_unique<Pool>(machine_threads() - 1);
  pool->run(n, grain, body);
}

}  // namespace lacuna
