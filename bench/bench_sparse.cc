// Would the first layer gain from inputs kept sparse? X (64, 4096) with a share of its entries non-zero times
// W (4096, 3277): the dense product as networks compute it, beside a loop over the non-zero entries that
// keeps a row of W in registers and a block of Y in the first cache. Decides nothing at run time;
// docs/performance.md has the answer.
#include <fmt/core.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "base/random.h"
#include "base/threads.h"
#include "lines.h"
#include "ops/gemm.h"
#include "ops/machine.h"
#include "ops/peaks.h"

namespace lacuna {
namespace {

constexpr std::size_t kRows = 64, kIn = 4096, kOut = 3277, kBlock = 64, kStride = row_stride<float>(kOut);

// The non-zero entries of a matrix, column by column.
struct Columns {
  std::vector<std::size_t> begin = {0};
  std::vector<std::uint32_t> row;
  std::vector<float> value;

  explicit Columns(const Matrix<float>& X) {
    for (std::size_t j = 0; j < X.cols(); ++j) {
      for (std::size_t r = 0; r < X.rows(); ++r)
        if (X(r, j) != 0) row.push_back(static_cast<std::uint32_t>(r)), value.push_back(X(r, j));
      begin.push_back(row.size());
    }
  }
};

// Y (rows, kBlock) += X W[:, block].
__attribute__((target("avx512f"))) void multiply_block(const Columns& X, const float* W, float* Y) {
  constexpr std::size_t kSoon = 8;
  for (std::size_t j = 0; j + 1 < X.begin.size(); ++j, W += kStride) {
    for (std::size_t c = 0; c < kBlock; c += 16) __builtin_prefetch(W + kSoon * kStride + c);
    const __m512 w0 = _mm512_loadu_ps(W), w1 = _mm512_loadu_ps(W + 16), w2 = _mm512_loadu_ps(W + 32),
                 w3 = _mm512_loadu_ps(W + 48);
    for (std::size_t e = X.begin[j]; e < X.begin[j + 1]; ++e) {
      float* const y = Y + X.row[e] * kBlock;
      const __m512 x = _mm512_set1_ps(X.value[e]);
      _mm512_storeu_ps(y, _mm512_fmadd_ps(x, w0, _mm512_loadu_ps(y)));
      _mm512_storeu_ps(y + 16, _mm512_fmadd_ps(x, w1, _mm512_loadu_ps(y + 16)));
      _mm512_storeu_ps(y + 32, _mm512_fmadd_ps(x, w2, _mm512_loadu_ps(y + 32)));
      _mm512_storeu_ps(y + 48, _mm512_fmadd_ps(x, w3, _mm512_loadu_ps(y + 48)));
    }
  }
}

int run() {
  if (!has_isa(Isa::avx512)) {
    fmt::print(stderr, "bench_sparse: this CPU has no AVX-512\n");
    return 0;
  }
  Random random(1, Purpose::test);
  Matrix<float> memory(kIn, kStride), Y(kRows, kStride);
  for (float& w : memory.values()) w = random.uniform(-1, 1);
  const MatrixView<const float> W(memory.data(), kIn, kOut, kStride);
  const MatrixView<float> dense(Y.data(), kRows, kOut, kStride);
  constexpr std::size_t kBlocks = (kOut + kBlock - 1) / kBlock;
  Matrix<float> sparse(kBlocks, kRows * kBlock);
  for (const double share : {.04, .1, .23}) {
    Matrix<float> X(kRows, kIn);
    for (float& x : X.values())
      if (random.uniform() < static_cast<float>(share)) x = random.uniform(-1, 1);
    const Columns columns(X);
    const Timing own = measure(.5, [&] {
      parallel_for(kBlocks, 1, [&](std::size_t first, std::size_t end) {
        for (std::size_t b = first; b < end; ++b) {
          std::fill_n(&sparse(b, 0), kRows * kBlock, 0.f);
          // The last block begins earlier, so that it is whole.
          multiply_block(columns, W.data + std::min(b * kBlock, kOut - kBlock), &sparse(b, 0));
        }
      });
    });
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const Timing t = measure(.5, [&] { linear_forward(X, W, {}, false, precision, dense); });
      print({fmt::format("first layer from sparse inputs, {:.0f} % dense", 100 * share), own.best * 1e3, "ms",
             precision == Precision::bf16 ? "dense product in bf16" : "dense product in f32",
             t.best / own.best, 0, 0, own.spread()});
      if (precision == Precision::f32)
        for (std::size_t r = 0; r < kRows; ++r)
          for (std::size_t c = 0; c < kBlock; ++c)
            if (std::abs(dense(r, c) - sparse(0, r * kBlock + c)) > 1e-3f) {
              fmt::print(stderr, "bench_sparse: {} and {} at ({}, {})\n", dense(r, c),
                         sparse(0, r * kBlock + c), r, c);
              return 1;
            }
    }
  }
  return 0;
}

}  // namespace
}  // namespace lacuna

int main() {
  return lacuna::run();
}
