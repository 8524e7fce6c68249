// Reads rows of mapped items ahead: while steps read one window of an order, a thread reads the next one from the disk,
// in large pieces, and the previous one is released. Results do not depend on it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "data/items.h"
#include "nn/row_order.h"

namespace lacuna {

class ReadAhead {
 public:
  // Does nothing if the items are not mapped, or if a device has a copy of them.
  ReadAhead(const Items& items, bool needed);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Steps will read the order from `position` on, and need nothing before it. The order must not change until the next
  // call, or until leave().
  void reach(const RowOrder& order, std::size_t position);
  void leave();  // the order is finished or abandoned: releases all of its rows

 private:
  void run();
  void ask(std::size_t window);  // requests a window, if the order has it
  void wait();                   // until nothing is being read

  const Items& items_;
  const RowOrder* order_ = nullptr;
  std::size_t window_ = 0, next_ = 0;  // the window that steps read, and the first that was not requested
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const RowOrder::Window* asked_ = nullptr;  // the request to the thread
  bool reading_ = false, ended_ = false;
};

}  // namespace lacuna
