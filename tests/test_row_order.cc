#include "nn/row_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace lacuna {
namespace {

std::vector<std::uint32_t> counted(std::size_t n) {
  std::vector<std::uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

RC_GTEST_PROP(RowOrder, IsAPermutationWhoseWindowsHoldTheirBlocks, ()) {
  const auto n = *rc::gen::inRange<std::size_t>(0, 3000), window = *rc::gen::inRange<std::size_t>(0, 400);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto epoch = *rc::gen::inRange<std::uint32_t>(0, 1000);
  const bool shuffle = *rc::gen::arbitrary<bool>();
  const RowOrder order = row_order(n, window, shuffle, seed, epoch);
  auto sorted = order.rows;
  std::ranges::sort(sorted);
  RC_ASSERT(sorted == counted(n));
  if (!shuffle) RC_ASSERT(order.rows == sorted);
  std::size_t at = 0;
  for (const auto& one : order.windows) {
    RC_ASSERT(one.begin == at);
    std::vector<std::uint32_t> rows, held;
    for (std::size_t i = at; i < at + one.count; ++i) rows.push_back(order.rows[i]);
    for (const auto& block : one.blocks)
      for (std::size_t i = block.begin; i < block.begin + block.count; ++i)
        held.push_back(static_cast<std::uint32_t>(i));
    std::ranges::sort(rows);
    std::ranges::sort(held);
    RC_ASSERT(rows == held);
    RC_ASSERT(one.blocks.size() <= kBlocksInWindow);
    if (window > 0) RC_ASSERT(one.count <= std::max(window, kBlocksInWindow));
    at += one.count;
  }
  RC_ASSERT(at == n);
  RC_ASSERT(row_order(n, window, shuffle, seed, epoch).rows == order.rows);  // a pure function
}

// What trainings in memory have always done.
TEST(RowOrder, OneWindowIsAFullShuffle) {
  for (const std::size_t n : {1, 2, 128, 3500})
    for (const std::size_t window : {std::size_t{0}, n, 2 * n})
      EXPECT_EQ(row_order(n, window, true, 7, 3).rows, Random(7, Purpose::shuffle, 3).permutation(n));
}

TEST(RowOrder, ChangesWithSeedAndEpoch) {
  const auto base = row_order(5000, 640, true, 1, 0).rows;
  EXPECT_NE(base, row_order(5000, 640, true, 2, 0).rows);
  EXPECT_NE(base, row_order(5000, 640, true, 1, 1).rows);
}

// Neighbours of the file are far apart in the order, and a batch has rows of most blocks of its window.
TEST(RowOrder, MixesTheRowsOfItsBlocks) {
  const std::size_t n = 64000, window = 6400, block = window / kBlocksInWindow, batch = 128;
  const RowOrder order = row_order(n, window, true, 1, 0);
  double blocks = 0;
  for (std::size_t begin = 0; begin < window; begin += batch) {
    std::vector<std::size_t> seen;
    for (std::size_t i = begin; i < begin + batch; ++i) seen.push_back(order.rows[i] / block);
    std::ranges::sort(seen);
    blocks += static_cast<double>(std::unique(seen.begin(), seen.end()) - seen.begin());
  }
  EXPECT_GT(blocks / static_cast<double>(window / batch), 30);  // 31.5 of 32 are expected
}

}  // namespace
}  // namespace lacuna
