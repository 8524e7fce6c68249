#include "experiments/distributions.h"

#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/threads.h"

namespace lacuna {
namespace {

constexpr double kTiny = 1e-300;
constexpr double kPrecision = 1e-15;

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);  // std::lgamma writes a global
}

// The regularised upper incomplete gamma function Q(a, x): series below a + 1, continued fraction above.
double upper_gamma(double a, double x) {
  if (x <= 0) return 1;
  const double front = std::exp(a * std::log(x) - x - log_gamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (double n = a + 1; term > sum * kPrecision; ++n) sum += term *= x / n;
    return 1 - front * sum;
  }
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 10000; ++i) {
    const double n = -i * (i - a);
    b += 2;
    d = n * d + b;
    c = b + n / c;
    if (std::abs(d) < kTiny) d = kTiny;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
    if (std::abs(d * c - 1) < kPrecision) break;
  }
  return front * h;
}

// The continued fraction of the incomplete beta function; converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::abs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double h = d;
  const auto step = [&](double n) {
    d = 1 + n * d;
    c = 1 + n / c;
    if (std::abs(d) < kTiny) d = kTiny;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
  };
  for (int m = 1; m < 10000; ++m) {
    step(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)));
    const double before = h;
    step(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)));
    if (std::abs(h / before - 1) < kPrecision) break;
  }
  return h;
}

// I_x(a, b), regularised.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The x in (0, infinity) at which the falling function `tail` reaches `level`.
double invert(double level, FunctionRef<double(double)> tail) {
  assert(level > 0 && level < 1);
  double low = 0, high = 1;
  while (tail(high) > level) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = low + (high - low) / 2;
    (tail(middle) > level ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

}  // namespace

double normal_cdf(double z) {
  return .5 * std::erfc(-z / std::numbers::sqrt2);
}

double chi_squared_tail(double x, double freedom) {
  return upper_gamma(freedom / 2, x / 2);
}

double f_tail(double x, double numerator_freedom, double denominator_freedom) {
  if (x <= 0) return 1;
  if (std::isinf(x)) return 0;
  return incomplete_beta(denominator_freedom / 2, numerator_freedom / 2,
                         denominator_freedom / (denominator_freedom + numerator_freedom * x));
}

double student_two_sided(double t, double freedom) {
  if (std::isinf(t)) return 0;
  return incomplete_beta(freedom / 2, .5, freedom / (freedom + t * t));
}

double range_tail(double q, int k) {
  if (q <= 0) return 1;
  // P(range <= q) = k * integral of phi(z) (Phi(z) - Phi(z - q))^(k-1) dz: z is the largest of the k. The
  // integrand is smooth and vanishes at both ends, so the trapezoidal rule converges faster than any power of
  // the step.
  constexpr double kStep = 1. / 64, kEnd = 9;
  double sum = 0;
  for (double z = -kEnd; z <= kEnd + q; z += kStep) {
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    sum += density * std::pow(normal_cdf(z) - normal_cdf(z - q), k - 1);
  }
  return 1 - k * sum * kStep;
}

double range_critical(double level, int k) {
  return invert(level, [&](double q) { return range_tail(q, k); });
}

}  // namespace lacuna
