// Element-wise operations on one row, for one instruction set: those for which a plain loop is slow, because they
// draw random numbers or need an exponential. Each of row_kernels_{plain,avx2,avx512}.cc defines LACUNA_ISA
// and includes this file once. Everything below the table lies in an unnamed namespace and calls nothing of
// other headers, so that no inline function compiled for one instruction set can stand in for another's at
// link time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna {

struct RowKernels {
  // x[j] <- x[j] scale where draw j of the stream (key, counter) >= threshold, otherwise 0. Draws as in
  // ops/scalar.h.
  void (*dropout)(std::size_t n, std::uint32_t threshold, float scale, std::uint32_t key0, std::uint32_t key1,
                  const std::uint32_t* counter, float* x);
  void (*sigmoid)(std::size_t n, const float* x, float* p);
  // dx = known (σ(x) - y) scale; returns Σ known (ln(1 + e^x) - x y).
  double (*bce)(std::size_t n, const float* x, const float* y, const std::uint8_t* known, float scale,
                float* dx);
  // factor = taught + told known, target = taught σ(x) + told known y: what a view's classifier is taught.
  void (*lesson)(std::size_t n, const float* x, const float* y, const std::uint8_t* known, float taught,
                 float told, float* factor, float* target);
  // x <- (factor σ(x) - target) scale; returns Σ factor ln(1 + e^x) - target x.
  double (*learn)(std::size_t n, const float* factor, const float* target, float scale, float* x);
  // x <- e^(sharpness (x - origin)); returns its sum.
  double (*likeness)(std::size_t n, float sharpness, float origin, float* x);
  void (*gate)(std::size_t n, const float* s, const float* o, float* z);
  void (*gate_backward)(std::size_t n, const float* s, const float* o, const float* dz, float* ds,
                        float* d_o);
};

const RowKernels& row_kernels();  // of the instruction set in use (ops/machine.h)
const RowKernels& row_kernels_plain();
const RowKernels& row_kernels_avx2();
const RowKernels& row_kernels_avx512();

}  // namespace lacuna

#ifdef LACUNA_ISA
#define LACUNA_JOIN_(a, b) a##b
#define LACUNA_JOIN(a, b) LACUNA_JOIN_(a, b)

namespace lacuna {
namespace {

// e^x, relative error below 2e-7: x = n ln 2 + r, |r| <= ln 2 / 2, a polynomial in r, n into the exponent
// bits.
[[gnu::always_inline]] inline float exponential(float x) {
  x = x < -87.f ? -87.f : x > 88.f ? 88.f : x;
  constexpr float kRound = 12582912.f;  // 1.5 · 2²³: adding it rounds to a whole number
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * .693359375f) + n * 2.12194440e-4f;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + .5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const std::uint32_t bits = (__builtin_bit_cast(std::uint32_t, shifted) << 23) + 0x3F800000u;  // 2ⁿ
  return p * __builtin_bit_cast(float, bits);
}

// ln(1 + u) for u in [0, 1]: 2 artanh(s), s = u / (2 + u) <= 1/3.
[[gnu::always_inline]] inline float log_one_plus(float u) {
  const float s = u / (2.f + u), q = s * s;
  float p = 1.f / 15;
  p = p * q + 1.f / 13;
  p = p * q + 1.f / 11;
  p = p * q + 1.f / 9;
  p = p * q + 1.f / 7;
  p = p * q + 1.f / 5;
  p = p * q + 1.f / 3;
  p = p * q + 1.f;
  return 2.f * s * p;
}

struct Logistic {
  float probability, softplus;
};
[[gnu::always_inline]] inline float logistic(float x) {
  const float u = exponential(x > 0 ? -x : x), lower = u / (1.f + u);
  return x > 0 ? 1.f - lower : lower;
}
[[gnu::always_inline]] inline Logistic logistic_and_softplus(float x) {
  const float u = exponential(x > 0 ? -x : x), lower = u / (1.f + u);
  return {x > 0 ? 1.f - lower : lower, (x > 0 ? x : 0.f) + log_one_plus(u)};
}

constexpr std::size_t kLanes = 16;

// Philox, ten rounds, `kLanes` consecutive counters at once: 8 draws of 16 bits each.
constexpr std::size_t kDraws = kLanes * 8;
void draw_block(const std::uint32_t* counter, std::uint32_t first, std::uint32_t key0, std::uint32_t key1,
                std::uint16_t* draws) {
  std::uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    c0[l] = first + l;
    c1[l] = counter[1];
    c2[l] = counter[2];
    c3[l] = counter[3];
  }
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 1  // a whole loop vectorises, its unrolled body does not
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l], p1 = std::uint64_t{0xCD9E8D57} * c2[l];
      const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ key0;
      const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ key1;
      c1[l] = static_cast<std::uint32_t>(p1);
      c3[l] = static_cast<std::uint32_t>(p0);
      c0[l] = n0;
      c2[l] = n2;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  for (std::size_t l = 0; l < kLanes; ++l) {
    const std::uint32_t words[4] = {c0[l], c1[l], c2[l], c3[l]};
    for (std::size_t w = 0; w < 4; ++w) {
      draws[8 * l + 2 * w] = static_cast<std::uint16_t>(words[w] & 0xFFFFu);
      draws[8 * l + 2 * w + 1] = static_cast<std::uint16_t>(words[w] >> 16);
    }
  }
}

