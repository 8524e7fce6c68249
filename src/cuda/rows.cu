// Rows, norms and functions of single elements.
#include <algorithm>

#include "cuda/sheets.cuh"

namespace lacuna::cuda {
namespace {

constexpr int kThreads = 256;

// Threads for a row, so that most rows take each of them once.
int threads_for(std::size_t cols) { return std::clamp(blocks_for(cols, 32) * 32, 64, 512); }
__device__ std::int64_t place(int row, int stride) { return static_cast<std::int64_t>(row) * stride; }

// ---- gather: a block takes 256 columns of four rows ----
struct Gather {
  const float* source;
  const std::uint32_t* rows;
  const Fragment* hidden;
  const float* factors;
  float* out;
  int source_stride, out_stride, cols, count, total, strips;
  Half* sheets;  // of `out`, or null; then there are `padded_rows` and `padded_cols` of them
  int terms, padded_rows, padded_cols;
};
__global__ void gather_kernel(const __grid_constant__ Jobs<Gather> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const Gather& job = jobs.find(block);
  const int col = block % job.strips * kThreads + static_cast<int>(threadIdx.x);
  if (col >= job.padded_cols) return;
  for (int r = block / job.strips * 4, end = min(job.padded_rows, r + 4); r < end; ++r) {
    float x = 0;
    if (r < job.count && col < job.cols) {
      const bool masked = job.hidden != nullptr && static_cast<int>(job.hidden[r].begin) <= col &&
                          col < static_cast<int>(job.hidden[r].end);
      if (!masked) x = job.source[place(static_cast<int>(job.rows[r]), job.source_stride) + col];
      if (job.factors != nullptr) x *= job.factors[r];
    }
    if (r < job.total && col < job.cols) job.out[place(r, job.out_stride) + col] = x;
    if (job.sheets == nullptr) continue;
    Half* to = job.sheets + static_cast<std::int64_t>(col / kDeep) * job.terms * (kSheetRows * kDeep) + sheet_at(kDeep, r, col % kDeep);
    for (int term = 0; term < job.terms; ++term, to += kSheetRows * kDeep) {
      *to = __float2bfloat16_rn(x);
      x -= __bfloat162float(*to);
    }
  }
}

// ---- collect: a block a batch row; spread: a block an instance ----
__device__ float row_share(const std::int32_t* slots, int views, bool mean) {
  int k = 0;
  for (int v = 0; v < views; ++v) k += slots[v] != kNoRow;
  return k == 0 ? 0.f : mean ? 1.f / static_cast<float>(k) : 1.f;
}
__global__ void collect_kernel(const float* stack, int stack_stride, const std::int32_t* slots, int views, bool mean,
                               bool add, float* out, int out_stride, int cols) {
  in_order();
  const std::int32_t* own = slots + static_cast<std::int64_t>(blockIdx.x) * views;
  const float factor = row_share(own, views, mean);
  for (int j = static_cast<int>(threadIdx.x); j < cols; j += static_cast<int>(blockDim.x)) {
    float sum = 0;
#pragma unroll 4
    for (int v = 0; v < views; ++v)
      if (own[v] != kNoRow) sum += stack[place(own[v], stack_stride) + j];
    float& y = out[place(static_cast<int>(blockIdx.x), out_stride) + j];
    y = add ? y + factor * sum : factor * sum;
  }
}
__global__ void spread_kernel(const float* rows, int rows_stride, const std::int32_t* slots, int views, bool mean,
                              bool add, float* stack, int stack_stride, int cols) {
  in_order();
  const int row = static_cast<int>(blockIdx.x) / views;
  const std::int32_t* own = slots + static_cast<std::int64_t>(row) * views;
  const std::int32_t slot = own[blockIdx.x % static_cast<unsigned>(views)];
  if (slot == kNoRow) return;
  const float factor = row_share(own, views, mean);
  for (int j = static_cast<int>(threadIdx.x); j < cols; j += static_cast<int>(blockDim.x)) {
    const float x = factor * rows[place(row, rows_stride) + j];
    float& y = stack[place(slot, stack_stride) + j];
    y = add ? y + x : x;
  }
}

// ---- batch norm: a block owns 32 columns, eight rows at a time ----
struct BatchNorm {
  const float *U, *gamma, *beta;
  float *saved, *Y, *running;
  int U_stride, Y_stride, saved_stride, running_stride, rows, cols;
  float missing, epsilon, momentum;
};
__device__ double column_sum(double x, double (*shared)[33]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
  shared[warp][lane] = x;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < 8; ++w) sum += shared[w][lane];
  return sum;
}
// Every eighth row of a column; the first kKeptRows of them are in registers.
constexpr int kKeptRows = 16;
template <class F>
__device__ void for_rows(int rows, int warp, F&& f) {
#pragma unroll
  for (int k = 0; k < kKeptRows; ++k)
    if (warp + 8 * k < rows) f(warp + 8 * k, k);
  for (int r = warp + 8 * kKeptRows; r < rows; r += 8) f(r, kKeptRows);
}
__device__ void keep_rows(float (&kept)[kKeptRows], const float* from, int stride, int rows, int warp, int col) {
#pragma unroll
  for (int k = 0; k < kKeptRows; ++k) kept[k] = warp + 8 * k < rows ? from[place(warp + 8 * k, stride) + col] : 0.f;
}
__global__ void batch_norm_kernel(const __grid_constant__ Jobs<BatchNorm> jobs, double momentum, double epsilon) {
  in_order();
  __shared__ double shared[8][33];
  int block = static_cast<int>(blockIdx.x);
  const BatchNorm& job = jobs.find(block);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = block * 32 + lane;
  const bool there = col < job.cols;
  const double n = job.missing > 0 ? job.rows - 1 + static_cast<double>(job.missing) : job.rows;
  const auto weight = [&](int r) { return job.missing > 0 && r + 1 == job.rows ? static_cast<double>(job.missing) : 1.; };
  float kept[kKeptRows];  // those of batches up to 8 kKeptRows rows: they are fetched together, and once
  keep_rows(kept, job.U, job.U_stride, there ? job.rows : 0, warp, col);
  const auto u = [&](int r, int k) { return k < kKeptRows ? kept[k] : job.U[place(r, job.U_stride) + col]; };
  double sum = 0;
  for_rows(there ? job.rows : 0, warp, [&](int r, int k) { sum += weight(r) * static_cast<double>(u(r, k)); });
  const double mean = column_sum(sum, shared) / n;
  sum = 0;
  for_rows(there ? job.rows : 0, warp, [&](int r, int k) {
    const double difference = static_cast<double>(u(r, k)) - mean;
    sum += weight(r) * difference * difference;
  });
  const double variance = column_sum(sum, shared) / n;
  if (!there) return;
  const float inverse = static_cast<float>(1 / sqrt(variance + epsilon)), shift = static_cast<float>(mean);
  if (warp == 0) {
    const double unbiased = n > 1 ? variance * n / (n - 1) : variance;
    float &running_mean = job.running[col], &running_variance = job.running[job.running_stride + col];
    running_mean += static_cast<float>(momentum * (mean - static_cast<double>(running_mean)));
    running_variance += static_cast<float>(momentum * (unbiased - static_cast<double>(running_variance)));
    job.saved[col] = shift;
    job.saved[job.saved_stride + col] = inverse;
  }
  const float factor = job.gamma[col] * inverse, b = job.beta[col];
  for_rows(job.rows, warp, [&](int r, int k) { job.Y[place(r, job.Y_stride) + col] = factor * (u(r, k) - shift) + b; });
}
__global__ void batch_norm_apply_kernel(const __grid_constant__ Jobs<BatchNorm> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const BatchNorm& job = jobs.find(block);
  const int strips = (job.cols + 31) / 32, col = block % strips * 32 + static_cast<int>(threadIdx.x) % 32;
  if (col >= job.cols) return;
  const float factor = job.gamma[col] / sqrtf(job.running[job.running_stride + col] + job.epsilon);
  const int r0 = block / strips * 64;
  for (int r = r0 + static_cast<int>(threadIdx.x) / 32; r < min(job.rows, r0 + 64); r += 8)
    job.Y[place(r, job.Y_stride) + col] =
        factor * (job.U[place(r, job.U_stride) + col] - job.running[col]) + job.beta[col];
}
struct NormBack {
  const float *U, *saved;
  float* dY;
  Learned gamma, beta;
  int U_stride, dY_stride, saved_stride, rows, cols;
  float missing;
  float* gamma_before;  // of layer norm: its γ before the step, (cols)
};
__global__ void batch_norm_backward_kernel(const __grid_constant__ Jobs<NormBack> jobs) {
  in_order();
  __shared__ double shared[8][33];
  int block = static_cast<int>(blockIdx.x);
  const NormBack& job = jobs.find(block);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = block * 32 + lane;
  const bool there = col < job.cols;
  const double n = fmax(1., job.missing > 0 ? job.rows - 1 + static_cast<double>(job.missing) : job.rows);
  const float mean = there ? job.saved[col] : 0, inverse = there ? job.saved[job.saved_stride + col] : 0;
  const float gamma = there ? job.gamma.w[col] : 0;  // before a faster warp has updated it
  float kept[kKeptRows], kept_dY[kKeptRows];
  keep_rows(kept, job.U, job.U_stride, there ? job.rows : 0, warp, col);
  keep_rows(kept_dY, job.dY, job.dY_stride, there ? job.rows : 0, warp, col);
  const auto u = [&](int r, int k) { return k < kKeptRows ? kept[k] : job.U[place(r, job.U_stride) + col]; };
  const auto dy = [&](int r, int k) { return k < kKeptRows ? kept_dY[k] : job.dY[place(r, job.dY_stride) + col]; };
  double g_sum = 0, b_sum = 0;
  for_rows(there ? job.rows : 0, warp, [&](int r, int k) {
    const double weight = job.missing > 0 && r + 1 == job.rows ? static_cast<double>(job.missing) : 1.;
    const double g = weight * static_cast<double>(dy(r, k));
    g_sum += g * static_cast<double>((u(r, k) - mean) * inverse);
    b_sum += g;
  });
  const double dgamma = column_sum(g_sum, shared), dbeta = column_sum(b_sum, shared);
  if (!there) return;
  const float factor = gamma * inverse, mean_g = static_cast<float>(dbeta / n),
              mean_gu = static_cast<float>(dgamma / n) * inverse;
  for_rows(job.rows, warp, [&](int r, int k) {
    const float weight = job.missing > 0 && r + 1 == job.rows ? job.missing : 1.f;
    job.dY[place(r, job.dY_stride) + col] = weight * factor * (dy(r, k) - mean_g - (u(r, k) - mean) * mean_gu);
  });
  if (warp != 0) return;
  job.gamma.update(col, static_cast<float>(dgamma));
  job.beta.update(col, static_cast<float>(dbeta));
}

// ---- layer norm: a warp a row ----
struct LayerNorm {
  const float *U, *gamma, *beta;
  float *saved, *Y;
  int U_stride, Y_stride, saved_stride, rows, cols;
};
__global__ void layer_norm_kernel(const __grid_constant__ Jobs<LayerNorm> jobs, float epsilon) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const LayerNorm& job = jobs.find(block);
  const int lane = threadIdx.x % 32, r = block * 8 + static_cast<int>(threadIdx.x) / 32;
  if (r >= job.rows) return;
  const float* u = job.U + place(r, job.U_stride);
  float* y = job.Y + place(r, job.Y_stride);
  float sum = 0;
#pragma unroll 4
  for (int j = lane; j < job.cols; j += 32) sum += u[j];
  const float mean = warp_sum(sum) / static_cast<float>(job.cols);
  sum = 0;
#pragma unroll 4
  for (int j = lane; j < job.cols; j += 32) sum += (u[j] - mean) * (u[j] - mean);
  const float inverse = 1 / sqrtf(warp_sum(sum) / static_cast<float>(job.cols) + epsilon);
  if (lane == 0) {
    job.saved[place(r, job.saved_stride)] = mean;
    job.saved[place(r, job.saved_stride) + 1] = inverse;
  }
#pragma unroll 4
  for (int j = lane; j < job.cols; j += 32) y[j] = job.gamma[j] * ((u[j] - mean) * inverse) + job.beta[j];
}
// γ and β learn from the sums over the rows of dY û and of dY; the gradient of U wants γ as it was.
__global__ void layer_norm_learn_kernel(const __grid_constant__ Jobs<NormBack> jobs) {
  in_order();
  __shared__ float shared[2][8][32];
  int block = static_cast<int>(blockIdx.x);
  const NormBack& job = jobs.find(block);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = block * 32 + lane;
  float g = 0, b = 0;
  if (col < job.cols)
#pragma unroll 4
    for (int r = warp; r < job.rows; r += 8) {
      const float dy = job.dY[place(r, job.dY_stride) + col];
      g += dy * ((job.U[place(r, job.U_stride) + col] - job.saved[place(r, job.saved_stride)]) *
                 job.saved[place(r, job.saved_stride) + 1]);
      b += dy;
    }
  shared[0][warp][lane] = g;
  shared[1][warp][lane] = b;
  __syncthreads();
  if (warp > 1 || col >= job.cols) return;
  float sum = 0;
  for (int w = 0; w < 8; ++w) sum += shared[warp][w][lane];
  if (warp == 0) job.gamma_before[col] = job.gamma.w[col];
  (warp == 0 ? job.gamma : job.beta).update(col, sum);
}
__global__ void layer_norm_backward_kernel(const __grid_constant__ Jobs<NormBack> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const NormBack& job = jobs.find(block);
  const int lane = threadIdx.x % 32, r = block * 8 + static_cast<int>(threadIdx.x) / 32;
  if (r >= job.rows) return;
  const float* u = job.U + place(r, job.U_stride);
  float* dy = job.dY + place(r, job.dY_stride);
  const float mean = job.saved[place(r, job.saved_stride)], inverse = job.saved[place(r, job.saved_stride) + 1];
  float g = 0, gu = 0;
#pragma unroll 4
  for (int j = lane; j < job.cols; j += 32) {
    const float x = job.gamma_before[j] * dy[j];
    g += x;
    gu += x * (u[j] - mean);
  }
  const float width = static_cast<float>(job.cols), mean_g = warp_sum(g) / width, mean_gu = warp_sum(gu) * inverse / width;
#pragma unroll 4
  for (int j = lane; j < job.cols; j += 32)
    dy[j] = inverse * (job.gamma_before[j] * dy[j] - mean_g - (u[j] - mean) * inverse * mean_gu);
}

