#include <gtest/gtest.h>

#include "methods/all.h"
#include "methods/kernels.h"
#include "small_items.h"

namespace lacuna {
namespace {

using Plain = std::vector<std::vector<double>>;

Plain times(const Plain& A, const Plain& B) {
  Plain C(A.size(), std::vector<double>(B[0].size()));
  for (std::size_t i = 0; i < A.size(); ++i)
    for (std::size_t k = 0; k < B.size(); ++k)
      for (std::size_t j = 0; j < B[0].size(); ++j) C[i][j] += A[i][k] * B[k][j];
  return C;
}

// Gauss-Jordan with pivoting.
Plain solve(Plain A, Plain B) {
  const std::size_t n = A.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t p = k;
    for (std::size_t i = k; i < n; ++i)
      if (std::abs(A[i][k]) > std::abs(A[p][k])) p = i;
    std::swap(A[k], A[p]);
    std::swap(B[k], B[p]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double f = A[i][k] / A[k][k];
      for (std::size_t j = 0; j < n; ++j) A[i][j] -= f * A[k][j];
      for (double& b : B[i]) b -= f * B[k][static_cast<std::size_t>(&b - B[i].data())];
    }
  }
  for (std::size_t k = 0; k < n; ++k)
    for (double& b : B[k]) b /= A[k][k];
  return B;
}

// Rows of view v, gaps filled with the mean of the training rows that have it, scaled to length 1.
Plain unit(const Items& items, const Items& train, std::size_t v) {
  const std::size_t d = train.X[v].cols();
  std::vector<double> mean(d);
  double count = 0;
  for (std::size_t i = 0; i < train.rows(); ++i) count += train.W(i, v);
  for (std::size_t i = 0; i < train.rows(); ++i)
    for (std::size_t j = 0; j < d; ++j)
      if (train.W(i, v)) mean[j] += static_cast<double>(train.X[v](i, j)) / count;
  Plain X;
  for (std::size_t i = 0; i < items.rows(); ++i) {
    std::vector<double> x(d);
    double squares = 0;
    for (std::size_t j = 0; j < d; ++j) {
      x[j] = items.W(i, v) ? static_cast<double>(items.X[v](i, j)) : mean[j];
      squares += x[j] * x[j];
    }
    for (double& value : x) value /= std::sqrt(squares);
    X.push_back(std::move(x));
  }
  return X;
}

Plain kernel(const Plain& A, const Plain& B, double width) {
  Plain K(A.size(), std::vector<double>(B.size()));
  for (std::size_t i = 0; i < A.size(); ++i)
    for (std::size_t j = 0; j < B.size(); ++j) {
      double squared = 0;
      for (std::size_t k = 0; k < A[i].size(); ++k) squared += (A[i][k] - B[j][k]) * (A[i][k] - B[j][k]);
      K[i][j] = std::exp(-squared / width);
    }
  return K;
}

// Every formula of the method once more, step by step.
TEST(Cdmm, StraightLineComputation) {
  ItemsShape shape;
  shape.n = 14;
  shape.c = 4;
  const Items train = small_items(shape, 4), test = small_items(shape, 5);
  const std::size_t n = 14, c = 4, m = 3;
  const double alpha = .02, lambda = 50, C = 3, kappa = .8, eta = .6, least = .01;
  const auto method = make_cdmm();
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"diversity", ".02"}, {"spread", "50"}, {"fit", "3"}, {"width", ".8"}, {"label-share", ".6"}})
    set_option(*method, name, value);
  FitContext context;
  method->fit(train, Items{}, context);

  Plain Y(n, std::vector<double>(c));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < c; ++j) Y[i][j] = train.G(i, j) && train.Y(i, j) > 0;
  std::vector<Plain> X, K;
  for (std::size_t v = 0; v < m; ++v) {
    X.push_back(unit(train, train, v));
    K.push_back(kernel(X[v], X[v], kappa));
  }
  Plain A(c, std::vector<double>(c));
  for (std::size_t j = 0; j < c; ++j)
    for (std::size_t l = 0; l < c; ++l) {
      double both = 0, either = 0, nj = 0, nl = 0;
      for (std::size_t i = 0; i < n; ++i) {
        both += Y[i][j] * Y[i][l];
        either += Y[i][j] + Y[i][l] > 0;
        nj += Y[i][j];
        nl += Y[i][l];
      }
      A[j][l] = either > 0 ? eta * both / either : 0;
      for (std::size_t v = 0; v < m; ++v) {
        double squared = 0;
        for (std::size_t k = 0; k < X[v][0].size(); ++k) {
          double a = 0, b = 0;
          for (std::size_t i = 0; i < n; ++i) a += Y[i][j] * X[v][i][k], b += Y[i][l] * X[v][i][k];
          if (nj > 0 && nl > 0) squared += std::pow(a / nj - b / nl, 2);
        }
        if (nj > 0 && nl > 0) A[j][l] += (1 - eta) / 3 * std::exp(-squared / 2);
      }
      if (A[j][l] < least) A[j][l] = 0;
    }
  Plain R = A;
  for (std::size_t j = 0; j < c; ++j)
    for (std::size_t l = 0; l < c; ++l) {
      double dj = 1e-10, dl = 1e-10;
      for (std::size_t k = 0; k < c; ++k) dj += A[j][k], dl += A[l][k];
      R[j][l] = A[j][l] / std::sqrt(dj * dl);
    }
  const Plain T = times(Y, R);
  Plain H(n, std::vector<double>(n, -1. / n));
  for (std::size_t i = 0; i < n; ++i) H[i][i] += 1;
  std::vector<Plain> beta;
  std::vector<double> q;
  for (std::size_t v = 0; v < m; ++v) {
    Plain M(n, std::vector<double>(n));
    for (std::size_t s = 0; s < m; ++s) {
      if (s == v) continue;
      const Plain centred = times(times(H, K[s]), H);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) M[i][j] += alpha * centred[i][j];
    }
    for (std::size_t i = 0; i < n; ++i) M[i][i] += 1;
    Plain system = times(M, K[v]);
    for (std::size_t i = 0; i < n; ++i) system[i][i] += 1 / C;
    beta.push_back(solve(system, T));
    const Plain F = times(K[v], beta[v]);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < c; ++j) sum += std::pow(F[i][j] - T[i][j], 2);
    q.push_back(sum);
  }
  const Matrix<float> scores = scores_of(*method, test, c);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < c; ++j) {
      double expected = 0;
      for (std::size_t v = 0; v < m; ++v) {
        const Plain F = times(kernel(unit(test, train, v), X[v], kappa), beta[v]);
        expected += (lambda + q[0] + q[1] + q[2] - 3 * q[v]) / (3 * lambda) * F[i][j];
      }
      EXPECT_NEAR(scores(i, j), expected, 2e-5);
    }
}

