// Losses of labels and of reconstructions: value and gradient.
#include "cuda/losses.cuh"

namespace lacuna::cuda {
namespace {

// counts: known labels; or instances and rows with two views or more.
__global__ void count_kernel(Labels labels, const std::int32_t* slots, int rows, int views, double* counts) {
  in_order();
  __shared__ double shared[33];
  const int lane = static_cast<int>(threadIdx.x) % 32, warps = static_cast<int>(blockDim.x) / 32;
  double first = 0, second = 0;
  if (slots == nullptr) {
    int known = 0;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) / 32; i < labels.count; i += warps) {
      const std::uint8_t* g = labels.g(i);
#pragma unroll 8
      for (int j = lane; j < labels.cols; j += 32) known += g[j];
    }
    first = known;
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < rows; i += static_cast<int>(blockDim.x)) {
      int k = 0;
      for (int v = 0; v < views; ++v) k += slots[i * views + v] != kNoRow;
      first += k;
      second += k >= 2;
    }
  }
  first = block_sum(first, shared);
  if (threadIdx.x == 0) counts[0] = first;
  if (slots == nullptr) return;
  second = block_sum(second, shared);
  if (threadIdx.x == 0) counts[1] = second;
}

__global__ void bce_kernel(const float* logits, int stride, Labels labels, bool logarithm, float epsilon,
                           const double* known, double all, double weight, float* dlogits, int d_stride, Report to) {
  in_order();
  __shared__ double shared[33];
  const int i = static_cast<int>(blockIdx.x);
  const double divisor = known != nullptr ? *known : all;
  const float scale = divisor > 0 ? static_cast<float>(weight / divisor) : 0.f;
  const float* y = labels.y(i);
  const std::uint8_t* g = labels.g(i);
  double part = 0;
  for (int j = static_cast<int>(threadIdx.x); j < labels.cols; j += static_cast<int>(blockDim.x)) {
    const float x = logits[place(i, stride) + j];
    float slope = 0, value = 0;
    if (g[j] != 0) {
      if (logarithm) {
        const bool positive = y[j] > .5f;
        const float q = sigmoid_of(positive ? x : -x), log = logf(q + epsilon);
        slope = (log < 0 ? -1.f : 1.f) / (q + epsilon) * q * (1.f - q);
        if (!positive) slope = -slope;
        value = fabsf(log);
      } else {
        slope = sigmoid_of(x) - y[j];
        value = softplus_of(x) - x * y[j];
      }
    }
    const float w = labels.weight(j);
    part += static_cast<double>(w * value);
    dlogits[place(i, d_stride) + j] = w * slope * scale;
  }
  part = block_sum(part, shared);
  report(to, i, part, divisor > 0 ? 1 / divisor : 0);
}

__global__ void guess_kernel(const float* logits, int stride, Labels labels, const float* guesses, int guess_stride,
                             const double* known, double weight, float* dlogits, int d_stride, Report to) {
  in_order();
  __shared__ double shared[33];
  const int i = static_cast<int>(blockIdx.x);
  const double divisor = *known;
  const float scale = divisor > 0 ? static_cast<float>(weight / divisor) : 0.f;
  const std::uint8_t* g = labels.g(i);
  const float* guess = guesses + place(static_cast<int>(labels.rows[i]), guess_stride);
  double part = 0;
  for (int j = static_cast<int>(threadIdx.x); j < labels.cols; j += static_cast<int>(blockDim.x)) {
    if (g[j] != 0) continue;
    const float x = logits[place(i, stride) + j];
    const float w = labels.weight(j);
    part += static_cast<double>(w * (softplus_of(x) - x * guess[j]));
    dlogits[place(i, d_stride) + j] += w * (sigmoid_of(x) - guess[j]) * scale;
  }
  part = block_sum(part, shared);
  report(to, i, part, divisor > 0 ? 1 / divisor : 0);
}

__global__ void view_kernel(const float* logits, int stride, Labels labels, const std::int32_t* slots, int views,
                            const double* known, const double* counts, double teacher, double weight,
                            float* view_logits, int view_stride,
                            Report to) {
  in_order();
  __shared__ double shared[33];
  const int i = static_cast<int>(blockIdx.x);
  const double count = counts[0] * labels.cols, share = *known / (static_cast<double>(labels.count) * labels.cols);
  const float taught = static_cast<float>(teacher), told = share > 0 ? static_cast<float>((1 - teacher) / share) : 0.f;
  const float scale = count > 0 ? static_cast<float>(weight / count) : 0.f;
  const float* y = labels.y(i);
  const std::uint8_t* g = labels.g(i);
  double part = 0;
  for (int j = static_cast<int>(threadIdx.x); j < labels.cols; j += static_cast<int>(blockDim.x)) {
    const float known_share = g[j] != 0 ? told : 0.f, w = labels.weight(j), factor = w * (taught + known_share),
                target = w * (taught * sigmoid_of(logits[place(i, stride) + j]) + known_share * y[j]);
    constexpr int kSome = 8;
    for (int v0 = 0; v0 < views; v0 += kSome) {
      float x[kSome];
      std::int32_t slot[kSome];
#pragma unroll
      for (int v = 0; v < kSome; ++v) {
        slot[v] = v0 + v < views ? slots[i * views + v0 + v] : kNoRow;
        if (slot[v] != kNoRow) x[v] = view_logits[place(slot[v], view_stride) + j];
      }
#pragma unroll
      for (int v = 0; v < kSome; ++v) {
        if (slot[v] == kNoRow) continue;
        part += static_cast<double>(factor * softplus_of(x[v]) - target * x[v]);
        view_logits[place(slot[v], view_stride) + j] = (factor * sigmoid_of(x[v]) - target) * scale;
      }
    }
  }
  part = block_sum(part, shared);
  report(to, i, part, count > 0 ? 1 / count : 0);
}

