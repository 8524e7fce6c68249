// The losses of the CPU implementation. Each row writes its own part of a sum; the parts are added in order.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/threads.h"
#include "ops/cpu.h"
#include "ops/gemm.h"
#include "ops/row_kernels.h"
#include "ops/scalar.h"

namespace lacuna {
namespace {

constexpr std::size_t kCostOfExp = 2;  // elements' worth of work, for the size of chunks

// Sum over rows of value(row), rows in parallel, added in the order of the rows.
template <class F>
double sum_rows(std::size_t rows, std::size_t work_per_row, F&& value) {
  double* parts = scratch<double, 0>(rows);
  parallel_for(rows, row_grain(work_per_row), [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) parts[r] = value(r);
  });
  double sum = 0;
  for (std::size_t r = 0; r < rows; ++r) sum += parts[r];
  return sum;
}

double known_count(const LabelRows& labels) {
  return sum_rows(labels.rows.size(), labels.G.cols, [&](std::size_t i) {
    const std::uint8_t* g = labels.G.row(labels.rows[i]).data();
    unsigned count = 0;
    for (std::size_t j = 0; j < labels.G.cols; ++j) count += g[j];
    return static_cast<double>(count);
  });
}

std::size_t view_count(Slots slots, std::size_t i) {
  std::size_t k = 0;
  for (std::size_t v = 0; v < slots.cols; ++v) k += slots(i, v) != kNoRow;
  return k;
}

constexpr std::size_t kLanes = 16;
float dot(const float* a, const float* b, std::size_t count) {
  float lanes[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= count; j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += a[j + l] * b[j + l];
  for (std::size_t l = 0; j < count; ++j, ++l) lanes[l] += a[j] * b[j];
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

// q = x / |x|; returns 1/|x|, or 0 (and q = 0) for a vector without length.
float normalise(const float* x, std::size_t d, float* q) {
  const float length = std::sqrt(dot(x, x, d));
  const float inverse = length > static_cast<float>(kTinyLength) ? 1 / length : 0.f;
  for (std::size_t j = 0; j < d; ++j) q[j] = x[j] * inverse;
  return inverse;
}

// dx += (dq - (q·dq) q) / |x|
void normalise_backward(const float* q, float inverse_length, const float* dq, std::size_t d, float* dx) {
  const float along = dot(q, dq, d);
  for (std::size_t j = 0; j < d; ++j) dx[j] += (dq[j] - along * q[j]) * inverse_length;
}

float weight_of(const LabelRows& labels, std::size_t j) {
  return labels.weights.empty() ? 1 : labels.weights[j];
}

void add_scaled(float factor, const float* x, std::size_t d, float* y) {
  for (std::size_t j = 0; j < d; ++j) y[j] += factor * x[j];
}

}  // namespace

void CpuLosses::bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight, Output dlogits, double* result) const {
  const double divisor = settings.divisor == BceDivisor::known
                             ? known_count(labels)
                             : static_cast<double>(logits.rows * logits.cols);
  const float scale = divisor > 0 ? static_cast<float>(weight / divisor) : 0.f;
  const auto epsilon = static_cast<float>(settings.epsilon);
  const RowKernels& kernels = row_kernels();
  const double sum = sum_rows(logits.rows, logits.cols * kCostOfExp, [&](std::size_t i) {
    const float *x = logits.row(i).data(), *y = labels.Y.row(labels.rows[i]).data();
    const std::uint8_t* g = labels.G.row(labels.rows[i]).data();
    float* dx = dlogits.row(i).data();
    const bool softplus = settings.form == BceForm::softplus;
    if (softplus && labels.weights.empty()) return kernels.bce(logits.cols, x, y, g, scale, dx);
    double part = 0;
    for (std::size_t j = 0; j < logits.cols; ++j) {
      dx[j] = 0;
      if (g[j] == 0) continue;
      const auto [value, slope] = softplus ? bce_softplus(x[j], y[j]) : bce_logarithm(x[j], y[j], epsilon);
      const float w = weight_of(labels, j);
      part += static_cast<double>(w * value);
      dx[j] = w * slope * scale;
    }
    return part;
  });
  *result = divisor > 0 ? sum / divisor : 0;
}

void CpuLosses::guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight, Output dlogits, double* result) const {
  const double divisor = known_count(labels);
  const float scale = divisor > 0 ? static_cast<float>(weight / divisor) : 0.f;
  const double sum = sum_rows(logits.rows, logits.cols * kCostOfExp, [&](std::size_t i) {
    const float *x = logits.row(i).data(), *guess = guesses.row(labels.rows[i]).data();
    const std::uint8_t* g = labels.G.row(labels.rows[i]).data();
    float* dx = dlogits.row(i).data();
    double part = 0;
    for (std::size_t j = 0; j < logits.cols; ++j) {
      if (g[j] != 0) continue;
      const auto [value, slope] = bce_softplus(x[j], guess[j]);
      const float w = weight_of(labels, j);
      part += static_cast<double>(w * value);
      dx[j] += w * slope * scale;
    }
    return part;
  });
  *result = divisor > 0 ? sum / divisor : 0;
}

