#include "ops/gemm.h"

#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"
#include "ops/machine.h"

namespace lacuna {

const Kernels& kernels(Precision precision) {
  switch (isa()) {
    case Isa::plain:
      return plain_kernels(precision);
    case Isa::avx2:
      return avx2_kernels(precision);
    case Isa::avx512:
      return avx512_kernels(precision);
    case Isa::bf16:
      return precision == Precision::bf16 ? bf16_kernels() : avx512_kernels(precision);
    case Isa::amx:
      return precision == Precision::bf16 ? amx_kernels() : avx512_kernels(precision);
  }
  return plain_kernels(precision);
}

namespace {

// A factor of a product, as stored: `along`, the sum runs along the rows of S; otherwise down its columns.
struct Factor {
  MatrixView<const float> S;
  bool along;
  std::size_t width() const { return along ? S.rows : S.cols; }
  std::size_t depth() const { return along ? S.cols : S.rows; }
  Ahead ahead(std::size_t i, std::size_t k, std::size_t count, std::size_t depth) const {
    count = std::min(count, width() - i);
    return along ? Ahead(at(i, k), S.stride, count, depth) : Ahead(at(i, k), S.stride, depth, count);
  }
  const float* at(std::size_t i, std::size_t k) const {
    return S.data + (along ? i * S.stride + k : k * S.stride + i);
  }
};

struct Finish {
  const float* bias = nullptr;
  bool relu = false;
  bool needed() const { return bias != nullptr || relu; }
};

constexpr std::size_t kRowChunk = 512;                        // rows that share a packed R
constexpr std::size_t kReading = 2, kReadingAndPacking = 16;  // see split_for()
constexpr std::size_t kCrowd = 128;        // rows that a cache can hold even if they crowd, see crowds()
constexpr std::size_t kManyColumns = 512;  // of a task: from here on packing its rows pays
constexpr std::size_t kVector = 16;        // columns that tasks are cut by

// A few rows: the time is that of reading W once.
void few_rows(const Kernels& k, MatrixView<const float> X, MatrixView<const float> W, Precision precision,
              const Finish& last, MatrixView<float> Y) {
  if (precision == Precision::bf16) {
    thread_local Scratch scratch;
    MatrixView<float> rounded(scratch.floats(X.size()), X.rows, X.cols);
    for (std::size_t r = 0; r < X.rows; ++r) k.round(X.row(r).data(), X.cols, rounded.row(r).data());
    X = rounded;
  }
  const Parts parts(W.cols, std::clamp<std::size_t>(ceil_div(W.cols, 128) * 128 / 8, 128, 1024));
  parallel_for(parts.count, grain_for(parts.count, static_cast<double>(X.rows * W.size())),
               [&](std::size_t first, std::size_t end) {
                 for (std::size_t p = first; p < end; ++p) {
                   const std::size_t j = parts.begin(p), n = parts.size(p);
                   for (std::size_t r = 0; r < Y.rows; ++r) std::fill_n(&Y(r, j), n, 0.f);
                   k.direct(X.data, X.stride, W.data + j, W.stride, W.rows, &Y(0, j), Y.stride, X.rows, n);
                   if (last.needed())
                     k.finish(&Y(0, j), Y.stride, X.rows, n, last.bias == nullptr ? nullptr : last.bias + j,
                              last.relu);
                 }
               });
}

// Rows a multiple of 4 KB apart fall on the same lines of a cache, and drive each other out.
bool crowds(std::size_t stride) {
  constexpr std::size_t kPage = 4096 / sizeof(float), kLine = 64 / sizeof(float);
  const std::size_t from = stride % kPage;
  return from < kLine || kPage - from < kLine;
}

// C = or += L R. Tasks share the rows and columns of C. A task takes block after block of depth, and in it
// all its rows for a tile's columns after the other, so that these columns of R come from memory once. Where
// the kernels can multiply R in place (`lies`), it is not packed.
struct Product {
  const Kernels& k;
  const Factor &L, &R;
  bool lies, accumulate;
  const Finish& last;
  MatrixView<float> C;

  Split split = split_for(C.rows, k.side, C.cols, kVector, static_cast<std::size_t>(threads()),
                          {lies ? kReading : kReadingAndPacking, 0, k.columns});
  Panels blocks{L.depth(), k.depth, k.factors};

  // n columns of a block, and what the thread wants after them.
  struct Place {
    std::size_t n;
    TileEnd end;
    std::size_t next_j, next_d, next_depth;
  };

  void share() const {
    const std::size_t tasks = split.rows.count * split.columns.count;
    const double work = static_cast<double>(C.size()) * static_cast<double>(L.depth());
    parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t end) {
      for (std::size_t t = first; t < end; ++t)
        run(t % split.rows.count, split.columns.begin(t / split.rows.count),
            split.columns.begin(t / split.rows.count + 1));
    });
  }

