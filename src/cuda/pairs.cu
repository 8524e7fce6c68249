// Losses of pairs: of rows by their labels, of views of a row, of rows seen by two views. Value and gradient.
#include "cuda/losses.cuh"

namespace lacuna::cuda {
namespace {

constexpr float kTiny = 1e-12f;  // directions shorter than this have none

// Rows to length 1; inverse receives 1/length, or 0 where there is none. A warp a row. `where`: which rows, or null.
__global__ void unit_kernel(const float* X, int stride, const int* where, const int* used, int rows, int cols, float* Q,
                            float* inverse) {
  in_order();
  const int r = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (r >= (used != nullptr ? 2 * *used : rows)) return;
  const float* x = X + place(where != nullptr ? where[r] : r, stride);
  float sum = 0;
  for (int j = lane; j < cols; j += 32) sum += x[j] * x[j];
  const float length = sqrtf(warp_sum(sum)), factor = length > kTiny ? 1 / length : 0.f;
  for (int j = lane; j < cols; j += 32) Q[place(r, cols) + j] = x[j] * factor;
  if (lane == 0) inverse[r] = factor;
}

// Known and positive labels of a row as bits, a warp a row: (b, 2 words).
__global__ void label_bits_kernel(Labels labels, int words, std::uint32_t* bits) {
  in_order();
  const int i = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (i >= labels.count) return;
  const float* y = labels.y(i);
  const std::uint8_t* g = labels.g(i);
#pragma unroll 4
  for (int w = 0; w < words; ++w) {
    const int j = w * 32 + lane;
    const std::uint32_t known = __ballot_sync(0xffffffffu, j < labels.cols && g[j] != 0),
                        positive = __ballot_sync(0xffffffffu, j < labels.cols && y[j] > .5f);
    if (lane != 0) continue;
    bits[place(i, 2 * words) + w] = known;
    bits[place(i, 2 * words) + words + w] = positive;
  }
}
// T of eq. (5) for row i and all others.
__global__ void graph_weight_kernel(const std::uint32_t* bits, int b, int words, double eta, float* T) {
  in_order();
  const int i = static_cast<int>(blockIdx.x);
  const std::uint32_t* own = bits + place(i, 2 * words);
  for (int k = static_cast<int>(threadIdx.x); k < b; k += kThreads) {
    const std::uint32_t* other = bits + place(k, 2 * words);
    int both = 0, shared = 0;
    for (int w = 0; w < words; ++w) {
      both += __popc(own[w] & other[w]);
      shared += __popc(own[words + w] & other[words + w]);
    }
    const double product = static_cast<double>(both) * shared;
    T[place(i, b) + k] = static_cast<float>(product / (product + eta));
  }
}
// `count` rows a block, so that Q is read as many times less; a group of threads sums every so many-th row of Q for all of
// them, and then ends rows of its own.
template <int count>
__global__ void graph_kernel(const float* Q, const float* inverse, const float* T, int b, int d, bool normalise,
                             double scale, double weight, float* dZ, int stride, bool near, Report to) {
  in_order();
  constexpr int kMostGroups = 4, kWarps = kThreads / 32;
  __shared__ double degrees[kMostGroups][kWarps];
  __shared__ float along_of[kMostGroups][kWarps];
  __shared__ double values[count];
  extern __shared__ float slopes[];  // (groups, count, d), then T of the rows if they are to be `near`
  const int first = static_cast<int>(blockIdx.x) * count, rows = min(count, b - first);
  const int groups = static_cast<int>(blockDim.x) / kThreads, group = static_cast<int>(threadIdx.x) / kThreads;
  const int own = static_cast<int>(threadIdx.x) % kThreads, lane = own % 32, warp = own / 32;
  float* const copied = slopes + groups * count * d;
  const float* const t = near ? copied : T + place(first, b);
  if (near)
    for (int k = static_cast<int>(threadIdx.x); k < rows * b; k += static_cast<int>(blockDim.x))
      copied[k] = T[place(first, b) + k];
  __syncthreads();
  for (int j = own; j < d; j += kThreads) {
    float sum[count] = {};
#pragma unroll 8
    for (int k = group; k < b; k += groups) {
      const float x = Q[place(k, d) + j];
#pragma unroll
      for (int r = 0; r < count; ++r)
        if (r < rows) sum[r] += t[r * b + k] * x;
    }
#pragma unroll
    for (int r = 0; r < count; ++r) slopes[(group * count + r) * d + j] = sum[r];
  }
  __syncthreads();
  const float factor = static_cast<float>(scale * weight);
  for (int begin = 0; begin < rows; begin += groups) {
    const int r = begin + group, i = first + r;
    const bool mine = r < rows;
    const float* const q = Q + place(i, d);
    double degree = 0;
    if (mine)
      for (int k = own; k < b; k += kThreads) degree += static_cast<double>(t[r * b + k]);
    degree = warp_sum(degree);
    if (lane == 0) degrees[group][warp] = degree;
    __syncthreads();
    degree = 0;
    for (int w = 0; w < kWarps; ++w) degree += degrees[group][w];
    float along = 0;
    if (mine)
      for (int j = own; j < d; j += kThreads) {
        float sum = static_cast<float>(degree) * q[j];
        for (int g = 0; g < groups; ++g) sum -= slopes[(g * count + r) * d + j];
        slopes[r * d + j] = sum;
        along += q[j] * sum;
      }
    along = warp_sum(along);
    if (lane == 0) along_of[group][warp] = along;
    __syncthreads();
    along = 0;
    for (int w = 0; w < kWarps; ++w) along += along_of[group][w];
    if (mine) {
      const float length = normalise ? inverse[i] : 1.f;
      for (int j = own; j < d; j += kThreads) {
        const float dq = slopes[r * d + j];
        dZ[place(i, stride) + j] += factor * (normalise ? dq - along * q[j] : dq) * length;
      }
      if (own == 0) values[r] = scale / 2 * static_cast<double>(along);
    }
    __syncthreads();
  }
  double value = 0;
  for (int r = 0; r < rows; ++r) value += values[r];
  report(to, static_cast<int>(blockIdx.x), value, 1);
}

struct Contrast {
  const float *S, *O;
  float *dS, *dO;
  const std::int32_t* slots;
  const double* counts;
  int S_stride, O_stride, dS_stride, dO_stride, views, cols;
  bool mean, self, pairs;
  double factor, epsilon, weight;
  float *Q, *slopes;  // of each row: (2 views, cols) and (2 views, 2 views); null: in shared memory
};
__global__ void contrast_kernel(Contrast c, Report to) {
  in_order();
  __shared__ double A_shared, B_shared;
  extern __shared__ int places[];  // stack rows of the views that are there, 2 m inverse lengths, then slopes and Q
  auto* const inverse = reinterpret_cast<float*>(places + c.views);
  const int i = static_cast<int>(blockIdx.x), lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = c.cols;
  const int threads = static_cast<int>(blockDim.x), warps = threads / 32;
  const std::int32_t* slots = c.slots + i * c.views;
  int k = 0;
  for (int v = 0; v < c.views; ++v) {
    if (slots[v] == kNoRow) continue;
    if (threadIdx.x == 0) places[k] = slots[v];
    ++k;
  }
  const double scale = c.factor / (c.mean && c.counts[1] > 0 ? c.counts[1] : 1);
  if (k < 2) {
    report(to, i, 0, 1);
    return;
  }
  __syncthreads();
  const int h = 2 * k;
  float* const slopes =
      c.Q == nullptr ? inverse + 2 * c.views : c.slopes + static_cast<std::int64_t>(i) * 4 * c.views * c.views;
  float* const Q = c.Q == nullptr ? slopes + 4 * c.views * c.views : c.Q + static_cast<std::int64_t>(i) * 2 * c.views * d;
  for (int p = warp; p < h; p += warps) {
    const float* x = p < k ? c.S + place(places[p], c.S_stride) : c.O + place(places[p - k], c.O_stride);
    float sum = 0;
#pragma unroll 4
    for (int j = lane; j < d; j += 32) sum += x[j] * x[j];
    const float length = sqrtf(warp_sum(sum)), factor = length > kTiny ? 1 / length : 0.f;
    for (int j = lane; j < d; j += 32) Q[p * d + j] = x[j] * factor;
    if (lane == 0) inverse[p] = factor;
  }
  __syncthreads();
  for (int at = warp; at < h * h; at += warps) {
    const int p = at / h, q = at % h;
    if (q > p) continue;
    float sum = 0;
#pragma unroll 4
    for (int j = lane; j < d; j += 32) sum += Q[p * d + j] * Q[q * d + j];
    sum = warp_sum(sum);
    if (lane == 0) slopes[p * h + q] = slopes[q * h + p] = sum;
  }
  __syncthreads();
  const double N = c.pairs ? static_cast<double>(k) * k : k, negatives = 3 * N * N - N, positives = N * N - N;
  if (warp == 0) {
    double A = 0, B = 0;
    for (int at = lane; at < h * h; at += 32) {
      const int p = at / h, q = at % h;
      const double value = static_cast<double>(slopes[at]);
      if ((p >= k || q >= k) && p != q) A += value * value;
      if (p < k && q < k && (p == q) == c.self) B += (value + 1 + c.epsilon) / 2;
    }
    A = warp_sum(A);
    B = warp_sum(B);
    if (lane == 0) A_shared = A / negatives, B_shared = B / positives;
  }
  __syncthreads();
  const double A = A_shared, B = B_shared;
  for (int at = static_cast<int>(threadIdx.x); at < h * h; at += threads) {
    const int p = at / h, q = at % h;
    double e = 0;
    if ((p >= k || q >= k) && p != q) e = 2 * static_cast<double>(slopes[at]) / (B * negatives);
    if (p < k && q < k && (p == q) == c.self) e = -A / (B * B * 2 * positives);
    slopes[at] = static_cast<float>(2 * c.weight * scale * e);
  }
  __syncthreads();
  for (int p = warp; p < h; p += warps) {
    float along = 0;
    for (int j = lane; j < d; j += 32) {
      float dq = 0;
#pragma unroll 4
      for (int q = 0; q < h; ++q) dq += slopes[p * h + q] * Q[q * d + j];
      along += Q[p * d + j] * dq;
    }
    along = warp_sum(along);
    float* dx = p < k ? c.dS + place(places[p], c.dS_stride) : c.dO + place(places[p - k], c.dO_stride);
#pragma unroll 4
    for (int j = lane; j < d; j += 32) {
      float dq = 0;
#pragma unroll 4
      for (int q = 0; q < h; ++q) dq += slopes[p * h + q] * Q[q * d + j];
      dx[j] += (dq - along * Q[p * d + j]) * inverse[p];
    }
  }
  report(to, i, scale * A / B, 1);
}

// Instance contrast of one pair of views. used: rows that have both; where: their places, first all of u.
__global__ void pair_kernel(const std::int32_t* slots, int rows, int views, int u, int v, int* used, int* where) {
  in_order();
  const int lane = static_cast<int>(threadIdx.x);  // one warp
  const auto have = [&](int i) { return i < rows && slots[i * views + u] != kNoRow && slots[i * views + v] != kNoRow; };
  int a = 0;
  for (int i0 = 0; i0 < rows; i0 += 32) a += __popc(__ballot_sync(0xffffffffu, have(i0 + lane)));
  int at = 0;
  for (int i0 = 0; i0 < rows; i0 += 32) {
    const int i = i0 + lane;
    const bool both = have(i);
    const std::uint32_t all = __ballot_sync(0xffffffffu, both);
    const int own = at + __popc(all & ((1u << lane) - 1));
    if (both) {
      where[own] = slots[i * views + u];
      where[a + own] = slots[i * views + v];
    }
    at += __popc(all);
  }
  if (lane == 0) *used = a;
}
__global__ void instance_kernel(const float* Q, const int* used, int d, double tau, double weight, float* E, bool first,
                                Report to) {
  in_order();
  __shared__ float shared[33];
  const int a = *used, h = 2 * a, p = static_cast<int>(blockIdx.x), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const double before = first ? 0 : to.parts[p];
  if (p >= h) {
    if (threadIdx.x == 0) to.parts[p] = before;
    return;
  }
  float* e = E + place(p, h);
  for (int q = warp; q < h; q += 8) {
    float sum = 0;
    for (int j = lane; j < d; j += 32) sum += Q[place(p, d) + j] * Q[place(q, d) + j];
    sum = warp_sum(sum);
    if (lane == 0) e[q] = q == p ? 1.f : expf(sum / static_cast<float>(tau));  // the self term is e⁰
  }
  __syncthreads();
  float sum = 0;
  for (int q = static_cast<int>(threadIdx.x); q < h; q += kThreads) sum += e[q];
  const float total = block_sum(sum, shared);
  const int target = (p + a) % h;
  const double part = -log(static_cast<double>(e[target]) / static_cast<double>(total)) / h;
  __syncthreads();
  const float factor = static_cast<float>(weight / (h * tau));
  for (int q = static_cast<int>(threadIdx.x); q < h; q += kThreads)
    e[q] = q == p ? 0.f : factor * (e[q] / total - (q == target ? 1.f : 0.f));
  if (threadIdx.x == 0) to.parts[p] = before + part;
}
__global__ void instance_back_kernel(const float* Q, const float* inverse, const int* used, const int* where, int d,
                                     const float* E, float* dS, int stride) {
  in_order();
  __shared__ float shared[33];
  extern __shared__ float slopes[];  // (d), then what each row pulls with
  float* const pull = slopes + d;
  const int h = 2 * *used, p = static_cast<int>(blockIdx.x);
  if (p >= h) return;
  for (int q = static_cast<int>(threadIdx.x); q < h; q += kThreads) pull[q] = E[place(p, h) + q] + E[place(q, h) + p];
  __syncthreads();
  float along = 0;
  for (int j = static_cast<int>(threadIdx.x); j < d; j += kThreads) {
    float sum = 0;
#pragma unroll 8
    for (int q = 0; q < h; ++q) sum += pull[q] * Q[place(q, d) + j];
    slopes[j] = sum;
    along += Q[place(p, d) + j] * sum;
  }
  along = block_sum(along, shared);
  for (int j = static_cast<int>(threadIdx.x); j < d; j += kThreads)
    dS[place(where[p], stride) + j] += (slopes[j] - along * Q[place(p, d) + j]) * inverse[p];
}
__global__ void add_up_kernel(const double* parts, int count, double factor, double* value) {
  in_order();
  __shared__ double shared[33];
  double sum = 0;
  for (int k = static_cast<int>(threadIdx.x); k < count; k += kThreads) sum += parts[k];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *value = factor * sum;
}

}  // namespace

void CudaOps::graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight, Output dZ,
                         double* value) const {
  const std::size_t b = Z.rows, d = Z.cols;
  auto* Q = static_cast<float*>(units_.take((b * d + b) * sizeof(float), stream_));
  auto* T = static_cast<float*>(squares_.take(b * b * sizeof(float), stream_));
  float* inverse = Q + b * d;
  if (settings.normalise) {
    launch(unit_kernel, blocks_for(b, 8), kThreads, 0, stream_, Z.data, int_of(Z.stride), nullptr, nullptr, int_of(b),
                                                            int_of(d), Q, inverse);
  } else {
    copy(Z, false, {Q, b, d});
  }
  const int words = blocks_for(labels.G.cols, 32);
  auto* bits = static_cast<std::uint32_t*>(rows_.take(b * 2 * static_cast<std::size_t>(words) * 4, stream_));
  launch(label_bits_kernel, blocks_for(b, 8), kThreads, 0, stream_, labels_of(labels), words, bits);
  launch(graph_weight_kernel, int_of(b), kThreads, 0, stream_, bits, int_of(b), words, settings.eta, T);
  const auto go = [&](auto kernel, std::size_t count, std::size_t groups) {
    constexpr std::size_t kMostNear = 8 << 10;
    const int blocks = blocks_for(b, count);
    const std::size_t near = count * b * sizeof(float) <= kMostNear ? b : 0;
    launch(kernel, blocks, int_of(groups) * kThreads, (groups * d + near) * count * sizeof(float), stream_, Q, inverse, T, int_of(b),
           int_of(d), settings.normalise, (settings.pairwise ? 4. : 2.) / static_cast<double>(b * b), weight, dZ.data,
           int_of(dZ.stride), near > 0, report_to(parts_, counters_, stream_, static_cast<std::size_t>(blocks), value));
  };
  if (d <= 512) return go(graph_kernel<4>, 4, 4);
  go(graph_kernel<1>, 1, d <= 2048 ? 4 : 1);
}

