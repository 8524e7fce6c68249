#include "methods/label_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "data/dataset.h"
#include "data/metrics.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "temporary.h"

namespace lacuna {
namespace {

// Pairs of labels that are mostly equal; scores that know a little about each.
struct World {
  Matrix<std::int8_t> labels, truth;
  Matrix<float> scores;
  Calibration calibration;

  explicit World(std::size_t rows, std::size_t c, double tie, std::uint64_t seed)
      : labels(rows, c), truth(rows, c), scores(rows, c) {
    Random random(seed, Purpose::test, 1);
    for (Matrix<std::int8_t>* Y : {&labels, &truth})
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < c; ++j) {
          const bool follows = j % 2 == 1 && random.uniform_double() < tie;
          (*Y)(i, j) = follows ? (*Y)(i, j - 1) : static_cast<std::int8_t>(random.uniform() < .3f);
        }
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        const float x = -1 + .8f * (static_cast<float>(truth(i, j)) - .5f) + random.normal();
        scores(i, j) = 1 / (1 + std::exp(-x));
      }
    calibration = Calibration::fit(scores, truth, true, {});
  }
  LabelLinks links() const { return LabelLinks::fit(labels, scores, truth, calibration, 1); }
};

Matrix<std::int8_t> nothing(std::size_t rows, std::size_t c) {
  Matrix<std::int8_t> known(rows, c);
  std::ranges::fill(known.values(), kUnknown);
  return known;
}

double mean_ap(const Matrix<float>& scores, const Matrix<std::int8_t>& truth) {
  double sum = 0, count = 0;
  for (const double ap : row_average_precisions(scores, truth))
    if (!std::isnan(ap)) sum += ap, ++count;
  return sum / count;
}

TEST(LabelLinks, KnownLabelsRaiseThePrecisionOfTheOthers) {
  const World world(300, 8, .9, 1), fresh(300, 8, .9, 2);
  const LabelLinks links = world.links();
  ASSERT_TRUE(links.learned());
  ASSERT_FALSE(links.empty());
  EXPECT_GT(links.chosen().weight, 0);
  EXPECT_GT(links.chosen().gain, links.chosen().error);
  EXPECT_EQ(links.rows(), 300u);
  // Other rows than it was chosen on: the even labels are told, the odd ones are asked for.
  Matrix<std::int8_t> known = nothing(300, 8), rest = fresh.truth;
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 8; j += 2) known(i, j) = fresh.truth(i, j), rest(i, j) = kUnknown;
  Matrix<float> scores = fresh.scores;
  links.refine(known, world.calibration, scores);
  EXPECT_GT(mean_ap(scores, rest), mean_ap(fresh.scores, rest) + .1);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 8; j += 2) EXPECT_EQ(scores(i, j), fresh.scores(i, j));  // known: left alone
}

TEST(LabelLinks, AnItemWithoutKnownLabelsKeepsItsScoresToTheBit) {
  const World world(300, 8, .9, 3);
  const LabelLinks links = world.links();
  ASSERT_FALSE(links.empty());
  Matrix<std::int8_t> known = nothing(300, 8);
  for (std::size_t i = 0; i < 300; i += 2) known(i, i % 8) = 1;
  Matrix<float> scores = world.scores;
  links.refine(known, world.calibration, scores);
  bool moved = false;
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      EXPECT_TRUE(i % 2 == 0 || scores(i, j) == world.scores(i, j));
      moved = moved || scores(i, j) != world.scores(i, j);
    }
  EXPECT_TRUE(moved);
}

TEST(LabelLinks, AnItemAloneGetsWhatItGetsAmongOthersForAnyThreads) {
  const World world(120, 10, .9, 4);
  const LabelLinks links = world.links();
  Matrix<std::int8_t> known = nothing(120, 10);
  Random random(8, Purpose::test, 2);
  for (std::int8_t& y : known.values())
    if (random.uniform() < .4f) y = random.uniform() < .5f;
  set_threads(1);
  Matrix<float> all = world.scores;
  links.refine(known, world.calibration, all);
  set_threads(3);
  Matrix<float> again = world.scores;
  links.refine(known, world.calibration, again);
  set_threads(0);
  EXPECT_TRUE(std::ranges::equal(all.values(), again.values()));
  for (const std::size_t i : {0u, 7u, 119u}) {
    Matrix<float> one(1, 10);
    std::ranges::copy(world.scores.row(i), one.row(0).begin());
    links.refine(known.view().slice(i, 1), world.calibration, one);
    EXPECT_TRUE(std::ranges::equal(one.row(0), all.row(i)));
  }
}

