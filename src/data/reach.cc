#include "data/reach.h"

#include <array>
#include <cmath>
#include <span>

#include "base/threads.h"
#include "data/strips.h"

namespace lacuna {
namespace {

// Of one row. In lanes, of which the compiler takes several at once.
Reach reach_of(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> largest{};
  std::array<std::uint32_t, kLanes> positive{}, negative{};
  const auto look = [&](std::size_t lane, float x) {
    largest[lane] = std::max(largest[lane], std::abs(x));
    positive[lane] += x > 0;
    negative[lane] += x < 0;
  };
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t j = 0; j < whole; j += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) look(lane, values[j + lane]);
  for (std::size_t j = whole; j < values.size(); ++j) look(0, values[j]);
  Reach reach;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    reach.add({largest[lane], positive[lane], negative[lane]});
  return reach;
}

}  // namespace

Reach reach_of(const View& view, const std::vector<std::uint32_t>& rows) {
  const auto* table = std::get_if<Table<float>>(&view.features);
  const auto* csr = std::get_if<Csr>(&view.features);
  constexpr std::size_t kChunk = 256;  // rows
  Reach reach;
  for_slabs(view, rows, [&](std::size_t first, std::size_t count) {
    std::vector<Reach> parts(count / kChunk + 1);
    parallel_for(count, kChunk, [&](std::size_t begin, std::size_t end) {
      Reach& part = parts[begin / kChunk];
      for (std::size_t r = begin; r < end; ++r) {
        const std::uint32_t i = rows[first + r];
        part.add(reach_of(table != nullptr ? table->row(i)
                                           : csr->value.row(0).subspan(
                                                 csr->start(0, i), csr->start(0, i + 1) - csr->start(0, i))));
      }
    });
    for (const Reach& part : parts) reach.add(part);
  });
  return reach;
}

}  // namespace lacuna