// ---- dropout: a thread takes the eight columns of one draw ----
struct Dropout {
  Drop drop;
  float* X;
  int stride, rows, cols;
};
__global__ void dropout_kernel(const __grid_constant__ Jobs<Dropout> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const Dropout& job = jobs.find(block);
  const int at = block * kThreads + static_cast<int>(threadIdx.x), groups = (job.cols + 7) / 8, r = at / groups,
            first = at % groups * 8;
  if (r >= job.rows) return;
  const uint4 words = job.drop.words(r, first / 8);
  float* x = job.X + place(r, job.stride);
  for (int j = first; j < min(job.cols, first + 8); ++j) x[j] = job.drop.apply(x[j], words, j);
}

// ---- single elements: f(row, column) for all of a matrix ----
template <class F>
__global__ void each_kernel(int rows, int cols, F f) {
  in_order();
  const std::int64_t count = static_cast<std::int64_t>(rows) * cols;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < count;
       at += static_cast<std::int64_t>(gridDim.x) * kThreads)
    f(static_cast<int>(at / cols), static_cast<int>(at % cols));
}
template <class F>
void each(std::size_t rows, std::size_t cols, cudaStream_t stream, F f) {
  if (rows == 0 || cols == 0) return;
  const int blocks = std::min(blocks_for(rows * cols, kThreads), 2048);
  launch(each_kernel<F>, blocks, kThreads, 0, stream, int_of(rows), int_of(cols), f);
}

