#include "nn/layers.h"

#include <algorithm>
#include <cmath>

namespace lacuna {
namespace {

// A list of jobs whose memory is kept from call to call.
template <class Job>
std::vector<Job>& job_list() {
  thread_local std::vector<Job> jobs;
  jobs.clear();
  return jobs;
}

}  // namespace

template <class T>
void Linear<T>::add(Parameters<T>& parameters, const std::string& name, std::size_t inputs,
                    std::size_t outputs, bool for_prediction) {
  in = inputs;
  out = outputs;
  W = parameters.add(name + ".weight", in, out, {.decay = true, .for_prediction = for_prediction});
  b = parameters.add(name + ".bias", 1, out, {.decay = false, .for_prediction = for_prediction});
}

template <class T>
void Linear<T>::initialise(const Ops<T>& ops, Parameters<T>& parameters, std::uint64_t seed,
                           double bias) const {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(in, 1)));
  parameters.draw_uniform(ops, W, seed, bound);
  if (bias == 0) {
    parameters.draw_uniform(ops, b, seed, bound);
  } else {
    parameters.fill(ops, b, bias);
  }
}

template <class T>
ForwardJob<T> Linear<T>::forward(const Parameters<T>& parameters, MatrixView<const T> X, bool relu,
                                 MatrixView<T> Y) const {
  return {.X = X, .W = parameters.value(W), .b = parameters.value(b), .relu = relu, .Y = Y};
}

template <class T>
BackwardJob<T> Linear<T>::backward(Parameters<T>& parameters, MatrixView<const T> X, MatrixView<const T> dY,
                                   bool mask_by_input, MatrixView<T> dX) const {
  return {.X = X,
          .dY = dY,
          .mask_by_input = mask_by_input,
          .W = parameters.view(W),
          .b = parameters.view(b),
          .dX = dX};
}

template <class T>
ForwardJob<T> Linear<T>::predict(const Parameters<T>& parameters, MatrixView<const T> X, bool relu,
                                 MatrixView<T> Y) const {
  return {.X = X,
          .W = parameters.predictor(W),
          .b = parameters.predictor(b),
          .settled = parameters.settled(W),
          .relu = relu,
          .Y = Y};
}

template <class T>
void Chain<T>::add(Parameters<T>& parameters, const std::string& name, const std::vector<std::size_t>& widths,
                   bool for_prediction, std::uint32_t first_layer_id) {
  first_layer_id_ = first_layer_id;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l)
    linears_.emplace_back().add(parameters, name + "." + std::to_string(l), widths[l], widths[l + 1],
                                for_prediction);
}

template <class T>
void Chain<T>::initialise(const Ops<T>& ops, Parameters<T>& parameters, std::uint64_t seed) const {
  for (const auto& linear : linears_) linear.initialise(ops, parameters, seed);
}

template <class T>
ChainMemory<T> Chain<T>::memory(const Ops<T>& ops, std::size_t rows) const {
  ChainMemory<T> memory;
  for (std::size_t l = 0; l + 1 < linears_.size(); ++l) {
    memory.hidden.emplace_back(ops, rows, linears_[l].out);
    memory.forms.push_back(ops.step_form(rows, linears_[l].out));
  }
  return memory;
}

template <class T>
std::size_t Chain<T>::widest() const {
  std::size_t widest = 0;
  for (const auto& linear : linears_) widest = std::max({widest, linear.in, linear.out});
  return widest;
}

template <class T>
void forward(const Ops<T>& ops, const Parameters<T>& parameters, std::span<const ChainForward<T>> chains,
             double dropout, Draws draws) {
  const std::size_t depth = chains.empty() ? 0 : chains.front().chain->depth();
  for (std::size_t l = 0; l < depth; ++l) {
    auto& jobs = job_list<ForwardJob<T>>();
    for (const auto& c : chains) {
      assert(c.chain->depth() == depth);
      const Linear<T>& linear = c.chain->linear(l);
      const bool last = l + 1 == depth;
      const auto X = l == 0 ? c.X : std::as_const(c.memory->hidden[l - 1]).take(c.Y.rows, linear.in);
      auto& job = jobs.emplace_back(
          linear.forward(parameters, X, !last, last ? c.Y : c.memory->hidden[l].take(c.Y.rows, linear.out)));
      job.X_form = l == 0 ? c.X_form : c.memory->forms[l - 1].get();
      if (!last) job.Y_form = c.memory->forms[l].get();
      if (last || dropout == 0) continue;
      job.dropout = dropout;
      job.draws = {draws.seed, draws.step, c.chain->layer_id(l), c.rows};
    }
    ops.linear_forward(jobs);
  }
}

