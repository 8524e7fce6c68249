#include "methods/expand_shrink.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/threads.h"
#include "methods/iterate.h"

namespace lacuna {

void ExpandShrinkOptions::declare(Options& options) {
  options.add("lambda", lambda, "weight of the rank terms")
      .range(0, 1e6)
      .symbol("λ")
      .tunable({".1", ".2", ".4", ".6", "1", "1.5", "2"});
  options.add("mu", mu, "penalty of the splitting").range(1e-6, 1e6).symbol("μ").tunable({"1", "5", "20"});
  options.add("cut", cut, "smallest squared singular value in the subgradient").range(1e-12, 1e6);
  options.add("tolerance", tolerance, "stop when no entry changes by more than this").range(0, 1);
  options.add("relative", relative, "stop when the relative change of the objective is smaller, three times "
                                    "in a row")
      .range(0, 1);
  options.add("iterations", iterations, "maximum number of iterations").range(1, 100000);
  options.add("majorise", majorise,
              "majorise the masked square instead of linearising it (no-majorise: as the authors)");
  options.add("random-start", random_start, "start from U(-1, 1) as the authors, not from 0");
}

// An iteration: the Gram matrix and the sub-gradient of all predictions, the same of the rows of each class with an
// eigenproblem of the smaller side, and two products with the features.
Cost expand_shrink_cost(const FitSize& size, std::size_t constants, const ExpandShrinkOptions& options) {
  const double c = static_cast<double>(size.labels), rows = std::max(1., static_cast<double>(size.rows));
  double n = 0, features = 0;
  for (std::size_t v = 0; v < size.columns.size(); ++v) {
    n += static_cast<double>(size.present[v]);
    features += static_cast<double>(size.present[v]) * static_cast<double>(size.columns[v] + constants);
  }
  const double members = size.positives / rows * n,  // (row, class) pairs of the stack
      side = std::min(c, members / std::max(c, 1.));
  const double products = 3 * n * c * c + 4 * features * c + 3 * members * c * side;
  const double eigen = c * c * c + c * side * side * side;
  return {static_cast<double>(options.iterations) * (products / 20e9 + eigen * 12 / 8e9),
          8 * (c * (6 * n + 3 * members) + features)};
}

ExpandShrink::ExpandShrink(std::vector<Block> blocks, const Items& labels, const ExpandShrinkOptions& options)
    : blocks_(std::move(blocks)), options_(options) {
  const std::size_t c = labels.labels();
  std::size_t n = 0;
  for (const Block& block : blocks_) {
    first_.push_back(n);
    n += block.X.rows();
  }
  Y_ = Matrix<double>(n, c);
  P_ = Matrix<std::uint8_t>(n, c);
  for (std::size_t v = 0; v < blocks_.size(); ++v)
    for (std::size_t r = 0; r < blocks_[v].rows.size(); ++r)
      for (std::size_t j = 0; j < c; ++j) {
        const std::size_t i = blocks_[v].rows[r];
        P_(first_[v] + r, j) = labels.G(i, j);
        Y_(first_[v] + r, j) = labels.G(i, j) ? (labels.Y(i, j) > .5f ? 1 : -1) : 0;
      }
  class_start_ = {0};
  row_start_.assign(n + 1, 0);
  for (std::size_t k = 0; k < c; ++k) {
    for (std::size_t i = 0; i < n; ++i)
      if (Y_(i, k) > 0) {
        member_.push_back(static_cast<std::uint32_t>(i));
        ++row_start_[i + 1];
      }
    class_start_.push_back(member_.size());
  }
  for (std::size_t i = 0; i < n; ++i) row_start_[i + 1] += row_start_[i];
  position_.resize(member_.size());
  std::vector<std::size_t> next(row_start_.begin(), row_start_.end() - 1);
  for (std::size_t r = 0; r < member_.size(); ++r)
    position_[next[member_[r]]++] = static_cast<std::uint32_t>(r);

  // Q = Σ_k X_kᵀX_k = Xᵀ diag(number of known positives of each row) X.
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    const Matrix<double>& X = blocks_[v].X;
    Matrix<double> weighted = X, H(X.cols(), X.cols());
    for (std::size_t i = 0; i < X.rows(); ++i) {
      const std::size_t at = first_[v] + i;
      const double weight =
          options_.mu * static_cast<double>(row_start_[at + 1] - row_start_[at]) + options_.majorise;
      for (double& x : weighted.row(i)) x *= std::sqrt(weight);
    }
    gram_of_columns(weighted, H);
    double trace = 0;
    for (std::size_t j = 0; j < H.rows(); ++j) trace += H(j, j);
    const double delta =
        std::max(1e-8 * trace / static_cast<double>(std::max<std::size_t>(H.rows(), 1)), 1e-12);
    for (std::size_t j = 0; j < H.rows(); ++j) H(j, j) += delta;
    factor_.emplace_back(std::move(H), "the Gram matrix of the positive rows");
    A_.emplace_back(X.cols(), c);
  }
  F_ = Matrix<double>(n, c);
  S_ = Matrix<double>(n, c);
  right_ = Matrix<double>(n, c);
  Z_ = Matrix<double>(member_.size(), c);
  multipliers_ = Matrix<double>(member_.size(), c);
  z_norms_.assign(c, 0);
}

