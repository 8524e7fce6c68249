// A first layer whose inputs are few deviations from a background. Most entries of a histogram are zero, and
// standardising turns the zeros of a column into one and the same number: the background of that column. So
// with D the deviations, β the background and V(r, j) = 1 where column j of row r is not hidden,
//
//   X(r, j) = V(r, j) β(j) + D(r, j),     Y(r) = Σ_j X(r, j) W(j),     dW(j) = Σ_r X(r, j) dY(r)
//
// are sums over the entries of D, and sums of β(j) W(j) and of dY(r) over runs of columns: what is hidden of
// a row is one run, so that these change only at its two ends. Any background gives the right result, the
// common value of each column gives it fast. In bf16 X, W and dY are rounded as in other products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "ops/gemm.h"
#include "ops/update.h"

namespace lacuna {

// The entries of D column by column, in plain pointers, for the kernels.
struct SparseColumns {
  struct Entry {
    std::uint32_t row;
    float value;
  };
  struct Run {
    std::size_t begin, end;
  };
  // From `column` on, `row` is shown (V = 1), or no longer.
  struct Border {
    std::uint32_t column, row;
    bool shown;
  };
  std::size_t rows, cols;
  const float* background;  // β
  const Entry* entries;
  const Run* runs;        // entries of each column
  const Border* borders;  // by column; all that is shown ends at column `cols` at the latest
  std::size_t border_count;
};

class Deviations {
 public:
  // Room for this many rows and columns, so that find() allocates nothing.
  void reserve(std::size_t rows, std::size_t cols);
  // X (n, d) is 0 where hidden (n fragments); background (d).
  void find(MatrixView<const float> X, std::span<const Fragment> hidden, std::span<const float> background,
            Precision precision);
  void clear() { columns_ = {}; }
  bool empty() const { return columns_.cols == 0; }
  Precision precision() const { return precision_; }
  const SparseColumns& columns() const { return columns_; }
  std::size_t count() const { return count_; }  // of entries

 private:
  SparseColumns columns_{};
  Precision precision_ = Precision::f32;
  std::size_t count_ = 0;
  std::vector<float> background_;
  Matrix<SparseColumns::Entry> entries_;
  std::vector<SparseColumns::Run> runs_;
  std::vector<SparseColumns::Border> borders_;
};

// Y = X W + b, then max(0, .) if relu.  W (d, out), b (out) or empty, Y (n, out).
void sparse_forward(const Deviations& X, MatrixView<const float> W, std::span<const float> b, bool relu,
                    MatrixView<float> Y);

// W and b are updated with the gradients Xᵀ dY and Σ_rows dY.
void sparse_backward(const Deviations& X, MatrixView<const float> dY, const UpdateRule& rule,
                     ParameterView<float> W, ParameterView<float> b);

}  // namespace lacuna