// A matrix as kernels take it.
struct View {
  float* data;
  int stride;
  __device__ float& operator()(int i, int j) const { return data[place(i, stride)+ j]; }
};
View view(MatrixView<float> m) { return {m.data, int_of(m.stride)}; }
View view(MatrixView<const float> m) { return {const_cast<float*>(m.data), int_of(m.stride)}; }

}  // namespace

void CudaOps::gather(std::span<const GatherJob<float>> list) const {
  in_launches<Gather>(
      list,
      [&](const GatherJob<float>& j) {
        auto* const form = static_cast<SheetForm*>(j.form);
        forget(form);
        const bool made = form != nullptr && j.out.rows > 0 && j.out.rows <= kSheetRows;
        if (made) form->hold(j.out, kDeep);
        const int rows = int_of(j.out.rows), cols = int_of(j.out.cols),
                  all_cols = made ? sheets_of(cols, kDeep) * kDeep : cols;
        return Gather{j.source.table.data,
                      j.rows.data(),
                      j.hidden.empty() ? nullptr : j.hidden.data(),
                      j.factors.empty() ? nullptr : j.factors.data(),
                      j.out.data,
                      int_of(j.source.table.stride),
                      int_of(j.out.stride),
                      cols,
                      int_of(j.rows.size()),
                      rows,
                      blocks_for(static_cast<std::size_t>(all_cols), kThreads),
                      made ? form->sheets : nullptr,
                      precision_ == Precision::f32 ? 3 : 1,
                      made ? padded(rows) : rows,
                      all_cols};
      },
      [](const Gather& j) { return j.strips * blocks_for(static_cast<std::size_t>(j.padded_rows), 4); },
      [&](const Jobs<Gather>& jobs, int blocks) {
        launch(gather_kernel, blocks, kThreads, 0, stream_, jobs);
      });
}