TEST(Cdmm, LandmarksOnAllRowsAreExact) {
  const Items train = small_items({}, 1), test = small_items({}, 3);
  FitContext context;
  const auto exact = make_cdmm(), low_rank = make_cdmm();
  set_option(*low_rank, "exact-rows", "10");
  exact->fit(train, Items{}, context);
  low_rank->fit(train, Items{}, context);
  expect_same(scores_of(*exact, test, 5), scores_of(*low_rank, test, 5), 1e-4);
}

TEST(Cdmm, SupportsFitSaveLoadResumeAndGaps) {
  expect_gaps_are_not_read(make_cdmm);
  expect_order_does_not_matter(make_cdmm, 1e-5);
  expect_save_and_load_keep_the_scores(make_cdmm);
  expect_threads_do_not_matter(make_cdmm);
  expect_better_than_prior(make_cdmm, .1);
  expect_refused(make_cdmm, "fit", "-1");
  expect_refused(make_cdmm, "width", "0");
  expect_refused(make_cdmm, "label-share", "1.5");
  expect_better_than_prior(
      [] {
        auto method = make_cdmm();
        set_option(*method, "prototypes", "sum");
        return method;
      },
      .1);
}

TEST(Kernels, ThresholdMakesTheFewestErrors) {
  Random random(1, Purpose::test);
  Matrix<float> scores(30, 4), truth(30, 4);
  for (std::size_t i = 0; i < 120; ++i) {
    truth.values()[i] = random.uniform() < .2f;
    scores.values()[i] = random.normal() * .3f + truth.values()[i] * .5f;
  }
  const float chosen = hamming_threshold(scores, truth);
  const auto errors = [&](float t) {
    int count = 0;
    for (std::size_t i = 0; i < 120; ++i) count += (scores.values()[i] >= t) != (truth.values()[i] > .5f);
    return count;
  };
  const float largest = *std::max_element(scores.values().begin(), scores.values().end());
  for (int t = 0; t <= 50; ++t) EXPECT_LE(errors(chosen), errors(largest * static_cast<float>(t) / 50));
}

TEST(Kernels, WeightsOfViews) {
  const auto even = view_weights({1, 1}, 10), other = view_weights({1, 3}, 10),
             extreme = view_weights({0, 100}, 10);
  EXPECT_DOUBLE_EQ(even[0], .5);
  EXPECT_DOUBLE_EQ(other[0], (10 + 4 - 2.) / 20);
  EXPECT_DOUBLE_EQ(other[0] + other[1], 1);
  EXPECT_GT(extreme[1], 0);
  EXPECT_LT(extreme[1], 1e-6);
}

}  // namespace
}  // namespace lacuna