void CpuLosses::view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight, Output view_logits, double* result) const {
  std::size_t instances = 0;
  for (std::size_t i = 0; i < slots.rows; ++i) instances += view_count(slots, i);
  const double count = static_cast<double>(instances * logits.cols);
  const double known_share = known_count(labels) / static_cast<double>(logits.rows * logits.cols);
  const float taught = static_cast<float>(teacher_share);
  const float told = known_share > 0 ? static_cast<float>((1 - teacher_share) / known_share) : 0.f;
  const float scale = count > 0 ? static_cast<float>(weight / count) : 0.f;
  const RowKernels& kernels = row_kernels();
  const double sum = sum_rows(slots.rows, slots.cols * logits.cols * kCostOfExp, [&](std::size_t i) {
    const float *x = logits.row(i).data(), *y = labels.Y.row(labels.rows[i]).data();
    const std::uint8_t* g = labels.G.row(labels.rows[i]).data();
    // share·bce(x, p) + w·bce(x, y) = (share + w) softplus(x) - (share p + w y) x: one exponential an
    // element.
    float *factor = scratch<float, 1>(logits.cols), *target = scratch<float, 2>(logits.cols);
    kernels.lesson(logits.cols, x, y, g, taught, told, factor, target);
    for (std::size_t j = 0; j < labels.weights.size(); ++j)
      factor[j] *= labels.weights[j], target[j] *= labels.weights[j];
    double part = 0;
    for (std::size_t v = 0; v < slots.cols; ++v)
      if (slots(i, v) != kNoRow)
        part += kernels.learn(logits.cols, factor, target, scale,
                              view_logits.row(static_cast<std::size_t>(slots(i, v))).data());
    return part;
  });
  *result = count > 0 ? sum / count : 0;
}

