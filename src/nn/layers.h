// Layers with parameters: a linear layer, chains of them, and the normalisation at the end of an encoder. Each
// forward is followed by its backward, which also updates the layer's parameters (ops/ops.h). A layer contains
// ids into the network's arena, so one set of layers serves training, the running average and prediction. The
// same layer of all views and channels goes to the engine in one call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/parameters.h"
#include "ops/ops.h"

namespace lacuna {

// Draws::layer of the dropout before a classifier; the dropouts of chains count from 0.
inline constexpr std::uint32_t kFusedDropoutLayer = 1u << 30;

template <class T>
struct Linear {
  std::uint32_t W = 0, b = 0;
  std::size_t in = 0, out = 0;

  void add(Parameters<T>& parameters, const std::string& name, std::size_t inputs, std::size_t outputs,
           bool for_prediction);
  // Weights and bias U(±1/√fan_in); a bias other than 0 is constant instead.
  void initialise(const Ops<T>& ops, Parameters<T>& parameters, std::uint64_t seed, double bias = 0) const;

  // Jobs for the engine, with the parameters of training or those of prediction.
  ForwardJob<T> forward(const Parameters<T>& parameters, MatrixView<const T> X, bool relu,
                        MatrixView<T> Y) const;
  BackwardJob<T> backward(Parameters<T>& parameters, MatrixView<const T> X, MatrixView<const T> dY,
                          bool mask_by_input, MatrixView<T> dX) const;
  ForwardJob<T> predict(const Parameters<T>& parameters, MatrixView<const T> X, bool relu,
                        MatrixView<T> Y) const;
};

// Room for matrices of up to `rows` rows and `cols` columns.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Engine& engine, std::size_t rows, std::size_t cols) : memory_(engine, 1, rows * row_stride<T>(cols)) {}
  MatrixView<T> take(std::size_t rows, std::size_t cols) {
    assert(rows * row_stride<T>(cols) <= memory_.cols());
    return {memory_.data(), rows, cols, row_stride<T>(cols)};
  }
  MatrixView<const T> take(std::size_t rows, std::size_t cols) const {
    assert(rows * row_stride<T>(cols) <= memory_.cols());
    return {memory_.data(), rows, cols, row_stride<T>(cols)};
  }

 private:
  EngineMatrix<T> memory_;
};

// What the backward of a chain needs from its forward, and two buffers between which gradients (in predictions,
// activations) alternate. Buffers are as large as the largest batch; a step uses their first rows.
template <class T>
struct ChainMemory {
  std::vector<Buffer<T>> hidden;   // (rows, width) per hidden layer, after ReLU and dropout
  std::vector<FormPointer> forms;  // of the same
};
template <class T>
struct PingPong {
  Buffer<T> buffers[2];
  FormPointer forms[2];     // of their contents in predictions
  FormPointer gradients[2];  // of their contents in steps
  PingPong() = default;
  PingPong(const Ops<T>& ops, std::size_t rows, std::size_t cols) {
    for (auto& buffer : buffers) buffer = Buffer<T>(ops, rows, cols);
    for (auto& form : forms) form = ops.input_form(rows, cols);
    for (auto& form : gradients) form = ops.step_form(rows, cols);
  }
};

// Linear, ReLU, dropout, Linear, ReLU, dropout, ..., Linear.
template <class T>
class Chain {
 public:
  // widths: input, hidden ..., output. `first_layer_id` numbers the dropouts (Draws::layer).
  void add(Parameters<T>& parameters, const std::string& name, const std::vector<std::size_t>& widths,
           bool for_prediction, std::uint32_t first_layer_id);
  void initialise(const Ops<T>& ops, Parameters<T>& parameters, std::uint64_t seed) const;
  ChainMemory<T> memory(const Ops<T>& ops, std::size_t rows) const;
  std::size_t widest() const;
  std::size_t depth() const { return linears_.size(); }
  const Linear<T>& linear(std::size_t l) const { return linears_[l]; }
  std::uint32_t layer_id(std::size_t l) const { return first_layer_id_ + static_cast<std::uint32_t>(l); }

 private:
  std::vector<Linear<T>> linears_;
  std::uint32_t first_layer_id_ = 0;
};

// Chains of the same depth that are computed together, each with its input, its output and its memory.
template <class T>
struct ChainForward {
  const Chain<T>* chain;
  MatrixView<const T> X;
  const Form* X_form;
  ChainMemory<T>* memory;
  std::span<const std::uint32_t> rows;  // identities of the rows that dropout acts on
  MatrixView<T> Y;
};
template <class T>
struct ChainBackward {
  const Chain<T>* chain;
  MatrixView<const T> X;
  const Form* X_form;
  const ChainMemory<T>* memory;
  std::size_t dropped;  // rows that dropout acted on
  MatrixView<const T> dY;
  PingPong<T>* scratch;
  MatrixView<T> dX;  // or empty
};
template <class T>
struct ChainPrediction {
  const Chain<T>* chain;
  MatrixView<const T> X;
  const Form* X_form;
  PingPong<T>* scratch;
  MatrixView<T> Y;
};
// `draws` has neither layer nor rows, which belong to the chains.
template <class T>
void forward(const Ops<T>& ops, const Parameters<T>& parameters, std::span<const ChainForward<T>> chains,
             double dropout, Draws draws);
template <class T>
void backward(const Ops<T>& ops, Parameters<T>& parameters, std::span<const ChainBackward<T>> chains,
              double dropout, const UpdateRule& rule);
template <class T>
void predict(const Ops<T>& ops, const Parameters<T>& parameters, std::span<const ChainPrediction<T>> chains);

// Batch norm counts missing instances as zero rows, as rows of N(0, 1) noise, or not at all.
enum class EndNorm { layer, batch, batch_noise, batch_present, none };

// The normalisation of one encoder's output.
template <class T>
class Norm {
 public:
  void add(const Engine& engine, Parameters<T>& parameters, const std::string& name, std::size_t width,
           EndNorm kind);
  void initialise(const Ops<T>& ops, Parameters<T>& parameters) const;

  // U (n, d) -> Y (n, d). saved (n, 2) is for layer norm; batch norm saves inside.
  NormForward<T> forward(const Parameters<T>& parameters, MatrixView<const T> U, std::size_t missing,
                         MatrixView<T> saved, MatrixView<T> Y);
  // dU in place of dY.
  NormBackward<T> backward(Parameters<T>& parameters, MatrixView<const T> U, std::size_t missing,
                           MatrixView<const T> saved, MatrixView<T> dY) const;
  NormForward<T> predict(const Parameters<T>& parameters, MatrixView<T> saved, MatrixView<T> U) const;  // in place
  MatrixView<T> running() { return running_; }  // (2, d) mean and variance; empty without batch norm

 private:
  EndNorm kind_ = EndNorm::none;
  std::uint32_t gamma_ = 0, beta_ = 0;
  EngineMatrix<T> running_, batch_;  // (2, d): running statistics; those of the last forward
};

// Norms of the same kind that are computed together. Without a norm: a copy.
template <class T>
void norm_forward(const Ops<T>& ops, EndNorm kind, std::span<const NormForward<T>> jobs,
                  const BatchNormSettings& settings);
template <class T>
void norm_backward(const Ops<T>& ops, EndNorm kind, std::span<const NormBackward<T>> jobs,
                   const UpdateRule& rule);
template <class T>
void norm_predict(const Ops<T>& ops, EndNorm kind, std::span<const NormForward<T>> jobs,
                  const BatchNormSettings& settings);

}  // namespace lacuna
