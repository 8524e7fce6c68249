#include "methods/factors.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/threads.h"
#include "data/principal.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

constexpr double kPrior = 1;         // rows' worth of "no loading"
constexpr double kLeastNoise = .02;  // of a column's variance: small sets would explain a column away
constexpr double kTiny = 1e-9;

// Rows that have the same views.
struct Patterns {
  std::vector<std::vector<std::uint8_t>> views;  // one (m) a pattern
  std::vector<std::size_t> of_row, count;

  Patterns(MatrixView<const std::uint8_t> W, std::size_t without) {
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < W.rows; ++i) {
      std::string row(W.row(i).begin(), W.row(i).end());
      if (without < row.size()) row[without] = 0;
      const auto [at, is_new] = known.try_emplace(std::move(row), views.size());
      if (is_new) {
        views.emplace_back(at->first.begin(), at->first.end());
        count.push_back(0);
      }
      of_row.push_back(at->second);
      ++count[at->second];
    }
  }
};

Matrix<double> identity(std::size_t n) {
  Matrix<double> I(n, n);
  for (std::size_t k = 0; k < n; ++k) I(k, k) = 1;
  return I;
}

void add(double factor, const Matrix<double>& from, Matrix<double>& to) {
  for (std::size_t k = 0; k < to.values().size(); ++k) to.values()[k] += factor * from.values()[k];
}

// row <- row S, S symmetric.
void times(std::span<double> row, const Matrix<double>& S) {
  std::vector<double> result(row.size());
  for (std::size_t a = 0; a < row.size(); ++a) {
    const auto line = S.row(a);
    for (std::size_t b = 0; b < row.size(); ++b) result[b] += row[a] * line[b];
  }
  std::ranges::copy(result, row.begin());
}

// The rows marked by `use`, in double; missing instances stay zero rows.
struct Observed {
  std::vector<Matrix<double>> X;             // (n, K_v)
  Matrix<std::uint8_t> W;                    // (n, m)
  std::vector<double> present;               // rows that have each view, at least 1
  std::vector<std::vector<double>> squares;  // of each column, summed

  Observed(const Items& items, const std::vector<std::uint8_t>& use) {
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < items.rows(); ++i)
      if (use[i] != 0) rows.push_back(static_cast<std::uint32_t>(i));
    W = Matrix<std::uint8_t>(rows.size(), items.views());
    for (std::size_t v = 0; v < items.views(); ++v) {
      Matrix<double> values(rows.size(), items.X[v].cols());
      std::vector<double> sums(items.X[v].cols());
      double count = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        W(r, v) = items.W(rows[r], v);
        if (W(r, v) == 0) continue;
        ++count;
        for (std::size_t k = 0; k < sums.size(); ++k) {
          values(r, k) = static_cast<double>(items.X[v](rows[r], k));
          sums[k] += values(r, k) * values(r, k);
        }
      }
      X.push_back(std::move(values));
      squares.push_back(std::move(sums));
      present.push_back(std::max(count, 1.));
    }
  }
  double variance(std::size_t v, std::size_t k) const { return std::max(squares[v][k] / present[v], kTiny); }
};

// Loadings to begin with: the leading directions of all views side by side, missing ones as zeros.
std::vector<Matrix<double>> leading_directions(const Observed& data, std::size_t rank, std::uint64_t seed) {
  const std::size_t n = data.W.rows(), m = data.X.size();
  std::vector<std::size_t> first(m + 1);
  for (std::size_t v = 0; v < m; ++v) first[v + 1] = first[v] + data.X[v].cols();
  Matrix<double> side(n, first[m]);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t v = 0; v < m; ++v)
      std::ranges::copy(data.X[v].row(i), side.row(i).begin() + static_cast<std::ptrdiff_t>(first[v]));
  Matrix<double> gram;
  if (first[m] <= kDirectSize) {
    gram = Matrix<double>(first[m], first[m]);
    gram_of_columns(std::as_const(side).view(), gram);
  }
  const Eigensystem pairs =
      !gram.empty() ? symmetric_eigen(gram)
                    : leading_eigen(first[m], rank, {.growth = 1e-3}, seed,
                                    [&](MatrixView<const double> B, MatrixView<double> AB) {
                                      Matrix<double> rows(n, B.cols);
                                      product(std::as_const(side).view(), B, Transpose::none, false, rows);
                                      product(std::as_const(side).view(), std::as_const(rows).view(),
                                              Transpose::left, false, AB);
                                    });
  std::vector<Matrix<double>> loadings;
  for (std::size_t v = 0; v < m; ++v) {
    Matrix<double> L(data.X[v].cols(), rank);
    for (std::size_t k = 0; k < std::min(rank, pairs.values.size()); ++k)
      for (std::size_t j = 0; j < L.rows(); ++j)
        L(j, k) = pairs.vectors(first[v] + j, k) * std::sqrt(std::max(pairs.values[k], 0.) / data.present[v]);
    loadings.push_back(std::move(L));
  }
  return loadings;
}

}  // namespace