TEST(LabelLinks, LabelsThatSayNothingGetNoWeight) {
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) kept += !World(150, 6, 0, 10 + seed).links().empty();
  EXPECT_LE(kept, 2);  // the rule is beyond one standard error, which chance alone sometimes is
}

TEST(LabelLinks, FewRowsGiveNoLinks) {
  const World world(kFewestRows - 1, 8, .95, 5);
  const LabelLinks links = world.links();
  EXPECT_TRUE(links.empty());
  Matrix<float> scores = world.scores;
  Matrix<std::int8_t> known = nothing(scores.rows(), 8);
  known(0, 0) = 1;
  links.refine(known, world.calibration, scores);
  EXPECT_TRUE(std::ranges::equal(scores.values(), world.scores.values()));
  EXPECT_FALSE(LabelLinks::fit(world.labels, {}, {}, Calibration(), 1).learned());
}

// What the views have told already is not counted again: a label that the model was sure of says nothing new.
TEST(LabelLinks, OnlySurprisingLabelsCount) {
  const World world(300, 8, .9, 6);
  const LabelLinks links = world.links();
  ASSERT_FALSE(links.empty());
  const auto shifted = [&](float score) {
    Matrix<float> scores(1, 8);
    std::ranges::fill(scores.values(), .3f);
    scores(0, 0) = score;
    Matrix<std::int8_t> known = nothing(1, 8);
    known(0, 0) = 1;
    links.refine(known, world.calibration, scores);
    return scores(0, 1);
  };
  EXPECT_GT(shifted(.01f), shifted(.5f));
  EXPECT_GT(shifted(.5f), shifted(.999f));
  EXPECT_GE(shifted(.999f), .3f);
}

TEST(LabelLinks, ComesBackFromAFileAndABrokenOneIsRefused) {
  const World world(200, 6, .9, 7);
  const LabelLinks links = world.links();
  ASSERT_FALSE(links.empty());
  Tensors file;
  links.save(file);
  const LabelLinks back = LabelLinks::load(file, 6);
  EXPECT_EQ(back.about(), links.about());
  Matrix<std::int8_t> known = nothing(200, 6);
  for (std::size_t i = 0; i < 200; ++i) known(i, 2) = 1;
  Matrix<float> a = world.scores, b = world.scores;
  links.refine(known, world.calibration, a);
  back.refine(known, world.calibration, b);
  EXPECT_TRUE(std::ranges::equal(a.values(), b.values()));
  EXPECT_FALSE(LabelLinks::load(Tensors(), 6).learned());
  EXPECT_THROW(LabelLinks::load(file, 7), Error);
  for (const auto& weight : {nlohmann::json(-1), nlohmann::json(0)}) {
    Tensors broken;
    links.save(broken);
    broken.metadata["label_links"]["weight"] = weight;
    EXPECT_THROW(LabelLinks::load(broken, 6), Error);
  }
  Tensors without;
  without.metadata["label_links"] = links.about();
  EXPECT_THROW(LabelLinks::load(without, 6), Error);
}

// Beside a model: the same after saving, whatever its method's scores are.
TEST(LabelLinks, BelongToAnyModel) {
  SimulateOptions simulated;
  simulated.rows = 300;
  simulated.labels = 8;
  simulated.views = 2;
  simulated.sizes = {6, 5};
  const Dataset data = simulate(simulated).data;
  const TemporaryDirectory folder;
  for (const char* method : {"mlknn", "linear", "glocal"}) {
    SCOPED_TRACE(method);
    Model model(method);
    model.fit(select_all(data));
    ASSERT_TRUE(model.label_links().learned());
    model.save(folder / method);
    const Model back = Model::load(folder / method);
    Matrix<float> scores = model.predict(data), other = back.predict(data);
    Matrix<std::int8_t> known(data.rows, 8);
    for (std::size_t i = 0; i < data.rows; ++i)
      for (std::size_t j = 0; j < 8; ++j) known(i, j) = j % 2 == 0 ? data.labels(i, j) : kUnknown;
    model.refine(known, scores);
    back.refine(known, other);
    EXPECT_TRUE(std::ranges::equal(scores.values(), other.values()));
    for (const float score : scores.values()) EXPECT_TRUE(std::isfinite(score));
  }
}

}  // namespace
}  // namespace lacuna