void CudaOps::collect(Input stack, Slots slots, Share share, bool add, Output out) const {
  if (slots.rows == 0) return;
  launch(collect_kernel, int_of(slots.rows), threads_for(out.cols), 0, stream_, stack.data, int_of(stack.stride), slots.data,
                                                               int_of(slots.cols), share == Share::mean, add, out.data,
                                                               int_of(out.stride), int_of(out.cols));
}

void CudaOps::spread(Input rows, Slots slots, Share share, bool add, Output stack) const {
  if (slots.empty()) return;
  launch(spread_kernel, int_of(slots.rows * slots.cols), threads_for(rows.cols), 0, stream_, rows.data, int_of(rows.stride), slots.data,
                                                              int_of(slots.cols), share == Share::mean, add, stack.data,
                                                              int_of(stack.stride), int_of(rows.cols));
}

namespace {

BatchNorm batch_norm(const NormForward<float>& j, const BatchNormSettings& settings) {
  return {j.U.data,
          j.gamma.data,
          j.beta.data,
          j.saved.data,
          j.Y.data,
          j.running.data,
          int_of(j.U.stride),
          int_of(j.Y.stride),
          int_of(j.saved.stride),
          int_of(j.running.stride),
          int_of(j.U.rows),
          int_of(j.U.cols),
          static_cast<float>(j.missing),
          static_cast<float>(settings.epsilon),
          static_cast<float>(settings.momentum)};
}
NormBack norm_back(const NormBackward<float>& j, const UpdateRule& rule, float* gamma_before) {
  return {j.U.data,
          j.saved.data,
          j.dY.data,
          learned(j.gamma, rule),
          learned(j.beta, rule),
          int_of(j.U.stride),
          int_of(j.dY.stride),
          int_of(j.saved.stride),
          int_of(j.U.rows),
          int_of(j.gamma.value.cols),
          static_cast<float>(j.missing),
          gamma_before};
}
template <class Job>
int strips_of(const Job& j) {
  return blocks_for(static_cast<std::size_t>(j.cols), 32);
}

}  // namespace