void ExpandShrink::start(std::uint64_t seed) {
  for (std::size_t v = 0; v < A_.size(); ++v) {
    Random random(seed, Purpose::initialise, static_cast<std::uint32_t>(v));
    for (double& a : A_[v].values()) a = options_.random_start ? 2 * random.uniform_double() - 1 : 0;
  }
}

void ExpandShrink::update_predictions() {
  for (std::size_t v = 0; v < blocks_.size(); ++v)
    product(blocks_[v].X, A_[v], Transpose::none, false, F_.view().slice(first_[v], blocks_[v].X.rows()));
}

void ExpandShrink::update_subgradient() {
  predictions_norm_ = nuclear_subgradient(F_, options_.cut, S_);
}

double ExpandShrink::update_A() {
  // Right side of the normal equations, before Xᵀ: λS + Σ_k(μZ_k - Λ_k) - P ⊙ (F - Y) [+ F where majorised].
  Matrix<double>& right = right_;
  parallel_for(rows(), 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto to = right.row(i);
      for (std::size_t j = 0; j < to.size(); ++j) {
        to[j] = options_.lambda * S_(i, j) + (options_.majorise ? F_(i, j) : 0);
        if (P_(i, j)) to[j] -= F_(i, j) - Y_(i, j);
      }
      for (std::size_t p = row_start_[i]; p < row_start_[i + 1]; ++p) {
        const auto z = Z_.row(position_[p]), l = multipliers_.row(position_[p]);
        for (std::size_t j = 0; j < to.size(); ++j) to[j] += options_.mu * z[j] - l[j];
      }
    }
  });
  double change = 0;
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    Matrix<double> next(A_[v].rows(), A_[v].cols());
    product(blocks_[v].X, right.view().slice(first_[v], blocks_[v].X.rows()), Transpose::left, false, next);
    factor_[v].solve(next);
    for (std::size_t i = 0; i < next.values().size(); ++i)
      change = std::max(change, std::abs(next.values()[i] - A_[v].values()[i]));
    A_[v] = std::move(next);
  }
  update_predictions();
  return change;
}

double ExpandShrink::update_Z() {
  const std::size_t c = F_.cols();
  std::vector<double> changes(c);
  parallel_for(c, 1, [&](std::size_t k, std::size_t) {
    const std::size_t begin = class_start_[k], count = class_start_[k + 1] - begin;
    Scratch scratch;
    {
      const std::lock_guard lock(scratch_mutex_);
      if (!scratch_.empty()) scratch = std::move(scratch_.back()), scratch_.pop_back();
    }
    if (scratch.point.cols() < count * c)
      scratch = {Matrix<double>(1, count * c), Matrix<double>(1, count * c)};
    const MatrixView<double> point(scratch.point.data(), count, c), next(scratch.next.data(), count, c);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t j = 0; j < c; ++j)
        point(r, j) = F_(member_[begin + r], j) + multipliers_(begin + r, j) / options_.mu;
    z_norms_[k] = singular_value_threshold(point, options_.lambda / options_.mu, next);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t j = 0; j < c; ++j) {
        changes[k] = std::max(changes[k], std::abs(next(r, j) - Z_(begin + r, j)));
        Z_(begin + r, j) = next(r, j);
      }
    const std::lock_guard lock(scratch_mutex_);
    scratch_.push_back(std::move(scratch));
  });
  return changes.empty() ? 0 : *std::max_element(changes.begin(), changes.end());
}

