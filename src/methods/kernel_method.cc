#include "methods/kernel_method.h"

#include <algorithm>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr std::size_t kPredictRows = 1024;  // rows of a block in prediction

}  // namespace

void KernelMethod::keep(std::vector<Machine> machines, std::vector<double> theta,
                        const std::vector<Matrix<double>>& fitted, const SharedMatrix<float>& Y) {
  machines_ = std::move(machines);
  theta_ = std::move(theta);
  Matrix<float> scores(Y.rows(), Y.cols());
  for (std::size_t v = 0; v < fitted.size(); ++v)
    for (std::size_t i = 0; i < scores.values().size(); ++i)
      scores.values()[i] += static_cast<float>(theta_[v] * fitted[v].values()[i]);
  threshold_ = hamming_threshold(scores, Y);
}

void KernelMethod::predict(const Items& items, MatrixView<float> scores) const {
  for (std::size_t begin = 0; begin < scores.rows; begin += kPredictRows) {
    const std::size_t rows = std::min(kPredictRows, scores.rows - begin);
    const MatrixView<float> block = scores.slice(begin, rows);
    for (std::size_t i = 0; i < rows; ++i) std::ranges::fill(block.row(i), 0.f);
    Matrix<float> part(rows, scores.cols);
    for (std::size_t v = 0; v < machines_.size(); ++v) {
      const Matrix<float> units = unit_rows(items.X[v].view().slice(begin, rows));
      Matrix<float> K(rows, machines_[v].points.rows());
      radial_kernel(units, machines_[v].points, kernel_width(), K);
      product(K, machines_[v].coefficients, Transpose::none, false, part);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < scores.cols; ++j)
          block(i, j) += static_cast<float>(theta_[v]) * part(i, j);
    }
  }
}

void KernelMethod::decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const {
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < scores.cols; ++j) decided(i, j) = scores(i, j) >= threshold_;
}

void KernelMethod::save(Tensors& file) const {
  for (std::size_t v = 0; v < machines_.size(); ++v) {
    file.put("kernel.points" + std::to_string(v), machines_[v].points.view());
    file.put("kernel.coefficients" + std::to_string(v), machines_[v].coefficients.view());
  }
  file.put("kernel.theta", MatrixView<const double>(theta_.data(), 1, theta_.size()));
  file.put("kernel.threshold", std::span<const float>(&threshold_, 1));
}

void KernelMethod::load(const Tensors& file, const ItemShape& shape) {
  machines_.clear();
  for (const std::size_t columns : shape.columns) {
    const std::string v = std::to_string(machines_.size());
    Machine machine{file.matrix("kernel.points" + v), file.matrix("kernel.coefficients" + v)};
    if (machine.points.cols() != columns || machine.coefficients.cols() != shape.labels ||
        machine.points.rows() != machine.coefficients.rows())
      fail(Exit::data,
           "{}: the machine of view {} has {} points of {} columns and {} coefficients of {} labels; the "
           "model has {} columns and {} labels",
           file.path(), v, machine.points.rows(), machine.points.cols(), machine.coefficients.rows(),
           machine.coefficients.cols(), columns, shape.labels);
    machines_.push_back(std::move(machine));
  }
  theta_.resize(machines_.size());
  file.get("kernel.theta", MatrixView<double>(theta_.data(), 1, theta_.size()));
  file.get("kernel.threshold", MatrixView<float>(&threshold_, 1, 1));
}

std::uint64_t KernelMethod::parameters() const {
  std::uint64_t count = 0;
  for (const Machine& machine : machines_) count += machine.coefficients.values().size();
  return count;
}

}  // namespace lacuna