  // Part `part` of the rows, columns `column` .. `end`.
  void run(std::size_t part, std::size_t column, std::size_t end) const {
    thread_local Scratch copy_scratch, left_scratch, right_scratch;
    const std::size_t row = split.rows.begin(part), rows = split.rows.size(part);
    const Panels panels(rows, k.rows, k.side);
    std::uint32_t* const right = right_scratch.words(lies ? 0 : words_of(k, k.depth) * k.columns);
    for (std::size_t b = 0; b < blocks.count; ++b) {
      const std::size_t d = blocks.begin(b), depth = blocks.size(b), words = words_of(k, depth);

      // Rows of the left factor: packed, or for few columns in place, unless they crowd.
      const float* left = L.at(row, d);
      std::size_t left_stride = L.S.stride;
      if (lies && crowds(left_stride)) {
        const std::size_t pitch = k.depth + 16;
        float* const copy = copy_scratch.floats(rows * pitch);
        for (std::size_t r = 0; r < rows; ++r) std::copy_n(left + r * left_stride, depth, copy + r * pitch);
        left = copy;
        left_stride = pitch;
      }
      const bool packs = !lies || (end - column >= kManyColumns && lined(R.at(column, d), R.S.stride));
      std::uint32_t* const packed = packs ? left_scratch.words(panels.count * words * k.rows) : nullptr;
      for (std::size_t p = 0; p < panels.count && packs; ++p)
        (L.along ? k.left_along : k.left_across)(left + panels.begin(p) * (L.along ? left_stride : 1),
                                                 left_stride, panels.size(p), depth,
                                                 packed + p * words * k.rows);

      for (std::size_t j = column; j < end; j += k.columns) {
        const Place at = place(b, j, column, end);
        if (!lies) (R.along ? k.right_along : k.right_across)(R.at(j, d), R.S.stride, at.n, depth, right);
        Ahead ahead;
        if (!lies) {
          ahead = R.ahead(at.next_j, at.next_d, std::min(k.columns, end - at.next_j), at.next_depth);
          ahead.within(panels.count * Ahead::turns(words));
        }
        for (std::size_t p = 0; p < panels.count; ++p) {
          const std::uint32_t* const panel = packs ? packed + p * words * k.rows : nullptr;
          float* const sums = &C(row + panels.begin(p), j);
          if (!lies) {
            k.tile({words, panel, right, PanelPair::Passing::left}, sums, C.stride, panels.size(p), at.n,
                   at.end, ahead);
            continue;
          }
          const std::size_t n0 = at.next_depth * p / panels.count,
                            n1 = at.next_depth * (p + 1) / panels.count;
          RowsAhead rows_ahead(R.at(at.next_j, at.next_d + n0), R.S.stride, n1 - n0, Ahead::turns(depth));
          k.lying_tile({depth, panel, left + panels.begin(p) * left_stride, left_stride, R.at(j, d),
                        R.S.stride, sums, C.stride},
                       panels.size(p), at.n, at.end, rows_ahead);
        }
      }
    }
  }

  Place place(std::size_t b, std::size_t j, std::size_t column, std::size_t end) const {
    const std::size_t n = std::min(k.columns, end - j);
    const bool ends = b + 1 == blocks.count;
    Place at{n, {accumulate || b > 0, nullptr, ends && last.relu}, j + n, blocks.begin(b), blocks.size(b)};
    if (ends && last.bias != nullptr) at.end.bias = last.bias + j;
    if (j + n >= end) {  // the first columns of the next block, if there is one
      at.next_j = column;
      at.next_d = blocks.begin(b + 1);
      at.next_depth = ends ? 0 : blocks.size(b + 1);
    }
    return at;
  }
};

void product(const Kernels& k, const Factor& L, const Factor& R, bool accumulate, const Finish& last,
             MatrixView<float> C) {
  if (L.depth() == 0) {
    for (std::size_t i = 0; i < C.rows && !accumulate; ++i) std::fill_n(&C(i, 0), C.cols, 0.f);
    if (last.needed()) k.finish(C.data, C.stride, C.rows, C.cols, last.bias, last.relu);
    return;
  }
  const bool lies =
      k.lying_tile != nullptr && L.along && !R.along && (L.depth() <= kCrowd || !crowds(R.S.stride));
  const Panels chunks(C.rows, lies ? C.rows : kRowChunk, k.side);
  for (std::size_t c = 0; c < chunks.count; ++c) {
    const Factor rows{
        L.along ? MatrixView<const float>(L.at(chunks.begin(c), 0), chunks.size(c), L.S.cols, L.S.stride)
                : MatrixView<const float>(L.at(chunks.begin(c), 0), L.S.rows, chunks.size(c), L.S.stride),
        L.along};
    Product{k, rows, R, lies, accumulate, last, {&C(chunks.begin(c), 0), chunks.size(c), C.cols, C.stride}}
        .share();
  }
}

}  // namespace

void linear_forward(MatrixView<const float> X, MatrixView<const float> W, std::span<const float> b, bool relu,
                    Precision precision, MatrixView<float> Y) {
  assert(X.cols == W.rows && Y.rows == X.rows && Y.cols == W.cols && (b.empty() || b.size() == W.cols));
  if (Y.empty()) return;
  const Kernels& k = kernels(precision);
  const Finish last{b.empty() ? nullptr : b.data(), relu};
  if (X.rows <= kFewRows)
    few_rows(k, X, W, precision, last, Y);
  else
    product(k, {X, true}, {W, false}, false, last, Y);
}

void multiply(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose, bool accumulate,
              MatrixView<float> C) {
  const Factor L{A, transpose != Transpose::left}, R{B, transpose == Transpose::right};
  assert(L.width() == C.rows && R.width() == C.cols && L.depth() == R.depth());
  if (C.empty()) return;
  product(kernels(Precision::f32), L, R, accumulate, {}, C);
}

}  // namespace lacuna
