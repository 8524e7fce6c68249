#include "ops/peaks.h"

#include <immintrin.h>

#include <time.h>

#include <cstdint>

#include "base/matrix.h"
#include "base/threads.h"
#include "ops/machine.h"

namespace lacuna {
namespace {

// Short loops, repeated: on a shared machine some of them run undisturbed.
constexpr double kSeconds = .3;
constexpr std::size_t kSteps = 100'000;
volatile float sink;

// Twelve independent sums hide the latency of the multiply-add.
__attribute__((target("avx512f"))) void fma_512() {
  __m512 sum[12], x = _mm512_set1_ps(1e-9f);
  for (auto& s : sum) s = _mm512_setzero_ps();
  for (std::size_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = _mm512_fmadd_ps(x, x, sum[j]);
  for (auto& s : sum) x = _mm512_add_ps(x, s);
  sink = _mm512_cvtss_f32(x);
}

__attribute__((target("avx2,fma"))) void fma_256() {
  __m256 sum[12], x = _mm256_set1_ps(1e-9f);
  for (auto& s : sum) s = _mm256_setzero_ps();
  for (std::size_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = _mm256_fmadd_ps(x, x, sum[j]);
  for (auto& s : sum) x = _mm256_add_ps(x, s);
  sink = _mm256_cvtss_f32(x);
}

void multiply_add_128() {
  __m128 sum[12], x = _mm_set1_ps(1e-9f);
  for (auto& s : sum) s = _mm_setzero_ps();
  for (std::size_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = _mm_add_ps(sum[j], _mm_mul_ps(x, sum[j]));
  for (auto& s : sum) x = _mm_add_ps(x, s);
  sink = _mm_cvtss_f32(x);
}

__attribute__((target("avx512f,avx512bf16"))) void dot_bf16() {
  __m512 sum[12];
  for (auto& s : sum) s = _mm512_setzero_ps();
  __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-9f), _mm512_set1_ps(1e-9f));
  for (std::size_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = _mm512_dpbf16_ps(sum[j], x, x);
  __m512 total = sum[0];
  for (auto& s : sum) total = _mm512_add_ps(total, s);
  sink = _mm512_cvtss_f32(total);
}

constexpr std::size_t kTileSteps = 5'000;
__attribute__((target("amx-tile,amx-bf16"))) void dot_tiles() {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } configuration;
  alignas(64) float tile[256] = {};
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, tile, 64);
  _tile_loadd(5, tile, 64);
  for (std::size_t i = 0; i < kTileSteps; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, tile, 64);
  sink = tile[0];
}

template <class F>
double rate(int count, double seconds, double amount, F&& work) {
  const auto all = [&] {
    parallel_for(static_cast<std::size_t>(count), 1, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) work(i);
    });
  };
  if (seconds > 0) return count * amount / measure(seconds, all).best;
  const double begin = clock_seconds();
  all();
  return count * amount / (clock_seconds() - begin);
}

Clock clock_in_use = Clock::wall;

}  // namespace

void use_clock(Clock clock) {
  clock_in_use = clock;
}

double clock_seconds() {
  timespec t{};
  clock_gettime(clock_in_use == Clock::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double peak_f32(int count) {
  constexpr double kOps = 2. * 12 * kSteps;
  if (has_isa(Isa::avx512)) return rate(count, kSeconds, 16 * kOps, [](std::size_t) { fma_512(); });
  if (has_isa(Isa::avx2)) return rate(count, kSeconds, 8 * kOps, [](std::size_t) { fma_256(); });
  return rate(count, kSeconds, 4 * kOps, [](std::size_t) { multiply_add_128(); });
}

double peak_bf16(int count, double seconds) {
  if (cpu_features().amx_granted)
    return rate(count, seconds, 4. * 2 * 16 * 16 * 32 * kTileSteps, [](std::size_t) { dot_tiles(); });
  if (has_isa(Isa::bf16)) return rate(count, seconds, 2. * 32 * 12 * kSteps, [](std::size_t) { dot_bf16(); });
  return 0;
}

double triad(int count) {
  constexpr std::size_t kCount = std::size_t{6} << 20;  // 3 x 24 MiB a thread
  std::vector<Matrix<float>> memory;
  for (int i = 0; i < 3 * count; ++i) memory.emplace_back(1, kCount);
  return rate(count, kSeconds, 12. * kCount, [&](std::size_t t) {
    float* a = memory[3 * t].data();
    const float *b = memory[3 * t + 1].data(), *c = memory[3 * t + 2].data();
    for (std::size_t i = 0; i < kCount; ++i) a[i] = b[i] + .5f * c[i];
  });
}

}  // namespace lacuna