void CudaOps::batch_norm_forward(std::span<const NormForward<float>> list, const BatchNormSettings& settings) const {
  in_launches<BatchNorm>(
      list, [&](const NormForward<float>& j) { return batch_norm(j, settings); },
      [](const BatchNorm& j) { return j.rows == 0 ? 0 : strips_of(j); },
      [&](const Jobs<BatchNorm>& jobs, int blocks) {
        launch(batch_norm_kernel, blocks, kThreads, 0, stream_, jobs, settings.momentum, settings.epsilon);
      });
}

void CudaOps::batch_norm_backward(std::span<const NormBackward<float>> list, const UpdateRule& rule) const {
  in_launches<NormBack>(
      list, [&](const NormBackward<float>& j) { return norm_back(j, rule, nullptr); },
      [](const NormBack& j) { return strips_of(j); },
      [&](const Jobs<NormBack>& jobs, int blocks) {
        launch(batch_norm_backward_kernel, blocks, kThreads, 0, stream_, jobs);
      });
}

void CudaOps::batch_norm_apply(std::span<const NormForward<float>> list, const BatchNormSettings& settings) const {
  in_launches<BatchNorm>(
      list, [&](const NormForward<float>& j) { return batch_norm(j, settings); },
      [](const BatchNorm& j) { return strips_of(j) * blocks_for(static_cast<std::size_t>(j.rows), 64); },
      [&](const Jobs<BatchNorm>& jobs, int blocks) {
        launch(batch_norm_apply_kernel, blocks, kThreads, 0, stream_, jobs);
      });
}

