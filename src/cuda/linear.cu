// Linear layers: which kernels compute them. All of them take lists of jobs and round factors to bf16, but for f32.
//   stream_*   batches of up to 128 rows on compute capability 9.0: weights stream through (cuda/stream.cuh)
//   *_bf16     any other (cuda/tiles.cuh)
//   *_f32      any other in f32, and the backward of very large batches (cuda/plain.cu)
#include <vector>

#include "cuda/tiles.cuh"

namespace lacuna::cuda {
namespace {

constexpr std::size_t kMostTileRows = 256;  // of a backward by tiles

// As many jobs at a time as one launch takes: first those that `streams` names, then the others.
template <class Job, class Streams, class Stream, class Rest>
void in_two_kinds(std::span<const Job> list, Streams&& streams, Stream&& stream, Rest&& rest) {
  const auto hand_out = [&](bool kind, auto&& to) {
    std::vector<Job> some;
    for (const auto& job : list) {
      if (streams(job) == kind) some.push_back(job);
      if (some.size() < kMostJobs && &job != &list.back()) continue;
      if (!some.empty()) to(std::span<const Job>(some));
      some.clear();
    }
  };
  hand_out(true, stream);
  hand_out(false, rest);
}

}  // namespace

void CudaOps::linear_forward(std::span<const ForwardJob<float>> list) const {
  in_two_kinds(
      list, [&](const ForwardJob<float>& j) { return streams(j); },
      [&](std::span<const ForwardJob<float>> part) { stream_forward(part); },
      [&](std::span<const ForwardJob<float>> part) {
        for (const auto& j : part) forget(j.Y_form);
        if (precision_ == Precision::f32) return forward_f32(part);
        forward_bf16(part);
      });
}

void CudaOps::linear_backward(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  in_two_kinds(
      list, [&](const BackwardJob<float>& j) { return streams(j); },
      [&](std::span<const BackwardJob<float>> part) { stream_backward(part, rule); },
      [&](std::span<const BackwardJob<float>> part) {
        std::size_t most = 0;
        for (const auto& j : part) most = std::max(most, j.dY.rows), forget(j.dX_form);
        if (precision_ != Precision::f32 && most <= kMostTileRows) return backward_bf16(part, rule);
        BiasJobs biases{};
        for (const auto& j : part) {
          const BiasJob bias = bias_job(j, rule);
          add_job(biases, bias, bias_blocks(bias));
        }
        prepare({}, biases, stream_);
        backward_f32(part, rule);
      });
}

}  // namespace lacuna::cuda
