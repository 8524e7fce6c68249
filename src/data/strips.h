// Tables with more rows than fit into memory, read in passes.
#pragma once

#include <cstdint>
#include <span>

#include "base/matrix.h"
#include "base/threads.h"
#include "data/dataset.h"
#include "data/squash.h"

namespace lacuna {

// Calls body(first, count) for slabs of the list `rows`, in order, each of a bounded number of bytes. If the rows are
// ascending, memory of a mapped file is released after each slab.
void for_slabs(const View& view, std::span<const std::uint32_t> rows,
               FunctionRef<void(std::size_t, std::size_t)> body);

// A table (n, d) of floats that products read in strips of at most kRows rows, from the first to the last.
class Strips {
 public:
  static constexpr std::size_t kRows = 2048;
  virtual ~Strips() = default;
  virtual std::size_t rows() const = 0;
  virtual std::size_t cols() const = 0;
  virtual MatrixView<const float> whole() const { return {}; }  // where it is in memory
  void each(FunctionRef<void(std::size_t begin, MatrixView<const float> strip)> body) const;

 protected:
  // Valid until the next call.
  virtual MatrixView<const float> strip(std::size_t begin, std::size_t count) const = 0;
};

class MemoryStrips final : public Strips {
 public:
  explicit MemoryStrips(MatrixView<const float> X) : X_(X) {}
  std::size_t rows() const override { return X_.rows; }
  std::size_t cols() const override { return X_.cols; }
  MatrixView<const float> whole() const override { return X_; }

 protected:
  MatrixView<const float> strip(std::size_t begin, std::size_t count) const override {
    return X_.slice(begin, count);
  }

 private:
  MatrixView<const float> X_;
};

// Rows of a dense view, squashed, then shifted and scaled if requested; computed again in every pass.
class ViewStrips final : public Strips {
 public:
  ViewStrips(const View& view, std::span<const std::uint32_t> rows, Squash squash,
             std::span<const float> shift = {}, std::span<const float> scale = {});
  std::size_t rows() const override { return rows_.size(); }
  std::size_t cols() const override { return view_.columns(); }

 protected:
  MatrixView<const float> strip(std::size_t begin, std::size_t count) const override;

 private:
  const View& view_;
  std::span<const std::uint32_t> rows_;
  Squash squash_;
  std::span<const float> shift_, scale_;
  mutable Matrix<float> scratch_;  // rows are padded as products prefer
};

}  // namespace lacuna
