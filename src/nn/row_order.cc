#include "nn/row_order.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace lacuna {

RowOrder row_order(std::size_t n, std::size_t window, bool shuffle, std::uint64_t seed, std::uint32_t epoch) {
  RowOrder order;
  const bool whole = window == 0 || window >= n;
  const std::size_t block = whole ? n : std::max<std::size_t>(1, window / kBlocksInWindow);
  std::vector<std::uint32_t> blocks(n == 0 ? 0 : (n - 1) / block + 1);
  std::iota(blocks.begin(), blocks.end(), 0u);
  Random random(seed, Purpose::shuffle, epoch);
  if (shuffle) random.shuffle(blocks);  // of one block: no draw
  order.rows.reserve(n);
  std::vector<std::uint32_t> mixed;
  for (std::size_t first = 0; first < blocks.size(); first += kBlocksInWindow) {
    RowOrder::Window& next = order.windows.emplace_back(RowOrder::Window{order.rows.size(), 0, {}});
    mixed.clear();
    for (std::size_t b = first; b < std::min(first + kBlocksInWindow, blocks.size()); ++b) {
      const std::size_t begin = blocks[b] * block, count = std::min(block, n - begin);
      next.blocks.push_back({begin, count});
      for (std::size_t i = begin; i < begin + count; ++i) mixed.push_back(static_cast<std::uint32_t>(i));
    }
    if (shuffle) random.shuffle(mixed);
    order.rows.insert(order.rows.end(), mixed.begin(), mixed.end());
    next.count = order.rows.size() - next.begin;
  }
  return order;
}

}  // namespace lacuna
