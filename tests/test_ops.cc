// Every function behind the seam: its backward against finite differences in double, on random shapes, gaps and labels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/random.h"
#include "base/threads.h"
#include "ops/device.h"
#include "ops/ops.h"
#include "random_batch.h"

namespace lacuna {
namespace {

// d loss / d X by central differences against dX.
void expect_gradient(Matrix<double>& X, const Matrix<double>& dX, const std::function<double()>& loss,
                     const char* what) {
  for (std::size_t at = 0; at < X.values().size(); ++at) {
    double& x = X.values()[at];
    const double old = x, h = 1e-6;
    x = old + h;
    const double up = loss();
    x = old - h;
    const double down = loss();
    x = old;
    ASSERT_NEAR(dX.values()[at], (up - down) / (2 * h), 1e-7 + 1e-6 * std::abs(dX.values()[at]))
        << what << " " << at;
  }
}

double inner(const Matrix<double>& a, const Matrix<double>& b) {
  double sum = 0;
  for (std::size_t at = 0; at < a.values().size(); ++at) sum += a.values()[at] * b.values()[at];
  return sum;
}

// A parameter whose update with rate 1 and momentum 0 shows its gradient.
struct Probe {
  Matrix<double> value, first;
  explicit Probe(Matrix<double> start) : value(std::move(start)), first(value.rows(), value.cols()) {}
  ParameterView<double> view() { return {value, first, {}, {}, true}; }
};
UpdateRule gradient_rule() {
  UpdateRule rule;
  rule.rate = 1;
  rule.momentum = 0;
  return rule;
}
Matrix<double> minus(const Matrix<double>& a, const Matrix<double>& b) {
  Matrix<double> c = a;
  for (std::size_t at = 0; at < c.values().size(); ++at) c.values()[at] -= b.values()[at];
  return c;
}

// The value of a loss: call(where to write it).
template <class F>
double value_of(F&& call) {
  double value = 0;
  call(&value);
  return value;
}

class Gradients : public testing::TestWithParam<int> {
 protected:
  Random random{static_cast<std::uint64_t>(GetParam()), Purpose::test};
  std::unique_ptr<Ops<double>> ops = make_reference_ops<double>();

