// The layers of the CPU implementation; its losses are in cpu_losses.cc.
#include "ops/cpu.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/machine.h"
#include "ops/row_kernels.h"
#include "ops/scalar.h"

namespace lacuna {
namespace {

// f(row) for all rows, several in a chunk.
template <class F>
void each_row(std::size_t rows, std::size_t cols, F&& f) {
  parallel_for(rows, row_grain(cols), [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) f(r);
  });
}

float row_share(Slots slots, std::size_t i, Share share) {
  int k = 0;
  for (std::size_t v = 0; v < slots.cols; ++v) k += slots(i, v) != kNoRow;
  return k == 0 ? 0.f : share == Share::mean ? 1.f / static_cast<float>(k) : 1.f;
}

constexpr std::size_t kColumns = 64;  // columns that batch norm works on at a time

}  // namespace

// Few rows take whole panels all the same, and making room for these would cost more than it saves; and with few
// rows a product is over as soon as W has been read.
constexpr std::size_t kFewRows = 16;

FormPointer CpuOps::input_form(std::size_t rows, std::size_t cols) const {
  auto form = std::make_unique<CpuRows>();
  form->most_rows = rows;
  form->cols = cols;
  return form;
}

// In f32 products read W in place, and without instructions for bf16 there would be nothing to gain.
FormPointer CpuOps::settle(Input W) const {
  const bool instructions = isa() == Isa::bf16 || isa() == Isa::amx;
  if (precision_ != Precision::bf16 || !instructions) return nullptr;
  return std::make_unique<CpuWeights>(W);
}

// Deviations pay up to a share of all entries (bench_sparse). Otherwise rows are packed for settled weights.
void CpuOps::gather(std::span<const GatherJob<float>> jobs) const {
  for (const auto& job : jobs) {
    const Output& X = job.out;
    each_row(X.rows, X.cols, [&](std::size_t r) {
      const auto to = X.row(r);
      if (r >= job.rows.size()) {
        std::ranges::fill(to, 0.f);
        return;
      }
      job.source.copy(job.rows[r], to);
      if (!job.hidden.empty()) std::fill(to.begin() + job.hidden[r].begin, to.begin() + job.hidden[r].end, 0.f);
      if (!job.factors.empty())
        for (float& x : to) x *= job.factors[r];
    });
    if (job.form == nullptr) continue;
    auto& form = static_cast<CpuRows&>(*job.form);
    form.clear();
    if (X.rows < kFewRows) continue;
    if (!job.background.empty()) {
      std::span<const Fragment> hidden = job.hidden;
      if (hidden.empty()) {
        Fragment* whole = scratch<Fragment, 18>(X.rows);
        std::fill_n(whole, X.rows, Fragment{});
        hidden = {whole, X.rows};
      }
      form.few.reserve(form.most_rows, form.cols);  // once, for the largest batch
      form.few.find(X, hidden, job.background, precision_);
      const double most = precision_ == Precision::f32 ? .3 : .2;
      if (static_cast<double>(form.few.count()) > most * static_cast<double>(X.size())) form.few.clear();
    }
    if (form.few.empty() && job.reader != nullptr) {
      form.packed.pack(X);
      form.is_packed = true;
    }
  }
}

void CpuOps::collect(Input stack, Slots slots, Share share, bool add, Output out) const {
  each_row(slots.rows, out.cols * slots.cols, [&](std::size_t i) {
    float* sum = scratch<float, 0>(out.cols);
    std::fill(sum, sum + out.cols, 0.f);
    for (std::size_t v = 0; v < slots.cols; ++v) {
      if (slots(i, v) == kNoRow) continue;
      const float* x = stack.row(static_cast<std::size_t>(slots(i, v))).data();
      for (std::size_t j = 0; j < out.cols; ++j) sum[j] += x[j];
    }
    const float factor = row_share(slots, i, share);
    float* y = out.row(i).data();
    if (add) {
      for (std::size_t j = 0; j < out.cols; ++j) y[j] += factor * sum[j];
    } else {
      for (std::size_t j = 0; j < out.cols; ++j) y[j] = factor * sum[j];
    }
  });
}