void CpuLosses::graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight, Output dZ, double* result) const {
  const std::size_t b = Z.rows, d = Z.cols, c = labels.G.cols, words = (c + 63) / 64;
  // Known and positive labels as bits, so that eq. (5) is a matter of counting.
  auto *known = scratch<std::uint64_t, 3>(b * words), *positive = scratch<std::uint64_t, 4>(b * words);
  float *Q = scratch<float, 5>(b * d), *inverse = scratch<float, 6>(b);
  parallel_for(b, row_grain(d), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::fill(known + i * words, known + (i + 1) * words, 0);
      std::fill(positive + i * words, positive + (i + 1) * words, 0);
      for (std::size_t j = 0; j < c; ++j) {
        const std::size_t row = labels.rows[i];
        known[i * words + j / 64] |= std::uint64_t{labels.G(row, j) != 0} << (j % 64);
        positive[i * words + j / 64] |= std::uint64_t{labels.Y(row, j) > .5f} << (j % 64);
      }
      if (settings.normalise) {
        inverse[i] = normalise(Z.row(i).data(), d, Q + i * d);
      } else {
        std::copy(Z.row(i).begin(), Z.row(i).end(), Q + i * d);
      }
    }
  });
  // dQ = 4 s L Q, L = diag(T 1) - T, s = 1/b² (pairwise) or half of it; the loss is Q·dQ / 2.
  const double scale = (settings.pairwise ? 4. : 2.) / static_cast<double>(b * b);
  *result = sum_rows(b, b * words + d, [&](std::size_t i) {
    float* dq = scratch<float, 7>(d);
    std::fill(dq, dq + d, 0.f);
    double degree = 0;
    for (std::size_t k = 0; k < b; ++k) {
      int both = 0, shared = 0;
      for (std::size_t w = 0; w < words; ++w) {
        both += std::popcount(known[i * words + w] & known[k * words + w]);
        shared += std::popcount(positive[i * words + w] & positive[k * words + w]);
      }
      if (shared == 0) continue;
      const double t = graph_weight(both, shared, settings.eta);
      degree += t;
      add_scaled(static_cast<float>(-t), Q + k * d, d, dq);
    }
    if (degree == 0) return 0.;
    add_scaled(static_cast<float>(degree), Q + i * d, d, dq);
    const double part = scale / 2 * static_cast<double>(dot(Q + i * d, dq, d));
    for (std::size_t j = 0; j < d; ++j) dq[j] *= static_cast<float>(scale * weight);
    if (settings.normalise) {
      normalise_backward(Q + i * d, inverse[i], dq, d, dZ.row(i).data());
    } else {
      add_scaled(1.f, dq, d, dZ.row(i).data());
    }
    return part;
  });
}

void CpuLosses::contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight, Output dS, Output dO, double* result) const {
  std::size_t contributing = 0;
  for (std::size_t i = 0; i < slots.rows; ++i) contributing += view_count(slots, i) >= 2;
  *result = 0;
  if (contributing == 0) return;
  const double scale =
      settings.factor / (settings.share == Share::mean ? static_cast<double>(contributing) : 1.);
  const std::size_t d = S.cols, m = slots.cols;
  *result = sum_rows(slots.rows, 8 * m * m * d, [&](std::size_t i) {
    const std::size_t k = view_count(slots, i), h = 2 * k;
    if (k < 2) return 0.;
    float *Q = scratch<float, 8>(2 * m * d), *inverse = scratch<float, 9>(2 * m), *dq = scratch<float, 10>(d);
    auto** dx = scratch<float*, 11>(2 * m);
    float* slope = scratch<float, 12>(4 * m * m);  // cosines first, then the loss's slope by them
    std::size_t a = 0;
    for (std::size_t v = 0; v < m; ++v) {
      if (slots(i, v) == kNoRow) continue;
      const auto r = static_cast<std::size_t>(slots(i, v));
      inverse[a] = normalise(S.row(r).data(), d, Q + a * d);
      inverse[a + k] = normalise(O.row(r).data(), d, Q + (a + k) * d);
      dx[a] = dS.row(r).data();
      dx[a + k] = dO.row(r).data();
      ++a;
    }
    const bool self = settings.positives == ContrastPositives::self;
    const double N = static_cast<double>(settings.count == ContrastCount::views ? k : k * k);
    const double negatives = 3 * N * N - N, positives = N * N - N;
    double A = 0, B = 0;
    for (std::size_t p = 0; p < h; ++p)
      for (std::size_t q = 0; q <= p; ++q) {
        const float similarity = dot(Q + p * d, Q + q * d, d);
        slope[p * h + q] = slope[q * h + p] = similarity;
        const double times = p == q ? 1 : 2, value = static_cast<double>(similarity);
        if (p >= k && p != q) A += times * value * value;
        if (p < k && (p == q) == self) B += times * (value + 1 + settings.epsilon) / 2;
      }
    A /= negatives;
    B /= positives;
    for (std::size_t p = 0; p < h; ++p)
      for (std::size_t q = 0; q < h; ++q) {
        double e = 0;
        if ((p >= k || q >= k) && p != q) e = 2 * static_cast<double>(slope[p * h + q]) / (B * negatives);
        if (p < k && q < k && (p == q) == self) e = -A / (B * B * 2 * positives);
        slope[p * h + q] = static_cast<float>(2 * weight * scale * e);  // both orders of the pair
      }
    for (std::size_t p = 0; p < h; ++p) {
      std::fill(dq, dq + d, 0.f);
      for (std::size_t q = 0; q < h; ++q) add_scaled(slope[p * h + q], Q + q * d, d, dq);
      normalise_backward(Q + p * d, inverse[p], dq, d, dx[p]);
    }
    return scale * A / B;
  });
}

