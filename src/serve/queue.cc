#include "serve/queue.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/alone.h"
#include "base/error.h"

namespace lacuna::serve {
namespace {

constexpr int kPatience = 2;  // delays that a request waits for a busy worker before a free one takes it

}  // namespace

// Where the rows of several requests come together; kept from batch to batch.
struct BatchQueue::Scratch {
  std::vector<std::vector<float>> views;
};

BatchQueue::BatchQueue(const Limits& limits, Counters& counters, std::size_t workers)
    : limits_(limits), counters_(counters) {
  for (std::size_t k = 0; k < workers; ++k) workers_.emplace_back([this] { work(); });
}

BatchQueue::~BatchQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  news_.notify_all();
  for (auto& worker : workers_) worker.join();
}

bool BatchQueue::submit(Job& job) {
  const std::size_t count = job.rows.count;
  {
    const std::lock_guard lock(mutex_);
    if (rows_ > 0 && rows_ + count > static_cast<std::size_t>(limits_.queue_rows)) return false;
    rows_ += count;
    job.since = Clock::now();
    jobs_.push_back(std::move(job));
    counters_.queued_rows += static_cast<std::int64_t>(count);
  }
  news_.notify_one();
  return true;
}

void BatchQueue::arriving(int change) {
  if (arriving_.fetch_add(change) + change == 0 && change < 0) news_.notify_one();
}

std::vector<Job> BatchQueue::take(std::unique_lock<std::mutex>& lock) {
  const auto delay = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double, std::milli>(limits_.delay_ms));
  const auto full = static_cast<std::size_t>(limits_.batch_rows);
  for (;;) {
    if (jobs_.empty()) {
      if (ending_) return {};
      news_.wait(lock);
      continue;
    }
    // What waits while a worker is busy soon leaves with it, as one batch: two half batches at once cost more.
    const auto leaves = jobs_.front().since + delay * (busy_ > 0 ? kPatience : 1);
    if (ending_ || rows_ >= full || (arriving_ == 0 && busy_ == 0) || Clock::now() >= leaves) break;
    news_.wait_until(lock, leaves);
  }
  // The oldest request, and those after it that go to the same model, up to a full batch.
  std::vector<Job> batch;
  std::size_t rows = 0;
  for (auto at = jobs_.begin(); at != jobs_.end() && rows < full;) {
    const bool fits = batch.empty() || (at->model == batch.front().model && rows + at->rows.count <= full);
    if (!fits) {
      ++at;
      continue;
    }
    rows += at->rows.count;
    batch.push_back(std::move(*at));
    at = jobs_.erase(at);
  }
  rows_ -= rows;
  counters_.queued_rows -= static_cast<std::int64_t>(rows);
  return batch;
}

void BatchQueue::work() {
  Scratch scratch;
  run_alone([&] {
    for (;;) {
      std::unique_lock lock(mutex_);
      std::vector<Job> batch = take(lock);
      if (batch.empty()) return;
      ++busy_;
      lock.unlock();
      news_.notify_one();  // there may be more for another worker
      predict(batch, scratch);
      lock.lock();
      --busy_;
    }
  });
}

void BatchQueue::predict(std::vector<Job>& jobs, Scratch& scratch) {
  const ServedModel& served = *jobs.front().model;
  const std::size_t views = served.views.size();
  std::size_t count = 0;
  for (const Job& job : jobs) count += job.rows.count;
  Outcome outcome;
  try {
    Dataset data;
    data.name = "request";
    data.rows = count;
    std::vector<std::size_t> held;  // positions in the model of the views that some row has
    scratch.views.resize(std::max(scratch.views.size(), views));
    for (std::size_t v = 0; v < views; ++v) {
      const std::size_t columns = served.views[v].columns;
      if (std::ranges::all_of(jobs, [&](const Job& job) { return job.rows.features[v] == nullptr; }))
        continue;
      const float* features = jobs.front().rows.features[v];
      if (jobs.size() > 1) {
        auto& joined = scratch.views[v];
        if (joined.size() < count * columns) joined.resize(count * columns);
        std::size_t at = 0;
        for (const Job& job : jobs) {
          if (job.rows.features[v] != nullptr)
            std::memcpy(joined.data() + at, job.rows.features[v], job.rows.count * columns * sizeof(float));
          at += job.rows.count * columns;
        }
        features = joined.data();
      }
      View view;
      view.name = served.views[v].name;
      view.features = Table<float>(nullptr, {features, count, columns});
      data.views.push_back(std::move(view));
      held.push_back(v);
    }
    auto scores = std::make_shared<Matrix<float>>(count, served.labels());
    if (!held.empty()) {
      Matrix<std::uint8_t> present(count, held.size());
      std::size_t row = 0;
      for (const Job& job : jobs)
        for (std::size_t i = 0; i < job.rows.count; ++i, ++row)
          for (std::size_t k = 0; k < held.size(); ++k)
            present(row, k) = job.rows.present[i * views + held[k]];
      data.present = std::move(present);
    }
    *scores = served.model.predict(data);
    for (const float score : scores->values())
      if (!std::isfinite(score)) throw std::runtime_error("the model gave a score that is not a number");
    outcome.scores = std::move(scores);
  } catch (const DeviceLost&) {
    outcome.error = "the GPU was lost";
    device_lost_ = true;
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  counters_.rows += count;
  ++counters_.batches;
  counters_.batch_rows.add(static_cast<double>(count));
  for (Job& job : jobs) {
    outcome.count = job.rows.count;
    job.done(outcome);
    outcome.begin += job.rows.count;
  }
}

}  // namespace lacuna::serve