template <class T>
void backward(const Ops<T>& ops, Parameters<T>& parameters, std::span<const ChainBackward<T>> chains,
              double dropout, const UpdateRule& rule) {
  const std::size_t depth = chains.empty() ? 0 : chains.front().chain->depth();
  for (std::size_t l = depth; l-- > 0;) {
    auto& jobs = job_list<BackwardJob<T>>();
    for (const auto& c : chains) {
      const Linear<T>& linear = c.chain->linear(l);
      const std::size_t rows = c.dY.rows;
      // Layer l reads its gradient from one buffer and leaves the next layer's in the other.
      const MatrixView<const T> dY =
          l + 1 == depth ? c.dY : std::as_const(c.scratch->buffers[(l + 1) % 2]).take(rows, linear.out);
      const Form* const dY_form = l + 1 == depth ? nullptr : c.scratch->gradients[(l + 1) % 2].get();
      if (l == 0) {
        auto& job = jobs.emplace_back(linear.backward(parameters, c.X, dY, false, c.dX));
        job.X_form = c.X_form;
        job.dY_form = dY_form;
        continue;
      }
      auto& job =
          jobs.emplace_back(linear.backward(parameters, c.memory->hidden[l - 1].take(rows, linear.in), dY,
                                            true, c.scratch->buffers[l % 2].take(rows, linear.in)));
      job.X_form = c.memory->forms[l - 1].get();
      job.dY_form = dY_form;
      job.dX_form = c.scratch->gradients[l % 2].get();
      job.dropout = dropout;
      job.dropped = c.dropped;
    }
    ops.linear_backward(jobs, rule);
  }
}

template <class T>
void predict(const Ops<T>& ops, const Parameters<T>& parameters, std::span<const ChainPrediction<T>> chains) {
  const std::size_t depth = chains.empty() ? 0 : chains.front().chain->depth();
  for (std::size_t l = 0; l < depth; ++l) {
    auto& jobs = job_list<ForwardJob<T>>();
    for (const auto& c : chains) {
      const Linear<T>& linear = c.chain->linear(l);
      const std::size_t rows = c.Y.rows, to = l % 2, from = 1 - to;
      const bool last = l + 1 == depth;
      const auto X = l == 0 ? c.X : std::as_const(c.scratch->buffers[from]).take(rows, linear.in);
      auto& job = jobs.emplace_back(
          linear.predict(parameters, X, !last, last ? c.Y : c.scratch->buffers[to].take(rows, linear.out)));
      job.X_form = l == 0 ? c.X_form : c.scratch->forms[from].get();
      if (!last) job.Y_form = c.scratch->forms[to].get();
    }
    ops.linear_forward(jobs);
  }
}

template <class T>
void Norm<T>::add(const Engine& engine, Parameters<T>& parameters, const std::string& name, std::size_t width,
                  EndNorm kind) {
  kind_ = kind;
  if (kind == EndNorm::none) return;
  gamma_ = parameters.add(name + ".gamma", 1, width, {.decay = false});
  beta_ = parameters.add(name + ".beta", 1, width, {.decay = false});
  if (kind == EndNorm::layer) return;
  running_ = EngineMatrix<T>(engine, 2, width);
  batch_ = EngineMatrix<T>(engine, 2, width);
  Matrix<T> ones(1, width);
  std::ranges::fill(ones.values(), T(1));
  upload<T>(engine, ones, running_.view().slice(1, 1));
}

template <class T>
void Norm<T>::initialise(const Ops<T>& ops, Parameters<T>& parameters) const {
  if (kind_ != EndNorm::none) parameters.fill(ops, gamma_, 1);
}

