// One optimiser step of one number: the scalar formulas, written once for every loop that applies them.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/matrix.h"

namespace lacuna {

enum class Optimiser { sgd, adam, adamw, rmsprop };

// The step's settings, the same for all parameters. `rate` already contains schedule and warm-up.
struct UpdateRule {
  Optimiser optimiser = Optimiser::sgd;
  double rate = .1;         // η
  double momentum = .9;     // sgd, rmsprop: momentum; adam: β1
  double beta2 = .999;      // adam, rmsprop
  double epsilon = 1e-8;    // adam, rmsprop
  double weight_decay = 0;  // added to the gradient; adamw: decoupled
  std::int64_t step = 1;    // t = 1, 2, ... (bias correction, averaging)
  double average = 0;       // decay of the running average of the parameters; 0 = none
};

// A parameter and its optimiser state; matrices of one shape (a bias is 1 x d). `second` is empty with sgd,
// `mean` without averaging. `decay` says whether weight decay applies to it.
template <class T>
struct ParameterView {
  MatrixView<T> value, first, second, mean;
  bool decay = true;
};

// Coefficients of a step, computed once.
template <class T>
struct UpdateCoefficients {
  Optimiser optimiser;
  T rate, momentum, epsilon, coupled_decay, shrink;
  T rest1, rest2, rest_average;      // 1 - β1, 1 - β2, 1 - decay of the average
  T corrected_rate, corrected_root;  // η / (1 - β1ᵗ), 1 / √(1 - β2ᵗ)

  UpdateCoefficients(const UpdateRule& rule, bool decay)
      : optimiser(rule.optimiser),
        rate(static_cast<T>(rule.rate)),
        momentum(static_cast<T>(rule.momentum)),
        epsilon(static_cast<T>(rule.epsilon)),
        coupled_decay(decay && rule.optimiser != Optimiser::adamw ? static_cast<T>(rule.weight_decay) : T(0)),
        shrink(decay && rule.optimiser == Optimiser::adamw ? static_cast<T>(1 - rule.rate * rule.weight_decay)
                                                           : T(1)),
        rest1(static_cast<T>(1 - rule.momentum)),
        rest2(static_cast<T>(rule.optimiser == Optimiser::rmsprop && rule.step <= 1 ? 1 : 1 - rule.beta2)),
        rest_average(static_cast<T>(1 - rule.average)),
        corrected_rate(
            static_cast<T>(rule.rate / (1 - std::pow(rule.momentum, static_cast<double>(rule.step))))),
        corrected_root(
            static_cast<T>(1 / std::sqrt(1 - std::pow(rule.beta2, static_cast<double>(rule.step))))) {}
};

// The formulas below take numbers or vectors of numbers (V); `root` is the square root of a V, `quotient`
// that of two. They are inlined always: files compiled for one instruction set use them, and must not leave a
// copy that other files could call.

// SGD with momentum: m <- μ m + g, w <- w - η m.
template <class T, class V>
[[gnu::always_inline]] inline void sgd_update(const UpdateCoefficients<T>& k, V gradient, V& w, V& m) {
  m = k.momentum * m + (gradient + k.coupled_decay * w);
  w -= k.rate * m;
}

// Adam and AdamW: m <- β1 m + (1-β1) g, v <- β2 v + (1-β2) g², w <- shrink·w - η m̂ / (√v̂ + ε). Written with
// few multiplications: with the four numbers of a parameter in cache, arithmetic is what it costs.
template <class T, class V, class Root, class Quotient>
[[gnu::always_inline]] inline void adam_update(const UpdateCoefficients<T>& k, V gradient, V& w, V& m, V& v,
                                               Root root, Quotient quotient) {
  const V g = k.coupled_decay * w + gradient;
  m += k.rest1 * (g - m);
  v += k.rest2 * (g * g - v);
  w = k.shrink * w - k.corrected_rate * quotient(m, k.corrected_root * root(v) + k.epsilon);
}

// RMSProp with momentum: v <- β2 v + (1-β2) g² (v = g² at first), m <- μ m - η g / (√v + ε), w <- w + m.
template <class T, class V, class Root, class Quotient>
[[gnu::always_inline]] inline void rmsprop_update(const UpdateCoefficients<T>& k, V gradient, V& w, V& m, V& v,
                                                  Root root, Quotient quotient) {
  const V g = k.coupled_decay * w + gradient;
  v += k.rest2 * (g * g - v);
  m = k.momentum * m - k.rate * quotient(g, root(v) + k.epsilon);
  w += m;
}

template <class T, class V>
[[gnu::always_inline]] inline void average_update(const UpdateCoefficients<T>& k, V w, V& mean) {
  mean += k.rest_average * (w - mean);
}

// A whole parameter, for small ones (biases, normalisers) and for the reference. The big matrices are updated
// inside linear_backward.
template <class T>
inline void update_parameter(const UpdateRule& rule, MatrixView<const T> gradient,
                             const ParameterView<T>& p) {
  const UpdateCoefficients<T> k(rule, p.decay);
  const auto root = [](T x) { return std::sqrt(x); };
  const auto quotient = [](T a, T b) { return a / b; };
  assert(gradient.rows == p.value.rows && gradient.cols == p.value.cols);
  for (std::size_t i = 0; i < gradient.rows; ++i)
    for (std::size_t j = 0; j < gradient.cols; ++j) {
      T& w = p.value(i, j);
      if (k.optimiser == Optimiser::sgd)
        sgd_update(k, gradient(i, j), w, p.first(i, j));
      else if (k.optimiser == Optimiser::rmsprop)
        rmsprop_update(k, gradient(i, j), w, p.first(i, j), p.second(i, j), root, quotient);
      else
        adam_update(k, gradient(i, j), w, p.first(i, j), p.second(i, j), root, quotient);
      if (!p.mean.empty()) average_update(k, w, p.mean(i, j));
    }
}

}  // namespace lacuna