void CpuOps::spread(Input rows, Slots slots, Share share, bool add, Output stack) const {
  each_row(slots.rows, rows.cols * slots.cols, [&](std::size_t i) {
    const float factor = row_share(slots, i, share);
    const float* x = rows.row(i).data();
    for (std::size_t v = 0; v < slots.cols; ++v) {
      if (slots(i, v) == kNoRow) continue;
      float* y = stack.row(static_cast<std::size_t>(slots(i, v))).data();
      if (add) {
        for (std::size_t j = 0; j < rows.cols; ++j) y[j] += factor * x[j];
      } else {
        for (std::size_t j = 0; j < rows.cols; ++j) y[j] = factor * x[j];
      }
    }
  });
}

void CpuOps::linear_forward(std::span<const ForwardJob<float>> jobs) const {
  for (const auto& job : jobs) {
    const auto* in = static_cast<const CpuRows*>(job.X_form);
    const auto* weights = static_cast<const CpuWeights*>(job.settled);
    auto* out = static_cast<CpuRows*>(job.Y_form);
    const auto b = job.b.row(0);
    if (out != nullptr) out->clear();
    if (in != nullptr && !in->few.empty()) {
      sparse_forward(in->few, job.W, b, job.relu, job.Y);
    } else if (weights != nullptr) {
      const RowsIn rows = in != nullptr && in->is_packed ? RowsIn(in->packed) : RowsIn(job.X);
      if (out != nullptr && rows.rows() >= kFewRows) {
        lacuna::linear_forward(rows, weights->packed, b, job.relu, RowsOut(out->packed));
        out->is_packed = true;
      } else {
        lacuna::linear_forward(rows, weights->packed, b, job.relu, RowsOut(job.Y));
      }
    } else {
      lacuna::linear_forward(job.X, job.W, b, job.relu, precision_, job.Y);
    }
    if (job.dropout == 0) continue;
    const DropoutJob<float> after{job.draws, job.Y.top(job.draws.rows.size())};
    dropout(job.dropout, {&after, 1});
  }
}