template <class T>
NormForward<T> Norm<T>::forward(const Parameters<T>& parameters, MatrixView<const T> U, std::size_t missing,
                                MatrixView<T> saved, MatrixView<T> Y) {
  if (kind_ == EndNorm::none) return {.U = U, .gamma = {}, .beta = {}, .saved = {}, .Y = Y};
  const bool by_row = kind_ == EndNorm::layer;
  return {.U = U,
          .gamma = parameters.value(gamma_),
          .beta = parameters.value(beta_),
          .saved = by_row ? saved : batch_.view(),
          .Y = Y,
          .running = running_,
          .missing = missing};
}

template <class T>
NormBackward<T> Norm<T>::backward(Parameters<T>& parameters, MatrixView<const T> U, std::size_t missing,
                                  MatrixView<const T> saved, MatrixView<T> dY) const {
  if (kind_ == EndNorm::none) return {.U = U, .saved = {}, .gamma = {}, .beta = {}, .dY = dY};
  return {.U = U,
          .saved = kind_ == EndNorm::layer ? saved : batch_.view(),
          .gamma = parameters.view(gamma_),
          .beta = parameters.view(beta_),
          .dY = dY,
          .missing = missing};
}

template <class T>
NormForward<T> Norm<T>::predict(const Parameters<T>& parameters, MatrixView<T> saved, MatrixView<T> U) const {
  if (kind_ == EndNorm::none) return {.U = U, .gamma = {}, .beta = {}, .saved = {}, .Y = U};
  const MatrixView<const T> running = running_;
  return {.U = U,
          .gamma = parameters.predictor(gamma_),
          .beta = parameters.predictor(beta_),
          .saved = saved,
          .Y = U,
          .running = {const_cast<T*>(running.data), running.rows, running.cols, running.stride}};
}

template <class T>
void norm_forward(const Ops<T>& ops, EndNorm kind, std::span<const NormForward<T>> jobs,
                  const BatchNormSettings& settings) {
  switch (kind) {
    case EndNorm::none:
      for (const auto& job : jobs) ops.copy(job.U, false, job.Y);
      return;
    case EndNorm::layer:
      return ops.layer_norm_forward(jobs, settings.epsilon);
    case EndNorm::batch:
    case EndNorm::batch_noise:
    case EndNorm::batch_present:
      return ops.batch_norm_forward(jobs, settings);
  }
}

template <class T>
void norm_backward(const Ops<T>& ops, EndNorm kind, std::span<const NormBackward<T>> jobs,
                   const UpdateRule& rule) {
  switch (kind) {
    case EndNorm::none:
      return;
    case EndNorm::layer:
      return ops.layer_norm_backward(jobs, rule);
    case EndNorm::batch:
    case EndNorm::batch_noise:
    case EndNorm::batch_present:
      return ops.batch_norm_backward(jobs, rule);
  }
}

template <class T>
void norm_predict(const Ops<T>& ops, EndNorm kind, std::span<const NormForward<T>> jobs,
                  const BatchNormSettings& settings) {
  switch (kind) {
    case EndNorm::none:
      return;
    case EndNorm::layer:
      return ops.layer_norm_forward(jobs, settings.epsilon);
    case EndNorm::batch:
    case EndNorm::batch_noise:
    case EndNorm::batch_present:
      return ops.batch_norm_apply(jobs, settings);
  }
}

#define LACUNA_LAYERS(T)                                                                                    \
  template struct Linear<T>;                                                                                \
  template class Chain<T>;                                                                                  \
  template class Norm<T>;                                                                                   \
  template void forward(const Ops<T>&, const Parameters<T>&, std::span<const ChainForward<T>>, double,      \
                        Draws);                                                                             \
  template void backward(const Ops<T>&, Parameters<T>&, std::span<const ChainBackward<T>>, double,          \
                         const UpdateRule&);                                                                \
  template void predict(const Ops<T>&, const Parameters<T>&, std::span<const ChainPrediction<T>>);          \
  template void norm_forward(const Ops<T>&, EndNorm, std::span<const NormForward<T>>,                       \
                             const BatchNormSettings&);                                                     \
  template void norm_backward(const Ops<T>&, EndNorm, std::span<const NormBackward<T>>, const UpdateRule&); \
  template void norm_predict(const Ops<T>&, EndNorm, std::span<const NormForward<T>>,                       \
                             const BatchNormSettings&);
LACUNA_LAYERS(float)
LACUNA_LAYERS(double)

}  // namespace lacuna
