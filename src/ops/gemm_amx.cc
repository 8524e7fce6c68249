// Products for CPUs with AMX: an instruction multiplies 16 rows by 16 columns over 32 bf16 factors. A tile of
// the drivers is two by two of them.
//
// A panel holds two of the CPU's tiles for every 32 factors: rows 0..15 and 16..31 of a left panel, columns
// 0..15 and 16..31 of a right one. Tiles that a narrow panel leaves empty are neither packed nor multiplied.
#include "ops/gemm_pairs512.h"
#include "ops/tiles.h"

namespace lacuna {
namespace {

constexpr std::size_t kSide = 16;            // rows and columns of a tile
constexpr std::size_t kFactors = 2 * kSide;  // that it takes at once
constexpr std::size_t kRows = 2 * kSide, kColumns = 2 * kSide;
constexpr std::size_t kTile = kSide * kSide;  // words
constexpr std::size_t kStep = 2 * kTile;      // words of a panel for kFactors

void left_along(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                std::uint32_t* panel) {
  for (std::size_t k = 0; k < depth; k += kFactors, panel += kStep)
    for (std::size_t i = 0; i < (width > kSide ? kRows : kSide); ++i)
      _mm512_store_ps(panel + i * kSide,
                      Bf16Pairs::along(source + i * stride + k, i < width ? depth - k : 0));
}

void store_transposed(__m512 (&block)[kSide], std::uint32_t* tile) {
  transpose16(block);
  for (std::size_t r = 0; r < kSide; ++r) _mm512_store_ps(tile + r * kSide, block[r]);
}

void right_along(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                 std::uint32_t* panel) {
  for (std::size_t k = 0; k < depth; k += kFactors, panel += kStep)
    for (std::size_t i = 0; i < width; i += kSide) {
      __m512 block[kSide];
      for (std::size_t r = 0; r < kSide; ++r)
        block[r] = Bf16Pairs::along(source + (i + r) * stride + k, i + r < width ? depth - k : 0);
      store_transposed(block, panel + i * kSide);
    }
}

// Rows k and k + 1 of the source, zero beyond `depth`.
__m512 two_rows(const float* source, std::size_t stride, __mmask16 mask, std::size_t k, std::size_t depth) {
  return k < depth ? Bf16Pairs::across(source + k * stride, stride, mask, depth - k) : _mm512_setzero_ps();
}

void left_across(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                 std::uint32_t* panel) {
  for (std::size_t k = 0; k < depth; k += kFactors, panel += kStep)
    for (std::size_t i = 0; i < width; i += kSide) {
      __m512 block[kSide];
      for (std::size_t g = 0; g < kSide; ++g)
        block[g] = two_rows(source + i, stride, first16(width - i), k + 2 * g, depth);
      store_transposed(block, panel + i * kSide);
    }
}

void right_across(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                  std::uint32_t* panel) {
  for (std::size_t k = 0; k < depth; k += kFactors, panel += kStep) {
    const bool whole = width == kColumns && k + kFactors <= depth;
    const float* row = source + k * stride;
    for (std::size_t g = 0; g < kSide && whole; ++g, row += 2 * stride)
#pragma GCC unroll 2
      for (std::size_t i = 0; i < kColumns; i += kSide)
        _mm512_store_ps(panel + i * kSide + g * kSide,
                        Bf16Pairs::across(_mm512_loadu_ps(row + i), _mm512_loadu_ps(row + stride + i)));
    for (std::size_t g = 0; g < kSide && !whole; ++g)
      for (std::size_t i = 0; i < width; i += kSide)
        _mm512_store_ps(panel + i * kSide + g * kSide,
                        two_rows(source + i, stride, first16(width - i), k + 2 * g, depth));
  }
}

using Passing = PanelPair::Passing;

template <int kTile, bool kPassing>
[[gnu::always_inline]] inline void load_factor(const std::uint32_t* tile) {
  if constexpr (kPassing)
    load_passing_tile<kTile>(tile, kSide);
  else
    load_tile<kTile>(tile, kSide);
}

// Registers 0..3: sums (0 1 / 2 3); 4, 5: left; 6, 7: right. kTall: more than 16 rows, kWide: columns. Each
// register is loaded for the next step as soon as this one needs it no more, which is between the products.
template <bool kTall, bool kWide, Passing kPassing>
void multiply(const PanelPair& panels, Ahead& ahead) {
  constexpr bool kLeft = kPassing == Passing::left, kRight = kPassing == Passing::right;
  const std::uint32_t *left = panels.left, *right = panels.right;
  std::size_t words = panels.words;
  const std::size_t turns = ahead.done() ? 0 : kSide / Ahead::kTurn;
  if (words == 0) return;
  load_factor<4, kLeft>(left);
  load_factor<6, kRight>(right);
  if constexpr (kWide) load_factor<7, kRight>(right + kTile);
  const auto step = [&]<bool kLast>() __attribute__((always_inline)) {
    dot_tiles<0, 4, 6>();
    if constexpr (kTall) load_factor<5, kLeft>(left + kTile);
    if constexpr (kWide) dot_tiles<1, 4, 7>();
    if constexpr (!kLast) load_factor<4, kLeft>(left + kStep);
    if constexpr (kTall) dot_tiles<2, 5, 6>();
    if constexpr (!kLast) load_factor<6, kRight>(right + kStep);
    if constexpr (kTall && kWide) dot_tiles<3, 5, 7>();
    if constexpr (!kLast && kWide) load_factor<7, kRight>(right + kStep + kTile);
    for (std::size_t turn = 0; turn < turns; ++turn) ahead.fetch();
  };
  for (; words > kSide; words -= kSide, left += kStep, right += kStep) step.template operator()<false>();
  step.template operator()<true>();
}

// Sums that have just been stored get the bias and max(0, .), row by row, as they were stored.
void finish_tile(float* C, std::size_t stride, std::size_t m, std::size_t n, const TileEnd& end) {
  const __mmask16 low = first16(n), high = first16(n > kSide ? n - kSide : 0);
  const __m512 zero = _mm512_setzero_ps();
  const __m512 low_bias = end.bias != nullptr ? _mm512_maskz_loadu_ps(low, end.bias) : zero;
  const __m512 high_bias = end.bias != nullptr ? _mm512_maskz_loadu_ps(high, end.bias + kSide) : zero;
  const auto last = [&](__m512 sum, __m512 bias) {
    sum = _mm512_add_ps(sum, bias);
    return end.relu ? _mm512_max_ps(sum, zero) : sum;
  };
  if (n == kColumns)
    for (std::size_t i = 0; i < m; ++i, C += stride) {
      _mm512_storeu_ps(C, last(_mm512_loadu_ps(C), low_bias));
      _mm512_storeu_ps(C + kSide, last(_mm512_loadu_ps(C + kSide), high_bias));
    }
  else
    for (std::size_t i = 0; i < m; ++i, C += stride) {
      _mm512_mask_storeu_ps(C, low, last(_mm512_maskz_loadu_ps(low, C), low_bias));
      _mm512_mask_storeu_ps(C + kSide, high, last(_mm512_maskz_loadu_ps(high, C + kSide), high_bias));
    }
}

template <bool kTall, bool kWide>
void fixed_tile(const PanelPair& panels, float* C, std::size_t stride, std::size_t m, std::size_t n,
                const TileEnd& end, Ahead& ahead) {
  alignas(64) float sums[kRows * kColumns];
  const bool whole = m % kSide == 0 && n % kSide == 0;
  if (end.accumulate) {  // the sums begin with what C holds
    if (!whole)
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; j += 16)
          _mm512_store_ps(sums + i * kColumns + j, _mm512_maskz_loadu_ps(first16(n - j), C + i * stride + j));
    const float* from = whole ? C : sums;
    const std::size_t distance = whole ? stride : kColumns;
    load_tile<0>(from, distance);
    if constexpr (kWide) load_tile<1>(from + kSide, distance);
    if constexpr (kTall) load_tile<2>(from + kSide * distance, distance);
    if constexpr (kTall && kWide) load_tile<3>(from + kSide * distance + kSide, distance);
  } else {
    zero_tile<0>();
    if constexpr (kWide) zero_tile<1>();
    if constexpr (kTall) zero_tile<2>();
    if constexpr (kTall && kWide) zero_tile<3>();
  }
  if (panels.passing == Passing::left)
    multiply<kTall, kWide, Passing::left>(panels, ahead);
  else
    multiply<kTall, kWide, Passing::right>(panels, ahead);
  float* const target = whole ? C : sums;
  const std::size_t distance = whole ? stride : kColumns;
  store_tile<0>(target, distance);
  if constexpr (kWide) store_tile<1>(target + kSide, distance);
  if constexpr (kTall) store_tile<2>(target + kSide * distance, distance);
  if constexpr (kTall && kWide) store_tile<3>(target + kSide * distance + kSide, distance);
  if (!whole)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; j += 16)
        _mm512_mask_storeu_ps(C + i * stride + j, first16(n - j), _mm512_load_ps(sums + i * kColumns + j));
  if (end.bias != nullptr || end.relu) finish_tile(C, stride, m, n, end);
}