void CudaOps::contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight, Output dS,
                            Output dO, double* value) const {
  const std::size_t b = slots.rows, m = slots.cols, d = S.cols;
  const Report to = report_to(parts_, counters_, stream_, b, value);
  const double* const counts = slot_counts(slots);
  constexpr std::size_t kMostShared = 40 << 10;
  std::size_t shared = (3 * m + 4 * m * m + 2 * m * d) * sizeof(float);
  float *Q = nullptr, *slopes = nullptr;
  if (shared > kMostShared) {
    shared = 3 * m * sizeof(float);
    Q = static_cast<float*>(units_.take(b * 2 * m * d * sizeof(float), stream_));
    slopes = static_cast<float*>(squares_.take(b * 4 * m * m * sizeof(float), stream_));
  }
  const Contrast c{S.data,
                   O.data,
                   dS.data,
                   dO.data,
                   slots.data,
                   counts,
                   int_of(S.stride),
                   int_of(O.stride),
                   int_of(dS.stride),
                   int_of(dO.stride),
                   int_of(m),
                   int_of(d),
                   settings.share == Share::mean,
                   settings.positives == ContrastPositives::self,
                   settings.count == ContrastCount::pairs,
                   settings.factor,
                   settings.epsilon,
                   weight,
                   Q,
                   slopes};
  launch(contrast_kernel, int_of(b), d < 256 ? kThreads : 2 * kThreads, shared, stream_, c, to);
}

