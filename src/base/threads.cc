#include "base/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/alone.h"
#include "base/processor.h"
#include "base/quota.h"

namespace lacuna {
namespace {

thread_local bool inside_chunk = false;

using Body = FunctionRef<void(std::size_t, std::size_t)>;

// Workers wait for a new job number, spinning briefly (a training step has hundreds of jobs, a few
// microseconds apart) and then sleeping. A job is over when its chunks are done, not when every worker has
// looked at it: on a busy machine a worker that is not running costs nothing.
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
    const std::size_t chunks = (n - 1) / grain + 1;
    assert(chunks < kIndexMask);
    n_ = n;
    grain_ = grain;
    chunks_ = chunks;
    body_ = &body;
    mode_ = floating_point_mode();
    error_ = nullptr;
    unfinished_.store(chunks, std::memory_order_relaxed);
    const std::uint64_t job = ++last_job_ << kIndexBits;
    ticket_.store(job, std::memory_order_release);
    announce();
    take_chunks(job);
    for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0;)
      if (++spins > kSpins) {
        std::this_thread::yield();
      } else {
        spin_pause();
      }
    // Closed: a late worker finds no chunk to claim while the next job is being laid out.
    ticket_.store(kIndexMask, std::memory_order_release);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr int kSpins = 4000;
  static constexpr unsigned kIndexBits = 32;
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;

  void announce() {
    news_.fetch_add(1, std::memory_order_release);
    news_.notify_all();
  }
  // Takes chunks of the given job until none is left. A chunk is claimed by counting the ticket up, which
  // fails once another job has begun; until a claimed chunk is finished the job, and with it n_, grain_,
  // body_ and mode_, stays.
  void take_chunks(std::uint64_t job) {
    inside_chunk = true;
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while ((ticket & ~kIndexMask) == job) {
      const std::size_t index = ticket & kIndexMask;
      if (index >= chunks_.load(std::memory_order_relaxed)) break;
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire))
        continue;
      const std::size_t begin = index * grain_;
      if (floating_point_mode() != mode_) set_floating_point_mode(mode_);
      try {
        (*body_)(begin, std::min(begin + grain_, n_));
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
      unfinished_.fetch_sub(1, std::memory_order_acq_rel);
      ticket = ticket_.load(std::memory_order_acquire);
    }
    inside_chunk = false;
  }
  void work() {
    std::uint32_t seen = 0;
    for (;;) {
      for (int spins = 0; news_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins)
        spin_pause();
      news_.wait(seen, std::memory_order_acquire);
      seen = news_.load(std::memory_order_acquire);
      if (stopping_) return;
      take_chunks(ticket_.load(std::memory_order_acquire) & ~kIndexMask);
    }
  }

  std::vector<std::thread> threads_;
  unsigned mode_ = 0;                              // floating_point_mode() of the caller
  std::atomic<std::uint32_t> news_{0};             // counts announcements; what workers sleep on
  std::atomic<std::uint64_t> ticket_{kIndexMask};  // job number and the next chunk of it
  std::atomic<std::size_t> unfinished_{0}, chunks_{0};
  std::atomic<bool> stopping_{false};
  std::uint64_t last_job_ = 0;
  std::size_t n_ = 0, grain_ = 1;
  Body* body_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_;
};

// Left alone when the process ends: threads that are still computing then must not find it gone.
Pool* pool = nullptr;
std::atomic<int> pool_size{0};  // 0: no pool yet
std::mutex pool_mutex;          // one job at a time, also when several of the user's threads call the library

// A fork copies the calling thread alone. The child finds workers that do not run and perhaps a mutex that
// nobody will open: it starts with new ones.
void forget_after_fork() {
  pool = nullptr;
  inside_chunk = false;
  new (&pool_mutex) std::mutex;
}

void make_pool(int size) {
  static const int registered = pthread_atfork(nullptr, nullptr, forget_after_fork);
  (void)registered;
  delete std::exchange(pool, nullptr);
  pool = new Pool(size - 1);
  pool_size = size;
}

// The processors that this process may use: fewer than the machine has under taskset or in a container.
int machine_threads() {
  static const int quota = processor_quota();
  cpu_set_t set;
  const int count = sched_getaffinity(0, sizeof(set), &set) == 0
                        ? CPU_COUNT(&set)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, quota > 0 ? std::min(count, quota) : count);
}

}  // namespace

void set_threads(int count) {
  const std::lock_guard lock(pool_mutex);
  const int wanted = count > 0 ? count : machine_threads();
  if (pool == nullptr || pool->size() != wanted) make_pool(wanted);
}

// As many as parallel_for would use here; inside a chunk that is one, the calling thread.
int threads() {
  if (inside_chunk) return 1;
  const int size = pool_size;
  return size > 0 ? size : machine_threads();
}

void run_alone(FunctionRef<void()> body) {
  struct Scope {
    const bool before = inside_chunk;
    Scope() { inside_chunk = true; }
    ~Scope() { inside_chunk = before; }
  } scope;
  body();
}

void parallel_for(std::size_t n, std::size_t grain, Body body) {
  if (n == 0) return;
  grain = std::max<std::size_t>(grain, 1);
  if (inside_chunk || n <= grain) {
    for (std::size_t begin = 0; begin < n; begin += grain) body(begin, std::min(begin + grain, n));
    return;
  }
  const std::lock_guard lock(pool_mutex);
  if (pool == nullptr) make_pool(pool_size > 0 ? pool_size.load() : machine_threads());
  pool->run(n, grain, body);
}

}  // namespace lacuna
