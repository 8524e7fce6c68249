// Before a product: rows are cut into sheets of bf16 numbers, which later go to shared memory in one piece, and biases
// are learned.
#pragma once

#include "cuda/stream.cuh"

namespace lacuna::cuda {

// In which order columns lie in a sheet (cuda/backward.cuh says why).
enum class Order { plain, columns, rows };

struct SheetJob {
  const float* from;
  Half* to;  // sheet after sheet, all terms of one together
  int rows, cols, stride, padded_rows, width, terms;
  Order order;
};
struct BiasJob {
  const float* dY;
  int rows, cols, stride;
  Learned b;
};
using SheetJobs = Jobs<SheetJob, 2 * kMostJobs>;
using BiasJobs = Jobs<BiasJob>;

inline int sheets_of(int cols, int width) { return (cols + width - 1) / width; }
inline std::size_t sheet_halves(int cols, int width, int padded_rows, int terms) {
  return static_cast<std::size_t>(sheets_of(cols, width)) * static_cast<std::size_t>(terms) *
         static_cast<std::size_t>(sheet_bytes(padded_rows, width)) / 2;
}
inline BiasJob bias_job(const BackwardJob<float>& j, const UpdateRule& rule) {
  return {j.dY.data, static_cast<int>(j.dY.rows), static_cast<int>(j.dY.cols), static_cast<int>(j.dY.stride),
          learned(j.b, rule)};
}
int sheet_blocks(const SheetJob& job);
int bias_blocks(const BiasJob& job);
void prepare(const SheetJobs& sheets, const BiasJobs& biases, cudaStream_t stream);

template <class Job, int most>
void add_job(Jobs<Job, most>& jobs, const Job& job, int blocks) {
  if (blocks == 0) return;
  jobs.job[jobs.count] = job;
  jobs.first[jobs.count + 1] = jobs.first[jobs.count] + blocks;
  ++jobs.count;
}
template <class Job, int most>
int total(const Jobs<Job, most>& jobs) {
  return jobs.first[jobs.count];
}

}  // namespace lacuna::cuda
