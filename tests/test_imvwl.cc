#include "methods/imvwl.h"

#include <gtest/gtest.h>

#include "methods/all.h"
#include "small_items.h"

namespace lacuna {
namespace {

// Features in [0, 1], as minmax leaves them.
Items scaled(Items items) {
  for (std::size_t v = 0; v < items.views(); ++v)
    for (std::size_t i = 0; i < items.rows(); ++i)
      for (float& x : items.X[v].row(i)) x = items.W(i, v) ? 1 / (1 + std::exp(-x)) : 0.f;
  return items;
}

ImvwlOptions small_options(double alpha, double beta) {
  ImvwlOptions options;
  options.alpha = alpha;
  options.beta = beta;
  options.rank = 3;
  return options;
}

TEST(Imvwl, EveryBlockLowersTheObjective) {
  const Items items = scaled(small_items({}, 1));
  for (const double alpha : {.01, .1, 1.0})
    for (const double beta : {.001, .1}) {
      ImvwlSolver solver(items, small_options(alpha, beta), 1);
      double value = solver.objective();
      const auto falls = [&](const char* block) {
        const double next = solver.objective();
        EXPECT_LE(next, value + 2e-6 * value) << block << " " << alpha << " " << beta;
        value = next;
      };
      for (int round = 0; round < 50; ++round) {
        solver.update_bases();
        falls("U");
        solver.update_representation();
        falls("V");
        solver.update_predictor();
        falls("H");
        solver.update_correlation();
        falls("B");
      }
      for (const double x : solver.V().values()) EXPECT_GE(x, 0);
    }
}

TEST(Imvwl, GradientsAgainstFiniteDifferences) {
  const Items items = scaled(small_items({}, 1));
  ImvwlOptions options = small_options(.7, 0);
  options.rho = .2;
  ImvwlSolver solver(items, options, 1);
  const auto check = [&](Matrix<double>& at, const Matrix<double>& gradient) {
    for (std::size_t i = 0; i < at.values().size(); ++i) {
      const double kept = at.values()[i], h = 1e-5;
      at.values()[i] = kept + h;
      const double up = solver.objective();
      at.values()[i] = kept - h;
      const double down = solver.objective();
      at.values()[i] = kept;
      EXPECT_NEAR((up - down) / (2 * h), gradient.values()[i], 1e-4 * (1 + std::abs(gradient.values()[i])));
    }
  };
  check(solver.V(), solver.gradient_V());
  check(solver.H(), solver.gradient_H());
  check(solver.B(), solver.gradient_B());
}

TEST(Imvwl, ObjectiveByItsDefinition) {
  const Items items = scaled(small_items({}, 1));
  ImvwlSolver solver(items, small_options(.3, .2), 1);
  double expected = .2 * 5 /* B = I */;
  for (const double h : solver.H().values()) expected += 1e-3 * h * h;
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t v = 0; v < 3; ++v)
      for (std::size_t j = 0; j < items.X[v].cols() && items.W(i, v); ++j) {
        double fit = 0;
        for (std::size_t k = 0; k < 3; ++k) fit += solver.V()(i, k) * solver.bases()[v](j, k);
        expected += std::pow(static_cast<double>(items.X[v](i, j)) - fit, 2);
      }
    for (std::size_t j = 0; j < 5; ++j) {
      if (!items.G(i, j)) continue;
      double fit = 0;
      for (std::size_t k = 0; k < 3; ++k) fit += solver.V()(i, k) * solver.H()(k, j);
      expected += .3 * std::pow(fit - static_cast<double>(items.Y(i, j)), 2);
    }
  }
  EXPECT_NEAR(solver.objective(), expected, 1e-3);
}

TEST(Imvwl, ARepresentationOfExactDataIsFound) {
  Random random(2, Purpose::test);
  std::vector<Matrix<float>> bases;
  Items items;
  items.W = Matrix<std::uint8_t>(6, 2);
  Matrix<float> V(6, 2);
  for (float& x : V.values()) x = random.uniform(.5f, 1.5f);
  for (std::size_t v = 0; v < 2; ++v) {
    Matrix<float> U(8, 2), X(6, 8);
    for (float& x : U.values()) x = random.uniform();
    for (std::size_t i = 0; i < 6; ++i) {
      items.W(i, v) = (i + v) % 3 != 0 || v == 1;
      for (std::size_t j = 0; j < 8; ++j)
        X(i, j) = items.W(i, v) ? V(i, 0) * U(j, 0) + V(i, 1) * U(j, 1) : 77.f;
    }
    items.X.push_back(std::move(X));
    bases.push_back(std::move(U));
  }
  for (std::size_t i = 0; i < 6; ++i) items.W(i, 1) = 1;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 8; ++j)
      items.X[1](i, j) = V(i, 0) * bases[1](j, 0) + V(i, 1) * bases[1](j, 1);
  const Matrix<double> found = represent(items, bases, 3000);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(found.values()[i], V.values()[i], 1e-3);
}

// The common checks work on features of both signs; the method is wrapped so that it sees them scaled.
class Scaled final : public Method {
 public:
  Traits traits() const override { return inner_->traits(); }
  void declare(Options& options) override { inner_->declare(options); }
  void fit(const Items& train, const Items& val, FitContext& context) override {
    inner_->fit(scaled(train), scaled(val), context);
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    inner_->predict(scaled(items), scores);
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    inner_->decide(scores, decided);
  }
  void save(Tensors& file) const override { inner_->save(file); }
  void load(const Tensors& file, const ItemShape& shape) override { inner_->load(file, shape); }
  std::uint64_t parameters() const override { return inner_->parameters(); }

 private:
  std::unique_ptr<Method> inner_ = make_imvwl();
};

TEST(Imvwl, SupportsFitSaveLoadResumeAndGaps) {
  const MakeMethod make = [] { return std::make_unique<Scaled>(); };
  expect_gaps_are_not_read(make);
  expect_resume_gives_the_same_bits(make, 4);
  expect_save_and_load_keep_the_scores(make);
  expect_threads_do_not_matter(make);
  expect_better_than_prior(make, .03);
  expect_refused(make, "alpha", "-1");
  expect_refused(make, "rounds", "0");
  const auto method = make();
  set_option(*method, "rank", "5");
  FitContext context;
  EXPECT_THROW(method->fit(small_items({}, 1), Items{}, context), Error);  // the smallest view has 4 columns
  EXPECT_THROW(make_imvwl()->fit(small_items({}, 1), Items{}, context), Error);  // negative features
}

TEST(Imvwl, DecidesForTheMeanNumberOfLabels) {
  const MakeMethod make = [] { return std::make_unique<Scaled>(); };
  const Items train = small_items({}, 1);
  double positives = 0, known = 0;
  for (std::size_t i = 0; i < 200; ++i)
    positives += static_cast<double>(train.Y.values()[i]), known += train.G.values()[i];
  const double mean = positives / known * 5;
  for (const auto& [how, wanted] :
       {std::pair{"nearest", std::round(mean)}, std::pair{"up", std::ceil(mean)}}) {
    FitContext context;
    const auto method = make();
    set_option(*method, "decided-labels", how);
    method->fit(train, Items{}, context);
    Matrix<std::uint8_t> decided(40, 5);
    method->decide(scores_of(*method, train, 5), decided);
    for (std::size_t i = 0; i < 40; ++i) {
      std::size_t count = 0;
      for (const auto d : decided.row(i)) count += d;
      EXPECT_EQ(static_cast<double>(count), wanted) << how << ", mean " << mean;
    }
  }
}

}  // namespace
}  // namespace lacuna
