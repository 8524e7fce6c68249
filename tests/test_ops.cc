// Every function behind the seam: its backward against finite differences in double, and the CPU form against
// the naive one in float, on random shapes, gaps and labels.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"
#include "base/threads.h"
#include "ops/ops.h"

namespace lacuna {
namespace {

constexpr int kRounds = 12;

template <class T>
Matrix<T> random_matrix(Random& random, std::size_t rows, std::size_t cols, double scale = 1) {
  Matrix<T> matrix(rows, cols);
  for (T& value : matrix.values()) value = static_cast<T>(static_cast<double>(random.normal()) * scale);
  return matrix;
}

// A batch's gaps and labels.
struct Gaps {
  std::size_t b, m, c, stack = 0;
  Matrix<std::int32_t> slots;
  Matrix<float> Y;
  Matrix<std::uint8_t> G;
  std::vector<std::uint32_t> rows;  // the batch's positions among more rows of labels

  explicit Gaps(Random& random)
      : b(1 + random.below(7)),
        m(1 + random.below(4)),
        c(1 + random.below(70)),
        slots(b, m),
        Y(b + 3, c),
        G(b + 3, c) {
    for (std::size_t v = 0; v < m; ++v)
      for (std::size_t i = 0; i < b; ++i)
        slots(i, v) = random.uniform() < .6f ? static_cast<std::int32_t>(stack++) : kNoRow;
    stack += 2;  // rows that belong to nobody
    for (std::size_t i = 0; i < b + 3; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        G(i, j) = random.uniform() < .5f;
        Y(i, j) = G(i, j) && random.uniform() < .5f ? 1.f : 0.f;
      }
    for (std::size_t i = 0; i < b; ++i) rows.push_back(static_cast<std::uint32_t>((i * 2 + 1) % (b + 3)));
  }
  LabelRows labels() const { return {Y, G, rows}; }
};

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

class Gradients : public testing::TestWithParam<int> {
 protected:
  Random random{static_cast<std::uint64_t>(GetParam()), Purpose::test};
  std::unique_ptr<Ops<double>> ops = make_reference_ops<double>();
};
INSTANTIATE_TEST_SUITE_P(Rounds, Gradients, testing::Range(0, kRounds));

TEST_P(Gradients, Linear) {
  const std::size_t n = random.below(5), in = 1 + random.below(6), out = 1 + random.below(6);
  Matrix<double> X = random_matrix<double>(random, n, in), R = random_matrix<double>(random, n, out),
                 Y(n, out), dX(n, in);
  Probe W(random_matrix<double>(random, in, out)), b(random_matrix<double>(random, 1, out));
  const auto loss = [&] {
    ops->linear_forward(X, W.value, b.value, false, Y);
    return inner(Y, R);
  };
  Matrix<double> W0 = W.value, b0 = b.value;
  ops->linear_backward(X, R, false, gradient_rule(), W.view(), b.view(), dX);
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
  const BatchNormSettings settings;
  Matrix<double> U = random_matrix<double>(random, n, d), R = random_matrix<double>(random, n, d), Y(n, d),
                 saved(2, d);
  if (missing > 0)
    for (double& r : R.row(n - 1)) r = 0;
  Probe gamma(random_matrix<double>(random, 1, d)), beta(random_matrix<double>(random, 1, d));
  const Matrix<double> gamma0 = gamma.value, beta0 = beta.value;
  Matrix<double> running(2, d), dU = R;
  ops->batch_norm_forward(U, missing, gamma.value, beta.value, settings, running, saved, Y);
  ops->batch_norm_backward(U, missing, saved, gradient_rule(), gamma.view(), beta.view(), dU);
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
  ops->batch_norm_forward(plain_U, 0, gamma.value, beta.value, settings, plain_running, saved, plain_Y);
  ops->batch_norm_backward(plain_U, 0, saved, gradient_rule(), gamma.view(), beta.view(), plain_dU);
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
    ops->batch_norm_forward(U, missing, gamma.value, beta.value, settings, scrap, saved, Y);
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
    ops->layer_norm_forward(U, gamma.value, beta.value, 1e-5, saved, Y);
    return inner(Y, R);
  };
  loss();
  Matrix<double> dU = R;
  ops->layer_norm_backward(U, saved, gradient_rule(), gamma.view(), beta.view(), dU);
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

