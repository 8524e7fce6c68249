// The products of a linear layer, with everything that touches the same memory fused into them: the only
// heavy arithmetic of the networks. The implementation is chosen at run time (ops/machine.h); `reference` is the
// naive one that tests compare with.
//
// Weights stay in one f32 matrix W (in, out). In training no packed or low-precision copies are kept: a block
// of W is converted and packed in cache right before it is used for all rows (docs/performance.md counts the
// bytes). Weights that no longer change can be packed once.
#pragma once

#include <cstdint>
#include <span>

#include "base/matrix.h"
#include "ops/kinds.h"
#include "ops/update.h"

namespace lacuna {

// Y = X W + b, then max(0, .) if relu.
//   X (n, in), W (in, out), b (out) or empty, Y (n, out). n may be 0.
void linear_forward(MatrixView<const float> X, MatrixView<const float> W, std::span<const float> b, bool relu,
                    Precision precision, MatrixView<float> Y);

// W rounded to bf16, in the order in which the products of the chosen instruction set read it: half the bytes
// if it has instructions for bf16, and no packing later.
struct Kernels;
class PackedWeights {
 public:
  PackedWeights() = default;
  explicit PackedWeights(MatrixView<const float> W);
  bool empty() const { return words_.empty(); }
  std::size_t in() const { return in_; }
  std::size_t out() const { return out_; }
  const Kernels& kernels() const { return *kernels_; }
  std::size_t words() const { return words_.rows() * words_.cols(); }
  // Columns from j on, a multiple of a tile's.
  const std::uint32_t* panel(std::size_t j) const;

 private:
  const Kernels* kernels_ = nullptr;
  std::size_t in_ = 0, out_ = 0;
  Matrix<std::uint32_t> words_;
};

// Rows rounded to bf16, in the order in which the products read them: inputs of several layers, or the output of
// one layer that only the next one reads. Memory is kept for the next use.
class PackedRows {
 public:
  void pack(MatrixView<const float> X);
  void resize(const Kernels& k, std::size_t rows, std::size_t cols);
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::uint32_t* panel(std::size_t p) { return words_.data() + p * panel_words_; }
  const std::uint32_t* panel(std::size_t p) const { return words_.data() + p * panel_words_; }
  const Kernels& kernels() const { return *kernels_; }

 private:
  const Kernels* kernels_ = nullptr;
  std::size_t rows_ = 0, cols_ = 0, panel_words_ = 0;
  Matrix<std::uint32_t> words_;
};

// linear_forward() in bf16 with packed weights; X may be packed, and Y is packed if requested.
struct RowsIn {
  MatrixView<const float> plain;
  const PackedRows* packed = nullptr;              // if not null
  RowsIn(MatrixView<const float> X) : plain(X) {}  // NOLINT: meant to convert
  RowsIn(MatrixView<float> X) : plain(X) {}        // NOLINT
  RowsIn(const PackedRows& X) : packed(&X) {}      // NOLINT
  std::size_t rows() const { return packed != nullptr ? packed->rows() : plain.rows; }
  std::size_t cols() const { return packed != nullptr ? packed->cols() : plain.cols; }
};
struct RowsOut {
  MatrixView<float> plain;
  PackedRows* packed = nullptr;               // if not null
  RowsOut(MatrixView<float> Y) : plain(Y) {}  // NOLINT
  RowsOut(PackedRows& Y) : packed(&Y) {}      // NOLINT
};
void linear_forward(const RowsIn& X, const PackedWeights& W, std::span<const float> b, bool relu,
                    const RowsOut& Y);

// dX = (dY Wᵀ) ⊙ [X > 0 if mask_by_input] with the old W (skipped if dX has no rows), then
// W and b are updated with the gradients Xᵀ dY and Σ_rows dY in the same pass over W: no gradient buffer
// exists.
//   X (n, in), dY (n, out), dX (n, in) or empty; dX must not alias X or dY.
void linear_backward(MatrixView<const float> X, MatrixView<const float> dY, bool mask_by_input,
                     Precision precision, const UpdateRule& rule, ParameterView<float> W,
                     ParameterView<float> b, MatrixView<float> dX);

// C = A B, AᵀB or ABᵀ (+ C if accumulate), sums in f32. The bits of a row do not depend on the number of rows.
enum class Transpose { none, left, right };
void multiply(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose, bool accumulate,
              MatrixView<float> C);

}  // namespace lacuna
