// The seam between the drivers of the products (gemm.cc) and the code written for one instruction set
// (gemm_<isa>.cc). A kernel works on packed panels of 32-bit words:
//
//   word     consecutive factors of one sum that an instruction takes at once: one f32, or two bf16
//   panel    up to `rows` rows of the left factor, or up to `columns` columns of the right one
//   panel[g * pitch + i] is word g of row (column) i, pitch = rows or columns. AMX keeps panels in the order of
//   its tiles, so panels are opaque to the drivers.
//
// A panel is packed from a row-major f32 matrix S in one of two ways: `across`, where the sum runs down the
// rows of S and the panel lies across its columns, and `along`, where the sum runs along the rows of S (a
// transposition).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/gemm.h"
#include "ops/sparse.h"
#include "ops/update.h"

namespace lacuna {

// Prefetches memory that will be needed soon: strips of it (rows of a matrix, or contiguous words) are requested line
// by line while tiles are computed, evenly over their steps (groups of factors), so that no thread waits for memory
// and no burst of requests fills the CPU's few miss buffers.
class Ahead {
 public:
  Ahead() = default;
  Ahead(const float* source, std::size_t stride, std::size_t rows, std::size_t cols) {
    then(source, stride, rows, cols);
  }
  void then(const float* source, std::size_t stride, std::size_t rows, std::size_t cols) {
    if (rows == 0 || cols == 0) return;
    pairs_ += rows * ((cols * sizeof(float) + 127) / 128);
    strips_[count_++] = {reinterpret_cast<const char*>(source), stride * sizeof(float), cols * sizeof(float),
                         rows};
  }
  // Tiles call fetch() once in kTurn steps: this is how often for a tile of so many words.
  static constexpr std::size_t kTurn = 4;
  static std::size_t turns(std::size_t words) { return (words + kTurn - 1) / kTurn; }
  // Fetches everything within this many turns; without it, two lines per turn.
  void within(std::size_t turns) {
    constexpr std::size_t kMost = 4 * kTurn;
    rate_ = turns * kMost <= pairs_ ? kMost : (pairs_ + turns - 1) / turns;
  }
  bool done() const { return rate_ == 0; }
  // Lines are requested in pairs, which saves instructions; a row may get one too many.
  [[gnu::always_inline]] void fetch() {
    const char *line = line_, *end = end_;  // in registers
    for (std::size_t left = rate_; left != 0; --left) {
      if (line >= end) [[unlikely]] {
        if (rows_ <= 1 && !next_strip()) return;
        --rows_;
        end = end_ += stride_;
        line = end - width_;
      }
      __builtin_prefetch(line, 0, 2);
      __builtin_prefetch(line + 64, 0, 2);
      line += 128;
    }
    line_ = line;
  }

