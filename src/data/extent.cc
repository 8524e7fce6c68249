#include "data/extent.h"

#include <array>
#include <cmath>
#include <span>

#include "base/threads.h"
#include "data/strips.h"

namespace lacuna {
namespace {

// Of one row. In lanes, of which the compiler takes several at once.
Extent extent_of(std::span<const float> values) {
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
  Extent extent;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    extent.add({largest[lane], positive[lane], negative[lane]});
  return extent;
}

}  // namespace

Extent extent_of(const View& view, const std::vector<std::uint32_t>& rows) {
  const auto* table = std::get_if<Table<float>>(&view.features);
  const auto* csr = std::get_if<Csr>(&view.features);
  constexpr std::size_t kChunk = 256;  // rows
  Extent extent;
  for_slabs(view, rows, [&](std::size_t first, std::size_t count) {
    std::vector<Extent> parts(count / kChunk + 1);
    parallel_for(count, kChunk, [&](std::size_t begin, std::size_t end) {
      Extent& part = parts[begin / kChunk];
      for (std::size_t r = begin; r < end; ++r) {
        const std::uint32_t i = rows[first + r];
        part.add(extent_of(
            table != nullptr
                ? table->row(i)
                : csr->value.row(0).subspan(csr->start(0, i), csr->start(0, i + 1) - csr->start(0, i))));
      }
    });
    for (const Extent& part : parts) extent.add(part);
  });
  return extent;
}

}  // namespace lacuna
