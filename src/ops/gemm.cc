#include "ops/gemm.h"

#include <algorithm>
#include <cassert>

#include "base/threads.h"
#include "ops/gemm_blocks.h"
#include "ops/gemm_kernels.h"
#include "ops/gemm_reference.h"
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

constexpr std::size_t kFewRows = 4;        // up to here W is used as it lies, without packing
constexpr std::size_t kRowChunk = 256;     // rows packed at once, times the factors in a word
constexpr std::size_t kDepthChunk = 8192;  // factors packed at once
constexpr std::size_t kCrowd = 128;        // rows that a cache can hold even if they crowd, see crowds()
constexpr std::size_t kManyColumns = 512;  // of a task: from here on packing its rows pays
constexpr std::size_t kVector = 16;        // columns that tasks are cut by
constexpr std::size_t kGap = 64;           // words between panels, so that they do not crowd

// A few rows: the time is that of reading W once.
void few_rows(const Kernels& k, MatrixView<const float> X, MatrixView<const float> W, Precision precision,
              const Finish& last, MatrixView<float> Y) {
  if (precision == Precision::bf16) {
    thread_local Scratch scratch;
    MatrixView<float> rounded(scratch.floats(X.size()), X.rows, X.cols);
    for (std::size_t r = 0; r < X.rows; ++r)
      for (std::size_t i = 0; i < X.cols; ++i) rounded(r, i) = reference::round_bf16(X(r, i));
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

// C = or += L R for up to kRowChunk rows of C and kDepthChunk factors. The left factor is packed once; a task
// packs a right panel, block of depth by block, and multiplies it with all its rows while it is in cache.
void product_chunk(const Kernels& k, const Factor& L, std::size_t row, std::size_t rows, const Factor& R,
                   std::size_t depth_begin, std::size_t depth, bool accumulate, const Finish& last,
                   MatrixView<float> C) {
  thread_local Scratch left_scratch;
  const Parts panels(rows, k.rows);
  const std::size_t blocks = ceil_div(depth, k.depth),
                    block_words = panels.count * groups_of(k, k.depth) * k.rows;
  std::uint32_t* const left = left_scratch.words(blocks * block_words);
  const auto block_depth = [&](std::size_t b) { return std::min(k.depth, depth - b * k.depth); };
  const auto left_panel = [&](std::size_t b, std::size_t p) {
    return left + b * block_words + p * groups_of(k, block_depth(b)) * k.rows;
  };
  const double work = static_cast<double>(rows * depth) * static_cast<double>(C.cols);
  const std::size_t packs = blocks * panels.count;
  parallel_for(
      packs, std::max(grain_for(packs, work / 4), packs / 16), [&](std::size_t first, std::size_t end) {
        for (std::size_t t = first; t < end; ++t) {
          const std::size_t b = t / panels.count, p = t % panels.count;
          (L.along ? k.left_along : k.left_across)(L.at(row + panels.begin(p), depth_begin + b * k.depth),
                                                   L.S.stride, panels.size(p), block_depth(b),
                                                   left_panel(b, p));
        }
      });

  // As many tasks as there are threads, or a multiple of that: parts of the columns, or of the rows too.
  const auto workers = static_cast<std::size_t>(threads());
  const std::size_t shares = ceil_div(ceil_div(C.cols, k.together * k.columns), workers) * workers;
  const std::size_t vectors = ceil_div(C.cols, kVector);
  const Parts column_tasks = Parts::in(vectors, std::min(shares, vectors));
  const Parts row_tasks(panels.count,
                        column_tasks.count >= workers ? panels.count : ceil_div(panels.count, workers));
  const std::size_t tasks = column_tasks.count * row_tasks.count;
  parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t end) {
    thread_local Scratch right_scratch;
    const std::size_t panel_words = groups_of(k, k.depth) * k.columns + kGap;
    std::uint32_t* const right = right_scratch.words(k.together * panel_words);
    for (std::size_t t = first; t < end; ++t) {
      const std::size_t task = t / row_tasks.count;
      const std::size_t j0 = column_tasks.begin(task) * kVector,
                        j1 = std::min(column_tasks.begin(task + 1) * kVector, C.cols);
      const std::size_t p0 = row_tasks.begin(t % row_tasks.count),
                        p1 = row_tasks.begin(t % row_tasks.count + 1);
      for (std::size_t b = 0; b < blocks; ++b) {
        const bool ends = b + 1 == blocks;
        const std::size_t d = depth_begin + b * k.depth, size = block_depth(b);
        if (R.along)
          for (std::size_t j = j0; j < j1; j += k.columns)
            k.right_along(R.at(j, d), R.S.stride, std::min(k.columns, j1 - j), size,
                          right + (j - j0) / k.columns * panel_words);
        else
          k.right_across(R.at(j0, d), R.S.stride, j1 - j0, size, right, panel_words);
        // What this thread will want next: the next block of depth, or the first of its next columns.
        Ahead ahead;
        const std::size_t next = ends ? 0 : b + 1, next_task = ends ? task + workers : task;
        if (row_tasks.count == 1 && next_task < column_tasks.count)
          ahead = R.ahead(column_tasks.begin(next_task) * kVector, depth_begin + next * k.depth,
                          column_tasks.size(next_task) * kVector, block_depth(next));
        if (blocks > 1)
          ahead.then(left_panel(next, p0), (p1 - p0) * groups_of(k, block_depth(next)) * k.rows);
        for (std::size_t j = j0; j < j1; j += k.columns) {
          const std::size_t n = std::min(k.columns, j1 - j);
          const TileEnd end_of_tile{
              accumulate || b > 0, ends && last.bias != nullptr ? last.bias + j : nullptr, ends && last.relu};
          for (std::size_t p = p0; p < p1; ++p)
            k.tile(groups_of(k, size), left_panel(b, p), right + (j - j0) / k.columns * panel_words,
                   &C(row + panels.begin(p), j), C.stride, panels.size(p), n, end_of_tile, ahead);
        }
      }
    }
  });
}