  Matrix<std::uint8_t> keep(n, d);
  const std::vector<std::uint32_t> rows = {4, 9, 2, 7, 5};
  const Draws draws{7, 3, 2, std::span(rows).first(n)};
  const auto drop = [&] {
    ops->relu_forward(S, Z);
    ops->dropout_forward(.4, draws, keep, Z);
    return inner(Z, R);
  };
  drop();
  Matrix<double> dX = R;
  ops->dropout_backward(.4, keep, dX);
  ops->relu_backward(S, dX);
  expect_gradient(S, dX, drop, "dropout of relu");
}

TEST(Dropout, KeepsTheRightShareAndTheMean) {
  const auto ops = make_cpu_ops(Precision::f32);
  Matrix<float> X(64, 1000);
  std::ranges::fill(X.values(), 1.f);
  Matrix<std::uint8_t> keep(64, 1000);
  std::vector<std::uint32_t> rows(64);
  for (std::uint32_t r = 0; r < 64; ++r) rows[r] = r * 17;
  ops->dropout_forward(.3, {5, 1, 2, rows}, keep, X);
  double kept = 0, sum = 0;
  for (std::size_t at = 0; at < 64000; ++at)
    kept += keep.values()[at], sum += static_cast<double>(X.values()[at]);
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
      ops->bce(X, gaps.labels(), settings, weight, dX);
      expect_gradient(
          X, dX, [&] { return weight * ops->bce(X, gaps.labels(), settings, 1, scrap); }, "logits");
    }
  Matrix<double> X = random_matrix<double>(random, gaps.b, gaps.c), dX(gaps.b, gaps.c), scrap(gaps.b, gaps.c);
  Matrix<double> guesses(gaps.b + 3, gaps.c);
  for (double& g : guesses.values()) g = random.uniform_double();
  ops->guess_loss(X, gaps.labels(), guesses, .3, dX);
  expect_gradient(
      X, dX, [&] { return .3 * ops->guess_loss(X, gaps.labels(), guesses, 1, scrap); }, "guesses");
}