void ExpandShrink::update_multipliers() {
  parallel_for(member_.size(), 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      for (std::size_t j = 0; j < F_.cols(); ++j)
        multipliers_(r, j) += options_.mu * (F_(member_[r], j) - Z_(r, j));
  });
}

double ExpandShrink::data_term() const {
  return .5 * ordered_sum(rows(), 64, [&](std::size_t begin, std::size_t end) {
           double sum = 0;
           for (std::size_t i = begin; i < end; ++i)
             for (std::size_t j = 0; j < F_.cols(); ++j)
               if (P_(i, j)) sum += (F_(i, j) - Y_(i, j)) * (F_(i, j) - Y_(i, j));
           return sum;
         });
}

double ExpandShrink::lagrangian() const {
  double value = data_term() - options_.lambda * nuclear_norm(F_);
  for (const double norm : z_norms_) value += options_.lambda * norm;
  for (std::size_t r = 0; r < member_.size(); ++r)
    for (std::size_t j = 0; j < F_.cols(); ++j) {
      const double gap = F_(member_[r], j) - Z_(r, j);
      value += multipliers_(r, j) * gap + .5 * options_.mu * gap * gap;
    }
  return value;
}

Matrix<double> ExpandShrink::gradient_A(const Matrix<double>& old) const {
  std::size_t d = 0;
  for (const Matrix<double>& A : A_) d += A.rows();
  Matrix<double> inner(F_.rows(), F_.cols()), gradient(d, F_.cols());
  for (std::size_t i = 0; i < rows(); ++i)
    for (std::size_t j = 0; j < F_.cols(); ++j) {
      inner(i, j) = -options_.lambda * S_(i, j) + (P_(i, j) ? old(i, j) - Y_(i, j) : 0);
      if (options_.majorise) inner(i, j) += F_(i, j) - old(i, j);
      for (std::size_t p = row_start_[i]; p < row_start_[i + 1]; ++p)
        inner(i, j) += multipliers_(position_[p], j) + options_.mu * (F_(i, j) - Z_(position_[p], j));
    }
  for (std::size_t v = 0, at = 0; v < blocks_.size(); at += A_[v].rows(), ++v)
    product(blocks_[v].X, inner.view().slice(first_[v], blocks_[v].X.rows()), Transpose::left, false,
            gradient.view().slice(at, A_[v].rows()));
  return gradient;
}

void ExpandShrink::solve(const std::string& method, FitContext& context) {
  Matrix<double> scalars(1, 2);  // the last objective, and how often running it hardly changed
  std::vector<Iteration::State> state = {{"Z", &Z_}, {"multipliers", &multipliers_}, {"scalars", &scalars}};
  for (std::size_t v = 0; v < A_.size(); ++v) state.push_back({"A" + std::to_string(v), &A_[v]});
  Iteration loop(context, method, options_.iterations, std::move(state));
  if (!loop.resumed()) start(context.seed);
  update_predictions();
  while (loop.next()) {
    update_subgradient();
    // The authors stop at 3000. Predictions of ±1 alone reach √(Nc), which is more than that on large data.
    const double usual = std::sqrt(static_cast<double>(F_.rows()) * static_cast<double>(F_.cols()));
    const double bound = std::max(3000., 10 * usual);
    if (predictions_norm_.largest > bound)
      throw Diverged(
          fmt::format("{}: a singular value of the {} x {} predictions reached {:.0f} after {} iterations, "
                      "where labels of ±1 have {:.0f}: mu {} is too small, or lambda {} too large",
                      method, F_.rows(), F_.cols(), predictions_norm_.largest, loop.done(), usual,
                      options_.mu, options_.lambda),
          false);
    const double change_A = update_A(), change_Z = update_Z();
    update_multipliers();
    double shrink = 0;
    for (const double norm : z_norms_) shrink += norm;
    const double data = data_term(), change = std::max(change_A, change_Z);
    const double total = data + options_.lambda * (shrink - predictions_norm_.norm);
    const bool still = std::abs(total - scalars(0, 0)) < options_.relative * std::abs(total);
    scalars(0, 1) = still ? scalars(0, 1) + 1 : 0;
    scalars(0, 0) = total;
    loop.report({{"total", total},
                 {"data", data},
                 {"shrink", shrink},
                 {"expand", predictions_norm_.norm},
                 {"change", change}},
                change < options_.tolerance || scalars(0, 1) >= 3);
  }
}

}  // namespace lacuna