void CudaOps::layer_norm_forward(std::span<const NormForward<float>> list, double epsilon) const {
  in_launches<LayerNorm>(
      list,
      [](const NormForward<float>& j) {
        return LayerNorm{j.U.data,           j.gamma.data,       j.beta.data,
                         j.saved.data,       j.Y.data,           int_of(j.U.stride),
                         int_of(j.Y.stride), int_of(j.saved.stride), int_of(j.U.rows),
                         int_of(j.U.cols)};
      },
      [](const LayerNorm& j) { return blocks_for(static_cast<std::size_t>(j.rows), 8); },
      [&](const Jobs<LayerNorm>& jobs, int blocks) {
        launch(layer_norm_kernel, blocks, kThreads, 0, stream_, jobs, static_cast<float>(epsilon));
      });
}

void CudaOps::layer_norm_backward(std::span<const NormBackward<float>> list, const UpdateRule& rule) const {
  std::size_t places = 0;
  for (const auto& j : list) places += j.gamma.value.cols;
  auto* const before = static_cast<float*>(rows_.take(places * sizeof(float), stream_));
  const auto run = [&](auto&& kernel, auto&& blocks_of) {
    float* next = before;
    in_launches<NormBack>(
        list,
        [&](const NormBackward<float>& j) {
          float* own = next;
          next += j.gamma.value.cols;
          return norm_back(j, rule, own);
        },
        blocks_of,
        [&](const Jobs<NormBack>& jobs, int blocks) { launch(kernel, blocks, kThreads, 0, stream_, jobs); });
  };
  run(layer_norm_learn_kernel, [](const NormBack& j) { return strips_of(j); });
  run(layer_norm_backward_kernel, [](const NormBack& j) { return blocks_for(static_cast<std::size_t>(j.rows), 8); });
}

