#include "nn/layers.h"

#include <algorithm>
#include <cmath>

namespace lacuna {

template <class T>
void Linear<T>::add(Parameters<T>& parameters, const std::string& name, std::size_t inputs,
                    std::size_t outputs, bool for_prediction) {
  in = inputs;
  out = outputs;
  W = parameters.add(name + ".weight", in, out, {.decay = true, .for_prediction = for_prediction});
  b = parameters.add(name + ".bias", 1, out, {.decay = false, .for_prediction = for_prediction});
}

template <class T>
void Linear<T>::initialise(Parameters<T>& parameters, std::uint64_t seed, double bias) const {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(in, 1)));
  parameters.draw_uniform(W, seed, bound);
  if (bias == 0) {
    parameters.draw_uniform(b, seed, bound);
  } else {
    parameters.fill(b, bias);
  }
}

template <class T>
void Linear<T>::forward(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, bool relu,
                        MatrixView<T> Y) const {
  if (X.few != nullptr)
    ops.sparse_forward(*X.few, parameters.value(W), parameters.value(b), relu, Y);
  else
    ops.linear_forward(X.X, parameters.value(W), parameters.value(b), relu, Y);
}

template <class T>
void Linear<T>::backward(const Ops<T>& ops, Parameters<T>& parameters, LayerInput<T> X,
                         MatrixView<const T> dY, bool mask_by_input, const UpdateRule& rule,
                         MatrixView<T> dX) const {
  assert(X.few == nullptr || (dX.empty() && !mask_by_input));
  if (X.few != nullptr)
    ops.sparse_backward(*X.few, dY, rule, parameters.view(W), parameters.view(b));
  else
    ops.linear_backward(X.X, dY, mask_by_input, rule, parameters.view(W), parameters.view(b), dX);
}