// Rows a multiple of 4 KB apart fall on the same lines of a cache, and drive each other out.
bool crowds(std::size_t stride) {
  constexpr std::size_t kPage = 4096 / sizeof(float), kLine = 64 / sizeof(float);
  const std::size_t from = stride % kPage;
  return from < kLine || kPage - from < kLine;
}

// How `workers` share C: parts of its rows times parts of its columns.
struct Split {
  Parts rows, columns;
};
Split split_for(std::size_t rows, std::size_t columns, std::size_t workers) {
  constexpr std::size_t kWidest = 2048;  // columns, at most, of a task
  constexpr std::size_t kReading = 2;    // a row of W read costs as much as so many rows of work
  const std::size_t vectors = ceil_div(columns, kVector);
  std::size_t best = 1, least = 0;
  for (std::size_t r = 1; r <= std::min(workers, rows); ++r) {
    if (workers % r != 0) continue;
    const std::size_t cost = (ceil_div(rows, r) + kReading) * ceil_div(vectors, workers / r);
    if (least == 0 || cost < least) best = r, least = cost;
  }
  const std::size_t most = std::min(ceil_div(vectors, workers / best) * kVector, kWidest);
  return {Parts(rows, ceil_div(rows, best)), Parts(vectors, most / kVector)};
}

