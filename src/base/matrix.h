// Matrices of the whole project. Conventions, said once:
//   - row-major; element (i, j) is data[i * stride + j], stride >= cols;
//   - MatrixView<T> does not own; MatrixView<const T> is the read-only form; views are passed by value;
//   - Matrix<T> owns zero-initialised memory aligned to 64 bytes, in huge pages unless small; a copy is deep;
//   - Table<T> is read-only and shared: cheap to copy, possibly backed by a memory-mapped file;
//   - inputs and outputs of a function never alias unless its comment says so.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace lacuna {

template <class T>
struct MatrixView {
  T* data = nullptr;
  std::size_t rows = 0, cols = 0, stride = 0;

  MatrixView() = default;
  MatrixView(T* d, std::size_t r, std::size_t c) : data(d), rows(r), cols(c), stride(c) {}
  MatrixView(T* d, std::size_t r, std::size_t c, std::size_t s) : data(d), rows(r), cols(c), stride(s) {}
  // NOLINTNEXTLINE: a mutable view converts to a read-only one.
  operator MatrixView<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, stride};
  }

  T& operator()(std::size_t i, std::size_t j) const {
    assert(i < rows && j < cols);
    return data[i * stride + j];
  }
  std::span<T> row(std::size_t i) const {
    assert(i < rows);
    return {data + i * stride, cols};
  }
  MatrixView top(std::size_t count) const {
    assert(count <= rows);
    return {data, count, cols, stride};
  }
  MatrixView slice(std::size_t begin, std::size_t count) const {
    assert(begin + count <= rows);
    return {data + begin * stride, count, cols, stride};
  }
  MatrixView columns(std::size_t begin, std::size_t count) const {
    assert(begin + count <= cols);
    return {data + begin, rows, count, stride};
  }
  bool empty() const { return rows == 0 || cols == 0; }
  std::size_t size() const { return rows * cols; }
};

// The distance of two rows, in elements, with which products are fast. Rows begin on a cache line, so that no
// vector crosses two of them (which costs Intel's CPUs a quarter of a product), and they are not a multiple of
// 4 KB apart, because such rows share cache sets and evict each other. Grows with `cols`.
template <class T>
constexpr std::size_t row_stride(std::size_t cols) {
  constexpr std::size_t kLine = 64 / sizeof(T), kPage = 4096 / sizeof(T);
  if (cols < kLine) return cols;
  const std::size_t whole = (cols + kLine - 1) / kLine * kLine;
  return whole % kPage == 0 ? whole + kLine : whole;
}

// Zeroed memory aligned to 64 bytes. From 16 KiB on it lies in huge pages, if the system grants them. Throws
// std::bad_alloc.
void* allocate_zeroed(std::size_t bytes);
void release(void* memory) noexcept;

struct Release {
  void operator()(void* memory) const noexcept { release(memory); }
};

template <class T>
class Matrix {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols)
      : memory_(static_cast<T*>(rows != 0 && cols != 0 ? allocate_zeroed(checked_bytes(rows, cols)) : nullptr)),
        rows_(rows),
        cols_(cols) {}
  Matrix(const Matrix& other) : Matrix(other.rows_, other.cols_) { copy_from(other.view()); }
  Matrix& operator=(const Matrix& other) {
    if (this != &other) *this = Matrix(other);
    return *this;
  }
  Matrix(Matrix&& other) noexcept { swap(other); }
  Matrix& operator=(Matrix&& other) noexcept {
    swap(other);
    return *this;
  }

  MatrixView<T> view() { return {memory_.get(), rows_, cols_}; }
  MatrixView<const T> view() const { return {memory_.get(), rows_, cols_}; }
  // NOLINTNEXTLINE: a matrix converts to a view.
  operator MatrixView<T>() { return view(); }
  // NOLINTNEXTLINE
  operator MatrixView<const T>() const { return view(); }

  T& operator()(std::size_t i, std::size_t j) { return view()(i, j); }
  const T& operator()(std::size_t i, std::size_t j) const { return view()(i, j); }
  std::span<T> row(std::size_t i) { return view().row(i); }
  std::span<const T> row(std::size_t i) const { return view().row(i); }
  std::span<T> values() & { return {memory_.get(), rows_ * cols_}; }
  std::span<const T> values() const& { return {memory_.get(), rows_ * cols_}; }
  std::span<const T> values() const&& = delete;  // of a matrix that ends with the expression
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }

  void copy_from(MatrixView<const T> from) {
    assert(from.rows == rows_ && from.cols == cols_);
    for (std::size_t i = 0; i < rows_; ++i)
      for (std::size_t j = 0; j < cols_; ++j) memory_.get()[i * cols_ + j] = from(i, j);
  }
  void swap(Matrix& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
  }

 private:
  static std::size_t checked_bytes(std::size_t rows, std::size_t cols) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(rows, cols, &bytes) || __builtin_mul_overflow(bytes, sizeof(T), &bytes))
      throw std::bad_alloc();
    return bytes;
  }
  std::unique_ptr<T[], Release> memory_;
  std::size_t rows_ = 0, cols_ = 0;
};

template <class T>
class Table {
 public:
  Table() = default;
  Table(Matrix<T>&& matrix) {  // NOLINT: a matrix that is finished becomes a table.
    auto owner = std::make_shared<Matrix<T>>(std::move(matrix));
    view_ = std::as_const(*owner).view();
    owner_ = std::move(owner);
  }
  Table(std::shared_ptr<const void> owner, MatrixView<const T> view) : owner_(std::move(owner)), view_(view) {}

  // NOLINTNEXTLINE
  operator MatrixView<const T>() const { return view_; }
  MatrixView<const T> view() const { return view_; }
  const T& operator()(std::size_t i, std::size_t j) const { return view_(i, j); }
  std::span<const T> row(std::size_t i) const { return view_.row(i); }
  std::size_t rows() const { return view_.rows; }
  std::size_t cols() const { return view_.cols; }
  bool empty() const { return view_.empty(); }

 private:
  std::shared_ptr<const void> owner_;
  MatrixView<const T> view_;
};

}  // namespace lacuna
