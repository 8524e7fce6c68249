#include "methods/fits_ahead.h"

#include <algorithm>
#include <utility>

namespace lacuna {

class FitsAhead::Turn final : public FitContext {
 public:
  Turn(FitsAhead& fits, std::size_t number) : fits_(fits), number_(number) {
    seed = fits.outer_.seed;
    memory_limit = fits.outer_.memory_limit;
  }
  void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) override {
    say([=, this] { fits_.outer_.before_training(snapshot_bytes, model_bytes); });
  }
  void after_step(FunctionRef<void(Tensors&)> snapshot) override {
    if (!has_turn()) return;
    say_kept();
    fits_.outer_.after_step(snapshot);
  }
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    if (!has_turn()) {
      kept_.emplace_back([this, record] { fits_.outer_.earlier_epoch(record); });
      return true;
    }
    say_kept();
    return fits_.outer_.after_epoch(record, snapshot);
  }
  void remark(const std::string& text) override {
    say([this, text] { fits_.outer_.remark(text); });
  }
  bool stopping() override { return fits_.stop_ || (has_turn() && fits_.outer_.stopping()); }
  const Ranks& ranks() const override { return fits_.outer_.ranks(); }

  void say_kept() {
    for (const auto& one : std::exchange(kept_, {})) one();
  }

 private:
  bool has_turn() const { return fits_.turn_ == number_; }
  void say(std::function<void()> what) {
    kept_.push_back(std::move(what));
    if (has_turn()) say_kept();
  }

  FitsAhead& fits_;
  const std::size_t number_;
  std::vector<std::function<void()>> kept_;  // of the fit's thread, then of finish()
};

FitsAhead::FitsAhead(FitContext& outer, std::size_t begin, std::size_t end, std::size_t at_once, Learn learn)
    : outer_(outer), begin_(begin), end_(end), learn_(std::move(learn)), next_(begin), turn_(begin) {
  const std::size_t count = end - begin, threads = std::min(at_once, count);
  if (threads < 2) return;
  outcomes_.resize(count);
  for (std::size_t f = begin; f < end; ++f) turns_.push_back(std::make_unique<Turn>(*this, f));
  for (std::size_t k = 0; k < threads; ++k) threads_.emplace_back([this] { work(); });
}

FitsAhead::~FitsAhead() {
  stop_ = true;
  threads_.clear();  // waits for them
}

void FitsAhead::work() {
  std::unique_lock lock(mutex_);
  while (next_ < end_ && !stop_) {
    const std::size_t f = next_++;
    lock.unlock();
    std::exception_ptr error;
    try {
      learn_(f, *turns_[f - begin_]);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    outcomes_[f - begin_] = {true, error};
    news_.notify_all();
  }
}

void FitsAhead::finish(std::size_t f) {
  if (threads_.empty()) return learn_(f, outer_);
  turn_ = f;
  Outcome& outcome = outcomes_[f - begin_];
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return outcome.over; });
  lock.unlock();
  turns_[f - begin_]->say_kept();
  if (outcome.error) std::rethrow_exception(outcome.error);
}

}  // namespace lacuna