Factors Factors::fit(const Items& items, std::size_t rank, std::uint64_t seed, int iterations) {
  return fit(items, std::vector<std::uint8_t>(items.rows(), 1), rank, seed, iterations);
}

Factors Factors::fit(const Items& items, const std::vector<std::uint8_t>& use, std::size_t rank,
                     std::uint64_t seed, int iterations) {
  const Observed data(items, use);
  const std::size_t n = data.W.rows(), m = data.X.size();
  std::size_t columns = 0;
  for (const auto& X : data.X) columns += X.cols();
  rank = std::max<std::size_t>(1, std::min({rank, columns, n}));
  Factors model;
  model.loadings_ = leading_directions(data, rank, seed);
  for (std::size_t v = 0; v < m; ++v) {
    auto& noise = model.noise_.emplace_back(data.X[v].cols());
    for (std::size_t k = 0; k < noise.size(); ++k) noise[k] = data.variance(v, k) / 2;
  }
  model.settle();
  const Patterns patterns(data.W, kAll);
  std::vector<Matrix<double>> S(patterns.views.size());
  Matrix<double> F(n, rank), own(n, rank);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    // Expectation: factors, and their covariance per pattern.
    parallel_for(S.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t p = begin; p < end; ++p) S[p] = model.covariance(patterns.views[p], kAll);
    });
    for (std::size_t v = 0; v < m; ++v) product(data.X[v], model.weights_[v], Transpose::none, v > 0, F);
    parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) times(F.row(i), S[patterns.of_row[i]]);
    });
    // Maximisation: a regression of every view on the factors of the items that have it.
    for (std::size_t v = 0; v < m; ++v) {
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < rank; ++k) own(i, k) = data.W(i, v) != 0 ? F(i, k) : 0;
      Matrix<double> C(rank, rank), XF(data.X[v].cols(), rank), L(rank, data.X[v].cols());
      gram_of_columns(std::as_const(own).view(), C);
      for (std::size_t p = 0; p < S.size(); ++p)
        if (patterns.views[p][v] != 0) add(static_cast<double>(patterns.count[p]), S[p], C);
      for (std::size_t k = 0; k < rank; ++k) C(k, k) += kPrior;
      product(data.X[v], std::as_const(F).view(), Transpose::left, false, XF);
      for (std::size_t j = 0; j < XF.rows(); ++j)
        for (std::size_t k = 0; k < rank; ++k) L(k, j) = XF(j, k);
      Cholesky(std::move(C), "the factors' covariance").solve(L);
      for (std::size_t j = 0; j < XF.rows(); ++j) {
        double explained = 0;
        for (std::size_t k = 0; k < rank; ++k) {
          model.loadings_[v](j, k) = L(k, j);
          explained += L(k, j) * XF(j, k);
        }
        model.noise_[v][j] =
            std::max((data.squares[v][j] - explained) / data.present[v], kLeastNoise * data.variance(v, j));
      }
    }
    model.settle();
  }
  return model;
}

void Factors::settle() {
  weights_.clear();
  precision_.clear();
  square_.clear();
  for (std::size_t v = 0; v < loadings_.size(); ++v) {
    const Matrix<double>& L = loadings_[v];
    Matrix<double> weights = L, precision(L.cols(), L.cols()), square(L.cols(), L.cols());
    for (std::size_t j = 0; j < L.rows(); ++j)
      for (double& x : weights.row(j)) x /= noise_[v][j];
    product(L, std::as_const(weights).view(), Transpose::left, false, precision);
    gram_of_columns(L.view(), square);
    weights_.push_back(std::move(weights));
    precision_.push_back(std::move(precision));
    square_.push_back(std::move(square));
  }
}