void CudaOps::dropout(double rate, std::span<const DropoutJob<float>> list) const {
  if (rate == 0) return;
  in_launches<Dropout>(
      list,
      [&](const DropoutJob<float>& j) {
        return Dropout{drop_of(rate, j.draws), j.X.data, int_of(j.X.stride), int_of(j.X.rows), int_of(j.X.cols)};
      },
      [](const Dropout& j) {
        return blocks_for(static_cast<std::size_t>(j.rows) * static_cast<std::size_t>((j.cols + 7) / 8), kThreads);
      },
      [&](const Jobs<Dropout>& jobs, int blocks) {
        launch(dropout_kernel, blocks, kThreads, 0, stream_, jobs);
      });
}

void CudaOps::activate_forward(Activation f, Input X, Output Y) const {
  const View x = view(X), y = view(Y);
  if (f == Activation::relu || f == Activation::leaky) {
    const float below = f == Activation::relu ? 0.f : .1f;
    each(X.rows, X.cols, stream_, [=] __device__(int i, int j) { y(i, j) = fmaxf(x(i, j), below * x(i, j)); });
  } else {
    const float centre = f == Activation::centred ? .5f : 0.f;
    each(X.rows, X.cols, stream_, [=] __device__(int i, int j) { y(i, j) = sigmoid_of(x(i, j)) - centre; });
  }
}
void CudaOps::activate_backward(Activation f, Input Y, Output dX) const {
  const View y = view(Y), d = view(dX);
  if (f == Activation::relu || f == Activation::leaky) {
    const float below = f == Activation::relu ? 0.f : .1f;
    each(Y.rows, Y.cols, stream_, [=] __device__(int i, int j) {
      if (!(y(i, j) > 0)) d(i, j) *= below;
    });
  } else {
    const float centre = f == Activation::centred ? .5f : 0.f;
    each(Y.rows, Y.cols, stream_, [=] __device__(int i, int j) {
      const float p = y(i, j) + centre;
      d(i, j) *= p * (1.f - p);
    });
  }
}
void CudaOps::copy(Input X, bool add, Output Y) const {
  if (!add && X.rows == 1) {  // whole arenas
    LACUNA_CUDA(cudaMemcpyAsync(Y.data, X.data, X.cols * sizeof(float), cudaMemcpyDeviceToDevice, stream_));
    return;
  }
  const View x = view(X), y = view(Y);
  each(X.rows, X.cols, stream_, [=] __device__(int i, int j) { y(i, j) = add ? y(i, j) + x(i, j) : x(i, j); });
}
void CudaOps::zero(Output X) const {
  const View x = view(X);  // a launch, not a memset: launches overlap
  each(X.rows, X.cols, stream_, [=] __device__(int i, int j) { x(i, j) = 0; });
}
void CudaOps::gate_forward(Input S, Input O, Output Z) const {
  const View s = view(S), o = view(O), z = view(Z);
  each(S.rows, S.cols, stream_, [=] __device__(int i, int j) { z(i, j) = s(i, j) * sigmoid_of(o(i, j)); });
}
void CudaOps::gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const {
  const View s = view(S), o = view(O), dz = view(dZ), ds = view(dS), d_o = view(dO);
  each(S.rows, S.cols, stream_, [=] __device__(int i, int j) {
    const float gate = sigmoid_of(o(i, j)), g = dz(i, j);
    ds(i, j) = g * gate;
    d_o(i, j) = g * s(i, j) * gate * (1.f - gate);
  });
}

}  // namespace lacuna::cuda
