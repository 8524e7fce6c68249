// Products for CPUs with AMX: a tile instruction multiplies 16 rows by 16 columns over 32 bf16 factors. A
// tile of the drivers is two by two of them.
//
// The tiles are so fast that memory decides, and these CPUs read long runs of it faster by themselves than
// when asked line by line between tiles, so blocks are wide and `Ahead` is left alone.
#include "ops/gemm_pairs512.h"

namespace lacuna {
namespace {

constexpr std::size_t kSide = 16;  // rows and columns of a tile register, and groups it takes at once
constexpr std::size_t kRows = 2 * kSide, kColumns = 2 * kSide;
constexpr std::size_t kBlock = kRows * kSide;  // words of a left panel that one step takes

// Left panels keep whole rows of 16 groups: word (g, i) at (g / 16 * kRows + i) * 16 + g % 16.
void left_along(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                std::uint32_t* panel) {
  for (std::size_t k = 0; k < depth; k += 2 * kSide, panel += kBlock)
    for (std::size_t i = 0; i < kRows; ++i)
      _mm512_storeu_ps(panel + i * kSide, i < width ? Bf16Pairs::along(source + i * stride + k, depth - k)
                                                    : _mm512_setzero_ps());
}

void left_across(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                 std::uint32_t* panel) {
  for (std::size_t k = 0; k < depth; k += 2 * kSide, panel += kBlock)
    for (std::size_t i = 0; i < kRows; i += kSide) {
      const __mmask16 mask = first16(width > i ? width - i : 0);
      __m512 block[kSide];
      for (std::size_t g = 0; g < kSide; ++g) {
        const std::size_t row = k + 2 * g;
        block[g] = row < depth ? Bf16Pairs::across(source + row * stride + i, stride, mask, depth - row)
                               : _mm512_setzero_ps();
      }
      transpose16(block);
      for (std::size_t r = 0; r < kSide; ++r) _mm512_storeu_ps(panel + (i + r) * kSide, block[r]);
    }
}

// Right panels are those of AVX512-BF16, padded to whole tiles.
void pad(std::size_t depth, std::uint32_t* panel) {
  const std::size_t groups = (depth + 1) / 2, padded = (groups + kSide - 1) / kSide * kSide;
  for (std::size_t g = groups; g < padded; ++g)
    for (std::size_t c = 0; c < kColumns; c += 16)
      _mm512_storeu_ps(panel + g * kColumns + c, _mm512_setzero_ps());
}

// Two rows of the source after the other, for the sake of long runs; rows kSoon later are asked for
// meanwhile.
void right_across(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                  std::uint32_t* panels, std::size_t distance) {
  constexpr std::size_t kSoon = 8;
  for (std::size_t k = 0; k < depth; k += 2) {
    const float *low = source + k * stride, *high = low + stride, *soon = low + kSoon * stride;
    std::uint32_t* to = panels + k / 2 * kColumns;
    std::size_t c = 0;
    if (k + 1 < depth)
      for (; c + kColumns <= width; c += kColumns, to += distance) {
        ask_for_row<kColumns, 2, true>(soon + c);  // the last line of a row that is not lined is left out
        ask_for_row<kColumns, 2, true>(soon + stride + c);
        for (std::size_t half = 0; half < kColumns; half += kSide)
          _mm512_storeu_ps(to + half, Bf16Pairs::across(_mm512_loadu_ps(low + c + half),
                                                        _mm512_loadu_ps(high + c + half)));
      }
    for (; c < width; c += kColumns, to += distance)
      for (std::size_t half = 0; half < kColumns; half += kSide) {
        const __mmask16 mask = first16(width > c + half ? width - c - half : 0);
        _mm512_storeu_ps(to + half, Bf16Pairs::across(low + c + half, stride, mask, depth - k));
      }
  }
  for (std::size_t c = 0; c < width; c += kColumns, panels += distance) pad(depth, panels);
}

void right_along(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                 std::uint32_t* panel) {
  Pack512<Bf16Pairs>::along<kColumns>(source, stride, width, depth, panel);
  pad(depth, panel);
}

// All eight tile registers: 16 rows of 64 bytes. The configuration belongs to the thread and is loaded once
// in it.
void configure_tiles() {
  thread_local bool configured = false;
  if (configured) return;
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } configuration;
  static_assert(sizeof configuration == 64);
  _tile_loadconfig(&configuration);
  configured = true;
}

// Registers 0..3: sums (0 1 / 2 3); 4, 5: left; 6, 7: right.
template <bool kTall>
void multiply_tiles(std::size_t groups, const std::uint32_t* left, const std::uint32_t* right) {
  constexpr std::size_t kLeftStride = kSide * 4, kRightStride = kColumns * 4;
  for (std::size_t g = 0; g < groups; g += kSide, left += kBlock, right += kSide * kColumns) {
    _tile_loadd(4, left, kLeftStride);
    _tile_loadd(6, right, kRightStride);
    _tile_loadd(7, right + kSide, kRightStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTall) {
      _tile_loadd(5, left + kSide * kSide, kLeftStride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

void tile(std::size_t groups, const std::uint32_t* left, const std::uint32_t* right, float* C,
          std::size_t stride, std::size_t m, std::size_t n, const TileEnd& end, Ahead&) {
  configure_tiles();
  alignas(64) float sums[kRows * kColumns];
  const bool whole = m == kRows && n == kColumns;
  if (end.accumulate) {  // the sums begin with what C holds
    if (!whole)
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < kColumns; j += 16)
          _mm512_store_ps(sums + i * kColumns + j,
                          _mm512_maskz_loadu_ps(first16(n > j ? n - j : 0), C + i * stride + j));
    const float* from = whole ? C : sums;
    const std::size_t from_stride = whole ? stride : kColumns;
    _tile_loadd(0, from, from_stride * 4);
    _tile_loadd(1, from + kSide, from_stride * 4);
    _tile_loadd(2, from + kSide * from_stride, from_stride * 4);
    _tile_loadd(3, from + kSide * from_stride + kSide, from_stride * 4);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const bool direct = whole && end.bias == nullptr && !end.relu;
  float* target = direct ? C : sums;
  const std::size_t target_stride = direct ? stride : kColumns;
  if (m > kSide) {
    multiply_tiles<true>(groups, left, right);
    _tile_stored(2, target + kSide * target_stride, target_stride * 4);
    _tile_stored(3, target + kSide * target_stride + kSide, target_stride * 4);
  } else {
    multiply_tiles<false>(groups, left, right);
  }
  _tile_stored(0, target, target_stride * 4);
  _tile_stored(1, target + kSide, target_stride * 4);
  if (direct) return;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; j += 16) {
      const __mmask16 mask = first16(n - j);
      __m512 sum = _mm512_load_ps(sums + i * kColumns + j);
      if (end.bias != nullptr) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, end.bias + j));
      if (end.relu) sum = _mm512_max_ps(sum, _mm512_setzero_ps());
      _mm512_mask_storeu_ps(C + i * stride + j, mask, sum);
    }
}

constexpr Kernels kKernels = {.group = 2,
                              .rows = kRows,
                              .columns = kColumns,
                              .unit = kSide,
                              .depth = 256,
                              .together = 16,
                              .inputs = 32,
                              .outputs = 2048,
                              .left_across = left_across,
                              .left_along = left_along,
                              .right_across = right_across,
                              .right_along = right_along,
                              .tile = tile,
                              .lying_tile = nullptr,
                              .direct = direct<Avx512, Bf16Pairs>,
                              .finish = finish<Avx512>,
                              .keep = keep<Avx512>,
                              .update = update<Avx512>};

}  // namespace

const Kernels& amx_kernels() {
  return kKernels;
}

}  // namespace lacuna
