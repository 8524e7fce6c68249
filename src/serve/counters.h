// The server's counters, in the format of Prometheus. Any thread counts; nothing is ever reset. These sums hold:
//   connections  accepted = closed + open
//   requests     received = answered + abandoned + being answered; answered = sum over their status codes
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace lacuna::serve {

using Count = std::atomic<std::uint64_t>;

// Cumulative buckets with fixed bounds.
template <std::size_t N>
struct Histogram {
  std::array<double, N> bounds;
  std::array<Count, N + 1> counts{};
  std::atomic<double> sum{0};
  void add(double value) {
    std::size_t k = 0;
    while (k < N && value > bounds[k]) ++k;
    counts[k].fetch_add(1, std::memory_order_relaxed);
    double old = sum.load(std::memory_order_relaxed);
    while (!sum.compare_exchange_weak(old, old + value, std::memory_order_relaxed)) {
    }
  }
};

struct Counters {
  Count accepted{0}, closed{0}, refused_connections{0}, timed_out{0};
  Count received{0}, answered{0}, abandoned{0};
  std::array<Count, 600> by_status{};
  Count bytes_in{0}, bytes_out{0};
  Count rows{0}, batches{0}, swaps{0}, failed_swaps{0};
  Histogram<10> seconds{
      {{.0005, .001, .0025, .005, .01, .025, .05, .1, 1, 10}}};  // a request, headers to answer
  Histogram<9> batch_rows{{{1, 2, 4, 8, 16, 32, 64, 128, 256}}};
  std::atomic<std::int64_t> queued_rows{0}, body_bytes{0}, files_gone{0};

  void count_status(unsigned status) {
    by_status[status < by_status.size() ? status : 0].fetch_add(1, std::memory_order_relaxed);
  }
  std::string text() const;  // the exposition format
};

}  // namespace lacuna::serve
