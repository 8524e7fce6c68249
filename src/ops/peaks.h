// What this machine can do at most, by raw loops: the denominators of every benchmark.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace lacuna {

double peak_f32(int threads);  // FLOP/s of f32 multiply-adds in registers, with the widest instructions here
double peak_bf16(
    int threads);  // the same for bf16 products (AMX, else AVX512-BF16); 0 where there is no instruction
double triad(
    int threads);  // bytes/s of a[i] = b[i] + s c[i] (three streams counted), far larger than the caches

struct Timing {
  double best = 0, median = 0;  // seconds of one call
  double spread() const { return median / best - 1; }
};

// Calls `work` until `seconds` have passed, at least three times; the first call is not counted.
template <class F>
Timing measure(double seconds, F&& work) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  work();
  std::vector<double> times;
  for (const auto begin = Clock::now(); times.size() < 3 || since(begin) < seconds;) {
    const auto start = Clock::now();
    work();
    times.push_back(since(start));
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

}  // namespace lacuna
