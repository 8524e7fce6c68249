#include "nn/read_ahead.h"

#include <algorithm>

namespace lacuna {
namespace {

void leave_window(const Items& items, const RowOrder::Window& window) {
  for (const auto& block : window.blocks) items.leave(block.begin, block.count);
}

}  // namespace

ReadAhead::ReadAhead(const Items& items, bool needed) : items_(items) {
  if (needed && items.mapped) thread_ = std::thread([this] { run(); });
}

ReadAhead::~ReadAhead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    asked_ = nullptr;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || asked_ != nullptr; });
    if (ended_) return;
    reading_ = true;
    // Block by block, so that an order that is left is not read to its end.
    const RowOrder::Window* const window = asked_;
    for (std::size_t b = 0; b < window->blocks.size() && asked_ == window; ++b) {
      const RowOrder::Block block = window->blocks[b];
      lock.unlock();
      items_.fetch(block.begin, block.count);
      lock.lock();
    }
    if (asked_ == window) asked_ = nullptr;
    reading_ = false;
    changed_.notify_all();
  }
}

void ReadAhead::ask(std::size_t window) {
  next_ = window + 1;
  if (window >= order_->windows.size()) return;
  {
    const std::lock_guard lock(mutex_);
    asked_ = &order_->windows[window];
  }
  changed_.notify_all();
}

void ReadAhead::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return asked_ == nullptr && !reading_; });
}

void ReadAhead::reach(const RowOrder& order, std::size_t position) {
  if (!thread_.joinable()) return;
  const auto end = [&] { return order.windows[window_].begin + order.windows[window_].count; };
  if (order_ != &order) {
    leave();
    order_ = &order;
    window_ = next_ = 0;
  } else if (position < end()) {
    return;
  }
  while (position >= end()) leave_window(items_, order.windows[window_++]);
  if (next_ <= window_) ask(window_);
  wait();  // a disk that is slower than the steps is waited for here, not page by page
  ask(window_ + 1);
}

void ReadAhead::leave() {
  if (order_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    asked_ = nullptr;
  }
  wait();
  for (std::size_t w = window_; w < std::min(next_, order_->windows.size()); ++w)
    leave_window(items_, order_->windows[w]);
  order_ = nullptr;
}

}  // namespace lacuna