void dropout_row(std::size_t n, std::uint32_t threshold, float scale, std::uint32_t key0, std::uint32_t key1,
                 const std::uint32_t* counter, float* x) {
  std::uint16_t draws[kDraws];
  for (std::size_t begin = 0; begin < n; begin += kDraws) {
    draw_block(counter, static_cast<std::uint32_t>(begin / 8), key0, key1, draws);
    const std::size_t count = n - begin < kDraws ? n - begin : kDraws;
    for (std::size_t j = 0; j < count; ++j) {
      const bool stays = draws[j] >= threshold;
      x[begin + j] = stays ? x[begin + j] * scale : 0.f;
    }
  }
}

void sigmoid_row(std::size_t n, const float* x, float* p) {
  for (std::size_t j = 0; j < n; ++j) p[j] = logistic(x[j]);
}

// Sum of loss(j) in lanes; loss may write element j.
template <class F>
[[gnu::always_inline]] inline double sum_of(std::size_t n, F&& loss) {
  float lanes[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    float block[kLanes];
#pragma GCC unroll 1
    for (std::size_t l = 0; l < kLanes; ++l) block[l] = loss(j + l);
#pragma GCC unroll 1
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += block[l];
  }
  for (std::size_t l = 0; j < n; ++j, ++l) lanes[l] += loss(j);
  double sum = 0;
  for (std::size_t l = 0; l < kLanes; ++l) sum += static_cast<double>(lanes[l]);
  return sum;
}

double bce_row(std::size_t n, const float* x, const float* y, const std::uint8_t* known, float scale,
               float* dx) {
  return sum_of(
      n, [=](std::size_t j) __attribute__((always_inline)) {
        const Logistic at = logistic_and_softplus(x[j]);
        const float g = static_cast<float>(static_cast<int>(known[j]));
        dx[j] = g * (at.probability - y[j]) * scale;
        return g * (at.softplus - x[j] * y[j]);
      });
}

void lesson_row(std::size_t n, const float* x, const float* y, const std::uint8_t* known, float taught,
                float told, float* factor, float* target) {
  for (std::size_t j = 0; j < n; ++j) {
    const float w = told * static_cast<float>(static_cast<int>(known[j]));
    factor[j] = taught + w;
    target[j] = taught * logistic(x[j]) + w * y[j];
  }
}

double learn_row(std::size_t n, const float* factor, const float* target, float scale, float* x) {
  return sum_of(
      n, [=](std::size_t j) __attribute__((always_inline)) {
        const Logistic at = logistic_and_softplus(x[j]);
        const float loss = factor[j] * at.softplus - target[j] * x[j];
        x[j] = (factor[j] * at.probability - target[j]) * scale;
        return loss;
      });
}

double likeness_row(std::size_t n, float sharpness, float origin, float* x) {
  return sum_of(
      n, [=](std::size_t j)
             __attribute__((always_inline)) { return x[j] = exponential(sharpness * (x[j] - origin)); });
}

void gate_row(std::size_t n, const float* s, const float* o, float* z) {
  for (std::size_t j = 0; j < n; ++j) z[j] = s[j] * logistic(o[j]);
}

void gate_backward_row(std::size_t n, const float* s, const float* o, const float* dz, float* ds,
                       float* d_o) {
  for (std::size_t j = 0; j < n; ++j) {
    const float gate = logistic(o[j]), g = dz[j];
    ds[j] = g * gate;
    d_o[j] = g * s[j] * gate * (1.f - gate);
  }
}

constexpr RowKernels kKernels = {dropout_row, sigmoid_row,  bce_row,  lesson_row,
                                 learn_row,   likeness_row, gate_row, gate_backward_row};

}  // namespace

const RowKernels& LACUNA_JOIN(row_kernels_, LACUNA_ISA)() {
  return kKernels;
}

}  // namespace lacuna
#endif