Matrix<double> Factors::covariance(std::span<const std::uint8_t> present, std::size_t without) const {
  Matrix<double> M = identity(rank());
  for (std::size_t v = 0; v < present.size(); ++v)
    if (present[v] != 0 && v != without) add(1, precision_[v], M);
  Matrix<double> S = identity(rank());
  Cholesky(std::move(M), "the factors' precision").solve(S);
  return S;
}

void Factors::estimate(const Items& items, std::size_t without, MatrixView<float> F,
                       MatrixView<float> doubt) const {
  const Patterns patterns(items.W, without);
  std::vector<Matrix<double>> S(patterns.views.size());
  Matrix<float> open(S.size(), views());
  parallel_for(S.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      S[p] = covariance(patterns.views[p], kAll);
      for (std::size_t v = 0; v < views(); ++v) {  // tr(Λ S Λᵀ) / tr(Λ Λᵀ)
        double left = 0, whole = 0;
        for (std::size_t k = 0; k < S[p].values().size(); ++k)
          left += S[p].values()[k] * square_[v].values()[k];
        for (std::size_t k = 0; k < rank(); ++k) whole += square_[v](k, k);
        open(p, v) = whole > 0 ? static_cast<float>(std::clamp(left / whole, 0., 1.)) : 1.f;
      }
    }
  });
  parallel_for(items.rows(), 32, [&](std::size_t begin, std::size_t end) {
    std::vector<double> f(rank());
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t p = patterns.of_row[i];
      std::ranges::fill(f, 0.);
      for (std::size_t v = 0; v < views(); ++v) {
        if (patterns.views[p][v] == 0) continue;
        const auto x = items.X[v].row(i);
        for (std::size_t j = 0; j < x.size(); ++j) {
          const auto line = weights_[v].row(j);
          const auto value = static_cast<double>(x[j]);
          for (std::size_t k = 0; k < f.size(); ++k) f[k] += value * line[k];
        }
      }
      times(f, S[p]);
      for (std::size_t k = 0; k < f.size(); ++k) F(i, k) = static_cast<float>(f[k]);
      if (!doubt.empty()) std::ranges::copy(open.row(p), doubt.row(i).begin());
    }
  });
}

void Factors::save(Tensors& file, const std::string& stem) const {
  for (std::size_t v = 0; v < views(); ++v) {
    file.put(fmt::format("{}loadings.{}", stem, v), loadings_[v].view());
    file.put(fmt::format("{}noise.{}", stem, v),
             MatrixView<const double>(noise_[v].data(), 1, noise_[v].size()));
  }
}

Factors Factors::load(const Tensors& file, const std::string& stem, const std::vector<std::size_t>& columns) {
  Factors model;
  for (std::size_t v = 0; v < columns.size(); ++v) {
    const std::string name = fmt::format("{}loadings.{}", stem, v),
                      noise = fmt::format("{}noise.{}", stem, v);
    const auto& shape = file.at(name).shape;
    const std::size_t rank = v > 0               ? model.rank()
                             : shape.size() == 2 ? static_cast<std::size_t>(shape[1])
                                                 : 0;
    if (shape.size() != 2 || shape[0] != columns[v] || shape[1] != rank || rank == 0)
      fail(Exit::data, "{}: '{}' does not fit a view of {} prepared columns and {} factors", file.path(),
           name, columns[v], rank);
    Matrix<double> L(columns[v], rank), psi(1, columns[v]);
    file.get(name, L);
    file.get(noise, psi);
    if (!std::ranges::all_of(L.values(), [](double x) { return std::isfinite(x); }) ||
        !std::ranges::all_of(psi.values(), [](double x) { return std::isfinite(x) && x > 0; }))
      fail(Exit::data, "{}: '{}' and '{}' must hold finite numbers, the latter positive ones", file.path(),
           name, noise);
    model.loadings_.push_back(std::move(L));
    model.noise_.emplace_back(psi.values().begin(), psi.values().end());
  }
  model.settle();
  return model;
}

}  // namespace lacuna
