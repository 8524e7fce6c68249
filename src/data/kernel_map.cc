#include "data/kernel_map.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "data/principal.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

// Coordinates of smaller variance, relative to the first, would be rounding errors of the kernel's values.
constexpr double kSmallest = 1e-6;

std::vector<float> squared_lengths(MatrixView<const float> A) {
  std::vector<float> lengths(A.rows);
  for (std::size_t i = 0; i < A.rows; ++i)
    for (const float x : A.row(i)) lengths[i] += x * x;
  return lengths;
}

// D (n, r): |z_i - a_j|².
void squared_distances(MatrixView<const float> Z, MatrixView<const float> A, MatrixView<float> D) {
  const std::vector<float> z = squared_lengths(Z), a = squared_lengths(A);
  multiply(Z, A, Transpose::right, false, D);
  for (std::size_t i = 0; i < D.rows; ++i)
    for (std::size_t j = 0; j < D.cols; ++j) D(i, j) = std::max(0.f, z[i] + a[j] - 2 * D(i, j));
}

void gaussian(MatrixView<float> D, float width) {
  parallel_for(D.rows, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (float& x : D.row(i)) x = std::exp(-x / width);
  });
}

}  // namespace

KernelMap KernelMap::fit(MatrixView<const float> Z, std::size_t K, std::uint64_t seed) {
  KernelMap map;
  const std::size_t r = std::min(Z.rows, kMostAnchors);
  map.anchors = Matrix<float>(r, Z.cols);
  for (std::size_t i = 0; i < r; ++i) std::ranges::copy(Z.row(i * Z.rows / r), map.anchors.row(i).begin());
  Matrix<float> D(r, r);
  squared_distances(map.anchors, map.anchors, D);
  double sum = 0;
  for (const float x : D.values()) sum += static_cast<double>(x);
  map.width = static_cast<float>(sum / static_cast<double>(r * r));
  if (!(map.width > 0)) map.width = 1;  // all rows are equal
  gaussian(D, map.width);

  std::vector<double> means(r);
  for (std::size_t i = 0; i < r; ++i)
    for (const float x : D.row(i)) means[i] += static_cast<double>(x) / static_cast<double>(r);
  double mean = 0;
  for (const double x : means) mean += x / static_cast<double>(r);
  Matrix<double> centred(r, r);
  for (std::size_t i = 0; i < r; ++i)
    for (std::size_t j = 0; j < r; ++j)
      centred(i, j) = static_cast<double>(D(i, j)) - means[i] - means[j] + mean;
  const Eigensystem pairs =
      r <= kDirectSize
          ? symmetric_eigen(centred)
          : leading_eigen(r, std::min(K, r), {.residual = kResidual}, seed,
                          [&](MatrixView<const double> B, MatrixView<double> AB) {
                            product(std::as_const(centred).view(), B, Transpose::none, false, AB);
                          });
  std::size_t kept = 0;
  double total = 0;
  while (kept < std::min(K, pairs.values.size()) && pairs.values[kept] > kSmallest * pairs.values[0]) {
    total += pairs.values[kept] / static_cast<double>(r);
    ++kept;
  }
  map.projection = Matrix<float>(r, std::max<std::size_t>(kept, 1));
  map.offset = Matrix<float>(1, map.projection.cols());
  const double gain = kept > 0 ? 1 / std::sqrt(total / static_cast<double>(kept)) : 0;
  for (std::size_t k = 0; k < kept; ++k) {
    double offset = 0, largest = 0;
    for (std::size_t i = 0; i < r; ++i)
      if (std::abs(pairs.vectors(i, k)) > std::abs(largest)) largest = pairs.vectors(i, k);
    const double factor = std::copysign(gain / std::sqrt(pairs.values[k]), largest);  // one sign of the two
    for (std::size_t i = 0; i < r; ++i) {
      map.projection(i, k) = static_cast<float>(pairs.vectors(i, k) * factor);
      offset += means[i] * pairs.vectors(i, k) * factor;
    }
    map.offset(0, k) = static_cast<float>(offset);
  }
  return map;
}

void KernelMap::apply(MatrixView<const float> Z, MatrixView<float> out) const {
  Matrix<float> D(Z.rows, anchors.rows());
  squared_distances(Z, anchors, D);
  gaussian(D, width);
  multiply(D, projection, Transpose::none, false, out);
  for (std::size_t i = 0; i < out.rows; ++i)
    for (std::size_t k = 0; k < out.cols; ++k) out(i, k) -= offset(0, k);
}

void KernelMap::save(Tensors& file, const std::string& stem) const {
  if (empty()) return;
  file.put(stem + "anchors", anchors.view());
  file.put(stem + "projection", projection.view());
  file.put(stem + "offset", offset.view());
  file.put(stem + "width", std::span<const float>(&width, 1));
}

KernelMap KernelMap::load(const Tensors& file, const std::string& stem, std::size_t p) {
  KernelMap map;
  if (!file.has(stem + "anchors")) return map;
  map.anchors = file.matrix(stem + "anchors");
  map.projection = file.matrix(stem + "projection");
  map.offset = file.matrix(stem + "offset");
  const std::vector<float> width = file.floats(stem + "width");
  if (map.anchors.cols() != p || map.anchors.rows() != map.projection.rows() || map.offset.rows() != 1 ||
      map.offset.cols() != map.projection.cols() || width.size() != 1 || !(width[0] > 0) ||
      map.projection.empty())
    fail(Exit::data,
         "{}: '{}anchors' ({}, {}), 'projection' ({}, {}) and 'offset' ({}, {}) do not fit {} columns",
         file.path(), stem, map.anchors.rows(), map.anchors.cols(), map.projection.rows(),
         map.projection.cols(), map.offset.rows(), map.offset.cols(), p);
  map.width = width[0];
  return map;
}

}  // namespace lacuna
