// The position of negatives relative to positives, which is all that a rank metric needs. For each positive, in
// ascending order:
//   above      negatives with a larger key
//   at_least   negatives whose score is at least as large
// A key is a score, followed by an index where ties must be decided. Few positives are compared with all negatives in
// vector code; with many, each negative is located by binary search, so the cost is at most O(n log p).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

// Unsigned integers in the order of the floats; -0 and +0 get the same one.
inline std::uint32_t ordered_bits(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.f);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
}
inline float float_of_ordered(std::uint32_t ordered) {
  return std::bit_cast<float>(ordered ^ ((ordered >> 31) != 0 ? 0x80000000u : 0xffffffffu));
}

// Key: uint32 (the score alone) or uint64 (score, then index).
template <class Key>
class Placing {
 public:
  static constexpr std::size_t kFew = 16;

  std::vector<Key> positives;  // filled by the caller, sorted here
  std::vector<std::uint32_t> above, at_least;

  // Rows of labels: negatives (c), NaN where label j is not a negative.
  void place(std::span<const float> negatives) {
    if (positives.size() > kFew) {
      index();
      for (std::size_t j = 0; j < negatives.size(); ++j)
        if (negatives[j] == negatives[j]) add(Key{ordered_bits(negatives[j])} << 32 | j);
      finish();
      return;
    }
    std::sort(positives.begin(), positives.end());
    above.resize(positives.size());
    at_least.resize(positives.size());
    for (std::size_t q = 0; q < positives.size(); ++q) {
      const float s = float_of_ordered(score(positives[q]));
      std::uint32_t larger = 0, equal = 0, equal_behind = 0;
      for (const float x : negatives) {
        larger += x > s ? 1u : 0u;
        equal += x == s ? 1u : 0u;
      }
      for (std::size_t j = static_cast<std::uint32_t>(positives[q]); equal > 0 && j < negatives.size(); ++j)
        equal_behind += negatives[j] == s ? 1u : 0u;
      above[q] = larger + equal_behind;
      at_least[q] = larger + equal;
    }
  }

  // Piece by piece, for long columns: index() the positives, add() each negative, finish().
  //
  // The range of the positives' scores is cut into equal buckets, four a positive, so that a search rarely
  // has more than one to look at.
  void index() {
    std::sort(positives.begin(), positives.end());
    const std::size_t size = size_ = positives.size();
    positives.push_back(0);  // an empty bucket may begin behind the last positive; there is something to read
    beats_.assign(size + 1, 0);
    ties_.assign(size + 1, 0);
    const std::size_t buckets = std::max<std::size_t>(1, 4 * size);
    bucket_start_.assign(buckets + 1, 0);
    lowest_ = size == 0 ? 0 : score(positives[0]);
    highest_ = size == 0 ? 0 : score(positives[size - 1]);
    per_score_ = (std::uint64_t{buckets} << 32) / (std::uint64_t{highest_} - lowest_ + 1);
    for (std::size_t q = 0; q < size; ++q) ++bucket_start_[bucket(score(positives[q])) + 1];
    for (std::size_t b = 0; b < buckets; ++b) bucket_start_[b + 1] += bucket_start_[b];
  }
  void add(Key key) {
    const std::size_t p = positives_below(key);
    ++beats_[p];
    if (p < size_ && score(positives[p]) == score(key)) ++ties_[p];
  }
  void finish() {
    positives.pop_back();
    above.resize(size_);
    at_least.resize(size_);
    std::uint32_t larger = 0;
    for (std::size_t q = size_; q-- > 0;) above[q] = larger += beats_[q + 1];
    // A negative that ties with positive p and stands before it reaches p and all that tie with it further
    // up.
    std::uint32_t tied = 0;
    for (std::size_t q = 0; q < size_; ++q) {
      if (q > 0 && score(positives[q]) != score(positives[q - 1])) tied = 0;
      tied += ties_[q];
      at_least[q] = above[q] + tied;
    }
  }

 private:
  static std::uint32_t score(Key key) {
    if constexpr (sizeof(Key) == 8) {
      return static_cast<std::uint32_t>(key >> 32);
    } else {
      return key;
    }
  }
  std::size_t bucket(std::uint32_t s) const {
    return static_cast<std::size_t>(
        (std::uint64_t{std::clamp(s, lowest_, highest_) - lowest_} * per_score_) >> 32);
  }
  // The number of positives whose key is smaller: a search without branches inside the bucket.
  std::size_t positives_below(Key key) const {
    const std::size_t b = bucket(score(key));
    const Key* base = positives.data() + bucket_start_[b];
    std::size_t length = bucket_start_[b + 1] - bucket_start_[b];
    while (length > 1) {
      const std::size_t half = length / 2;
      base += half & -static_cast<std::size_t>(base[half - 1] < key);
      length -= half;
    }
    return static_cast<std::size_t>(base - positives.data()) +
           (length & static_cast<std::size_t>(*base < key));
  }

  std::size_t size_ = 0;
  std::vector<std::uint32_t> beats_;  // [p]: negatives whose key is larger than that of exactly p positives
  std::vector<std::uint32_t> ties_;   // [p]: those of them that tie with positive p
  std::vector<std::uint32_t> bucket_start_;  // first positive of each bucket
  std::uint32_t lowest_ = 0, highest_ = 0;   // scores of the positives
  std::uint64_t per_score_ = 0;              // buckets per unit of score, times 2^32
};

}  // namespace lacuna