void CpuLosses::instance_loss(Input S, Slots slots, double tau, double weight, Output dS, double* result) const {
  const std::size_t b = slots.rows, d = S.cols;
  double sum = 0;
  for (std::size_t u = 0; u < slots.cols; ++u)
    for (std::size_t v = u + 1; v < slots.cols; ++v) {
      auto* where = scratch<std::size_t, 13>(2 * b);
      std::size_t a = 0;
      for (std::size_t i = 0; i < b; ++i) a += slots(i, u) != kNoRow && slots(i, v) != kNoRow;
      for (std::size_t i = 0, at = 0; i < b; ++i)
        if (slots(i, u) != kNoRow && slots(i, v) != kNoRow) {
          where[at] = static_cast<std::size_t>(slots(i, u));
          where[a + at++] = static_cast<std::size_t>(slots(i, v));
        }
      if (a == 0) continue;
      const std::size_t h = 2 * a;
      float *Q = scratch<float, 14>(2 * b * d), *inverse = scratch<float, 15>(2 * b);
      float* E = scratch<float, 16>(4 * b * b);  // slope by the cosine of the ordered pair
      parallel_for(h, row_grain(d), [&](std::size_t begin, std::size_t end) {
        for (std::size_t p = begin; p < end; ++p)
          inverse[p] = normalise(S.row(where[p]).data(), d, Q + p * d);
      });
      sum += sum_rows(h, h * d, [&](std::size_t p) {
        float* e = E + p * h;
        float total = 1;  // the self term is e⁰
        const std::size_t target = (p + a) % h;
        for (std::size_t q = 0; q < h; ++q) {
          if (q == p) continue;
          e[q] = std::exp(dot(Q + p * d, Q + q * d, d) / static_cast<float>(tau));
          total += e[q];
        }
        const double part = -std::log(static_cast<double>(e[target]) / static_cast<double>(total));
        const float factor = static_cast<float>(weight / (static_cast<double>(h) * tau));
        for (std::size_t q = 0; q < h; ++q)
          e[q] = q == p ? 0.f : factor * (e[q] / total - (q == target ? 1.f : 0.f));
        return part / static_cast<double>(h);
      });
      parallel_for(h, row_grain(h * d), [&](std::size_t begin, std::size_t end) {
        for (std::size_t p = begin; p < end; ++p) {
          float* dq = scratch<float, 17>(d);
          std::fill(dq, dq + d, 0.f);
          for (std::size_t q = 0; q < h; ++q) add_scaled(E[p * h + q] + E[q * h + p], Q + q * d, d, dq);
          normalise_backward(Q + p * d, inverse[p], dq, d, dS.row(where[p]).data());
        }
      });
    }
  *result = sum;
}

