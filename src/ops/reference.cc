// The layers of the naive implementation; its losses are in reference_losses.cc.
#include "ops/reference.h"

#include <cmath>

#include "ops/gemm_reference.h"
#include "ops/scalar.h"

namespace lacuna {

template <class T>
void ReferenceOps<T>::gather(std::span<const GatherJob<T>> jobs) const {
  for (const auto& job : jobs) {
    std::vector<float> row(job.out.cols);
    for (std::size_t r = 0; r < job.out.rows; ++r) {
      if (r < job.rows.size()) job.source.copy(job.rows[r], row);
      for (std::size_t j = 0; j < job.out.cols; ++j) {
        const bool masked = !job.hidden.empty() && job.hidden[r].begin <= j && j < job.hidden[r].end;
        T& x = job.out(r, j);
        x = r >= job.rows.size() || masked ? T(0) : static_cast<T>(row[j]);
        if (!job.factors.empty()) x *= static_cast<T>(job.factors[r]);
      }
    }
  }
}

namespace {

// 1 or 1/k_i; 0 for a row without views.
double row_share(Slots slots, std::size_t i, Share share) {
  double k = 0;
  for (std::size_t v = 0; v < slots.cols; ++v) k += slots(i, v) != kNoRow;
  return k == 0 ? 0 : share == Share::mean ? 1 / k : 1;
}

}  // namespace

template <class T>
void ReferenceOps<T>::collect(Input stack, Slots slots, Share share, bool add, Output out) const {
  for (std::size_t i = 0; i < slots.rows; ++i)
    for (std::size_t j = 0; j < out.cols; ++j) {
      T sum = 0;
      for (std::size_t v = 0; v < slots.cols; ++v)
        if (slots(i, v) != kNoRow) sum += stack(static_cast<std::size_t>(slots(i, v)), j);
      const T value = sum * static_cast<T>(row_share(slots, i, share));
      out(i, j) = add ? out(i, j) + value : value;
    }
}

template <class T>
void ReferenceOps<T>::spread(Input rows, Slots slots, Share share, bool add, Output stack) const {
  for (std::size_t i = 0; i < slots.rows; ++i)
    for (std::size_t v = 0; v < slots.cols; ++v) {
      if (slots(i, v) == kNoRow) continue;
      const auto r = static_cast<std::size_t>(slots(i, v));
      for (std::size_t j = 0; j < rows.cols; ++j) {
        const T value = rows(i, j) * static_cast<T>(row_share(slots, i, share));
        stack(r, j) = add ? stack(r, j) + value : value;
      }
    }
}

template <class T>
void ReferenceOps<T>::linear_forward(std::span<const ForwardJob<T>> jobs) const {
  for (const auto& job : jobs) {
    reference::linear_forward<T>(job.X, job.W, job.b.row(0), job.relu, Precision::f32, job.Y);
    if (job.dropout == 0) continue;
    const DropoutJob<T> after{job.draws, job.Y.top(job.draws.rows.size())};
    dropout(job.dropout, {&after, 1});
  }
}

template <class T>
void ReferenceOps<T>::linear_backward(std::span<const BackwardJob<T>> jobs, const UpdateRule& rule) const {
  for (const auto& job : jobs) {
    reference::linear_backward<T>(job.X, job.dY, job.mask_by_input, Precision::f32, rule, job.W, job.b,
                                  job.dX);
    if (job.dropout == 0 || job.dX.empty()) continue;
    for (std::size_t r = 0; r < job.dropped; ++r)
      for (T& x : job.dX.row(r)) x *= static_cast<T>(dropout_scale(job.dropout));
  }
}

namespace {

// How many instances row r of a view's block stands for.
double row_weight(std::size_t r, std::size_t rows, std::size_t missing) {
  return missing > 0 && r + 1 == rows ? static_cast<double>(missing) : 1;
}
double total_weight(std::size_t rows, std::size_t missing) {
  return static_cast<double>(missing > 0 ? rows - 1 + missing : rows);
}

}  // namespace

template <class T>
void ReferenceOps<T>::batch_norm_forward(std::span<const NormForward<T>> jobs,
                                         const BatchNormSettings& settings) const {
  for (const auto& job : jobs) {
    const auto& [U, gamma, beta, saved, Y, running, missing] = job;
    if (U.rows == 0) continue;
    const double n = total_weight(U.rows, missing);
    for (std::size_t j = 0; j < U.cols; ++j) {
      double mean = 0, variance = 0;
      for (std::size_t r = 0; r < U.rows; ++r)
        mean += row_weight(r, U.rows, missing) * static_cast<double>(U(r, j));
      mean /= n;
      for (std::size_t r = 0; r < U.rows; ++r) {
        const double difference = static_cast<double>(U(r, j)) - mean;
        variance += row_weight(r, U.rows, missing) * difference * difference;
      }
      variance /= n;
      const double unbiased = n > 1 ? variance * n / (n - 1) : variance;
      running(0, j) += static_cast<T>(settings.momentum * (mean - static_cast<double>(running(0, j))));
      running(1, j) += static_cast<T>(settings.momentum * (unbiased - static_cast<double>(running(1, j))));
      saved(0, j) = static_cast<T>(mean);
      saved(1, j) = static_cast<T>(1 / std::sqrt(variance + settings.epsilon));
      for (std::size_t r = 0; r < U.rows; ++r)
        Y(r, j) = gamma(0, j) * (U(r, j) - saved(0, j)) * saved(1, j) + beta(0, j);
    }
  }
}

// With û = (u - μ) s, s = 1/√(σ² + ε), weights w of sum n:
//   dγ = Σ w dy û, dβ = Σ w dy, du = γ s (dy - dβ/n - û dγ/n), and the row that stands for many carries w du.
template <class T>
void ReferenceOps<T>::batch_norm_backward(std::span<const NormBackward<T>> jobs,
                                          const UpdateRule& rule) const {
  for (const auto& job : jobs) {
    const auto& [U, saved, gamma, beta, dY, missing] = job;
    const double n = total_weight(U.rows, missing);
    Matrix<T> all_dgamma(1, gamma.value.cols), all_dbeta(1, gamma.value.cols);
    for (std::size_t j = 0; j < gamma.value.cols; ++j) {
      double dgamma = 0, dbeta = 0;
      const auto hat = [&U = U, &saved = saved, j](std::size_t r) {
        return (static_cast<double>(U(r, j)) - static_cast<double>(saved(0, j))) *
               static_cast<double>(saved(1, j));
      };
      for (std::size_t r = 0; r < U.rows; ++r) {
        const double dy = row_weight(r, U.rows, missing) * static_cast<double>(dY(r, j));
        dgamma += dy * hat(r);
        dbeta += dy;
      }
      for (std::size_t r = 0; r < U.rows; ++r) {
        const double du = static_cast<double>(gamma.value(0, j)) * static_cast<double>(saved(1, j)) *
                          (static_cast<double>(dY(r, j)) - dbeta / n - hat(r) * dgamma / n);
        dY(r, j) = static_cast<T>(row_weight(r, U.rows, missing) * du);
      }
      all_dgamma(0, j) = static_cast<T>(dgamma);
      all_dbeta(0, j) = static_cast<T>(dbeta);
    }
    update_parameter<T>(rule, all_dgamma, gamma);
    update_parameter<T>(rule, all_dbeta, beta);
  }
}

template <class T>
void ReferenceOps<T>::batch_norm_apply(std::span<const NormForward<T>> jobs,
                                       const BatchNormSettings& settings) const {
  for (const auto& job : jobs) {
    const auto& [U, gamma, beta, saved, Y, running, missing] = job;
    for (std::size_t r = 0; r < U.rows; ++r)
      for (std::size_t j = 0; j < U.cols; ++j)
        Y(r, j) = gamma(0, j) * (U(r, j) - running(0, j)) /
                      std::sqrt(running(1, j) + static_cast<T>(settings.epsilon)) +
                  beta(0, j);
  }
}

template <class T>
void ReferenceOps<T>::layer_norm_forward(std::span<const NormForward<T>> jobs, double epsilon) const {
  for (const auto& job : jobs) {
    const auto& [U, gamma, beta, saved, Y, running, missing] = job;
    const auto d = static_cast<T>(U.cols);
    for (std::size_t r = 0; r < U.rows; ++r) {
      T mean = 0, variance = 0;
      for (std::size_t j = 0; j < U.cols; ++j) mean += U(r, j);
      mean /= d;
      for (std::size_t j = 0; j < U.cols; ++j) variance += (U(r, j) - mean) * (U(r, j) - mean);
      variance /= d;
      saved(r, 0) = mean;
      saved(r, 1) = T(1) / std::sqrt(variance + static_cast<T>(epsilon));
      for (std::size_t j = 0; j < U.cols; ++j)
        Y(r, j) = gamma(0, j) * (U(r, j) - saved(r, 0)) * saved(r, 1) + beta(0, j);
    }
  }
}

// With û = (u - μ) s and g = γ dy: du = s (g - mean(g) - û mean(g û)), means over the row.
template <class T>
void ReferenceOps<T>::layer_norm_backward(std::span<const NormBackward<T>> jobs,
                                          const UpdateRule& rule) const {
  for (const auto& job : jobs) {
    const auto& [U, saved, gamma, beta, dY, missing] = job;
    const auto d = static_cast<T>(U.cols);
    const auto hat = [&U = U, &saved = saved](std::size_t r, std::size_t j) {
      return (U(r, j) - saved(r, 0)) * saved(r, 1);
    };
    Matrix<T> dgamma(1, gamma.value.cols), dbeta(1, gamma.value.cols);
    for (std::size_t r = 0; r < U.rows; ++r) {
      T mean_g = 0, mean_gu = 0;
      for (std::size_t j = 0; j < U.cols; ++j) {
        dgamma(0, j) += dY(r, j) * hat(r, j);
        dbeta(0, j) += dY(r, j);
        mean_g += gamma.value(0, j) * dY(r, j) / d;
        mean_gu += gamma.value(0, j) * dY(r, j) * hat(r, j) / d;
      }
      for (std::size_t j = 0; j < U.cols; ++j)
        dY(r, j) = saved(r, 1) * (gamma.value(0, j) * dY(r, j) - mean_g - hat(r, j) * mean_gu);
    }
    update_parameter<T>(rule, dgamma, gamma);
    update_parameter<T>(rule, dbeta, beta);
  }
}

template <class T>
void ReferenceOps<T>::dropout(double rate, std::span<const DropoutJob<T>> jobs) const {
  const std::uint32_t threshold = dropout_threshold(rate);
  for (const auto& [draws, X] : jobs)
    for (std::size_t r = 0; r < X.rows; ++r)
      for (std::size_t j = 0; j < X.cols; ++j) {
        const Words words = dropout_words(draws, draws.rows[r], static_cast<std::uint32_t>(j / 8));
        const bool keep = dropout_bits(words, j) >= threshold;
        X(r, j) = keep ? X(r, j) * static_cast<T>(dropout_scale(rate)) : T(0);
      }
}

template <class T>
void ReferenceOps<T>::activate_forward(Activation f, Input X, Output Y) const {
  for (std::size_t r = 0; r < X.rows; ++r)
    for (std::size_t j = 0; j < X.cols; ++j) Y(r, j) = activation(f, X(r, j));
}

template <class T>
void ReferenceOps<T>::activate_backward(Activation f, Input Y, Output dX) const {
  for (std::size_t r = 0; r < Y.rows; ++r)
    for (std::size_t j = 0; j < Y.cols; ++j) dX(r, j) *= activation_slope(f, Y(r, j));
}

template <class T>
void ReferenceOps<T>::copy(Input X, bool add, Output Y) const {
  for (std::size_t r = 0; r < X.rows; ++r)
    for (std::size_t j = 0; j < X.cols; ++j) Y(r, j) = add ? Y(r, j) + X(r, j) : X(r, j);
}

template <class T>
void ReferenceOps<T>::zero(Output X) const {
  for (std::size_t r = 0; r < X.rows; ++r)
    for (std::size_t j = 0; j < X.cols; ++j) X(r, j) = 0;
}

template <class T>
void ReferenceOps<T>::gate_forward(Input S, Input O, Output Z) const {
  for (std::size_t r = 0; r < S.rows; ++r)
    for (std::size_t j = 0; j < S.cols; ++j) Z(r, j) = S(r, j) * sigmoid_of(O(r, j));
}

template <class T>
void ReferenceOps<T>::gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const {
  for (std::size_t r = 0; r < S.rows; ++r)
    for (std::size_t j = 0; j < S.cols; ++j) {
      const T gate = sigmoid_of(O(r, j));
      dS(r, j) = dZ(r, j) * gate;
      dO(r, j) = dZ(r, j) * S(r, j) * gate * (T(1) - gate);
    }
}

template class ReferenceOps<float>;
template class ReferenceOps<double>;

template <class T>
std::unique_ptr<Ops<T>> make_reference_ops() {
  return std::make_unique<ReferenceOps<T>>();
}
template std::unique_ptr<Ops<float>> make_reference_ops();
template std::unique_ptr<Ops<double>> make_reference_ops();

}  // namespace lacuna
