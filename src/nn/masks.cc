#include "nn/masks.h"

#include <algorithm>

#include "base/random.h"

namespace lacuna {

void hide_views(const Batch& batch, double view_dropout, std::span<std::uint8_t> left) {
  const Items& items = *batch.items;
  const std::size_t m = items.views();
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const std::uint32_t row = batch.rows[i];
    Random random(batch.seed, Purpose::view_dropout, batch.epoch, row);
    std::size_t kept = 0;
    for (std::size_t v = 0; v < m; ++v) {
      const bool hide = view_dropout > 0 && random.uniform() < static_cast<float>(view_dropout);
      left[i * m + v] = items.W(row, v) != 0 && !hide;
      kept += left[i * m + v];
    }
    if (kept == 0)
      for (std::size_t v = 0; v < m; ++v) left[i * m + v] = items.W(row, v) != 0;
  }
}

void draw_subset(const Batch& batch, double keep, std::span<const std::uint8_t> left,
                 std::span<std::uint8_t> subset) {
  const std::size_t m = batch.items->views();
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    Random random(batch.seed, Purpose::view_subset, batch.epoch, batch.rows[i]);
    std::size_t kept = 0;
    for (std::size_t v = 0; v < m; ++v) {
      const bool stays = random.uniform() < static_cast<float>(keep);
      subset[i * m + v] = left[i * m + v] != 0 && stays;
      kept += subset[i * m + v];
    }
    if (kept == 0) std::copy_n(&left[i * m], m, &subset[i * m]);
  }
}

void draw_fragments(const Batch& batch, const MtdOptions& options, std::span<const std::size_t> columns,
                    std::span<Fragment> fragments) {
  const std::size_t m = columns.size();
  const std::size_t unused_starts = options.mask_start == MaskStart::authors ? 2
                                    : options.mask_start == MaskStart::paper ? 1
                                                                             : 0;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    Random random(batch.seed, Purpose::fragment, batch.epoch, batch.rows[i]);
    for (std::size_t v = 0; v < m; ++v) {
      const std::size_t d = columns[v];
      const auto length = static_cast<std::size_t>(options.mask_rate * static_cast<double>(d));
      const std::size_t last = d - length > unused_starts ? d - length - unused_starts : 0;
      const auto start = static_cast<std::size_t>(random.below(last + 1));
      const std::size_t hidden = length + (options.mask_length == MaskLength::inclusive ? 1 : 0);
      fragments[i * m + v] = {static_cast<std::uint32_t>(start),
                              static_cast<std::uint32_t>(std::min(d, start + hidden))};
    }
  }
}

}  // namespace lacuna
