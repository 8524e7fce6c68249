// Counter-based random numbers (Philox 4x32, ten rounds): a draw is a pure function of (seed, purpose, a, b, index),
// so nothing depends on the number of threads, and a resumed run draws what the uninterrupted one would have drawn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace lacuna {

// The use of a stream of random numbers. A new use needs a new name; never change the values ("same seed, same bits").
enum class Purpose : std::uint32_t {
  row_order = 1,
  view_gaps = 2,
  label_gaps = 3,
  simulate = 4,
  initialise = 5,
  fragment = 6,
  view_dropout = 7,
  dropout = 8,
  shuffle = 9,
  cluster = 10,
  search = 11,
  projection = 12,
  landmarks = 13,
  member = 14,
  view_subset = 15,
  explain = 16,
  bootstrap = 17,
  crossing = 21,
  test = 99,
};

using Words = std::array<std::uint32_t, 4>;

inline Words philox(Words counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0], p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

inline std::array<std::uint32_t, 2> seed_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

// A number in [0, 1) from 32 random bits, exact in float.
inline float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// One stream of draws. Cheap to make: make a fresh one per row rather than share one across rows.
class Random {
 public:
  Random(std::uint64_t seed, Purpose purpose, std::uint32_t a = 0, std::uint32_t b = 0)
      : key_(seed_key(seed)), counter_{0, a, b, static_cast<std::uint32_t>(purpose)} {}

  std::uint32_t bits() {
    if (used_ == 4) {
      words_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }
  float uniform() { return unit_float(bits()); }                          // [0, 1)
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  double uniform_double() {                                               // [0, 1), 53 bits
    const std::uint64_t high = bits() >> 5, low = bits() >> 6;
    return static_cast<double>((high << 26) | low) * 0x1p-53;
  }
  float normal();                                                         // N(0, 1)
  std::uint64_t below(std::uint64_t n);                                   // uniform in 0..n-1, without bias

  // Fisher-Yates.
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
  std::vector<std::uint32_t> permutation(std::size_t n) {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    shuffle(order);
    return order;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  Words counter_;
  Words words_{};
  unsigned used_ = 4;
};

}  // namespace lacuna
