// The leading coordinates of kernel principal components with a Gaussian kernel: k(x, y) = exp(-|x - y|² / w),
// where w is the mean of |x - y|² over pairs. New rows need not be centred, because the eigenvectors sum to 0.
#pragma once

#include <cstdint>

#include "base/matrix.h"
#include "base/tensors.h"

namespace lacuna {

struct KernelMap {
  Matrix<float> anchors;                             // (r, p) rows that new ones are compared with
  Matrix<float> projection;                          // (r, K)
  Matrix<float> offset;                              // (1, K)
  float width = 1;                                   // w
  static constexpr std::size_t kMostAnchors = 2000;  // evenly spaced rows of larger tables

  bool empty() const { return anchors.empty(); }
  std::size_t columns() const { return projection.cols(); }

  // Z (n, p) training rows. At most K coordinates, whose variance over the anchors is 1 on average.
  static KernelMap fit(MatrixView<const float> Z, std::size_t K, std::uint64_t seed);
  // Z (n, p) -> out (n, K). A row's result does not depend on the others.
  void apply(MatrixView<const float> Z, MatrixView<float> out) const;

  void save(Tensors& file, const std::string& stem) const;
  static KernelMap load(const Tensors& file, const std::string& stem, std::size_t p);  // empty if not there
};

}  // namespace lacuna