template <class T>
void Linear<T>::predict(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, bool relu,
                        MatrixView<T> Y, PackedRows* next) const {
  assert(next == nullptr || (X.few == nullptr && packed(parameters)));
  if (X.few != nullptr)
    ops.sparse_forward(*X.few, parameters.predictor(W), parameters.predictor(b), relu, Y);
  else if (packed(parameters))
    ops.packed_forward(X.X, X.packed, parameters.packed(W), parameters.predictor(b), relu, Y, next);
  else
    ops.linear_forward(X.X, parameters.predictor(W), parameters.predictor(b), relu, Y);
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
void Chain<T>::initialise(Parameters<T>& parameters, std::uint64_t seed) const {
  for (const auto& linear : linears_) linear.initialise(parameters, seed);
}

template <class T>
ChainMemory<T> Chain<T>::memory(std::size_t rows, bool dropout) const {
  ChainMemory<T> memory;
  for (std::size_t l = 0; l + 1 < linears_.size(); ++l) {
    memory.hidden.emplace_back(rows, linears_[l].out);
    memory.keep.emplace_back(dropout ? rows : 0, linears_[l].out);
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
void Chain<T>::forward(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, double dropout,
                       Draws draws, ChainMemory<T>& memory, MatrixView<T> Y) const {
  LayerInput<T> input = X;
  for (std::size_t l = 0; l + 1 < linears_.size(); ++l) {
    const MatrixView<T> hidden = memory.hidden[l].take(Y.rows, linears_[l].out);
    linears_[l].forward(ops, parameters, input, true, hidden);
    if (dropout > 0) {
      draws.layer = first_layer_id_ + static_cast<std::uint32_t>(l);
      const std::size_t rows = draws.rows.size();
      ops.dropout_forward(dropout, draws, memory.keep[l].view().top(rows), hidden.top(rows));
    }
    input = hidden;
  }
  linears_.back().forward(ops, parameters, input, false, Y);
}

template <class T>
void Chain<T>::backward(const Ops<T>& ops, Parameters<T>& parameters, LayerInput<T> X, MatrixView<const T> dY,
                        double dropout, std::size_t dropout_rows, const ChainMemory<T>& memory,
                        const UpdateRule& rule, PingPong<T>& scratch, MatrixView<T> dX) const {
  MatrixView<const T> gradient = dY;
  for (std::size_t l = linears_.size(); l-- > 1;) {
    const MatrixView<const T> hidden = memory.hidden[l - 1].take(dY.rows, linears_[l].in);
    const MatrixView<T> next = (l % 2 ? scratch.first : scratch.second).take(dY.rows, hidden.cols);
    linears_[l].backward(ops, parameters, hidden, gradient, true, rule, next);
    if (dropout > 0)
      ops.dropout_backward(dropout, memory.keep[l - 1].view().top(dropout_rows), next.top(dropout_rows));
    gradient = next;
  }
  linears_.front().backward(ops, parameters, X, gradient, false, rule, dX);
}

// Few rows take whole panels all the same, and making room for these would cost more than it saves.
template <class T>
bool Chain<T>::packs(const Parameters<T>& parameters, std::size_t rows, std::size_t l) const {
  constexpr std::size_t kFewest = 16;
  return rows >= kFewest && linears_[l].packed(parameters);
}

template <class T>
void Chain<T>::predict(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X,
                       PingPong<T>& scratch, MatrixView<T> Y) const {
  LayerInput<T> input = X;
  for (std::size_t l = 0; l + 1 < linears_.size(); ++l) {
    if (input.few == nullptr && linears_[l].packed(parameters) && packs(parameters, Y.rows, l + 1)) {
      linears_[l].predict(ops, parameters, input, true, {}, &scratch.packed[l % 2]);
      input = scratch.packed[l % 2];
      continue;
    }
    const MatrixView<T> hidden = (l % 2 ? scratch.first : scratch.second).take(Y.rows, linears_[l].out);
    linears_[l].predict(ops, parameters, input, true, hidden);
    input = hidden;
  }
  linears_.back().predict(ops, parameters, input, false, Y);
}

EndNorm end_norm_from(const std::string& name) {
  if (name == "batch") return EndNorm::batch;
  if (name == "batch-present") return EndNorm::batch_present;
  if (name == "layer") return EndNorm::layer;
  return EndNorm::none;
}

template <class T>
void Norm<T>::add(Parameters<T>& parameters, const std::string& name, std::size_t width, EndNorm kind) {
  kind_ = kind;
  if (kind == EndNorm::none) return;
  gamma_ = parameters.add(name + ".gamma", 1, width, {.decay = false});
  beta_ = parameters.add(name + ".beta", 1, width, {.decay = false});
  if (kind == EndNorm::layer) return;
  running_ = Matrix<T>(2, width);
  batch_ = Matrix<T>(2, width);
  std::ranges::fill(running_.row(1), T(1));
}

template <class T>
void Norm<T>::initialise(Parameters<T>& parameters) const {
  if (kind_ != EndNorm::none) parameters.fill(gamma_, 1);
}

template <class T>
void Norm<T>::forward(const Ops<T>& ops, const Parameters<T>& parameters, MatrixView<const T> U,
                      std::size_t missing, const BatchNormSettings& settings, MatrixView<T> saved,
                      MatrixView<T> Y) {
  switch (kind_) {
    case EndNorm::none:
      return ops.copy(U, false, Y);
    case EndNorm::layer:
      return ops.layer_norm_forward(U, parameters.value(gamma_), parameters.value(beta_), settings.epsilon,
                                    saved, Y);
    case EndNorm::batch:
    case EndNorm::batch_present:
      return ops.batch_norm_forward(U, missing, parameters.value(gamma_), parameters.value(beta_), settings,
                                    running_, batch_, Y);
  }
}

template <class T>
void Norm<T>::backward(const Ops<T>& ops, Parameters<T>& parameters, MatrixView<const T> U,
                       std::size_t missing, MatrixView<const T> saved, const UpdateRule& rule,
                       MatrixView<T> dY) const {
  switch (kind_) {
    case EndNorm::none:
      return;
    case EndNorm::layer:
      return ops.layer_norm_backward(U, saved, rule, parameters.view(gamma_), parameters.view(beta_), dY);
    case EndNorm::batch:
    case EndNorm::batch_present:
      return ops.batch_norm_backward(U, missing, batch_, rule, parameters.view(gamma_),
                                     parameters.view(beta_), dY);
  }
}

template <class T>
void Norm<T>::predict(const Ops<T>& ops, const Parameters<T>& parameters, const BatchNormSettings& settings,
                      MatrixView<T> saved, MatrixView<T> U) const {
  switch (kind_) {
    case EndNorm::none:
      return;
    case EndNorm::layer:
      return ops.layer_norm_forward(U, parameters.predictor(gamma_), parameters.predictor(beta_),
                                    settings.epsilon, saved, U);
    case EndNorm::batch:
    case EndNorm::batch_present:
      return ops.batch_norm_apply(U, parameters.predictor(gamma_), parameters.predictor(beta_), settings,
                                  running_, U);
  }
}

template struct Linear<float>;
template struct Linear<double>;
template class Chain<float>;
template class Chain<double>;
template class Norm<float>;
template class Norm<double>;

}  // namespace lacuna
