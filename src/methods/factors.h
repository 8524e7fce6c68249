// A linear factor model of several views with gaps:
//
//   x_v = Λ_v f + e_v,   f ~ N(0, I),   e_v ~ N(0, Ψ_v), Ψ_v diagonal
//
// fitted by expectation maximisation on present views, so every item contributes the views it has. The factors of an
// item are estimated from its views in closed form: each view adds one term, and items that have the same views share
// one small matrix.
//
//   Λ_v (K_v, r)  loadings      Ψ_v (K_v)  noise      f (r)  factors      S (r, r)  covariance of f given the views
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "base/tensors.h"
#include "data/items.h"

namespace lacuna {

class Factors {
 public:
  static constexpr int kIterations = 20;
  // Fits items whose views are centred. At most `rank` factors; fewer if there are fewer columns or rows.
  static Factors fit(const Items& items, std::size_t rank, std::uint64_t seed, int iterations = kIterations);
  // The same for the rows that `use` marks (n).
  static Factors fit(const Items& items, const std::vector<std::uint8_t>& use, std::size_t rank,
                     std::uint64_t seed, int iterations = kIterations);

  std::size_t rank() const { return loadings_.empty() ? 0 : loadings_.front().cols(); }
  std::size_t views() const { return loadings_.size(); }
  const Matrix<double>& loadings(std::size_t v) const { return loadings_[v]; }
  const std::vector<double>& noise(std::size_t v) const { return noise_[v]; }

  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);
  // The expected factors F (n, r) of items given their views, ignoring view `without`; zeros for an item without any.
  // doubt (n, m), if requested: for each view, how uncertain its prediction from the factors is, from 0 (factors known)
  // to 1 (nothing known). Const, re-entrant; a row's result does not depend on the others.
  void estimate(const Items& items, std::size_t without, MatrixView<float> F,
                MatrixView<float> doubt = {}) const;

  void save(Tensors& file, const std::string& stem) const;
  // `columns`: K_v. A mismatch of sizes or a value that is not finite is Exit::data.
  static Factors load(const Tensors& file, const std::string& stem, const std::vector<std::size_t>& columns);

 private:
  void settle();  // computes what follows from loadings and noise
  Matrix<double> covariance(std::span<const std::uint8_t> present, std::size_t without) const;  // S

  std::vector<Matrix<double>> loadings_;
  std::vector<std::vector<double>> noise_;
  std::vector<Matrix<double>> weights_, precision_, square_;  // Ψ⁻¹Λ, ΛᵀΨ⁻¹Λ, ΛᵀΛ
};

}  // namespace lacuna