TEST_P(Gradients, ViewLossWithAConstantTeacher) {
  const Gaps gaps(random);
  const Matrix<double> logits = random_matrix<double>(random, gaps.b, gaps.c);
  for (const double share : {0., .9, 1.}) {
    Matrix<double> views = random_matrix<double>(random, gaps.stack, gaps.c), dviews = views;
    ops->view_loss(logits, gaps.labels(), gaps.slots, share, 2, dviews);
    expect_gradient(
        views, dviews,
        [&] {
          Matrix<double> scrap = views;
          return 2 * ops->view_loss(logits, gaps.labels(), gaps.slots, share, 1, scrap);
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
    ops->graph_loss(Z, gaps.labels(), settings, .8, dZ);
    expect_gradient(
        Z, dZ, [&] { return .8 * ops->graph_loss(Z, gaps.labels(), settings, 1, scrap); }, "Z");
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
      ops->contrast_loss(S, O, gaps.slots, settings, .8, dS, dO);
      const auto loss = [&] {
        return .8 * ops->contrast_loss(S, O, gaps.slots, settings, 1, scrap_S, scrap_O);
      };
      expect_gradient(S, dS, loss, "S");
      expect_gradient(O, dO, loss, "O");
    }
  Matrix<double> S = random_matrix<double>(random, gaps.stack, d), dS(gaps.stack, d), scrap(gaps.stack, d);
  ops->instance_loss(S, gaps.slots, .5, .8, dS);
  expect_gradient(
      S, dS, [&] { return .8 * ops->instance_loss(S, gaps.slots, .5, 1, scrap); }, "S");
  Matrix<double> X = random_matrix<double>(random, gaps.b, d),
                 target = random_matrix<double>(random, gaps.b, d), dX = X;
  ops->reconstruction_loss(target, gaps.b + 2, .8, dX);
  expect_gradient(
      X, dX,
      [&] {
        Matrix<double> other = X;
        return .8 * ops->reconstruction_loss(target, gaps.b + 2, 1, other);
      },
      "reconstruction");
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
    EXPECT_EQ(ops->contrast_loss(zero, zero, slots, {}, 1, dS, dO), 0);  // cosines of nothing are 0
    EXPECT_EQ(ops->graph_loss(zero, labels, {}, 1, dZ), 0);
    EXPECT_EQ(ops->bce(logits, labels, {}, 1, dlogits), 0);  // nothing is known
    slots(0, 1) = kNoRow;
    EXPECT_EQ(ops->contrast_loss(zero, zero, slots, {}, 1, dS, dO), 0);
    EXPECT_EQ(ops->instance_loss(zero, slots, .5, 1, dS), 0);
    Matrix<float> views(2, 2);
    EXPECT_TRUE(std::isfinite(ops->view_loss(logits, labels, slots, .9, 1, views)));
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
    EXPECT_NEAR(ops->bce(logits, {Y, G, rows}, {}, 1, dlogits), 180. / 4, 1e-3);
    EXPECT_NEAR(dlogits(0, 2), .25f, 1e-6);
    EXPECT_NEAR(dlogits(0, 3), -.25f, 1e-6);
    ops->sigmoid(logits, P);
    EXPECT_EQ(P(0, 0), 1.f);
    EXPECT_GE(P(0, 1), 0.f);
    EXPECT_LT(P(0, 1), 1e-30f);
    EXPECT_TRUE(std::isfinite(ops->bce(logits, {Y, G, rows}, {.form = BceForm::logarithm}, 1, dlogits)));
  }
}

// The pairwise sum of eq. (6) is twice the trace form of eq. (7), and the diagonal of T does not matter.
TEST(Losses, PairwiseGraphIsTwiceTheTrace) {
  Random random(3, Purpose::test);
  const Gaps gaps(random);
  const auto ops = make_reference_ops<double>();
  const Matrix<double> Z = random_matrix<double>(random, gaps.b, 4);
  Matrix<double> dZ(gaps.b, 4);
  const double trace = ops->graph_loss(Z, gaps.labels(), {.eta = 5}, 1, dZ);
  EXPECT_NEAR(ops->graph_loss(Z, gaps.labels(), {.eta = 5, .pairwise = true}, 1, dZ), 2 * trace, 1e-12);
}

// ---- the CPU form against the naive one ----

class Agreement : public testing::TestWithParam<int> {
 protected:
  Random random{static_cast<std::uint64_t>(GetParam() + 100), Purpose::test};
  std::unique_ptr<Ops<float>> fast = make_cpu_ops(Precision::f32), naive = make_reference_ops<float>();

  void expect_same(const Matrix<float>& a, const Matrix<float>& b, const char* what) {
    for (std::size_t at = 0; at < a.values().size(); ++at)
      ASSERT_NEAR(a.values()[at], b.values()[at], 2e-5f * (1 + std::abs(b.values()[at])))
          << what << " " << at;
  }
};
INSTANTIATE_TEST_SUITE_P(Rounds, Agreement, testing::Range(0, kRounds));

TEST_P(Agreement, Losses) {
  const Gaps gaps(random);
  const std::size_t d = 1 + random.below(40);
  const auto twice = [&](std::size_t rows, std::size_t cols, const char* what, auto&& call) {
    Matrix<float> a = random_matrix<float>(random, rows, cols), b = a;
    const double fast_value = call(*fast, a), naive_value = call(*naive, b);
    EXPECT_NEAR(fast_value, naive_value, 1e-5 * (1 + std::abs(naive_value))) << what;
    expect_same(a, b, what);
  };
  const Matrix<float> logits = random_matrix<float>(random, gaps.b, gaps.c, 2);
  for (const BceForm form : {BceForm::logarithm, BceForm::softplus})
    twice(gaps.b, gaps.c, "bce",
          [&](auto& ops, auto& out) { return ops.bce(logits, gaps.labels(), {.form = form}, 2, out); });
  Matrix<float> guesses(gaps.b + 3, gaps.c);
  for (float& g : guesses.values()) g = random.uniform();
  twice(gaps.b, gaps.c, "guess",
        [&](auto& ops, auto& out) { return ops.guess_loss(logits, gaps.labels(), guesses, 2, out); });
  Matrix<float> view_a = random_matrix<float>(random, gaps.stack, gaps.c), view_b = view_a;
  EXPECT_NEAR(fast->view_loss(logits, gaps.labels(), gaps.slots, .9, 3, view_a),
              naive->view_loss(logits, gaps.labels(), gaps.slots, .9, 3, view_b), 1e-5);
  for (std::size_t i = 0; i < gaps.b; ++i)
    for (std::size_t v = 0; v < gaps.m; ++v)
      if (gaps.slots(i, v) != kNoRow)
        for (std::size_t j = 0; j < gaps.c; ++j) {
          const auto r = static_cast<std::size_t>(gaps.slots(i, v));
          ASSERT_NEAR(view_a(r, j), view_b(r, j), 1e-6);
        }
  const Matrix<float> Z = random_matrix<float>(random, gaps.b, d);
  for (const bool normalise : {true, false})
    twice(gaps.b, d, "graph", [&](auto& ops, auto& out) {
      return ops.graph_loss(Z, gaps.labels(), {.eta = 3, .normalise = normalise, .pairwise = !normalise}, 2,
                            out);
    });
  const Matrix<float> S = random_matrix<float>(random, gaps.stack, d),
                      O = random_matrix<float>(random, gaps.stack, d);
  Matrix<float> other(gaps.stack, d);
  for (const ContrastPositives positives : {ContrastPositives::others, ContrastPositives::self})
    for (const bool first : {true, false})
      twice(gaps.stack, d, "contrast", [&](auto& ops, auto& out) {
        const ContrastSettings settings{.positives = positives};
        return first ? ops.contrast_loss(S, O, gaps.slots, settings, 2, out, other)
                     : ops.contrast_loss(S, O, gaps.slots, settings, 2, other, out);
      });
  twice(gaps.stack, d, "instance",
        [&](auto& ops, auto& out) { return ops.instance_loss(S, gaps.slots, .5, 2, out); });
  twice(gaps.b, d, "reconstruction",
        [&](auto& ops, auto& out) { return ops.reconstruction_loss(Z, gaps.b, 2, out); });
}

TEST_P(Agreement, Layers) {
  const Gaps gaps(random);
  const std::size_t n = gaps.stack, d = 1 + random.below(150);
  const Matrix<float> X = random_matrix<float>(random, n, d), O = random_matrix<float>(random, n, d);
  const auto twice = [&](std::size_t rows, const char* what, auto&& call) {
    Matrix<float> a = random_matrix<float>(random, rows, d), b = a;
    call(*fast, a);
    call(*naive, b);
    expect_same(a, b, what);
  };
  std::vector<std::uint32_t> rows;
  std::vector<Fragment> fragments;
  for (std::size_t r = 0; r < n; ++r) {
    rows.push_back(static_cast<std::uint32_t>(random.below(n)));
    const auto begin = static_cast<std::uint32_t>(random.below(d));
    fragments.push_back({begin, begin + static_cast<std::uint32_t>(random.below(d - begin + 1))});
  }
  for (const bool masked : {false, true})
    twice(n, "gather", [&](auto& ops, auto& out) {
      ops.gather(X, rows, masked ? std::span<const Fragment>(fragments) : std::span<const Fragment>(), out);
    });
  const Matrix<float> F = random_matrix<float>(random, gaps.b, d);
  for (const Share share : {Share::sum, Share::mean})
    for (const bool add : {false, true}) {
      twice(gaps.b, "collect", [&](auto& ops, auto& out) { ops.collect(X, gaps.slots, share, add, out); });
      twice(n, "spread", [&](auto& ops, auto& out) { ops.spread(F, gaps.slots, share, add, out); });
    }
  Matrix<std::uint8_t> keep_a(n, d), keep_b(n, d);
  twice(n, "dropout", [&](auto& ops, auto& out) {
    auto& keep = &ops == fast.get() ? keep_a : keep_b;
    ops.dropout_forward(.4, {3, 1, 4, rows}, keep, out);
    ops.dropout_backward(.4, keep, out);
  });
  EXPECT_TRUE(std::ranges::equal(keep_a.values(), keep_b.values()));
  twice(n, "relu", [&](auto& ops, auto& out) { ops.relu_forward(X, out); });
  twice(n, "relu backward", [&](auto& ops, auto& out) { ops.relu_backward(X, out); });
  twice(n, "copy", [&](auto& ops, auto& out) { ops.copy(X, false, out); });
  twice(n, "add", [&](auto& ops, auto& out) { ops.copy(X, true, out); });
  twice(n, "zero", [&](auto& ops, auto& out) { ops.zero(out); });
  twice(n, "sigmoid", [&](auto& ops, auto& out) { ops.sigmoid(X, out); });
  twice(n, "gate", [&](auto& ops, auto& out) { ops.gate_forward(X, O, out); });
  Matrix<float> scrap(n, d);
  twice(n, "gate backward S", [&](auto& ops, auto& out) { ops.gate_backward(X, O, X, out, scrap); });
  twice(n, "gate backward O", [&](auto& ops, auto& out) { ops.gate_backward(X, O, X, scrap, out); });

  // Norms with all optimiser state: outputs, input gradients, parameters and statistics.
  UpdateRule rule;
  rule.optimiser = Optimiser::adamw;
  rule.rate = .01;
  rule.epsilon = 1e-3;
  rule.average = .9;
  const Matrix<float> start = random_matrix<float>(random, 8, d);
  const BatchNormSettings settings;
  for (const int kind : {0, 1, 2}) {
    Matrix<float> state[2], out[2], running[2];
    for (const bool is_fast : {false, true}) {
      const auto& ops = is_fast ? *fast : *naive;
      Matrix<float>& s = state[is_fast];
      s = start;
      for (std::size_t r : {3u, 7u})
        for (float& value : s.row(r)) value = std::abs(value);  // second moments
      const auto parameter = [&](std::size_t r) {
        const auto at = [&](std::size_t k) { return s.view().slice(r + k, 1); };
        return ParameterView<float>{at(0), at(1), at(3), at(2), false};
      };
      const auto gamma = parameter(0), beta = parameter(4);
      out[is_fast] = Matrix<float>(2 * n, d);
      running[is_fast] = Matrix<float>(2, d);
      const auto Y = out[is_fast].view().top(n), dU = out[is_fast].view().slice(n, n);
      Matrix<float> saved(kind == 2 ? n : 2, kind == 2 ? 2 : d);
      const std::size_t missing = kind == 1 ? 5 : 0;
      if (kind == 2) {
        ops.layer_norm_forward(X, gamma.value, beta.value, 1e-5, saved, Y);
      } else {
        ops.batch_norm_forward(X, missing, gamma.value, beta.value, settings, running[is_fast], saved, Y);
      }
      ops.copy(O, false, dU);
      if (missing > 0) ops.zero(dU.slice(n - 1, 1));
      if (kind == 2) {
        ops.layer_norm_backward(X, saved, rule, gamma, beta, dU);
      } else {
        ops.batch_norm_backward(X, missing, saved, rule, gamma, beta, dU);
        Matrix<float> applied(n, d);
        ops.batch_norm_apply(X, gamma.value, beta.value, settings, running[is_fast], applied);
        ops.copy(applied, true, Y);
      }
    }
    expect_same(state[1], state[0], "norm parameters");
    if (d > 4)
      expect_same(out[1], out[0],
                  "norm outputs and gradients");  // few columns: tiny variances, large factors
    expect_same(running[1], running[0], "running statistics");
  }
}

}  // namespace
}  // namespace lacuna