// C = or += A B in f32 without packing B. A task takes block after block of depth, and in it all its rows for
// a tile's columns after the other, so that these columns of B come from memory once.
void lying_product(const Kernels& k, MatrixView<const float> A, MatrixView<const float> B, bool accumulate,
                   const Finish& last, MatrixView<float> C) {
  const Split split = split_for(C.rows, C.cols, static_cast<std::size_t>(threads()));
  const Parts blocks(A.cols, k.depth);
  const std::size_t tasks = split.rows.count * split.columns.count;
  const double work = static_cast<double>(A.size()) * static_cast<double>(C.cols);
  parallel_for(tasks, grain_for(tasks, work), [&](std::size_t first, std::size_t end_of_tasks) {
    thread_local Scratch copy_scratch, pack_scratch;
    const std::size_t pitch = k.depth + 16;
    for (std::size_t t = first; t < end_of_tasks; ++t) {
      const std::size_t row = split.rows.begin(t % split.rows.count),
                        rows = split.rows.size(t % split.rows.count);
      const std::size_t column = split.columns.begin(t / split.rows.count) * kVector,
                        end = std::min(split.columns.begin(t / split.rows.count + 1) * kVector, C.cols);
      const Parts panels(rows, k.rows);
      for (std::size_t b = 0; b < blocks.count; ++b) {
        const std::size_t d = blocks.begin(b), depth = blocks.size(b);
        MatrixView<const float> left(&A(row, d), rows, depth, A.stride);
        if (crowds(A.stride)) {
          MatrixView<float> copy(copy_scratch.floats(rows * pitch), rows, depth, pitch);
          for (std::size_t r = 0; r < rows; ++r) std::copy_n(&left(r, 0), depth, &copy(r, 0));
          left = copy;
        }
        const bool ends = b + 1 == blocks.count,
                   packs = end - column >= kManyColumns && lined(&B(d, column), B.stride);
        std::uint32_t* const packed = packs ? pack_scratch.words(panels.count * depth * k.rows) : nullptr;
        for (std::size_t p = 0; p < panels.count && packs; ++p)
          k.left_along(&left(panels.begin(p), 0), left.stride, panels.size(p), depth,
                       packed + p * depth * k.rows);
        for (std::size_t j = column; j < end; j += k.columns) {
          const std::size_t n = std::min(k.columns, end - j);
          const TileEnd end_of_tile{
              accumulate || b > 0, ends && last.bias != nullptr ? last.bias + j : nullptr, ends && last.relu};
          // What comes next: the next columns of this block, or the first of the next one.
          MatrixView<const float> next;
          if (j + n < end)
            next = {&B(d, j + n), depth, k.columns, B.stride};
          else if (!ends)
            next = {&B(d + depth, column), blocks.size(b + 1), k.columns, B.stride};
          for (std::size_t p = 0; p < panels.count; ++p) {
            const std::size_t n0 = next.rows * p / panels.count, n1 = next.rows * (p + 1) / panels.count;
            RowsAhead ahead(next.data + n0 * next.stride, next.stride, n1 - n0, Ahead::turns(depth));
            k.lying_tile({depth, packs ? packed + p * depth * k.rows : nullptr, &left(panels.begin(p), 0),
                          left.stride, &B(d, j), B.stride, &C(row + panels.begin(p), j), C.stride},
                         panels.size(p), n, end_of_tile, ahead);
          }
        }
      }
    }
  });
}

void product(const Kernels& k, const Factor& L, const Factor& R, bool accumulate, const Finish& last,
             MatrixView<float> C) {
  if (L.depth() == 0) {
    for (std::size_t i = 0; i < C.rows && !accumulate; ++i) std::fill_n(&C(i, 0), C.cols, 0.f);
    if (last.needed()) k.finish(C.data, C.stride, C.rows, C.cols, last.bias, last.relu);
  }
  if (L.depth() != 0 && k.lying_tile != nullptr && L.along && !R.along &&
      (L.depth() <= kCrowd || !crowds(R.S.stride)))
    return lying_product(k, L.S, R.S, accumulate, last, C);
  const Parts chunks(C.rows, kRowChunk * k.group);
  for (std::size_t c = 0; c < chunks.count; ++c)
    for (std::size_t d = 0; d < L.depth(); d += kDepthChunk) {
      const std::size_t depth = std::min(kDepthChunk, L.depth() - d);
      const bool ends = d + depth == L.depth();
      product_chunk(k, L, chunks.begin(c), chunks.size(c), R, d, depth, accumulate || d > 0,
                    ends ? last : Finish{}, C);
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
