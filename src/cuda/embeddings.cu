// Losses of a common space of features and labels: rankings of labels, and two embeddings that shall be alike.
#include "cuda/losses.cuh"
#include "cuda/plain.cuh"

namespace lacuna::cuda {
namespace {

// exp(-μ(P_j - P_l)) is a product, so the sums over pairs are sums over labels. A block takes a row.
__global__ void ranking_kernel(const float* logits, int stride, Labels labels, double margin, double weight, float* dlogits,
                               int d_stride, Report to) {
  in_order();
  __shared__ double shared[33];
  const int i = static_cast<int>(blockIdx.x);
  const float *x = logits + place(i, stride), *y = labels.y(i);
  const std::uint8_t* g = labels.g(i);
  const float mu = static_cast<float>(margin);
  const auto force = [&](int j, float p) { return expf((y[j] > .5f ? -mu : mu) * p); };
  double low = 0, high = 0, positives = 0, negatives = 0;  // Σ e^{-μP} over positives, Σ e^{μP} over negatives
  for (int j = static_cast<int>(threadIdx.x); j < labels.cols; j += static_cast<int>(blockDim.x)) {
    if (g[j] == 0) continue;
    const bool positive = y[j] > .5f;
    (positive ? positives : negatives) += 1;
    (positive ? low : high) += static_cast<double>(force(j, sigmoid_of(x[j])));
  }
  low = block_sum(low, shared);
  high = block_sum(high, shared);
  const double pairs = block_sum(positives, shared) * block_sum(negatives, shared);
  const float up = pairs > 0 ? static_cast<float>(-weight * high / pairs) : 0.f,
              down = pairs > 0 ? static_cast<float>(weight * low / pairs) : 0.f;
  for (int j = static_cast<int>(threadIdx.x); j < labels.cols; j += static_cast<int>(blockDim.x)) {
    const float p = sigmoid_of(x[j]);
    dlogits[place(i, d_stride) + j] = g[j] == 0 ? 0.f : (y[j] > .5f ? up : down) * force(j, p) * p * (1.f - p);
  }
  report(to, i, pairs > 0 ? low * high / (pairs * margin) : 0, 1);
}

// The two embeddings M, each with the other one; gram (d, d) becomes MᵀM - I.
struct Embedding {
  const float *M, *other;
  float *dM, *gram;
  int M_stride, other_stride, dM_stride;
};
struct Pair {
  Embedding side[2];
  int rows, cols, tiles;  // of 64 columns
  double* squares;        // λ times the sum of squares of each tile of both gram matrices
  int square_count;
};
// Blocks: tiles of both gram matrices.
__global__ void gram_kernel(const __grid_constant__ Pair pair, double orthogonal) {
  in_order();
  __shared__ double shared[33];
  const int each = pair.tiles * pair.tiles, block = static_cast<int>(blockIdx.x);
  const Embedding& own = pair.side[block / each];
  const int k0 = block % each / pair.tiles * 64, l0 = block % pair.tiles * 64;
  float sums[4][4] = {};
  const auto at = [&](int i, int k) { return k < pair.cols ? own.M[place(i, own.M_stride) + k] : 0.f; };
  plain_product(
      pair.rows, [&](int k, int i) { return at(i, k0 + k); }, [&](int i, int l) { return at(i, l0 + l); }, sums);
  double part = 0;
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int k = k0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, l = l0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (k >= pair.cols || l >= pair.cols) continue;
      const float g = sums[a][c] - (k == l ? 1.f : 0.f);
      own.gram[place(k, pair.cols) + l] = g;
      part += static_cast<double>(g * g);
    }
  part = block_sum(part, shared);
  if (threadIdx.x == 0) pair.squares[block] = orthogonal * part;
}
// Blocks: tiles of both gradients, dM += 4λ M (MᵀM - I) + 2 (M - other). Those of the first report squared differences, and
// all of them share the squares of the gram matrices out.
__global__ void agreement_kernel(const __grid_constant__ Pair pair, double orthogonal, double weight, Report to) {
  in_order();
  __shared__ double shared[33];
  const int each = (pair.rows + 63) / 64 * pair.tiles, block = static_cast<int>(blockIdx.x);
  const Embedding& own = pair.side[block / each];
  const int i0 = block % each / pair.tiles * 64, k0 = block % pair.tiles * 64;
  float sums[4][4] = {};
  if (orthogonal != 0)
    plain_product(
        pair.cols,
        [&](int i, int l) { return i0 + i < pair.rows ? own.M[place(i0 + i, own.M_stride) + l] : 0.f; },
        [&](int l, int k) { return k0 + k < pair.cols ? own.gram[place(l, pair.cols) + k0 + k] : 0.f; }, sums);
  const float twice = static_cast<float>(2 * weight), factor = static_cast<float>(4 * weight * orthogonal);
  double part = 0;
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, k = k0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i >= pair.rows || k >= pair.cols) continue;
      const float difference = own.M[place(i, own.M_stride) + k] - own.other[place(i, own.other_stride) + k];
      own.dM[place(i, own.dM_stride) + k] += twice * difference + factor * sums[a][c];
      if (block < each) part += static_cast<double>(difference * difference);
    }
  part = block_sum(part, shared);
  for (int k = block; k < pair.square_count; k += static_cast<int>(gridDim.x)) part += pair.squares[k];
  report(to, block, part, 1);
}

}  // namespace

void CudaOps::ranking_loss(Input logits, const LabelRows& labels, double margin, double weight, Output dlogits,
                           double* value) const {
  const Report to = report_to(parts_, counters_, stream_, logits.rows, value);
  launch(ranking_kernel, int_of(logits.rows), threads_for(logits.cols), 0, stream_, logits.data, int_of(logits.stride),
         labels_of(labels), margin, weight, dlogits.data, int_of(dlogits.stride), to);
}

void CudaOps::agreement_loss(Input A, Input E, double orthogonal, double weight, Output dA, Output dE,
                             double* value) const {
  const std::size_t d = A.cols;
  const int tiles = blocks_for(d, 64), blocks = 2 * blocks_for(A.rows, 64) * tiles,
            gram_blocks = orthogonal != 0 ? 2 * tiles * tiles : 0;
  const std::size_t square_bytes = static_cast<std::size_t>(gram_blocks) * sizeof(double);
  auto* const squares = static_cast<double*>(squares_.take(square_bytes + 2 * d * d * sizeof(float), stream_));
  auto* const grams = reinterpret_cast<float*>(squares + gram_blocks);
  const Pair pair{{{A.data, E.data, dA.data, grams, int_of(A.stride), int_of(E.stride), int_of(dA.stride)},
                   {E.data, A.data, dE.data, grams + d * d, int_of(E.stride), int_of(A.stride), int_of(dE.stride)}},
                  int_of(A.rows),
                  int_of(d),
                  tiles,
                  squares,
                  gram_blocks};
  const Report to = report_to(parts_, counters_, stream_, static_cast<std::size_t>(blocks), value);
  if (gram_blocks > 0) launch(gram_kernel, gram_blocks, 256, 0, stream_, pair, orthogonal);
  launch(agreement_kernel, blocks, 256, 0, stream_, pair, orthogonal, weight, to);
}

}  // namespace lacuna::cuda
