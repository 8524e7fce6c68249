// A method whose result is one kernel machine per view, fused by weights. Scores, decisions and model files are
// common to these methods; each finds its machines in its own way (CDMM, LVSL).
//
//   score(x) = Σ_v θ_v k_v(x)ᵀ B_v,  k_v(x)_l = exp(-|x_v - p_l|² / width) over the points p_l of view v
// with x_v and p_l of length 1. A decision is score >= threshold.
#pragma once

#include <vector>

#include "methods/kernels.h"
#include "methods/method.h"

namespace lacuna {

class KernelMethod : public Method {
 public:
  void predict(const Items& items, MatrixView<float> scores) const override;
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override;
  void save(Tensors& file) const override;
  void load(const Tensors& file, const ItemShape& shape) override;
  std::uint64_t parameters() const override;

 protected:
  struct Machine {
    Matrix<float> points;        // (r, d_v) unit rows
    Matrix<float> coefficients;  // (r, c)
  };
  // The divisor of squared distances in the kernel.
  virtual double kernel_width() const = 0;
  // Ends a fit: takes machines and weights of all views, the views' fitted scores (n, c) and the labels they
  // were fitted to, which determine the threshold.
  void keep(std::vector<Machine> machines, std::vector<double> theta,
            const std::vector<Matrix<double>>& fitted, const SharedMatrix<float>& Y);

 private:
  std::vector<Machine> machines_;
  std::vector<double> theta_;
  float threshold_ = .5f;
};

}  // namespace lacuna
