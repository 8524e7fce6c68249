// Layers with parameters: a linear layer, a chain of them, and the normalisation at an encoder's end. Each
// forward stands beside its backward; a backward also updates the layer's parameters (ops/ops.h). A layer
// holds ids into the network's arena, so one set of layers serves training, the running average and
// prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/parameters.h"
#include "ops/ops.h"

namespace lacuna {

// What a layer reads: X, and perhaps X in another form, its deviations from a background (ops/sparse.h); or
// what the layer before has packed (ops/gemm.h).
template <class T>
struct LayerInput {
  MatrixView<const T> X;
  const Deviations* few = nullptr;             // null if there are none
  const PackedRows* packed = nullptr;          // likewise
  LayerInput(MatrixView<const T> x) : X(x) {}  // NOLINT: a plain X
  LayerInput(MatrixView<T> x) : X(x) {}        // NOLINT
  LayerInput(MatrixView<const T> x, const Deviations& deviations)
      : X(x), few(deviations.empty() ? nullptr : &deviations) {}
  LayerInput(const PackedRows& rows) : packed(&rows) {}  // NOLINT
};

template <class T>
struct Linear {
  std::uint32_t W = 0, b = 0;
  std::size_t in = 0, out = 0;

  void add(Parameters<T>& parameters, const std::string& name, std::size_t inputs, std::size_t outputs,
           bool for_prediction);
  // Weights and bias U(±1/√fan_in); a bias other than 0 is constant instead.
  void initialise(Parameters<T>& parameters, std::uint64_t seed, double bias = 0) const;
  void forward(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, bool relu,
               MatrixView<T> Y) const;
  void backward(const Ops<T>& ops, Parameters<T>& parameters, LayerInput<T> X, MatrixView<const T> dY,
                bool mask_by_input, const UpdateRule& rule, MatrixView<T> dX) const;
  // Y, or for the next layer `next`, if both are packed().
  void predict(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, bool relu,
               MatrixView<T> Y, PackedRows* next = nullptr) const;
  bool packed(const Parameters<T>& parameters) const { return !parameters.packed(W).empty(); }
};

// Room for matrices of up to `rows` rows and `cols` columns.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t rows, std::size_t cols) : memory_(1, rows * row_stride<T>(cols)) {}
  MatrixView<T> take(std::size_t rows, std::size_t cols) {
    assert(rows * row_stride<T>(cols) <= memory_.cols());
    return {memory_.data(), rows, cols, row_stride<T>(cols)};
  }
  MatrixView<const T> take(std::size_t rows, std::size_t cols) const {
    assert(rows * row_stride<T>(cols) <= memory_.cols());
    return {memory_.data(), rows, cols, row_stride<T>(cols)};
  }

 private:
  Matrix<T> memory_;
};

// What a backward needs of a forward, and two buffers that gradients (or, in predictions, activations)
// alternate between. Buffers are as large as the largest batch; a step uses their top rows.
template <class T>
struct ChainMemory {
  std::vector<Buffer<T>> hidden;           // (rows, width) per hidden layer, after ReLU and dropout
  std::vector<Matrix<std::uint8_t>> keep;  // (rows, width) where dropout is used
};
template <class T>
struct PingPong {
  Buffer<T> first, second;
  PackedRows packed[2] = {};
};

// Linear, ReLU, dropout, Linear, ReLU, dropout, ..., Linear.
template <class T>
class Chain {
 public:
  // widths: input, hidden ..., output. `first_layer_id` numbers the dropouts (Draws::layer).
  void add(Parameters<T>& parameters, const std::string& name, const std::vector<std::size_t>& widths,
           bool for_prediction, std::uint32_t first_layer_id);
  void initialise(Parameters<T>& parameters, std::uint64_t seed) const;
  ChainMemory<T> memory(std::size_t rows, bool dropout) const;
  std::size_t widest() const;

  // X (n, in) -> Y (n, out). Dropout applies to the first draws.rows.size() rows.
  void forward(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, double dropout,
               Draws draws, ChainMemory<T>& memory, MatrixView<T> Y) const;
  // dX (n, in) or empty. X and the memory are those of the forward.
  void backward(const Ops<T>& ops, Parameters<T>& parameters, LayerInput<T> X, MatrixView<const T> dY,
                double dropout, std::size_t dropout_rows, const ChainMemory<T>& memory,
                const UpdateRule& rule, PingPong<T>& scratch, MatrixView<T> dX) const;
  void predict(const Ops<T>& ops, const Parameters<T>& parameters, LayerInput<T> X, PingPong<T>& scratch,
               MatrixView<T> Y) const;
  // Whether so many rows are best packed for layer l, where predict() is given them or makes them itself.
  bool packs(const Parameters<T>& parameters, std::size_t rows, std::size_t l = 0) const;

 private:
  std::vector<Linear<T>> linears_;
  std::uint32_t first_layer_id_ = 0;
};

enum class EndNorm { none, batch, batch_present, layer };
EndNorm end_norm_from(const std::string& name);  // the option's text: "batch-present", ...

// The normalisation of one encoder's output.
template <class T>
class Norm {
 public:
  void add(Parameters<T>& parameters, const std::string& name, std::size_t width, EndNorm kind);
  void initialise(Parameters<T>& parameters) const;

  // U (n, d) -> Y (n, d). saved (n, 2) for layer norm; batch norm saves inside. None: a copy.
  void forward(const Ops<T>& ops, const Parameters<T>& parameters, MatrixView<const T> U, std::size_t missing,
               const BatchNormSettings& settings, MatrixView<T> saved, MatrixView<T> Y);
  void backward(const Ops<T>& ops, Parameters<T>& parameters, MatrixView<const T> U, std::size_t missing,
                MatrixView<const T> saved, const UpdateRule& rule,
                MatrixView<T> dY) const;  // dU in place of dY
  void predict(const Ops<T>& ops, const Parameters<T>& parameters, const BatchNormSettings& settings,
               MatrixView<T> saved, MatrixView<T> U) const;  // in place
  MatrixView<T> running() { return running_; }  // (2, d) mean and variance; empty without batch norm

 private:
  EndNorm kind_ = EndNorm::none;
  std::uint32_t gamma_ = 0, beta_ = 0;
  Matrix<T> running_, batch_;  // (2, d): running statistics; those of the last forward
};

}  // namespace lacuna
