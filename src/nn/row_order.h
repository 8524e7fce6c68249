// The order in which an epoch reads its rows: a permutation, a pure function of seed, epoch and sizes. With one window
// it is a full shuffle. Otherwise rows are read in blocks of neighbours: the blocks are shuffled and divided into
// windows, and the rows of a window are mixed. So a disk is read in large pieces, and only two windows must be in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lacuna {

struct RowOrder {
  struct Block {
    std::size_t begin, count;  // of the items
  };
  struct Window {
    std::size_t begin, count;  // of the order
    std::vector<Block> blocks;
  };
  std::vector<std::uint32_t> rows;
  std::vector<Window> windows;  // in the order of the rows
};

constexpr std::size_t kBlocksInWindow = 32;

// About `window` rows are mixed; 0 = all n rows. Without `shuffle` rows keep their order.
RowOrder row_order(std::size_t n, std::size_t window, bool shuffle, std::uint64_t seed, std::uint32_t epoch);

}  // namespace lacuna
