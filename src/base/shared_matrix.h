// Matrices with copy-on-write, for data that are copied often and rarely changed.
#pragma once

#include "base/matrix.h"

namespace lacuna {

// Copies share their memory, which may belong to a mapped file, until one of them is written to; that one then gets
// memory of its own. Non-const access to a view, a row or an element counts as writing.
template <class T>
class SharedMatrix {
 public:
  SharedMatrix() = default;
  SharedMatrix(std::size_t rows, std::size_t cols) : SharedMatrix(Matrix<T>(rows, cols)) {}
  SharedMatrix(Matrix<T>&& matrix) : own_(std::make_shared<Matrix<T>>(std::move(matrix))) {  // NOLINT
    view_ = std::as_const(*own_).view();
  }
  SharedMatrix(const Matrix<T>& matrix) : SharedMatrix(Matrix<T>(matrix)) {}  // NOLINT
  // Refers to memory that does not change during the lifetime of `owner`; stride = cols.
  SharedMatrix(std::shared_ptr<const void> owner, MatrixView<const T> view)
      : owner_(std::move(owner)), view_(view) {
    assert(view.stride == view.cols);
  }

  MatrixView<const T> view() const { return view_; }
  MatrixView<T> view() { return own().view(); }
  // NOLINTNEXTLINE: a matrix converts to a view.
  operator MatrixView<T>() { return view(); }
  // NOLINTNEXTLINE
  operator MatrixView<const T>() const { return view_; }

  T& operator()(std::size_t i, std::size_t j) { return own()(i, j); }
  const T& operator()(std::size_t i, std::size_t j) const { return view_(i, j); }
  std::span<T> row(std::size_t i) { return own().row(i); }
  std::span<const T> row(std::size_t i) const { return view_.row(i); }
  std::span<T> values() { return own().values(); }
  std::span<const T> values() const { return {view_.data, view_.rows * view_.cols}; }
  T* data() { return own().data(); }
  const T* data() const { return view_.data; }
  std::size_t rows() const { return view_.rows; }
  std::size_t cols() const { return view_.cols; }
  bool empty() const { return view_.empty(); }

 private:
  Matrix<T>& own() {
    if (own_ == nullptr || own_.use_count() > 1) {
      Matrix<T> copy(view_.rows, view_.cols);
      copy.copy_from(view_);
      *this = SharedMatrix(std::move(copy));
    }
    return *own_;
  }
  std::shared_ptr<Matrix<T>> own_;     // the owner of the memory if it is a matrix
  std::shared_ptr<const void> owner_;  // any other owner
  MatrixView<const T> view_;
};

}  // namespace lacuna
