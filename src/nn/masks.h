// What training hides from a network: whole views of a row, and a fragment of each view. Draws are pure
// functions of (seed, epoch, row), with one stream per row and one draw per view.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/mtd_options.h"
#include "nn/network.h"
#include "ops/ops.h"

namespace lacuna {

// left (b, m), flat: the view is present and not hidden. Each present view is hidden with probability
// view_dropout; if none would be left, none is hidden.
void hide_views(const Batch& batch, double view_dropout, std::span<std::uint8_t> left);

// subset (b, m), flat: each view of `left` is kept with probability `keep`; if none would be, all are kept.
void draw_subset(const Batch& batch, double keep, std::span<const std::uint8_t> left,
                 std::span<std::uint8_t> subset);

// fragments (b, m), flat: what is hidden of each view, present or not.
void draw_fragments(const Batch& batch, const MtdOptions& options, std::span<const std::size_t> columns,
                    std::span<Fragment> fragments);

}  // namespace lacuna
