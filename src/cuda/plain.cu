// Linear layers in f32 for batches of any number of rows: three products, each by tiles of 64 x 64.
#include "cuda/plain.cuh"
#include "cuda/tiles.cuh"

namespace lacuna::cuda {
namespace {

struct PlainForward {
  const float *X, *W, *b;
  float* Y;
  int X_stride, W_stride, Y_stride, rows, in, out, columns;
  bool relu;
  Drop drop;
};
__global__ void plain_forward_kernel(const __grid_constant__ Jobs<PlainForward> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const PlainForward& job = jobs.find(block);
  const int i0 = block / job.columns * 64, j0 = block % job.columns * 64;
  float sums[4][4] = {};
  plain_product(
      job.in,
      [&](int i, int k) { return i0 + i < job.rows ? job.X[static_cast<std::int64_t>(i0 + i) * job.X_stride + k] : 0.f; },
      [&](int k, int j) { return j0 + j < job.out ? job.W[static_cast<std::int64_t>(k) * job.W_stride + j0 + j] : 0.f; },
      sums);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, j = j0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i >= job.rows || j >= job.out) continue;
      float y = sums[a][c] + job.b[j];
      if (job.relu) y = fmaxf(y, 0.f);
      if (i < job.drop.count) y = job.drop.apply(y, job.drop.words(i, j / 8), j);
      job.Y[static_cast<std::int64_t>(i) * job.Y_stride + j] = y;
    }
}

struct PlainBackward {
  const float *X, *dY;
  float* dX;
  Learned W;
  int X_stride, Y_stride, dX_stride, rows, in, out, columns;
  bool mask;
  float scale;
  int scaled;
};
__global__ void plain_input_kernel(const __grid_constant__ Jobs<PlainBackward> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const PlainBackward& job = jobs.find(block);
  const int i0 = block / job.columns * 64, j0 = block % job.columns * 64;
  float sums[4][4] = {};
  plain_product(
      job.out,
      [&](int i, int k) { return i0 + i < job.rows ? job.dY[static_cast<std::int64_t>(i0 + i) * job.Y_stride + k] : 0.f; },
      [&](int k, int j) { return j0 + j < job.in ? job.W.w[static_cast<std::int64_t>(j0 + j) * job.W.stride + k] : 0.f; },
      sums);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, j = j0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i >= job.rows || j >= job.in) continue;
      float value = sums[a][c];
      if (job.mask && !(job.X[static_cast<std::int64_t>(i) * job.X_stride + j] > 0)) value = 0;
      if (i < job.scaled) value *= job.scale;
      job.dX[static_cast<std::int64_t>(i) * job.dX_stride + j] = value;
    }
}
__global__ void plain_weight_kernel(const __grid_constant__ Jobs<PlainBackward> jobs) {
  in_order();
  int block = static_cast<int>(blockIdx.x);
  const PlainBackward& job = jobs.find(block);
  const int i0 = block / job.columns * 64, j0 = block % job.columns * 64;
  float sums[4][4] = {};
  plain_product(
      job.rows,
      [&](int i, int k) { return i0 + i < job.in ? job.X[static_cast<std::int64_t>(k) * job.X_stride + i0 + i] : 0.f; },
      [&](int k, int j) { return j0 + j < job.out ? job.dY[static_cast<std::int64_t>(k) * job.Y_stride + j0 + j] : 0.f; },
      sums);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 4; ++c) {
      const int i = i0 + static_cast<int>(threadIdx.x) / 16 + 16 * a, j = j0 + static_cast<int>(threadIdx.x) % 16 + 16 * c;
      if (i < job.in && j < job.out) job.W.update(static_cast<std::int64_t>(i) * job.W.stride + j, sums[a][c]);
    }
}

}  // namespace

void CudaOps::forward_f32(std::span<const ForwardJob<float>> list) const {
  in_launches<PlainForward>(
      list,
      [](const ForwardJob<float>& j) {
        return PlainForward{j.X.data,          j.W.data,         j.b.data,         j.Y.data,
                            int_of(j.X.stride), int_of(j.W.stride), int_of(j.Y.stride), int_of(j.X.rows),
                            int_of(j.W.rows),   int_of(j.W.cols), blocks_for(j.W.cols, 64),
                            j.relu,            drop_of(j.dropout, j.draws)};
      },
      [](const PlainForward& j) { return blocks_for(static_cast<std::size_t>(j.rows), 64) * j.columns; },
      [&](const Jobs<PlainForward>& jobs, int blocks) {
        launch(plain_forward_kernel, blocks, kTileThreads, 0, stream_, jobs);
      });
}

void CudaOps::backward_f32(std::span<const BackwardJob<float>> list, const UpdateRule& rule) const {
  const auto make = [&](const BackwardJob<float>& j, int columns) {
    return PlainBackward{j.X.data,
                         j.dY.data,
                         j.dX.data,
                         learned(j.W, rule),
                         int_of(j.X.stride),
                         int_of(j.dY.stride),
                         int_of(j.dX.stride),
                         int_of(j.dY.rows),
                         int_of(j.W.value.rows),
                         int_of(j.W.value.cols),
                         columns,
                         j.mask_by_input,
                         j.dropout > 0 ? drop_of(j.dropout, {}).scale : 1.f,
                         j.dropout > 0 ? int_of(j.dropped) : 0};
  };
  in_launches<PlainBackward>(
      list, [&](const BackwardJob<float>& j) { return make(j, blocks_for(j.W.value.rows, 64)); },
      [](const PlainBackward& j) {
        return j.dX == nullptr ? 0 : blocks_for(static_cast<std::size_t>(j.rows), 64) * j.columns;
      },
      [&](const Jobs<PlainBackward>& jobs, int blocks) {
        launch(plain_input_kernel, blocks, kTileThreads, 0, stream_, jobs);
      });
  in_launches<PlainBackward>(
      list, [&](const BackwardJob<float>& j) { return make(j, blocks_for(j.W.value.cols, 64)); },
      [](const PlainBackward& j) { return blocks_for(static_cast<std::size_t>(j.in), 64) * j.columns; },
      [&](const Jobs<PlainBackward>& jobs, int blocks) {
        launch(plain_weight_kernel, blocks, kTileThreads, 0, stream_, jobs);
      });
}

}  // namespace lacuna::cuda