void CpuOps::linear_backward(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const {
  for (const auto& job : jobs) {
    const auto* in = static_cast<const CpuRows*>(job.X_form);
    if (in != nullptr && !in->few.empty() && job.dX.empty())
      sparse_backward(in->few, job.dY, rule, job.W, job.b);
    else
      lacuna::linear_backward(job.X, job.dY, job.mask_by_input, precision_, rule, job.W, job.b, job.dX);
    if (job.dropout == 0 || job.dX.empty()) continue;
    const auto scale = static_cast<float>(dropout_scale(job.dropout));
    each_row(job.dropped, job.dX.cols, [&](std::size_t r) {
      for (float& x : job.dX.row(r)) x *= scale;
    });
  }
}

// Rows of a view's block have weight 1, but for the last one if it stands for missing instances. Sums in
// double.
void CpuOps::batch_norm_forward(std::span<const NormForward<float>> jobs,
                                const BatchNormSettings& settings) const {
  for (const auto& job : jobs) {
    const Input &U = job.U, &gamma = job.gamma, &beta = job.beta;
    const Output &saved = job.saved, &Y = job.Y, &running = job.running;
    const std::size_t missing = job.missing;
    if (U.rows == 0) continue;
    const double n = static_cast<double>(missing > 0 ? U.rows - 1 + missing : U.rows);
    parallel_for(U.cols, kColumns, [&](std::size_t begin, std::size_t end) {
      const std::size_t width = end - begin;
      double mean[kColumns] = {}, variance[kColumns] = {};
      for (std::size_t r = 0; r < U.rows; ++r) {
        const double weight = missing > 0 && r + 1 == U.rows ? static_cast<double>(missing) : 1;
        const float* u = &U(r, begin);
        for (std::size_t j = 0; j < width; ++j) mean[j] += weight * static_cast<double>(u[j]);
      }
      for (std::size_t j = 0; j < width; ++j) mean[j] /= n;
      for (std::size_t r = 0; r < U.rows; ++r) {
        const double weight = missing > 0 && r + 1 == U.rows ? static_cast<double>(missing) : 1;
        const float* u = &U(r, begin);
        for (std::size_t j = 0; j < width; ++j) {
          const double difference = static_cast<double>(u[j]) - mean[j];
          variance[j] += weight * difference * difference;
        }
      }
      float factor[kColumns], shift[kColumns];
      for (std::size_t j = 0; j < width; ++j) {
        variance[j] /= n;
        const double unbiased = n > 1 ? variance[j] * n / (n - 1) : variance[j];
        float &running_mean = running(0, begin + j), &running_variance = running(1, begin + j);
        running_mean += static_cast<float>(settings.momentum * (mean[j] - static_cast<double>(running_mean)));
        running_variance +=
            static_cast<float>(settings.momentum * (unbiased - static_cast<double>(running_variance)));
        saved(0, begin + j) = static_cast<float>(mean[j]);
        saved(1, begin + j) = static_cast<float>(1 / std::sqrt(variance[j] + settings.epsilon));
        factor[j] = gamma(0, begin + j) * saved(1, begin + j);
        shift[j] = saved(0, begin + j);
      }
      for (std::size_t r = 0; r < U.rows; ++r) {
        const float *u = &U(r, begin), *b = &beta(0, begin);
        float* y = &Y(r, begin);
        for (std::size_t j = 0; j < width; ++j) y[j] = factor[j] * (u[j] - shift[j]) + b[j];
      }
    });
  }
}

void CpuOps::batch_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const {
  for (const auto& job : jobs) {
    const Input &U = job.U, &saved = job.saved;
    const ParameterView<float>&gamma = job.gamma, &beta = job.beta;
    const Output& dY = job.dY;
    const std::size_t missing = job.missing;
    const double n = std::max(1., static_cast<double>(missing > 0 ? U.rows - 1 + missing : U.rows));
    const std::size_t d = gamma.value.cols;
    float *all_dgamma = scratch<float, 2>(d), *all_dbeta = scratch<float, 3>(d);
    parallel_for(d, kColumns, [&](std::size_t begin, std::size_t end) {
      const std::size_t width = end - begin;
      double dgamma[kColumns] = {}, dbeta[kColumns] = {};
      const float *mean = &saved(0, begin), *inverse = &saved(1, begin);
      for (std::size_t r = 0; r < U.rows; ++r) {
        const double weight = missing > 0 && r + 1 == U.rows ? static_cast<double>(missing) : 1;
        const float *u = &U(r, begin), *dy = &dY(r, begin);
        for (std::size_t j = 0; j < width; ++j) {
          const double g = weight * static_cast<double>(dy[j]);
          dgamma[j] += g * static_cast<double>((u[j] - mean[j]) * inverse[j]);
          dbeta[j] += g;
        }
      }
      float factor[kColumns], mean_g[kColumns], mean_gu[kColumns];
      for (std::size_t j = 0; j < width; ++j) {
        factor[j] = gamma.value(0, begin + j) * inverse[j];
        mean_g[j] = static_cast<float>(dbeta[j] / n);
        mean_gu[j] = static_cast<float>(dgamma[j] / n) * inverse[j];
      }
      for (std::size_t r = 0; r < U.rows; ++r) {
        const float weight = missing > 0 && r + 1 == U.rows ? static_cast<float>(missing) : 1.f;
        const float* u = &U(r, begin);
        float* dy = &dY(r, begin);
        for (std::size_t j = 0; j < width; ++j)
          dy[j] = weight * factor[j] * (dy[j] - mean_g[j] - (u[j] - mean[j]) * mean_gu[j]);
      }
      for (std::size_t j = 0; j < width; ++j) {
        all_dgamma[begin + j] = static_cast<float>(dgamma[j]);
        all_dbeta[begin + j] = static_cast<float>(dbeta[j]);
      }
    });
    update_parameter<float>(rule, {all_dgamma, 1, d}, gamma);
    update_parameter<float>(rule, {all_dbeta, 1, d}, beta);
  }
}

void CpuOps::batch_norm_apply(std::span<const NormForward<float>> jobs,
                              const BatchNormSettings& settings) const {
  for (const auto& job : jobs) {
    const Input &U = job.U, &gamma = job.gamma, &beta = job.beta;
    const Output &Y = job.Y, &running = job.running;
    float* factor = scratch<float, 1>(U.cols);
    for (std::size_t j = 0; j < U.cols; ++j)
      factor[j] = gamma(0, j) / std::sqrt(running(1, j) + static_cast<float>(settings.epsilon));
    each_row(U.rows, U.cols, [&](std::size_t r) {
      const float *u = U.row(r).data(), *mean = running.row(0).data(), *b = beta.row(0).data();
      float* y = Y.row(r).data();
      for (std::size_t j = 0; j < U.cols; ++j) y[j] = factor[j] * (u[j] - mean[j]) + b[j];
    });
  }
}

namespace {

// A sum in sixteen lanes, so that it vectorises without reassociation by the compiler.
constexpr std::size_t kLanes = 16;
template <class F>
float lane_sum(std::size_t count, F&& term) {
  float lanes[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= count; j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += term(j + l);
  for (std::size_t l = 0; j < count; ++j, ++l) lanes[l] += term(j);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

}  // namespace

void CpuOps::layer_norm_forward(std::span<const NormForward<float>> jobs, double epsilon) const {
  for (const auto& job : jobs) {
    const Input &U = job.U, &gamma = job.gamma, &beta = job.beta;
    const Output &Y = job.Y, &saved = job.saved;
    const float d = static_cast<float>(U.cols);
    each_row(U.rows, U.cols, [&](std::size_t r) {
      const float *u = U.row(r).data(), *g = gamma.row(0).data(), *b = beta.row(0).data();
      float* y = Y.row(r).data();
      const float mean = lane_sum(U.cols, [&](std::size_t j) { return u[j]; }) / d;
      const float variance = lane_sum(U.cols, [&](std::size_t j) { return (u[j] - mean) * (u[j] - mean); }) / d;
      const float inverse = 1 / std::sqrt(variance + static_cast<float>(epsilon));
      saved(r, 0) = mean;
      saved(r, 1) = inverse;
      for (std::size_t j = 0; j < U.cols; ++j) y[j] = g[j] * ((u[j] - mean) * inverse) + b[j];
    });
  }
}

void CpuOps::layer_norm_backward(std::span<const NormBackward<float>> jobs, const UpdateRule& rule) const {
  for (const auto& job : jobs) {
    const Input &U = job.U, &saved = job.saved;
    const ParameterView<float>&gamma = job.gamma, &beta = job.beta;
    const Output& dY = job.dY;
    const std::size_t d = gamma.value.cols;
    float *dgamma = scratch<float, 2>(d), *dbeta = scratch<float, 3>(d);
    parallel_for(d, kColumns, [&](std::size_t begin, std::size_t end) {
      std::fill(dgamma + begin, dgamma + end, 0.f);
      std::fill(dbeta + begin, dbeta + end, 0.f);
      for (std::size_t r = 0; r < U.rows; ++r) {
        const float *u = U.row(r).data(), *dy = dY.row(r).data();
        const float mean = saved(r, 0), inverse = saved(r, 1);
        for (std::size_t j = begin; j < end; ++j) {
          dgamma[j] += dy[j] * ((u[j] - mean) * inverse);
          dbeta[j] += dy[j];
        }
      }
    });
    each_row(U.rows, U.cols, [&](std::size_t r) {
      const float *u = U.row(r).data(), *g = gamma.value.row(0).data();
      float* dy = dY.row(r).data();
      const float mean = saved(r, 0), inverse = saved(r, 1), width = static_cast<float>(d);
      const float mean_g = lane_sum(d, [&](std::size_t j) { return g[j] * dy[j]; }) / width;
      const float mean_gu =
          lane_sum(d, [&](std::size_t j) { return g[j] * dy[j] * (u[j] - mean); }) * inverse / width;
      for (std::size_t j = 0; j < d; ++j)
        dy[j] = inverse * (g[j] * dy[j] - mean_g - (u[j] - mean) * inverse * mean_gu);
    });
    update_parameter<float>(rule, {dgamma, 1, d}, gamma);
    update_parameter<float>(rule, {dbeta, 1, d}, beta);
  }
}

void CpuOps::dropout(double rate, std::span<const DropoutJob<float>> jobs) const {
  const RowKernels& kernels = row_kernels();
  for (const auto& job : jobs) {
    const auto key = seed_key(dropout_seed(job.draws));
    each_row(job.X.rows, job.X.cols * 2, [&](std::size_t r) {
      const Words counter = dropout_counter(job.draws, job.draws.rows[r], 0);
      kernels.dropout(job.X.cols, dropout_threshold(rate), static_cast<float>(dropout_scale(rate)), key[0],
                      key[1], counter.data(), job.X.row(r).data());
    });
  }
}

void CpuOps::activate_forward(Activation f, Input X, Output Y) const {
  const RowKernels& kernels = row_kernels();
  const bool exponential = f == Activation::sigmoid || f == Activation::centred;
  each_row(X.rows, X.cols * (exponential ? 2 : 1), [&](std::size_t r) {
    const float* x = X.row(r).data();
    float* y = Y.row(r).data();
    if (exponential) kernels.sigmoid(X.cols, x, y);
    if (f == Activation::relu)
      for (std::size_t j = 0; j < X.cols; ++j) y[j] = x[j] > 0 ? x[j] : 0.f;
    if (f == Activation::leaky)
      for (std::size_t j = 0; j < X.cols; ++j) y[j] = x[j] > 0 ? x[j] : .1f * x[j];
    if (f == Activation::centred)
      for (std::size_t j = 0; j < X.cols; ++j) y[j] -= .5f;
  });
}

void CpuOps::activate_backward(Activation f, Input Y, Output dX) const {
  const auto slope = [&](auto of) {
    each_row(Y.rows, Y.cols, [&](std::size_t r) {
      const float* y = Y.row(r).data();
      float* dx = dX.row(r).data();
      for (std::size_t j = 0; j < Y.cols; ++j) dx[j] = of(y[j], dx[j]);
    });
  };
  switch (f) {
    case Activation::relu:
      return slope([](float y, float d) { return y > 0 ? d : 0.f; });
    case Activation::leaky:
      return slope([](float y, float d) { return y > 0 ? d : .1f * d; });
    case Activation::sigmoid:
      return slope([](float y, float d) { return d * (y * (1.f - y)); });
    case Activation::centred:
      return slope([](float y, float d) { return d * ((.5f + y) * (.5f - y)); });
  }
}

void CpuOps::copy(Input X, bool add, Output Y) const {
  each_row(X.rows, X.cols, [&](std::size_t r) {
    const float* x = X.row(r).data();
    float* y = Y.row(r).data();
    if (add) {
      for (std::size_t j = 0; j < X.cols; ++j) y[j] += x[j];
    } else {
      std::copy(x, x + X.cols, y);
    }
  });
}

void CpuOps::zero(Output X) const {
  each_row(X.rows, X.cols, [&](std::size_t r) { std::ranges::fill(X.row(r), 0.f); });
}

void CpuOps::gate_forward(Input S, Input O, Output Z) const {
  const RowKernels& kernels = row_kernels();
  each_row(S.rows, S.cols * 2,
           [&](std::size_t r) { kernels.gate(S.cols, S.row(r).data(), O.row(r).data(), Z.row(r).data()); });
}

void CpuOps::gate_backward(Input S, Input O, Input dZ, Output dS, Output dO) const {
  const RowKernels& kernels = row_kernels();
  each_row(S.rows, S.cols * 2, [&](std::size_t r) {
    kernels.gate_backward(S.cols, S.row(r).data(), O.row(r).data(), dZ.row(r).data(), dS.row(r).data(),
                          dO.row(r).data());
  });
}

std::unique_ptr<Ops<float>> make_cpu_ops(Precision precision) {
  return std::make_unique<CpuOps>(precision);
}

}  // namespace lacuna
