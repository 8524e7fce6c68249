#include "methods/logistic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/threads.h"
#include "ops/linalg.h"
#include "ops/scalar.h"

namespace lacuna {
namespace {

constexpr int kHistory = 6;        // steps that a direction remembers
constexpr int kLineSteps = 10;     // of Newton's method along a line, at most
constexpr std::size_t kGrain = 8;  // labels a task

}  // namespace

LogisticRegressions::LogisticRegressions(MatrixView<const double> Z, MatrixView<const float> Y,
                                         MatrixView<const std::uint8_t> G)
    : Z_(Z),
      Y_(Y),
      G_(G),
      known_(1, Y.cols),
      W_(Z.cols, Y.cols),
      b_(1, Y.cols),
      margins_(Z.rows, Y.cols),
      g_(Z.cols, Y.cols),
      gb_(1, Y.cols),
      d_(Z.cols, Y.cols),
      db_(1, Y.cols),
      residual_(Z.rows, Y.cols),
      along_(Z.rows, Y.cols),
      slopes_(1, Y.cols),
      last_(Z.cols + 1, Y.cols) {
  for (int k = 0; k < kHistory; ++k) {
    steps_.emplace_back(Z.cols + 1, Y.cols);
    changes_.emplace_back(Z.cols + 1, Y.cols);
  }
  double all = 0, positives = 0;
  for (std::size_t i = 0; i < G.rows; ++i)
    for (std::size_t j = 0; j < G.cols; ++j) {
      if (!G(i, j)) continue;
      ++known_(0, j);
      ++all;
      positives += static_cast<double>(Y(i, j));
    }
  // A label that no row knows has no gradient: it starts, and stays, as common as all labels together.
  const double usual = std::log((positives + .5) / (all - positives + .5));
  for (std::size_t j = 0; j < G.cols; ++j)
    if (known_(0, j) == 0) b_(0, j) = usual;
}

// g = Zᵀ(σ(margin) - Y) over known entries + λW, and the slopes.
void LogisticRegressions::gradient(double lambda) {
  const std::size_t n = Z_.rows, p = Z_.cols, c = Y_.cols;
  parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < c; ++j)
        residual_(i, j) = G_(i, j) ? sigmoid_of(margins_(i, j)) - static_cast<double>(Y_(i, j)) : 0;
  });
  product(Z_, residual_, Transpose::left, false, g_);
  for (std::size_t j = 0; j < c; ++j) gb_(0, j) = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < c; ++j) gb_(0, j) += residual_(i, j);
  for (std::size_t j = 0; j < c; ++j) slopes_(0, j) = std::abs(gb_(0, j));
  for (std::size_t k = 0; k < p; ++k)
    for (std::size_t j = 0; j < c; ++j) {
      g_(k, j) += lambda * W_(k, j);
      slopes_(0, j) = std::max(slopes_(0, j), std::abs(g_(k, j)));
    }
  for (std::size_t j = 0; j < c; ++j) slopes_(0, j) /= std::max(known_(0, j), 1.);
}

// d = -H g with the L-BFGS estimate H of the inverse Hessian, each label for itself.
void LogisticRegressions::choose_directions() {
  const std::size_t p = Z_.cols, c = Y_.cols;
  parallel_for(c, kGrain, [&](std::size_t begin, std::size_t end) {
    const std::size_t width = end - begin;
    // A label's vector is a column; a task walks the rows of its columns, so memory is read in order.
    Matrix<double> q(p + 1, width);
    for (std::size_t k = 0; k < p; ++k)
      for (std::size_t j = 0; j < width; ++j) q(k, j) = g_(k, begin + j);
    for (std::size_t j = 0; j < width; ++j) q(p, j) = gb_(0, begin + j);
    const auto inner = [&](const Matrix<double>& A, std::size_t first, const Matrix<double>& B,
                           std::size_t second) {
      std::vector<double> sums(width);
      for (std::size_t k = 0; k <= p; ++k)
        for (std::size_t j = 0; j < width; ++j) sums[j] += A(k, first + j) * B(k, second + j);
      return sums;
    };
    std::vector<std::vector<double>> factors(kHistory), curvatures(kHistory);
    const auto slot = [&](int age) {
      return static_cast<std::size_t>((next_ - 1 - age + 2 * kHistory) % kHistory);
    };
    for (int age = 0; age < used_; ++age) {
      const std::size_t s = slot(age);
      curvatures[s] = inner(steps_[s], begin, changes_[s], begin);
      factors[s] = inner(steps_[s], begin, q, 0);
      for (std::size_t j = 0; j < width; ++j)
        factors[s][j] = curvatures[s][j] > 0 ? factors[s][j] / curvatures[s][j] : 0;
      for (std::size_t k = 0; k <= p; ++k)
        for (std::size_t j = 0; j < width; ++j) q(k, j) -= factors[s][j] * changes_[s](k, begin + j);
    }
    if (used_ > 0) {
      const std::size_t s = slot(0);
      const auto squares = inner(changes_[s], begin, changes_[s], begin);
      for (std::size_t k = 0; k <= p; ++k)
        for (std::size_t j = 0; j < width; ++j)
          if (squares[j] > 0) q(k, j) *= curvatures[s][j] / squares[j];
    }
    for (int age = used_ - 1; age >= 0; --age) {
      const std::size_t s = slot(age);
      auto back = inner(changes_[s], begin, q, 0);
      for (std::size_t j = 0; j < width; ++j)
        back[j] = curvatures[s][j] > 0 ? factors[s][j] - back[j] / curvatures[s][j] : 0;
      for (std::size_t k = 0; k <= p; ++k)
        for (std::size_t j = 0; j < width; ++j) q(k, j) += back[j] * steps_[s](k, begin + j);
    }
    for (std::size_t k = 0; k < p; ++k)
      for (std::size_t j = 0; j < width; ++j) d_(k, begin + j) = -q(k, j);
    for (std::size_t j = 0; j < width; ++j) db_(0, begin + j) = -q(p, j);
  });
}

