// Weights that stream through a multiprocessor (compute capability 9.0): one warp of a block asks for pieces of them,
// several stages ahead, and eight warps compute with what has arrived. Barriers in shared memory say what is there and
// what is free again; no thread waits for all others.
//
// The work of a launch is one row of equal units, over all jobs, and each block takes an equal share of it that begins
// and ends anywhere: a sum that blocks share is completed by the one that comes last, in the order of blocks. Ending a
// sum takes as long as some units: behind those of a sum there are as many places that hold nothing.
#pragma once

#include <cuda.h>

#include <algorithm>

#include "cuda/mma.cuh"

namespace lacuna::cuda {

constexpr int kComputing = 256, kStreamThreads = kComputing + 32;  // the last warp loads
constexpr int kBarriers = 32;                                      // places at the end of shared memory
constexpr int kStreamMemory = 227 << 10;                           // bytes of shared memory of a block
constexpr int kSheetRows = 128;                                    // places for rows in a sheet

// Weights come in boxes of 64 rows and 32 columns; 16 bytes of a row are where swizzled() says, so that lanes that read
// different rows meet different banks.
constexpr int kBoxRows = 64, kBoxCols = 32, kBox = kBoxRows * kBoxCols * 4;
__device__ inline const float4* swizzled(const unsigned char* box, int row, int sixteen) {
  return reinterpret_cast<const float4*>(box + row * 128 + ((sixteen ^ (row & 7)) << 4));
}
// The maps by which boxes are fetched, of all jobs and of up to four matrices each: weights and their state.
template <int planes>
struct alignas(64) Maps {
  CUtensorMap map[kMostJobs][planes];
};

// Forward a unit is kDeep rows and kBroad columns of W.
constexpr int kDeep = 64, kBroad = 128;

// A sheet is a part of a matrix in bf16, as it lies in memory and in shared memory: places for kSheetRows rows of 32 or 64
// columns. Eight of them are where sheet_at() says, so that eight rows that are read at once meet different banks. Rows up to
// the next multiple of 16 and columns up to the sheet's end are zeros, the other rows may hold anything.
__host__ __device__ constexpr int sheet_at(int width, int row, int col) {
  const int turn = width == 64 ? row & 7 : row >> 1 & 3;
  return row * width + ((col / 8 ^ turn) * 8) + col % 8;
}
__host__ __device__ constexpr int padded(int rows) { return (rows + 15) / 16 * 16; }

// Kernels have no body on older devices, where nobody calls them.
#define LACUNA_STREAMS (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)

#if LACUNA_STREAMS
__device__ inline void init_barrier(std::uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(barrier)), "r"(count));
}
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory"); }
__device__ inline void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(shared_address(barrier)) : "memory");
}
__device__ inline void arrive_and_expect(std::uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
__device__ inline void wait_for(std::uint64_t* barrier, int phase) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(phase & 1)
      : "memory");
}
__device__ inline void load_box(void* to, const CUtensorMap* map, int row, int col, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" ::"r"(
          shared_address(to)),
      "l"(map), "r"(col), "r"(row), "r"(shared_address(barrier))
      : "memory");
}
__device__ inline void store_box(const CUtensorMap* map, int row, int col, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n" ::"l"(map), "r"(col), "r"(row),
               "r"(shared_address(from))
               : "memory");
}
__device__ inline void end_stores() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }
// Until all but so many groups of stores have been read from shared memory; until all are done.
template <int most>
__device__ inline void wait_for_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(most) : "memory");
}
__device__ inline void wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory"); }
// What threads wrote to shared memory, to those who copy it from there.
__device__ inline void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }
// 16 bytes and multiples; the barrier counts them when they are there.
__device__ inline void load_bulk(void* to, const void* from, int bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
#endif

// Among the computing warps alone.
__device__ inline void wait_for_computing() { asm volatile("bar.sync 1, %0;\n" ::"n"(kComputing) : "memory"); }

// Which units a block takes, and who takes a unit.
struct UnitRange {
  int begin, end;
};
__device__ inline UnitRange share_of(int block, int blocks, int units) {
  return {static_cast<int>(static_cast<std::int64_t>(units) * block / blocks),
          static_cast<int>(static_cast<std::int64_t>(units) * (block + 1) / blocks)};
}
__device__ inline int owner_of(int unit, int blocks, int units) {
  return static_cast<int>(((static_cast<std::int64_t>(unit) + 1) * blocks - 1) / units);
}

// Blocks of a launch: no share is smaller than a sum's end.
inline int blocks_of(int places, int end, int multiprocessors) {
  return std::max(1, std::min(multiprocessors, places / (end + 1)));
}
// Goes through the units of a share. `length` of a job are the units of a sum, `span` those and the places behind, which it
// leaves out. Divisions and searches are for the first one only: the warp that loads has no time for them.
template <class Part>
struct Cursor {
  const Jobs<Part>& jobs;
  int at, end;         // the place of the unit, and where the share ends
  int job, sum, unit;  // number of the job, of the sum in it, and of the unit in the sum
  __device__ Cursor(const Jobs<Part>& all, int begin, int end) : jobs(all), at(begin), end(end), job(0) {
    while (job + 1 < jobs.count && at >= jobs.first[job + 1]) ++job;
    sum = (at - jobs.first[job]) / part().span;
    unit = (at - jobs.first[job]) % part().span;
    if (unit >= part().length) next_sum();
  }
  __device__ const Part& part() const { return jobs.job[job]; }
  __device__ bool over() const { return at >= end; }
  __device__ int sum_begin() const { return at - unit; }
  __device__ void next() {
    ++at;
    if (++unit == part().length) next_sum();
  }
  __device__ void next_sum() {  // from any place of a sum
    at += part().span - unit;
    unit = 0;
    ++sum;
    if (at < jobs.first[job + 1] || job + 1 == jobs.count) return;
    ++job;
    sum = 0;
  }
};

// The same from sum to sum, for those who have few registers: from a place to the first unit there or behind, and the number
// of its job; -1: there is none before `end`.
template <class Part>
__device__ inline int first_unit(const Jobs<Part>& jobs, int& at, int end) {
  int job = 0;
  const auto find = [&] {
    while (job + 1 < jobs.count && at >= jobs.first[job + 1]) ++job;
  };
  find();
  if (const int unit = (at - jobs.first[job]) % jobs.job[job].span; unit >= jobs.job[job].length) {
    at += jobs.job[job].span - unit;
    find();
  }
  return at < end ? job : -1;
}

// A sum of several blocks over units [begin, end). A block has two places for parts: one for a sum that began before
// its share, one for a sum that begins in it.
struct SharedSum {
  int first_block, parts, first_place;
  __device__ SharedSum(int begin, int end, int blocks, int units)
      : first_block(owner_of(begin, blocks, units)), parts(owner_of(end - 1, blocks, units) - first_block + 1) {
    first_place = 2 * first_block + (share_of(first_block, blocks, units).begin < begin ? 1 : 0);
  }
  __device__ int place(int part) const { return part == 0 ? first_place : 2 * (first_block + part); }
};

// Fours of a sum that a thread of the computing warps completes: from shared memory, `pitch` floats apart, where one
// block has all of it, otherwise from the parts in their order. Loads of one part are under way together; `left` says how
// many places of `parts` there are.
template <int count>
__device__ inline void add_parts(float4 (&sum)[count], const float* own, int pitch, const float4* parts, int place, int left,
                                 const SharedSum& shared) {
  if (shared.parts == 1) {
#pragma unroll
    for (int u = 0; u < count; ++u)
      sum[u] = u * kComputing < left ? *reinterpret_cast<const float4*>(own + u * pitch) : make_float4(0, 0, 0, 0);
    return;
  }
#pragma unroll
  for (int u = 0; u < count; ++u) sum[u] = make_float4(0, 0, 0, 0);
  for (int part = 0; part < shared.parts; ++part) {
    const float4* const from = parts + static_cast<std::int64_t>(shared.place(part)) * place;
    float4 more[count];
#pragma unroll
    for (int u = 0; u < count; ++u)
      more[u] = u * kComputing < left ? __ldcg(from + u * kComputing) : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int u = 0; u < count; ++u)
      sum[u].x += more[u].x, sum[u].y += more[u].y, sum[u].z += more[u].z, sum[u].w += more[u].w;
  }
}
// Up to four numbers of a row; `even`: it begins on 16 bytes.
__device__ inline void load_four(float (&values)[4], const float* from, int left, bool even) {
  if (even && left >= 4) {
    *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(from);
    return;
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) values[c] = c < left ? from[c] : 0.f;
}
__device__ inline void store_four(float* to, const float (&values)[4], int left, bool even) {
  if (even && left >= 4) {
    *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
    return;
  }
#pragma unroll
  for (int c = 0; c < 4; ++c)
    if (c < left) to[c] = values[c];
}

// Whether this block is the last of `parts` to come here; the counter is then zero again. Of computing warps.
// `last`: a place in shared memory.
__device__ inline bool computing_come_last(int* counter, int parts, int* last) {
  __threadfence();
  wait_for_computing();
  if (threadIdx.x == 0) {
    *last = atomicAdd(counter, 1) == parts - 1;
    if (*last) *counter = 0;
  }
  wait_for_computing();
  if (*last) __threadfence();
  return *last;
}

}  // namespace lacuna::cuda
