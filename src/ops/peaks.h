// The peak rates of this machine, measured by raw loops: the denominators of every benchmark. `count` loops run at
// the same time; set_threads() must have provided as many threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lacuna {

double peak_f32(int count);  // FLOP/s of f32 multiply-adds in registers, with the widest instructions here
// The same for bf16 products (AMX, else AVX512-BF16); 0 if there is no such instruction. With 0 seconds the
// loop runs once, for a fraction of a millisecond: the rate at this moment.
double peak_bf16(int count, double seconds = .3);
double triad(
    int count);  // bytes/s of a[i] = b[i] + s c[i] (three streams counted), far larger than the caches

struct Timing {
  double best = 0, median = 0;  // seconds of one call
  double spread() const { return median / best - 1; }
};

// Seconds on the chosen clock: wall time, or the CPU time of this process. On a machine that others use too, only
// the latter, with one thread, can be compared.
enum class Clock { wall, cpu };
void use_clock(Clock clock);
double clock_seconds();

// Calls `work` until `seconds` have passed, at least three times; the first call is not counted.
template <class F>
Timing measure(double seconds, F&& work) {
  work();
  std::vector<double> times;
  for (const double begin = clock_seconds(); times.size() < 3 || clock_seconds() - begin < seconds;) {
    const double start = clock_seconds();
    work();
    times.push_back(clock_seconds() - start);
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

}  // namespace lacuna
