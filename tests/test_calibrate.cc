#include "methods/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/dataset.h"
#include "data/metrics.h"
#include "data/reliability.h"
#include "experiments/machine.h"
#include "temporary.h"

namespace lacuna {
namespace {

struct Sample {
  Matrix<float> scores;
  Matrix<std::int8_t> truth;
};

// True probability sigmoid(x); the scores say sigmoid(distort(x, label)). Every tenth label is unknown.
template <class F>
Sample draw(std::size_t rows, std::size_t labels, std::uint64_t seed, F distort) {
  Sample sample{Matrix<float>(rows, labels), Matrix<std::int8_t>(rows, labels)};
  for (std::size_t i = 0; i < rows; ++i) {
    Random random(seed, Purpose::test, static_cast<std::uint32_t>(i));
    for (std::size_t j = 0; j < labels; ++j) {
      const double x = 1.5 * random.normal() - 1;
      sample.truth(i, j) = random.uniform_double() < 1 / (1 + std::exp(-x)) ? 1 : 0;
      if (random.uniform() < .1f) sample.truth(i, j) = kUnknown;
      sample.scores(i, j) = static_cast<float>(1 / (1 + std::exp(-distort(x, j))));
    }
  }
  return sample;
}

double calibration_error(const Sample& sample, const Calibration& calibration) {
  Matrix<float> probabilities = sample.scores;
  calibration.apply(probabilities);
  return reliability(probabilities, sample.truth).ece;
}

TEST(Reliability, CountsByHand) {
  Matrix<float> scores(1, 4);
  Matrix<std::int8_t> truth(1, 4);
  const float s[] = {.1f, .15f, .9f, 1.f};
  const std::int8_t t[] = {0, 1, 1, kUnknown};
  for (std::size_t j = 0; j < 4; ++j) scores(0, j) = s[j], truth(0, j) = t[j];
  const Reliability r = reliability(scores, truth, 2);
  EXPECT_EQ(r.bins[0].count, 2u);
  EXPECT_EQ(r.bins[1].count, 1u);
  EXPECT_NEAR(r.bins[0].score, .125, 1e-7);
  EXPECT_NEAR(r.bins[0].share, .5, 1e-12);
  EXPECT_NEAR(r.ece, (2 * .375 + .1) / 3, 1e-7);
  EXPECT_NEAR(r.brier, (.01 + .7225 + .01) / 3, 1e-6);
  scores(0, 0) = 1.5f;
  EXPECT_THROW(reliability(scores, truth), Error);
}

TEST(Calibration, RepairsOverconfidentScores) {
  const auto overconfident = [](double x, std::size_t) { return 3 * x + 1; };
  const Sample val = draw(2000, 4, 1, overconfident), test = draw(4000, 4, 2, overconfident);
  const double before = reliability(test.scores, test.truth).ece;
  const Calibration calibration = Calibration::fit(val.scores, val.truth, true, {});
  EXPECT_GT(before, .1);
  EXPECT_LT(calibration_error(test, calibration), .02);
}

TEST(Calibration, RareLabelsUseTheCommonLine) {
  // Label 0 is distorted its own way and has plenty of positives; label 1 has next to none.
  Sample val = draw(3000, 6, 1, [](double x, std::size_t j) { return j == 0 ? 3 * x + 2 : x; });
  for (std::size_t i = 0; i < val.truth.rows(); ++i) val.truth(i, 1) = i == 5;
  const Calibration calibration = Calibration::fit(val.scores, val.truth, true, {});
  Matrix<float> half(1, 6);
  for (auto& value : half.values()) value = .5f;
  calibration.apply(half);
  EXPECT_NEAR(half(0, 0), 1 / (1 + std::exp(2. / 3)), .05);  // sigmoid of (0 - 2) / 3
  EXPECT_NEAR(half(0, 2), .5, .1);
  EXPECT_GT(half(0, 1), .2);  // one positive in 3000 does not make it certain
}

TEST(Calibration, ScoresThatAreNoProbabilities) {
  Sample val = draw(2000, 2, 1, [](double x, std::size_t) { return x; });
  for (auto& score : val.scores.values()) score = 10 * std::log(score / (1 - score)) + 3;
  const Calibration calibration = Calibration::fit(val.scores, val.truth, false, {});
  EXPECT_LT(calibration_error(val, calibration), .02);
}

TEST(Calibration, NothingKnownNothingLearned) {
  const Sample val = draw(10, 2, 1, [](double x, std::size_t) { return x; });
  Matrix<std::int8_t> unknown(10, 2);
  for (auto& value : unknown.values()) value = kUnknown;
  EXPECT_TRUE(Calibration::fit(val.scores, unknown, true, {}).empty());
}

TEST(Thresholds, F1IsTheBestOfAllThresholds) {
  const Sample val = draw(400, 5, 3, [](double x, std::size_t j) { return x - static_cast<double>(j); });
  const Calibration calibration = Calibration::fit(val.scores, val.truth, true, Aim::parse("f1"));
  const auto f1 = [&](std::size_t j, float threshold) {
    double hit = 0, chosen = 0, positive = 0;
    for (std::size_t i = 0; i < val.scores.rows(); ++i) {
      if (val.truth(i, j) == kUnknown) continue;
      const bool decided = val.scores(i, j) > threshold;
      hit += decided && val.truth(i, j) == 1;
      chosen += decided;
      positive += val.truth(i, j) == 1;
    }
    return 2 * hit / (chosen + positive);
  };
  for (std::size_t j = 0; j < 5; ++j) {
    double best = 0;
    for (float score : val.scores.values()) best = std::max(best, f1(j, score));
    EXPECT_DOUBLE_EQ(f1(j, calibration.thresholds()[j]), best);
  }
  Matrix<std::uint8_t> decided(val.scores.rows(), 5);
  calibration.decide(val.scores, decided);
  EXPECT_GT(evaluate(val.scores, val.truth, decided).macro_f1,
            evaluate(val.scores, val.truth).macro_f1 + .05);
}

TEST(Thresholds, PrecisionHoldsOnNewRowsAndTopGivesSoMany) {
  const auto plain = [](double x, std::size_t) { return x; };
  const Sample val = draw(3000, 3, 4, plain), test = draw(3000, 3, 5, plain);
  const Calibration precise = Calibration::fit(val.scores, val.truth, true, Aim::parse("precision=.8"));
  Matrix<std::uint8_t> decided(test.scores.rows(), 3);
  precise.decide(test.scores, decided);
  double hit = 0, chosen = 0;
  for (std::size_t i = 0; i < decided.rows(); ++i)
    for (std::size_t j = 0; j < 3; ++j)
      if (decided(i, j) && test.truth(i, j) != kUnknown) ++chosen, hit += test.truth(i, j);
  EXPECT_GT(hit / chosen, .77);
  EXPECT_GT(chosen, 100);

  const Calibration top = Calibration::fit(val.scores, val.truth, true, Aim::parse("top=2"));
  top.decide(test.scores, decided);
  for (std::size_t i = 0; i < decided.rows(); ++i) {
    int count = 0;
    for (std::size_t j = 0; j < 3; ++j) count += decided(i, j);
    EXPECT_EQ(count, 2);
  }
  for (const char* wrong : {"f2", "precision=0", "precision=1.5", "top=0", "top=1.5", ""})
    EXPECT_THROW(Aim::parse(wrong), Error);
}

TEST(Calibration, SavedAndLoaded) {
  const Sample val = draw(500, 3, 1, [](double x, std::size_t) { return 2 * x; });
  const TemporaryDirectory folder;
  for (const char* aim : {"f1", "precision=0.7", "top=2"}) {
    const Calibration calibration = Calibration::fit(val.scores, val.truth, true, Aim::parse(aim));
    Tensors file;
    calibration.save(file);
    file.write(folder / "c");
    const Calibration loaded = Calibration::load(Tensors::read(folder / "c"), 3);
    EXPECT_EQ(loaded.aim().text(), aim);
    EXPECT_EQ(loaded.thresholds(), calibration.thresholds());
    Matrix<float> a = val.scores, b = val.scores;
    calibration.apply(a), loaded.apply(b);
    EXPECT_TRUE(std::equal(a.values().begin(), a.values().end(), b.values().begin()));
    EXPECT_THROW(Calibration::load(Tensors::read(folder / "c"), 4), Error);
  }
}

// With many rows and labels nothing else takes as much memory at the end of a training.
TEST(Calibration, HoldsEveryKnownEntryOnce) {
  const Sample sample = draw(2000, 500, 9, [](double x, std::size_t) { return x; });
  reset_peak_memory();
  const std::uint64_t before = peak_memory();
  Calibration::fit(sample.scores, sample.truth, true, {});
  EXPECT_LT(static_cast<double>(peak_memory() - before),
            34e6);  // 900,000 of 16 bytes, and a buffer to sort them
}

}  // namespace
}  // namespace lacuna
