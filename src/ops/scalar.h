// The scalar formulas behind ops/ops.h, written once for every loop that applies them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "ops/ops.h"
#include "ops/update.h"

namespace lacuna {

template <class T>
inline T sigmoid_of(T x) {
  return x >= 0 ? T(1) / (T(1) + std::exp(-x)) : std::exp(x) / (T(1) + std::exp(x));
}

template <class T>
inline T softplus_of(T x) {  // ln(1 + e^x)
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}

template <class T>
inline T activation(Activation f, T x) {
  switch (f) {
    case Activation::relu:
      return x > 0 ? x : T(0);
    case Activation::leaky:
      return x > 0 ? x : T(.1) * x;
    case Activation::sigmoid:
      return sigmoid_of(x);
    case Activation::centred:
      return sigmoid_of(x) - T(.5);
  }
  return x;
}
// f' from what f gave.
template <class T>
inline T activation_slope(Activation f, T y) {
  switch (f) {
    case Activation::relu:
      return y > 0 ? T(1) : T(0);
    case Activation::leaky:
      return y > 0 ? T(1) : T(.1);
    case Activation::sigmoid:
      return y * (T(1) - y);
    case Activation::centred:
      return (T(.5) + y) * (T(.5) - y);
  }
  return T(1);
}

template <class T>
struct ValueAndSlope {
  T value, slope;
};

// bce(x, y) = ln(1 + e^x) - x y; slope σ(x) - y.
template <class T>
inline ValueAndSlope<T> bce_softplus(T x, T y) {
  return {softplus_of(x) - x * y, sigmoid_of(x) - y};
}

// |y ln(p + ε) + (1 - y) ln(1 - p + ε)| with p = σ(x) and y = 0 or 1. The argument of the absolute value
// turns positive where p (or 1 - p) comes within ε of 1, and the slope turns with it.
template <class T>
inline ValueAndSlope<T> bce_logarithm(T x, T y, T epsilon) {
  const bool positive = y > T(.5);
  const T p = sigmoid_of(x), q = positive ? p : sigmoid_of(-x);
  const T log = std::log(q + epsilon);
  const T slope = (log < 0 ? T(-1) : T(1)) / (q + epsilon) * q * (T(1) - q);
  return {std::abs(log), positive ? slope : -slope};
}

// Weight of a pair of rows in the label graph, eq. (5): both = labels known in both rows, shared = positives
// in both.
inline double graph_weight(double both, double shared, double eta) {
  const double product = both * shared;
  return product / (product + eta);
}

// Directions shorter than this have none.
constexpr double kTinyLength = 1e-12;

// Dropout: element j of the row with this identity. Eight draws of 16 bits from one block of random words.
inline std::uint32_t dropout_threshold(double rate) {
  return static_cast<std::uint32_t>(std::lround(rate * 65536));
}
inline double dropout_scale(double rate) {
  return 65536. / (65536. - dropout_threshold(rate));
}
inline std::uint64_t dropout_seed(const Draws& draws) {
  return draws.seed + 0x9E3779B97F4A7C15ull * (std::uint64_t{draws.layer} + 1);
}
inline Words dropout_counter(const Draws& draws, std::uint32_t row, std::uint32_t block) {
  return {block, draws.step, row, static_cast<std::uint32_t>(Purpose::dropout)};
}
inline Words dropout_words(const Draws& draws, std::uint32_t row, std::uint32_t block) {
  return philox(dropout_counter(draws, row, block), seed_key(dropout_seed(draws)));
}
inline std::uint32_t dropout_bits(const Words& words, std::size_t j) {
  return (words[(j % 8) / 2] >> (16 * (j % 2))) & 0xFFFFu;
}

}  // namespace lacuna