void tile(const PanelPair& panels, float* C, std::size_t stride, std::size_t m, std::size_t n,
          const TileEnd& end, Ahead& ahead) {
  configure_tiles();
  if (m > kSide && n > kSide)
    fixed_tile<true, true>(panels, C, stride, m, n, end, ahead);
  else if (m > kSide)
    fixed_tile<true, false>(panels, C, stride, m, n, end, ahead);
  else if (n > kSide)
    fixed_tile<false, true>(panels, C, stride, m, n, end, ahead);
  else
    fixed_tile<false, false>(panels, C, stride, m, n, end, ahead);
}

// out (m, n) = Sᵀ, where X is positive.
void keep_transposed(const float* S, std::size_t s_stride, const float* X, std::size_t x_stride,
                     std::size_t m, std::size_t n, float* out, std::size_t out_stride) {
  for (std::size_t j = 0; j < n; j += kSide)
    for (std::size_t i = 0; i < m; i += kSide) {
      const __mmask16 rows = first16(m - i), columns = first16(n - j);
      __m512 block[kSide];
      for (std::size_t c = 0; c < kSide; ++c)
        block[c] = j + c < n ? _mm512_maskz_loadu_ps(rows, S + (j + c) * s_stride + i) : _mm512_setzero_ps();
      transpose16(block);
      for (std::size_t r = 0; r < kSide && i + r < m; ++r) {
        __m512 y = block[r];
        if (X != nullptr)
          y = Avx512::where_positive(_mm512_maskz_loadu_ps(columns, X + (i + r) * x_stride + j), y);
        _mm512_mask_storeu_ps(out + (i + r) * out_stride + j, columns, y);
      }
    }
}

constexpr Kernels kKernels = {.factors = kFactors,
                              .words = kSide,
                              .rows = kRows,
                              .columns = kColumns,
                              .side = kSide,
                              .depth = 512,
                              .packed_depth = 512,
                              .inputs = 128,
                              .outputs = 256,
                              .weights_left = true,
                              .left_across = left_across,
                              .left_along = left_along,
                              .right_across = right_across,
                              .right_along = right_along,
                              .tile = tile,
                              .sgd_tile = nullptr,
                              .lying_tile = nullptr,
                              .direct = direct_pairs,
                              .finish = finish<Avx512>,
                              .keep = keep_transposed,
                              .update = update<Avx512>,
                              .round = round<Avx512, Bf16Pairs>,
                              .scatter = scatter<Avx512, Bf16Pairs>,
                              .gate = gate<Avx512>,
                              .combine = combine<Avx512>};

}  // namespace

const Kernels& amx_kernels() {
  return kKernels;
}

}  // namespace lacuna