 private:
  bool next_strip() {
    if (at_ == count_) {
      rate_ = 0;
      return false;
    }
    const Strip& strip = strips_[at_++];
    stride_ = strip.stride;
    width_ = strip.width;
    rows_ = strip.rows + 1;
    end_ = strip.begin + width_ - stride_;
    return true;
  }
  struct Strip {
    const char* begin;
    std::size_t stride, width, rows;
  };
  const char *line_ = nullptr, *end_ = nullptr;
  std::size_t stride_ = 0, width_ = 0, rows_ = 0, rate_ = 1, at_ = 0, count_ = 0, pairs_ = 0;
  Strip strips_[8];
};

// Prefetches up to `kColumns` floats from `row` on; kNear 3: into the nearest cache, 1: into a farther one;
// kLined: it begins with a cache line.
// (Inlined always: g++ drops the call of a function that does nothing but prefetch.)
template <std::size_t kColumns, int kNear, bool kLined>
[[gnu::always_inline]] inline void ask_for_row(const float* row) {
#pragma GCC unroll 4
  for (std::size_t c = 0; c < kColumns; c += 16) __builtin_prefetch(row + c, 0, kNear);
  if (!kLined) __builtin_prefetch(row + kColumns - 1, 0, kNear);
}

// Rows that are needed after the present tile, requested evenly: `rate` of them per turn.
struct RowsAhead {
  const float* row = nullptr;
  std::size_t stride = 0, count = 0, rate = 0;
  RowsAhead(const float* first, std::size_t distance, std::size_t rows, std::size_t turns)
      : row(first), stride(distance), count(rows), rate((rows + turns - 1) / turns) {}
  template <std::size_t kColumns, bool kLined>
  [[gnu::always_inline]] void ask() {
    for (std::size_t r = rate; r != 0 && count != 0; --r, --count, row += stride)
      ask_for_row<kColumns, 1, kLined>(row);
  }
};

// Whether rows begin with cache lines.
inline bool lined(const float* first, std::size_t stride) {
  return reinterpret_cast<std::uintptr_t>(first) % 64 == 0 && stride % 16 == 0;
}

// A tile of a product whose factors lie in rows: C (m, n) = A (m, depth) B (depth, n). `panel`: the rows of A
// packed, or null; only where the rows of B are lined. Saves instructions, and pays where many tiles share
// it.
struct LyingTile {
  std::size_t depth;
  const std::uint32_t* panel;
  const float* A;
  std::size_t a_stride;
  const float* B;
  std::size_t b_stride;
  float* C;
  std::size_t c_stride;
};

// A left and a right panel whose product is a tile. One of them stays in the first cache for the tiles that
// follow; the panels of the other factor pass by.
struct PanelPair {
  enum class Passing { left, right };
  std::size_t words;
  const std::uint32_t *left, *right;
  Passing passing;
};

// How the sums of a tile are finished: added to C, the bias of the columns added (may be null),
// max(0, .).
struct TileEnd {
  bool accumulate = false;
  const float* bias = nullptr;
  bool relu = false;
};

constexpr std::size_t kSparseStrip = 64;  // columns of W that Kernels::scatter takes
constexpr std::size_t kGateStrip = 128;   // outputs that Kernels::gate takes
constexpr std::size_t kGateLanes = 16;    // in which it leaves the sums of dX
constexpr std::size_t kFewRows = 4;  // up to here W is used in place, without packing (Kernels::direct)

constexpr std::size_t kAllDepth = std::size_t{1} << 30;

struct Kernels {
  std::size_t factors, words;   // of a sum: the number of factors, and the words they take in a panel's row
  std::size_t rows;             // of a left panel and of a tile
  std::size_t columns;          // of a right panel and of a tile; a multiple of 16
  std::size_t side;             // panels are best cut at multiples of this many rows
  std::size_t depth;            // factors of a sum that are packed at once; a multiple of `factors`
  std::size_t packed_depth;     // the same where W was packed long ago: all, or what the first cache holds
  std::size_t inputs, outputs;  // block of W, at most, that goes through the backward pass together
  bool weights_left;            // dY Wᵀ is computed as (W dYᵀ)ᵀ: W needs no transposition then

  // Some parameters and their optimiser's state: pointers into ParameterView's matrices.
  struct Parameters {
    float *value, *first, *second, *mean;  // second and mean may be null
    std::size_t value_stride, first_stride, second_stride, mean_stride;
  };

  // Packs `width` rows or columns and `depth` factors that start at `source`; pads with zero up to
  // words_of(depth).
  using Pack = void (*)(const float* source, std::size_t stride, std::size_t width, std::size_t depth,
                        std::uint32_t* panel);
  Pack left_across, left_along, right_across, right_along;

  // C (m, n) = left panel * right panel, ended as `end` says. Asks for the memory of `ahead` meanwhile.
  void (*tile)(const PanelPair& panels, float* C, std::size_t stride, std::size_t m, std::size_t n,
               const TileEnd& end, Ahead& ahead);

