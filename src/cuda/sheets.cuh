// Before a product: rows are cut into sheets of bf16 numbers, which later go to shared memory in one piece, and biases
// are learned.
#pragma once

#include "cuda/stream.cuh"

namespace lacuna::cuda {

// In which order columns lie in a sheet (cuda/backward.cuh says why).
enum class Order { plain, columns };

struct SheetJob {
  const float* from;
  Half* to;  // sheet after sheet, all terms of one together; or one sheet for any number of rows, whose rows are `pitch` apart
  int rows, cols, stride, padded_rows, width, terms, pitch;
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
// Of all sheets of so many columns, whatever their width.
inline std::size_t sheet_halves(std::size_t cols, int terms) {
  return (cols + 63) / 64 * 64 * static_cast<std::size_t>(terms * kSheetRows);
}

// Sheets of a matrix beside it, and the sums of its columns where a backward made them.
struct SheetForm final : Form {
  std::shared_ptr<void> memory;
  Half* sheets = nullptr;
  float* sums = nullptr;
  std::size_t most = 0;  // columns
  // What it holds, if anything.
  const float* of = nullptr;
  std::size_t rows = 0, cols = 0;
  int width = 0;

  void hold(const MatrixView<float>& m, int w) { of = m.data, rows = m.rows, cols = m.cols, width = w; }
  bool holds(const MatrixView<const float>& m, int w) const {
    return of == m.data && rows == m.rows && cols == m.cols && width == w;
  }
};
inline void forget(Form* form) {
  if (form != nullptr) static_cast<SheetForm*>(form)->of = nullptr;
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