struct Reconstruction {
  const float* X;
  float* out;
  int X_stride, out_stride, rows, cols;
  Report to;
};
__global__ void reconstruction_kernel(const __grid_constant__ Jobs<Reconstruction> jobs, double batch_rows, double weight) {
  in_order();
  __shared__ double shared[33];
  int row = static_cast<int>(blockIdx.x);
  const Reconstruction& job = jobs.find(row);
  const double divisor = batch_rows * job.cols;
  const float scale = static_cast<float>(2 * weight / divisor);
  double part = 0;
  constexpr int kSome = 8;
  const int step = static_cast<int>(blockDim.x);
  float* const y = job.out + place(row, job.out_stride);
  const float* const x = job.X + place(row, job.X_stride);
  for (int j0 = static_cast<int>(threadIdx.x); row < job.rows && j0 < job.cols; j0 += kSome * step) {
    float difference[kSome];
#pragma unroll
    for (int k = 0; k < kSome; ++k)
      if (const int j = j0 + k * step; j < job.cols) difference[k] = y[j] - x[j];
#pragma unroll
    for (int k = 0; k < kSome; ++k)
      if (const int j = j0 + k * step; j < job.cols) {
        part += static_cast<double>(difference[k] * difference[k]);
        y[j] = scale * difference[k];
      }
  }
  part = block_sum(part, shared);
  report(job.to, row, part, 1 / divisor);
}

}  // namespace

// Several losses of a step ask for the same labels: they change with an upload only.
const double* CudaOps::known_count(const LabelRows& labels) const {
  auto* counts = static_cast<double*>(counts_.take(4 * sizeof(double), stream_));
  const Counted wanted{labels.rows.data(), labels.G.data, labels.rows.size(), counts};
  if (!(wanted == counted_)) launch(count_kernel, 1, 1024, 0, stream_, labels_of(labels), nullptr, 0, 0, counts);
  counted_ = wanted;
  return counts;
}
double* CudaOps::slot_counts(Slots slots) const {
  auto* counts = static_cast<double*>(counts_.take(4 * sizeof(double), stream_)) + 1;
  launch(count_kernel, 1, 128, 0, stream_, Labels{}, slots.data, int_of(slots.rows), int_of(slots.cols), counts);
  return counts;
}

void CudaOps::bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight, Output dlogits,
                  double* value) const {
  const Report to = report_to(parts_, counters_, stream_, logits.rows, value);
  const double* known = settings.divisor == BceDivisor::known ? known_count(labels) : nullptr;
  launch(bce_kernel, int_of(logits.rows), threads_for(logits.cols), 0, stream_, logits.data, int_of(logits.stride), labels_of(labels), settings.form == BceForm::logarithm,
      static_cast<float>(settings.epsilon), known, static_cast<double>(logits.rows * logits.cols), weight, dlogits.data,
      int_of(dlogits.stride), to);
}

void CudaOps::guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight, Output dlogits,
                         double* value) const {
  const Report to = report_to(parts_, counters_, stream_, logits.rows, value);
  launch(guess_kernel, int_of(logits.rows), threads_for(logits.cols), 0, stream_, logits.data, int_of(logits.stride), labels_of(labels),
                                                              guesses.data, int_of(guesses.stride), known_count(labels),
                                                              weight, dlogits.data, int_of(dlogits.stride), to);
}

void CudaOps::view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight,
                        Output view_logits, double* value) const {
  const Report to = report_to(parts_, counters_, stream_, slots.rows, value);
  const double* const known = known_count(labels);
  launch(view_kernel, int_of(slots.rows), threads_for(logits.cols), 0, stream_, logits.data, int_of(logits.stride), labels_of(labels),
                                                            slots.data, int_of(slots.cols), known, slot_counts(slots), teacher_share,
                                                            weight, view_logits.data, int_of(view_logits.stride), to);
}

void CudaOps::reconstruction_loss(std::span<const ReconstructionJob<float>> list, std::size_t batch_rows,
                                  double weight) const {
  // Each job has a counter and parts of its own; a job without rows has one block that reports nothing.
  std::size_t places = 0;
  for (const auto& j : list) places += std::max<std::size_t>(1, j.X.rows);
  auto* parts = static_cast<double*>(parts_.take(places * sizeof(double), stream_));
  auto* counters = static_cast<int*>(counters_.take(list.size() * sizeof(int), stream_, true));
  in_launches<Reconstruction>(
      list,
      [&](const ReconstructionJob<float>& j) {
        const std::size_t rows = std::max<std::size_t>(1, j.X.rows);
        const Report to{parts, counters, j.value, int_of(rows)};
        parts += rows;
        ++counters;
        return Reconstruction{j.X.data,           j.reconstruction.data, int_of(j.X.stride), int_of(j.reconstruction.stride),
                              int_of(j.X.rows), int_of(j.X.cols), to};
      },
      [](const Reconstruction& j) { return std::max(1, j.rows); },
      [&](const Jobs<Reconstruction>& jobs, int blocks) {
        launch(reconstruction_kernel, blocks, 2 * kThreads, 0, stream_, jobs, static_cast<double>(batch_rows), weight);
      });
}

}  // namespace lacuna::cuda