  void batch_norm(const Matrix<double>& U, std::size_t missing, Probe& gamma, Probe& beta,
                  Matrix<double>& running, Matrix<double>& saved, Matrix<double>& Y) {
    const NormForward<double> job{.U = U,
                                  .gamma = gamma.value,
                                  .beta = beta.value,
                                  .saved = saved,
                                  .Y = Y,
                                  .running = running,
                                  .missing = missing};
    ops->batch_norm_forward({&job, 1}, {});
  }
  void batch_norm_back(const Matrix<double>& U, std::size_t missing, const Matrix<double>& saved,
                       Probe& gamma, Probe& beta, Matrix<double>& dY) {
    const NormBackward<double> job{
        .U = U, .saved = saved, .gamma = gamma.view(), .beta = beta.view(), .dY = dY, .missing = missing};
    ops->batch_norm_backward({&job, 1}, gradient_rule());
  }
};
INSTANTIATE_TEST_SUITE_P(Rounds, Gradients, testing::Range(0, kRounds));

TEST_P(Gradients, Linear) {
  const std::size_t n = random.below(5), in = 1 + random.below(6), out = 1 + random.below(6);
  Matrix<double> X = random_matrix<double>(random, n, in), R = random_matrix<double>(random, n, out),
                 Y(n, out), dX(n, in);
  Probe W(random_matrix<double>(random, in, out)), b(random_matrix<double>(random, 1, out));
  const auto loss = [&] {
    const ForwardJob<double> job{.X = X, .W = W.value, .b = b.value, .Y = Y};
    ops->linear_forward({&job, 1});
    return inner(Y, R);
  };
  Matrix<double> W0 = W.value, b0 = b.value;
  const BackwardJob<double> job{.X = X, .dY = R, .W = W.view(), .b = b.view(), .dX = dX};
  ops->linear_backward({&job, 1}, gradient_rule());
  const Matrix<double> dW = minus(W0, W.value), db = minus(b0, b.value);
  W.value = W0;
  b.value = b0;
  expect_gradient(X, dX, loss, "X");
  expect_gradient(W.value, dW, loss, "W");
  expect_gradient(b.value, db, loss, "b");
}

// The last row stands for several missing instances whose outputs nobody reads. The truth is the plain form
// in which each of them is a row of its own: same outputs, statistics and parameter gradients, and the sum of
// their input gradients.
TEST_P(Gradients, BatchNormWithARowThatStandsForMany) {
  const std::size_t present = random.below(5), d = 1 + random.below(6);
  const std::size_t missing = GetParam() % 3 == 0 ? 0 : 1 + random.below(5),
                    n = present + (missing > 0 ? 1 : 0);
  if (n == 0) return;
  Matrix<double> U = random_matrix<double>(random, n, d), R = random_matrix<double>(random, n, d), Y(n, d),
                 saved(2, d);
  if (missing > 0)
    for (double& r : R.row(n - 1)) r = 0;
  Probe gamma(random_matrix<double>(random, 1, d)), beta(random_matrix<double>(random, 1, d));
  const Matrix<double> gamma0 = gamma.value, beta0 = beta.value;
  Matrix<double> running(2, d), dU = R;
  batch_norm(U, missing, gamma, beta, running, saved, Y);
  batch_norm_back(U, missing, saved, gamma, beta, dU);
  const Matrix<double> dgamma = minus(gamma0, gamma.value), dbeta = minus(beta0, beta.value);
  gamma.value = gamma0;
  beta.value = beta0;

  const std::size_t N = present + missing;
  Matrix<double> plain_U(N, d), plain_dU(N, d), plain_Y(N, d), plain_running(2, d);
  for (std::size_t r = 0; r < N; ++r)
    for (std::size_t j = 0; j < d; ++j) {
      plain_U(r, j) = U(std::min(r, n - 1), j);
      plain_dU(r, j) = r < present ? R(r, j) : 0;
    }
  batch_norm(plain_U, 0, gamma, beta, plain_running, saved, plain_Y);
  batch_norm_back(plain_U, 0, saved, gamma, beta, plain_dU);
  for (std::size_t j = 0; j < d; ++j) {
    EXPECT_NEAR(running(0, j), plain_running(0, j), 1e-12);
    EXPECT_NEAR(running(1, j), plain_running(1, j), 1e-12);
    EXPECT_NEAR(dgamma(0, j), gamma0(0, j) - gamma.value(0, j), 1e-12);
    EXPECT_NEAR(dbeta(0, j), beta0(0, j) - beta.value(0, j), 1e-12);
    double sum = 0;
    for (std::size_t r = 0; r < N; ++r) {
      EXPECT_NEAR(Y(std::min(r, n - 1), j), plain_Y(r, j), 1e-12);
      if (r < present) {
        EXPECT_NEAR(dU(r, j), plain_dU(r, j), 1e-12);
      } else {
        sum += plain_dU(r, j);
      }
    }
    if (missing > 0) {
      EXPECT_NEAR(dU(n - 1, j), sum, 1e-12);
    }
  }
  gamma.value = gamma0;
  beta.value = beta0;
  Matrix<double> scrap(2, d);
  const auto loss = [&] {
    batch_norm(U, missing, gamma, beta, scrap, saved, Y);
    return inner(Y, R);
  };
  expect_gradient(U, dU, loss, "U");  // moving the last row moves all that it stands for
  expect_gradient(gamma.value, dgamma, loss, "gamma");
  expect_gradient(beta.value, dbeta, loss, "beta");
}

TEST_P(Gradients, LayerNorm) {
  const std::size_t n = random.below(5), d = 2 + random.below(6);
  Matrix<double> U = random_matrix<double>(random, n, d), R = random_matrix<double>(random, n, d), Y(n, d),
                 saved(n, 2);
  Probe gamma(random_matrix<double>(random, 1, d)), beta(random_matrix<double>(random, 1, d));
  const Matrix<double> gamma0 = gamma.value, beta0 = beta.value;
  const auto loss = [&] {
    const NormForward<double> job{.U = U, .gamma = gamma.value, .beta = beta.value, .saved = saved, .Y = Y};
    ops->layer_norm_forward({&job, 1}, 1e-5);
    return inner(Y, R);
  };
  loss();
  Matrix<double> dU = R;
  const NormBackward<double> job{
      .U = U, .saved = saved, .gamma = gamma.view(), .beta = beta.view(), .dY = dU};
  ops->layer_norm_backward({&job, 1}, gradient_rule());
  const Matrix<double> dgamma = minus(gamma0, gamma.value), dbeta = minus(beta0, beta.value);
  gamma.value = gamma0;
  beta.value = beta0;
  expect_gradient(U, dU, loss, "U");
  expect_gradient(gamma.value, dgamma, loss, "gamma");
  expect_gradient(beta.value, dbeta, loss, "beta");
}

TEST_P(Gradients, CollectAndSpreadAreAdjoint) {
  const Gaps gaps(random);
  const std::size_t d = 1 + random.below(5);
  for (const Share share : {Share::sum, Share::mean}) {
    Matrix<double> stack = random_matrix<double>(random, gaps.stack, d),
                   rows = random_matrix<double>(random, gaps.b, d);
    Matrix<double> collected(gaps.b, d), spread(gaps.stack, d);
    ops->collect(stack, gaps.slots, share, false, collected);
    ops->spread(rows, gaps.slots, share, true, spread);
    EXPECT_NEAR(inner(collected, rows), inner(stack, spread), 1e-10);
  }
}

TEST_P(Gradients, GateReluDropout) {
  const std::size_t n = random.below(5), d = 1 + random.below(20);
  Matrix<double> S = random_matrix<double>(random, n, d), O = random_matrix<double>(random, n, d);
  Matrix<double> R = random_matrix<double>(random, n, d), Z(n, d), dS(n, d), dO(n, d);
  const auto gate = [&] {
    ops->gate_forward(S, O, Z);
    return inner(Z, R);
  };
  ops->gate_backward(S, O, R, dS, dO);
  expect_gradient(S, dS, gate, "S");
  expect_gradient(O, dO, gate, "O");

  const std::vector<std::uint32_t> rows = {4, 9, 2, 7, 5};
  const Draws draws{7, 3, 2, std::span(rows).first(n)};
  const auto drop = [&] {
    ops->activate_forward(Activation::relu, S, Z);
    const DropoutJob<double> job{draws, Z};
    ops->dropout(.4, {&job, 1});
    return inner(Z, R);
  };
  drop();
  Matrix<double> dX = R;
  const DropoutJob<double> job{draws, dX};
  ops->dropout(.4, {&job, 1});
  ops->activate_backward(Activation::relu, S, dX);
  expect_gradient(S, dX, drop, "dropout of relu");
}

TEST_P(Gradients, Activations) {
  const std::size_t n = random.below(5), d = 1 + random.below(20);
  Matrix<double> X = random_matrix<double>(random, n, d, 2), R = random_matrix<double>(random, n, d), Y(n, d);
  for (const Activation f : {Activation::relu, Activation::leaky, Activation::sigmoid, Activation::centred}) {
    const auto loss = [&] {
      ops->activate_forward(f, X, Y);
      return inner(Y, R);
    };
    loss();
    Matrix<double> dX = R;
    ops->activate_backward(f, Y, dX);
    expect_gradient(X, dX, loss, "activation");
  }
}

TEST(Dropout, KeepsTheRightShareAndTheMean) {
  const auto ops = make_cpu_ops(Precision::f32);
  Matrix<float> X(64, 1000);
  std::ranges::fill(X.values(), 1.f);
  std::vector<std::uint32_t> rows(64);
  for (std::uint32_t r = 0; r < 64; ++r) rows[r] = r * 17;
  const DropoutJob<float> job{{5, 1, 2, rows}, X};
  ops->dropout(.3, {&job, 1});
  double kept = 0, sum = 0;
  for (std::size_t at = 0; at < 64000; ++at)
    kept += X.values()[at] != 0, sum += static_cast<double>(X.values()[at]);
  EXPECT_NEAR(kept / 64000, .7, .01);
  EXPECT_NEAR(sum / 64000, 1, .015);
}

// Losses with their own gradient: L(X), dX added to `weight` times nothing.
TEST_P(Gradients, BinaryCrossEntropy) {
  const Gaps gaps(random);
  for (const BceForm form : {BceForm::logarithm, BceForm::softplus})
    for (const BceDivisor divisor : {BceDivisor::known, BceDivisor::all}) {
      const BceSettings settings{form, divisor, 1e-3};
      Matrix<double> X = random_matrix<double>(random, gaps.b, gaps.c, 3), dX(gaps.b, gaps.c),
                     scrap(gaps.b, gaps.c);
      const double weight = .7;
      for (const LabelRows& labels : {gaps.labels(), gaps.weighted()}) {
        value_of([&](double* value) { ops->bce(X, labels, settings, weight, dX, value); });
        expect_gradient(
            X, dX,
            [&] {
              return weight *
                     value_of([&](double* value) { ops->bce(X, labels, settings, 1, scrap, value); });
            },
            "logits");
      }
    }
  Matrix<double> X = random_matrix<double>(random, gaps.b, gaps.c), dX(gaps.b, gaps.c), scrap(gaps.b, gaps.c);
  Matrix<double> guesses(gaps.b + 3, gaps.c);
  for (double& g : guesses.values()) g = random.uniform_double();
  for (const LabelRows& labels : {gaps.labels(), gaps.weighted()}) {
    dX = Matrix<double>(gaps.b, gaps.c);
    value_of([&](double* value) { ops->guess_loss(X, labels, guesses, .3, dX, value); });
    expect_gradient(
        X, dX,
        [&] {
          return .3 * value_of([&](double* value) { ops->guess_loss(X, labels, guesses, 1, scrap, value); });
        },
        "guesses");
  }
}

TEST_P(Gradients, Ranking) {
  const Gaps gaps(random);
  Matrix<double> X = random_matrix<double>(random, gaps.b, gaps.c, 2), dX(gaps.b, gaps.c), scrap(gaps.b, gaps.c);
  value_of([&](double* value) { ops->ranking_loss(X, gaps.labels(), 4, .7, dX, value); });
  expect_gradient(
      X, dX,
      [&] {
        return .7 *
               value_of([&](double* value) { ops->ranking_loss(X, gaps.labels(), 4, 1, scrap, value); });
      },
      "ranking");
}

TEST_P(Gradients, Agreement) {
  const std::size_t n = 1 + random.below(6), d = 1 + random.below(6);
  for (const double orthogonal : {0., .5}) {
    Matrix<double> A = random_matrix<double>(random, n, d), E = random_matrix<double>(random, n, d), dA(n, d),
                   dE(n, d), scrap(n, d);
    const auto loss = [&] {
      return .3 * value_of([&](double* value) {
               ops->agreement_loss(A, E, orthogonal, 1, scrap, scrap, value);
             });
    };
    value_of([&](double* value) { ops->agreement_loss(A, E, orthogonal, .3, dA, dE, value); });
    expect_gradient(A, dA, loss, "one embedding");
    expect_gradient(E, dE, loss, "the other embedding");
  }
}

TEST_P(Gradients, ViewLossWithAConstantTeacher) {
  const Gaps gaps(random);
  const Matrix<double> logits = random_matrix<double>(random, gaps.b, gaps.c);
  for (const LabelRows& labels : {gaps.labels(), gaps.weighted()})
    for (const double share : {0., .9, 1.}) {
      Matrix<double> views = random_matrix<double>(random, gaps.stack, gaps.c), dviews = views;
      value_of([&](double* value) { ops->view_loss(logits, labels, gaps.slots, share, 2, dviews, value); });
      expect_gradient(
          views, dviews,
          [&] {
            Matrix<double> scrap = views;
            return 2 * value_of([&](double* value) {
                     ops->view_loss(logits, labels, gaps.slots, share, 1, scrap, value);
                   });
          },
          "view logits");
    }
}

TEST_P(Gradients, GraphContrastInstanceReconstruction) {
  const Gaps gaps(random);
  const std::size_t d = 2 + random.below(6);
  for (const bool normalise : {true, false}) {
    const GraphSettings settings{.eta = 3, .normalise = normalise, .pairwise = normalise};
    Matrix<double> Z = random_matrix<double>(random, gaps.b, d), dZ(gaps.b, d), scrap(gaps.b, d);
    value_of([&](double* value) { ops->graph_loss(Z, gaps.labels(), settings, .8, dZ, value); });
    expect_gradient(
        Z, dZ,
        [&] {
          return .8 * value_of([&](double* value) {
                   ops->graph_loss(Z, gaps.labels(), settings, 1, scrap, value);
                 });
        },
        "Z");
  }
  for (const ContrastCount count : {ContrastCount::views, ContrastCount::pairs})
    for (const ContrastPositives positives : {ContrastPositives::others, ContrastPositives::self}) {
      const ContrastSettings settings{
          .share = positives == ContrastPositives::self ? Share::mean : Share::sum,
          .count = count,
          .positives = positives};
      Matrix<double> S = random_matrix<double>(random, gaps.stack, d),
                     O = random_matrix<double>(random, gaps.stack, d);
      Matrix<double> dS(gaps.stack, d), dO(gaps.stack, d), scrap_S(gaps.stack, d), scrap_O(gaps.stack, d);
      value_of([&](double* value) { ops->contrast_loss(S, O, gaps.slots, settings, .8, dS, dO, value); });
      const auto loss = [&] {
        return .8 * value_of([&](double* value) {
                 ops->contrast_loss(S, O, gaps.slots, settings, 1, scrap_S, scrap_O, value);
               });
      };
      expect_gradient(S, dS, loss, "S");
      expect_gradient(O, dO, loss, "O");
    }
  Matrix<double> S = random_matrix<double>(random, gaps.stack, d), dS(gaps.stack, d), scrap(gaps.stack, d);
  value_of([&](double* value) { ops->instance_loss(S, gaps.slots, .5, .8, dS, value); });
  expect_gradient(
      S, dS,
      [&] {
        return .8 * value_of([&](double* value) { ops->instance_loss(S, gaps.slots, .5, 1, scrap, value); });
      },
      "S");
  Matrix<double> X = random_matrix<double>(random, gaps.b, d),
                 target = random_matrix<double>(random, gaps.b, d), dX = X;
  const auto reconstruct = [&](double weight, Matrix<double>& out) {
    double value = 0;
    const ReconstructionJob<double> job{target, out, &value};
    ops->reconstruction_loss({&job, 1}, gaps.b + 2, weight);
    return value;
  };
  reconstruct(.8, dX);
  expect_gradient(
      X, dX,
      [&] {
        Matrix<double> other = X;
        return .8 * reconstruct(1, other);
      },
      "reconstruction");
}

TEST(Cosines, OfEveryPairOfRowsByHand) {
  const double rows[][2] = {{3, 4}, {-8, 6}, {0, 2}, {0, 0}, {-3, -4}};
  const double expected[][5] = {
      {1, 0, .8, 0, -1}, {0, 1, .6, 0, 0}, {.8, .6, 1, 0, -.8}, {0, 0, 0, 0, 0}, {-1, 0, -.8, 0, 1}};
  Matrix<double> A(5, 2), C(5, 5);
  for (std::size_t i = 0; i < 5; ++i) std::ranges::copy(rows[i], A.row(i).begin());
  cosines<double>(A, C);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(C(i, k), expected[i][k], 1e-15) << i << ' ' << k;
}

// Rows with one view, no shared label, no direction at all: defined and without NaN.
TEST(Losses, EdgesAreDefined) {
  for (const bool fast : {false, true}) {
    const auto ops = fast ? make_cpu_ops(Precision::f32) : make_reference_ops<float>();
    const Matrix<float> zero(2, 3);
    Matrix<float> dS(2, 3), dO(2, 3), dZ(2, 3), dlogits(2, 2), logits(2, 2);
    Matrix<std::int32_t> slots(2, 2);
    slots(0, 0) = 0, slots(0, 1) = 1, slots(1, 0) = slots(1, 1) = kNoRow;
    Matrix<float> Y(2, 2);
    Matrix<std::uint8_t> G(2, 2);
    const std::vector<std::uint32_t> rows = {0, 1};
    const LabelRows labels{Y, G, rows};
    EXPECT_EQ(value_of([&](double* value) { ops->contrast_loss(zero, zero, slots, {}, 1, dS, dO, value); }),
              0);  // cosines of nothing are 0
    EXPECT_EQ(value_of([&](double* value) { ops->graph_loss(zero, labels, {}, 1, dZ, value); }), 0);
    EXPECT_EQ(value_of([&](double* value) { ops->bce(logits, labels, {}, 1, dlogits, value); }),
              0);  // nothing is known
    slots(0, 1) = kNoRow;
    EXPECT_EQ(value_of([&](double* value) { ops->contrast_loss(zero, zero, slots, {}, 1, dS, dO, value); }),
              0);
    EXPECT_EQ(value_of([&](double* value) { ops->instance_loss(zero, slots, .5, 1, dS, value); }), 0);
    Matrix<float> nothing(0, 3), of_nothing(0, 3);
    EXPECT_EQ(value_of([&](double* value) {
                const ReconstructionJob<float> job{std::as_const(nothing).view(), of_nothing.view(), value};
                ops->reconstruction_loss({&job, 1}, 0, 1);
              }),
              0);
    Matrix<float> views(2, 2);
    EXPECT_TRUE(std::isfinite(
        value_of([&](double* value) { ops->view_loss(logits, labels, slots, .9, 1, views, value); })));
    for (const auto* matrix : {&dS, &dO, &dZ, &dlogits, &views})
      for (const float value : matrix->values()) EXPECT_TRUE(std::isfinite(value));
  }
}

// Extreme logits neither overflow nor lose their sign.
TEST(Losses, ExtremeLogits) {
  for (const bool fast : {false, true}) {
    const auto ops = fast ? make_cpu_ops(Precision::f32) : make_reference_ops<float>();
    Matrix<float> logits(1, 4), dlogits(1, 4), P(1, 4), Y(1, 4);
    logits(0, 0) = 200, logits(0, 1) = -200, logits(0, 2) = 90, logits(0, 3) = -90;
    Y(0, 0) = 1, Y(0, 3) = 1;
    Matrix<std::uint8_t> G(1, 4);
    std::ranges::fill(G.values(), std::uint8_t{1});
    const std::vector<std::uint32_t> rows = {0};
    EXPECT_NEAR(value_of([&](double* value) {
                  ops->bce(logits, {Y, G, rows}, {}, 1, dlogits, value);
                }),
                180. / 4, 1e-3);
    EXPECT_NEAR(dlogits(0, 2), .25f, 1e-6);
    EXPECT_NEAR(dlogits(0, 3), -.25f, 1e-6);
    ops->activate_forward(Activation::sigmoid, logits, P);
    EXPECT_EQ(P(0, 0), 1.f);
    EXPECT_GE(P(0, 1), 0.f);
    EXPECT_LT(P(0, 1), 1e-30f);
    EXPECT_TRUE(std::isfinite(value_of([&](double* value) {
      ops->bce(logits, {Y, G, rows}, {.form = BceForm::logarithm}, 1, dlogits, value);
    })));
  }
}

// A row with one positive and one negative, by hand; rows without either count nothing; so do no rows at all.
TEST(Losses, RankingAndAgreementOfLittle) {
  for (const bool fast : {false, true}) {
    const auto ops = fast ? make_cpu_ops(Precision::f32) : make_reference_ops<float>();
    Matrix<float> logits(2, 3), dlogits(2, 3), Y(2, 3);
    logits(0, 0) = std::log(3.f), logits(1, 0) = 5;  // P = 3/4, 1/2
    Y(0, 0) = Y(1, 0) = Y(1, 1) = Y(1, 2) = 1;
    Matrix<std::uint8_t> G(2, 3);
    std::ranges::fill(G.values(), std::uint8_t{1});
    G(0, 2) = 0;
    dlogits(1, 1) = dlogits(0, 2) = 7;
    const std::vector<std::uint32_t> rows = {0, 1};
    EXPECT_NEAR(value_of([&](double* value) { ops->ranking_loss(logits, {Y, G, rows}, 2, 1, dlogits, value); }),
                std::exp(-.5) / 2, 1e-6);
    EXPECT_NEAR(dlogits(0, 0), -std::exp(-.5) * 3 / 16, 1e-6);
    EXPECT_NEAR(dlogits(0, 1), std::exp(-.5) / 4, 1e-6);
    EXPECT_EQ(dlogits(0, 2), 0.f);
    EXPECT_EQ(dlogits(1, 1), 0.f);
    Matrix<float> none(0, 4);
    EXPECT_EQ(value_of([&](double* value) { ops->agreement_loss(none, none, .5, 1, none, none, value); }), 0);
  }
}

// RMSProp with momentum, two steps of one number by hand.
TEST(Update, RmsProp) {
  Matrix<double> w(1, 1), first(1, 1), second(1, 1), gradient(1, 1);
  w(0, 0) = 1;
  UpdateRule rule;
  rule.optimiser = Optimiser::rmsprop;
  rule.rate = .1, rule.momentum = .5, rule.beta2 = .75, rule.epsilon = 0;
  const ParameterView<double> p{w, first, second, {}, false};
  gradient(0, 0) = -2;
  update_parameter<double>(rule, gradient, p);
  EXPECT_NEAR(w(0, 0), 1.1, 1e-12);  // the first step moves by the rate
  rule.step = 2;
  gradient(0, 0) = 6;
  update_parameter<double>(rule, gradient, p);
  EXPECT_NEAR(second(0, 0), .75 * 4 + .25 * 36, 1e-12);
  EXPECT_NEAR(w(0, 0), 1.1 + .5 * .1 - .1 * 6 / std::sqrt(12.), 1e-12);
}

// The pairwise sum of eq. (6) is twice the trace form of eq. (7), and the diagonal of T does not matter.
TEST(Losses, PairwiseGraphIsTwiceTheTrace) {
  Random random(3, Purpose::test);
  const Gaps gaps(random);
  const auto ops = make_reference_ops<double>();
  const Matrix<double> Z = random_matrix<double>(random, gaps.b, 4);
  Matrix<double> dZ(gaps.b, 4);
  const double trace =
      value_of([&](double* value) { ops->graph_loss(Z, gaps.labels(), {.eta = 5}, 1, dZ, value); });
  EXPECT_NEAR(value_of([&](double* value) {
                ops->graph_loss(Z, gaps.labels(), {.eta = 5, .pairwise = true}, 1, dZ, value);
              }),
              2 * trace, 1e-12);
}

}  // namespace
}  // namespace lacuna