  // SGD without an average: the step of m x n parameters whose gradient is left panel * right panel, while
  // that is in registers. Null where sums get there only through memory.
  void (*sgd_tile)(const PanelPair& panels, const UpdateCoefficients<float>& k, const Parameters& p,
                   std::size_t m, std::size_t n, Ahead& ahead);

  // A tile in f32 of factors that are not packed but used where they lie; null where factors are rounded.
  void (*lying_tile)(const LyingTile& t, std::size_t m, std::size_t n, const TileEnd& end, RowsAhead& ahead);

  // Y (m, n) += X (m, depth) W (depth, n) without packing, m <= kFewRows. `X` is already rounded.
  void (*direct)(const float* X, std::size_t x_stride, const float* W, std::size_t w_stride,
                 std::size_t depth, float* Y, std::size_t y_stride, std::size_t m, std::size_t n);

  // Y (m, n): adds the bias (may be null), then max(0, .) if relu.
  void (*finish)(float* Y, std::size_t stride, std::size_t m, std::size_t n, const float* bias, bool relu);

  // out (m, n) = S, or S where X > 0 and 0 elsewhere if X is not null; S is (n, m) if weights_left.
  void (*keep)(const float* S, std::size_t s_stride, const float* X, std::size_t x_stride, std::size_t m,
               std::size_t n, float* out, std::size_t out_stride);

  // The optimiser's step of `m` rows of `n` parameters.
  void (*update)(const UpdateCoefficients<float>& k, const float* gradient, std::size_t stride, std::size_t m,
                 std::size_t n, const Parameters& p);

  // The numbers as products use them: unchanged, or rounded to bf16.
  void (*round)(const float* from, std::size_t n, float* to);

  // Sparse inputs (sparse_kernels.h); X and dY are already rounded. Y (rows, kSparseStrip) += X W, n columns.
  void (*scatter)(const SparseColumns& X, const float* W, std::size_t stride, std::size_t n, float* Y);
  // One input of a gated layer (gemm_gated.cc), whose entries are given, for kGateStrip outputs: gradient =
  // Σ value dY(row), and kGateLanes sums for each entry += parts of W · dY(row). dY has rows of kGateStrip.
  void (*gate)(const SparseColumns::Entry* entries, std::size_t count, const float* W, const float* dY,
               float* gradient, float* sums);
  // Row j of Xᵀ dY, n columns; `shown`: the sum of dY over the rows that show column j.
  void (*combine)(const SparseColumns& X, std::size_t j, const float* shown, const float* dY,
                  std::size_t stride, std::size_t n, float* gradient);
};

// Words of a panel's row with `depth` factors.
inline std::size_t words_of(const Kernels& k, std::size_t depth) {
  return (depth + k.factors - 1) / k.factors * k.words;
}

const Kernels& plain_kernels(Precision precision);
const Kernels& avx2_kernels(Precision precision);
const Kernels& avx512_kernels(Precision precision);
const Kernels& bf16_kernels();  // Precision::bf16 alone; f32 is avx512's
const Kernels& amx_kernels();   // likewise

// For the instruction set in use.
const Kernels& kernels(Precision precision);

// The parameters of P from (i, j) on.
inline Kernels::Parameters parameters_at(const ParameterView<float>& P, std::size_t i, std::size_t j) {
  const auto at = [&](MatrixView<float> A) { return A.empty() ? nullptr : &A(i, j); };
  return {at(P.value),    at(P.first),    at(P.second),    at(P.mean),
          P.value.stride, P.first.stride, P.second.stride, P.mean.stride};
}

// linear_backward() in f32 with mask_by_input and dX, by the entries of X that are not zero (gemm_gated.cc);
// and whether they are few enough.
std::size_t not_zero(MatrixView<const float> X);  // how many
bool gated_backward_pays(MatrixView<const float> X, std::size_t out);
void gated_backward(const Kernels& k, MatrixView<const float> X, MatrixView<const float> dY,
                    const UpdateRule& rule, ParameterView<float> W, ParameterView<float> b,
                    MatrixView<float> dX);

}  // namespace lacuna