// Moves every label to the lowest point on its line, by Newton's method on the margins.
void LogisticRegressions::advance(double lambda) {
  const std::size_t n = Z_.rows, p = Z_.cols, c = Y_.cols;
  product(Z_, d_, Transpose::none, false, along_);
  std::vector<double> lengths(c);
  parallel_for(c, kGrain, [&](std::size_t begin, std::size_t end) {
    const std::size_t width = end - begin;
    std::vector<double> wd(width), dd(width), t(width), low(width), high(width), first(width), second(width);
    std::vector<std::uint8_t> bounded(width), done(width);  // an upper end is known; nothing is left to gain
    for (std::size_t k = 0; k < p; ++k)
      for (std::size_t j = 0; j < width; ++j) {
        wd[j] += W_(k, begin + j) * d_(k, begin + j);
        dd[j] += d_(k, begin + j) * d_(k, begin + j);
      }
    for (int step = 0; step < kLineSteps; ++step) {
      for (std::size_t j = 0; j < width; ++j) {
        first[j] = lambda * (wd[j] + t[j] * dd[j]);
        second[j] = lambda * dd[j];
      }
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < width; ++j) {
          if (!G_(i, begin + j)) continue;
          const double slope = along_(i, begin + j) + db_(0, begin + j);
          const double s = sigmoid_of(margins_(i, begin + j) + t[j] * slope);
          first[j] += (s - static_cast<double>(Y_(i, begin + j))) * slope;
          second[j] += s * (1 - s) * slope * slope;
        }
      bool moved = false;
      for (std::size_t j = 0; j < width; ++j) {
        if (done[j] || !(second[j] > 0) || (step == 0 && first[j] >= 0)) {
          done[j] = true;
          continue;
        }
        if (first[j] < 0)
          low[j] = t[j];
        else
          high[j] = t[j], bounded[j] = true;
        double next = t[j] - first[j] / second[j];
        if (next <= low[j] || (bounded[j] && next >= high[j]))
          next = bounded[j] ? .5 * (low[j] + high[j]) : 2 * t[j] + 1;
        done[j] = std::abs(next - t[j]) <= 1e-3 * t[j];
        moved |= !done[j];
        t[j] = next;
      }
      if (!moved) break;
    }
    for (std::size_t j = 0; j < width; ++j) lengths[begin + j] = t[j];
  });
  auto& step = steps_[static_cast<std::size_t>(next_)];
  for (std::size_t k = 0; k < p; ++k)
    for (std::size_t j = 0; j < c; ++j) {
      step(k, j) = lengths[j] * d_(k, j);
      W_(k, j) += step(k, j);
    }
  for (std::size_t j = 0; j < c; ++j) {
    step(p, j) = lengths[j] * db_(0, j);
    b_(0, j) += step(p, j);
  }
  parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < c; ++j) margins_(i, j) += lengths[j] * (along_(i, j) + db_(0, j));
  });
}

int LogisticRegressions::solve(double lambda, double tolerance, int limit) {
  const std::size_t p = Z_.cols, c = Y_.cols;
  used_ = next_ = 0;
  gradient(lambda);
  int iteration = 0;
  for (; iteration < limit; ++iteration) {
    if (std::ranges::all_of(slopes_.values(), [&](double slope) { return slope <= tolerance; })) break;
    choose_directions();
    for (std::size_t k = 0; k < p; ++k)
      for (std::size_t j = 0; j < c; ++j) last_(k, j) = g_(k, j);
    for (std::size_t j = 0; j < c; ++j) last_(p, j) = gb_(0, j);
    advance(lambda);
    gradient(lambda);
    auto& change = changes_[static_cast<std::size_t>(next_)];
    for (std::size_t k = 0; k < p; ++k)
      for (std::size_t j = 0; j < c; ++j) change(k, j) = g_(k, j) - last_(k, j);
    for (std::size_t j = 0; j < c; ++j) change(p, j) = gb_(0, j) - last_(p, j);
    next_ = (next_ + 1) % kHistory;
    used_ = std::min(used_ + 1, kHistory);
  }
  return iteration;
}

}  // namespace lacuna