void CudaOps::instance_loss(Input S, Slots slots, double tau, double weight, Output dS, double* value) const {
  const std::size_t b = slots.rows, d = S.cols;
  const Report to = report_to(parts_, counters_, stream_, 2 * b, value);
  auto* Q = static_cast<float*>(units_.take((2 * b * d + 2 * b) * sizeof(float), stream_));
  auto* E = static_cast<float*>(squares_.take(4 * b * b * sizeof(float), stream_));
  auto* where = static_cast<int*>(rows_.take((2 * b + 1) * sizeof(int), stream_));
  float* const inverse = Q + 2 * b * d;
  int* const used = where + 2 * b;
  LACUNA_CUDA(cudaMemsetAsync(to.parts, 0, 2 * b * sizeof(double), stream_));
  for (std::size_t u = 0; u < slots.cols; ++u)
    for (std::size_t v = u + 1; v < slots.cols; ++v) {
      launch(pair_kernel, 1, 32, 0, stream_, slots.data, int_of(b), int_of(slots.cols), int_of(u), int_of(v), used, where);
      launch(unit_kernel, blocks_for(2 * b, 8), kThreads, 0, stream_, S.data, int_of(S.stride), where, used, 0, int_of(d), Q,
                                                                  inverse);
      launch(instance_kernel, int_of(2 * b), kThreads, 0, stream_, Q, used, int_of(d), tau, weight, E, false, to);
      launch(instance_back_kernel, int_of(2 * b), kThreads, (d + 2 * b) * sizeof(float), stream_, Q, inverse, used, where, int_of(d), E, dS.data,
                                                                    int_of(dS.stride));
    }
  launch(add_up_kernel, 1, kThreads, 0, stream_, to.parts, int_of(2 * b), 1, value);
}

}  // namespace lacuna::cuda