void CpuLosses::reconstruction_loss(std::span<const ReconstructionJob<float>> jobs, std::size_t batch_rows,
                                    double weight) const {
  for (const auto& job : jobs) {
    const auto& X = job.X;
    const double divisor = static_cast<double>(batch_rows * X.cols);
    const float scale = static_cast<float>(2 * weight / divisor);
    const double sum = sum_rows(X.rows, X.cols, [&](std::size_t r) {
      const float* x = X.row(r).data();
      float* y = job.reconstruction.row(r).data();
      for (std::size_t j = 0; j < X.cols; ++j) y[j] -= x[j];
      const double part = static_cast<double>(dot(y, y, X.cols));
      for (std::size_t j = 0; j < X.cols; ++j) y[j] *= scale;
      return part;
    });
    *job.value = X.rows > 0 ? sum / divisor : 0;
  }
}

// exp(-μ(P_j - P_l)) is a product, so the sums over pairs are sums over labels.
void CpuLosses::ranking_loss(Input logits, const LabelRows& labels, double margin, double weight, Output dlogits, double* result) const {
  const RowKernels& kernels = row_kernels();
  const auto mu = static_cast<float>(margin);
  *result = sum_rows(logits.rows, 4 * logits.cols * kCostOfExp, [&](std::size_t i) {
    const std::size_t c = logits.cols;
    const float* y = labels.Y.row(labels.rows[i]).data();
    const std::uint8_t* g = labels.G.row(labels.rows[i]).data();
    float *P = scratch<float, 18>(c), *e = scratch<float, 19>(c), *dx = dlogits.row(i).data();
    kernels.sigmoid(c, logits.row(i).data(), P);
    double low = 0, high = 0, positives = 0, negatives = 0;  // Σ e^{-μP} over positives, Σ e^{μP} over negatives
    for (std::size_t j = 0; j < c; ++j) {
      if (g[j] == 0) continue;
      const bool positive = y[j] > .5f;
      e[j] = std::exp((positive ? -mu : mu) * P[j]);
      (positive ? positives : negatives) += 1;
      (positive ? low : high) += static_cast<double>(e[j]);
    }
    const double pairs = positives * negatives;
    if (pairs == 0) {
      std::fill(dx, dx + c, 0.f);
      return 0.;
    }
    const auto up = static_cast<float>(-weight * high / pairs), down = static_cast<float>(weight * low / pairs);
    for (std::size_t j = 0; j < c; ++j)
      dx[j] = g[j] == 0 ? 0.f : (y[j] > .5f ? up : down) * e[j] * P[j] * (1.f - P[j]);
    return low * high / (pairs * margin);
  });
}

void CpuLosses::agreement_loss(Input A, Input E, double orthogonal, double weight, Output dA, Output dE, double* result) const {
  const std::size_t b = A.rows, d = A.cols;
  const auto twice = static_cast<float>(2 * weight), factor = static_cast<float>(4 * weight * orthogonal);
  const MatrixView<float> gram(scratch<float, 20>(d * d), d, d), product(scratch<float, 21>(b * d), b, d);
  double sum = sum_rows(b, 2 * d, [&](std::size_t i) {
    const float *a = A.row(i).data(), *e = E.row(i).data();
    float *da = dA.row(i).data(), *de = dE.row(i).data(), *difference = product.row(i).data();
    for (std::size_t k = 0; k < d; ++k) {
      difference[k] = a[k] - e[k];
      da[k] += twice * difference[k];
      de[k] -= twice * difference[k];
    }
    return static_cast<double>(dot(difference, difference, d));
  });
  const auto add = [&](Input M, Output dM) {
    multiply(M, M, Transpose::left, false, gram);
    sum += orthogonal * sum_rows(d, d, [&](std::size_t k) {
             gram(k, k) -= 1;
             return static_cast<double>(dot(gram.row(k).data(), gram.row(k).data(), d));
           });
    multiply(M, gram, Transpose::none, false, product);
    parallel_for(b, row_grain(d), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) add_scaled(factor, product.row(i).data(), d, dM.row(i).data());
    });
  };
  if (orthogonal != 0 && b != 0) {
    add(A, dA);
    add(E, dE);
  }
  *result = sum;
}

}  // namespace lacuna
