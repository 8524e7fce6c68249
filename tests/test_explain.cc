#include "methods/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "data/simulate.h"
#include "methods/view_summary.h"
#include "temporary.h"

namespace lacuna {
namespace {

Matrix<double> random_game(std::size_t players, std::size_t labels, std::uint64_t seed) {
  Matrix<double> sets(std::size_t{1} << players, labels);
  Random random(seed, Purpose::test);
  for (double& value : sets.values()) value = random.uniform(-5, 5);
  return sets;
}

// By the definition: what a player adds, averaged over all orders.
Matrix<double> by_orders(const Matrix<double>& sets, std::size_t players) {
  Matrix<double> values(players, sets.cols());
  std::vector<std::size_t> order(players);
  std::iota(order.begin(), order.end(), 0u);
  double orders = 0;
  do {
    std::size_t set = 0;
    ++orders;
    for (const std::size_t p : order) {
      for (std::size_t j = 0; j < sets.cols(); ++j)
        values(p, j) += sets(set | std::size_t{1} << p, j) - sets(set, j);
      set |= std::size_t{1} << p;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  for (double& value : values.values()) value /= orders;
  return values;
}

TEST(Shapley, IsTheMeanOverAllOrders) {
  for (std::size_t players = 0; players <= 6; ++players) {
    const Matrix<double> sets = random_game(players, 3, players);
    Matrix<double> values(players, 3);
    shapley_values(sets, values);
    const Matrix<double> expected = by_orders(sets, players);
    for (std::size_t p = 0; p < players; ++p)
      for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(values(p, j), expected(p, j), 1e-12);
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (std::size_t p = 0; p < players; ++p) sum += values(p, j);
      EXPECT_NEAR(sum, sets(sets.rows() - 1, j) - sets(0, j), 1e-12);
    }
  }
}

TEST(Shapley, PlayersWhoSwapPlacesSwapValuesAndIdleOnesGetNothing) {
  const Matrix<double> sets = random_game(5, 2, 7);
  Matrix<double> swapped(sets.rows(), 2), values(5, 2), other(5, 2);
  for (std::size_t S = 0; S < sets.rows(); ++S) {
    const std::size_t a = S >> 1 & 1, b = S >> 3 & 1;
    const std::size_t T = (S & ~std::size_t{10}) | a << 3 | b << 1;
    for (std::size_t j = 0; j < 2; ++j) swapped(T, j) = sets(S, j);
  }
  shapley_values(sets, values);
  shapley_values(swapped, other);
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_NEAR(values(1, j), other(3, j), 1e-12);
    EXPECT_NEAR(values(3, j), other(1, j), 1e-12);
    EXPECT_NEAR(values(0, j), other(0, j), 1e-12);
  }
  Matrix<double> idle(sets.rows(), 2);  // player 2 changes nothing
  for (std::size_t S = 0; S < sets.rows(); ++S)
    for (std::size_t j = 0; j < 2; ++j) idle(S, j) = sets(S & ~std::size_t{4}, j);
  shapley_values(idle, values);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(values(2, j), 0, 1e-12);
}

Dataset gappy_data(std::int64_t rows = 150, std::vector<double> sizes = {6, 5, 4}) {
  SimulateOptions options;
  options.rows = rows;
  options.views = static_cast<std::int64_t>(sizes.size());
  options.labels = 4;
  options.sizes = sizes;
  Dataset data = simulate(options).data;
  Matrix<std::uint8_t> present(data.rows, data.views.size());
  Random random(3, Purpose::test);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t v = 0; v < data.views.size(); ++v)
      present(i, v) = i == 5 ? 0 : random.below(4) > 0 || i < 3;
  data.present = Table<std::uint8_t>(std::move(present));
  return data;
}

struct Setting2 {
  const char *name, *value;
};
Model fitted(const std::string& method, const Dataset& data, std::vector<Setting2> settings = {}) {
  Model model(method);
  for (const auto& [name, value] : settings) model.options().set(name, value, "test");
  model.fit(select_all(data));
  return model;
}
const std::vector<Setting2> kSmall = {{"epochs", "4"},          {"embedding", "16"},
                                      {"encoder-widths", "24"}, {"decoder-widths", "16"},
                                      {"precision", "f32"},     {"prepare", "zscore"}};

std::vector<Setting2> small_with(std::vector<Setting2> more) {
  std::vector<Setting2> all = kSmall;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The value of a set of views, by plain prediction of a data set that holds no more.
Matrix<float> values_with(const Model& model, Dataset data, const std::vector<std::uint8_t>& keep) {
  Matrix<std::uint8_t> present(data.rows, data.views.size());
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t v = 0; v < data.views.size(); ++v) present(i, v) = data.has(i, v) && keep[v] != 0;
  data.present = Table<std::uint8_t>(std::move(present));
  Matrix<float> scores = model.predict(data);
  if (model.method().traits().probabilities)
    for (float& score : scores.values()) score = log_odds(score);
  return scores;
}

void expect_explained(const Model& model, const Dataset& data, double tolerance) {
  const std::size_t m = data.views.size(), c = model.label_names().size();
  const Explanation e = explain(model, select_all(data), {.base = Base::model});
  ASSERT_TRUE(e.errors.empty());
  std::vector<Matrix<float>> all;
  for (std::size_t S = 0; S < std::size_t{1} << m; ++S) {
    std::vector<std::uint8_t> keep(m);
    for (std::size_t v = 0; v < m; ++v) keep[v] = S >> v & 1;
    all.push_back(values_with(model, data, keep));
  }
  for (std::size_t i = 0; i < data.rows; ++i) {
    // The same game over all views: one that the item does not have adds nothing.
    Matrix<double> sets(all.size(), c), values(m, c);
    for (std::size_t S = 0; S < all.size(); ++S)
      for (std::size_t j = 0; j < c; ++j) sets(S, j) = static_cast<double>(all[S](i, j));
    shapley_values(sets, values);
    for (std::size_t j = 0; j < c; ++j) {
      ASSERT_NEAR(e.base(i, j), sets(0, j), tolerance);
      ASSERT_NEAR(e.score(i, j), sets(all.size() - 1, j), tolerance);
      double sum = e.base(i, j);
      for (std::size_t v = 0; v < m; ++v) {
        ASSERT_EQ(e.present(i, v), data.has(i, v));
        ASSERT_NEAR(e.values[v](i, j), data.has(i, v) ? values(v, j) : 0, tolerance)
            << i << ", " << v << ", " << j;
        if (!data.has(i, v)) {
          ASSERT_EQ(e.values[v](i, j), 0);
        }
        sum += e.values[v](i, j);
      }
      ASSERT_NEAR(sum, e.score(i, j), 1e-6);
    }
  }
}

TEST(Explain, AgreesWithPredictionsOfSubsets) {
  const Dataset data = gappy_data();
  expect_explained(fitted("lacuna", data, kSmall), data, 2e-4);
  expect_explained(fitted("mtd", data, kSmall), data, 2e-4);
  expect_explained(
      fitted("lacuna", data,
             small_with(
                 {{"fusion", "early"}, {"channels", "1"}, {"alpha", "0"}, {"beta", "0"}, {"gamma", "0"}})),
      data, 2e-4);
  expect_explained(fitted("lacuna", data, small_with({{"members", "2"}})), data, 2e-4);
  expect_explained(fitted("naim3l", data), data, 2e-4);
  expect_explained(fitted("glocal", data), data, 2e-4);
}

// The share of a label among its known ones, in log-odds; the label that nobody knows gets the share of all.
TEST(Explain, BeginsAtTheSharesInTraining) {
  Dataset data = gappy_data();
  Matrix<std::int8_t> labels(data.rows, 4);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      labels(i, j) = j == 3 ? kUnknown : i % 3 == 0 && j == 2 ? kUnknown : i % (j + 2) == 0 ? 1 : 0;
  data.labels = Table<std::int8_t>(std::move(labels));
  Model model("naim3l");
  FitContext context;
  Selection none = select_all(data);
  none.rows.clear();
  model.fit(select_all(data), none, context);
  double positives = 0, known = 0;
  std::vector<double> k(4), n(4);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      if (data.labels(i, j) != kUnknown) k[j] += data.labels(i, j), n[j] += 1;
  for (std::size_t j = 0; j < 4; ++j) positives += k[j], known += n[j];
  const double all = (positives + .5) / (known + 1);
  ASSERT_EQ(model.prior().size(), 4u);
  for (std::size_t j = 0; j < 4; ++j) {
    const double p = (k[j] + all) / (n[j] + 1);
    EXPECT_NEAR(static_cast<double>(model.prior()[j]), std::log(p / (1 - p)), 1e-5) << j;
  }

  const Model network = fitted("lacuna", gappy_data(), kSmall);
  const TemporaryDirectory folder;
  network.save(folder / "model");
  const Model again = Model::load(folder / "model");
  EXPECT_EQ(again.prior(), network.prior());
  const Dataset items = gappy_data();
  for (const bool calibrated : {false, true}) {
    const Explanation prior = explain(again, select_all(items), {.calibrated = calibrated}),
                      own =
                          explain(again, select_all(items), {.calibrated = calibrated, .base = Base::model});
    ASSERT_EQ(base_of(again, {.calibrated = calibrated}), Base::prior);
    for (std::size_t i = 0; i < items.rows; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        const auto x = static_cast<double>(again.prior()[j]);
        ASSERT_NEAR(prior.base(i, j), calibrated ? 1 / (1 + std::exp(-x)) : x, 1e-9);
        // Only the empty set differs, and it counts alike for every view that the item has.
        double sum = prior.base(i, j), views = 0;
        for (std::size_t v = 0; v < 3; ++v) views += items.has(i, v);
        for (std::size_t v = 0; v < 3; ++v) {
          sum += prior.values[v](i, j);
          if (items.has(i, v)) {
            ASSERT_NEAR(prior.values[v](i, j),
                        own.values[v](i, j) - (prior.base(i, j) - own.base(i, j)) / views, 1e-9);
          }
        }
        ASSERT_NEAR(sum, prior.score(i, j), 1e-6);
        if (views > 0) {
          ASSERT_EQ(prior.score(i, j), own.score(i, j));
        }
      }
  }
}

// Scores that are no probabilities have no share among them; files of older versions hold none.
TEST(Explain, SaysWhereItCannotBeginAtTheShares) {
  const Dataset data = gappy_data();
  const Model scores = fitted("glocal", data);
  std::string why;
  EXPECT_EQ(base_of(scores, {}, &why), Base::model);
  EXPECT_NE(why.find("not probabilities"), std::string::npos) << why;
  EXPECT_EQ(base_of(scores, {.calibrated = true}), Base::prior);

  const Model network = fitted("lacuna", data, kSmall);
  const TemporaryDirectory folder;
  network.save(folder / "model");
  const Tensors file = Tensors::read(folder / "model");
  const auto without = [&](const std::vector<float>& prior) {
    Tensors older;
    older.metadata = file.metadata;
    for (const auto& [name, tensor] : file.all()) {
      const std::span<const float> values(reinterpret_cast<const float*>(tensor.bytes.data()),
                                          tensor.bytes.size() / 4);
      if (name == "label_prior") continue;
      if (tensor.shape.size() == 2)
        older.put_copy(name, file.matrix(name));
      else
        older.put(name, values);
    }
    if (!prior.empty()) older.put("label_prior", std::span(prior));
    older.write(folder / "older");
    return Model::load(folder / "older");
  };
  const Model older = without({});
  EXPECT_EQ(base_of(older, {}, &why), Base::model);
  EXPECT_NE(why.find("did not store"), std::string::npos) << why;
  const Explanation a = explain(older, select_all(data)),
                    b = explain(network, select_all(data), {.base = Base::model});
  EXPECT_TRUE(std::ranges::equal(a.base.values(), b.base.values()));
  EXPECT_THROW(without({0.f, 1.f}), Error);  // the file is not trusted
  EXPECT_THROW(without({0.f, 1.f, 2.f, std::numeric_limits<float>::quiet_NaN()}), Error);
}

TEST(Explain, TheOrderOfTheViewsInTheDataDoesNotMatter) {
  const Dataset data = gappy_data();
  const Model model = fitted("lacuna", data, kSmall);
  Dataset turned = data;
  std::swap(turned.views[0], turned.views[2]);
  Matrix<std::uint8_t> present(data.rows, 3);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t v = 0; v < 3; ++v) present(i, v) = data.has(i, 2 - v);
  turned.present = Table<std::uint8_t>(std::move(present));
  const Explanation a = explain(model, select_all(data)), b = explain(model, select_all(turned));
  for (std::size_t v = 0; v < 3; ++v)
    EXPECT_TRUE(std::ranges::equal(a.values[v].values(), b.values[v].values()));
}

// A model that treats its first two views alike: swapping their data swaps their values.
TEST(Explain, ViewsThatSwapTheirDataSwapTheirValues) {
  const Dataset data = gappy_data(150, {5, 5, 4});
  const TemporaryDirectory folder;
  fitted("lacuna", data, small_with({{"prepare", "none"}})).save(folder / "model");
  const Tensors file = Tensors::read(folder / "model");
  Tensors alike;
  alike.metadata = file.metadata;
  std::size_t copied = 0;
  for (const auto& [name, tensor] : file.all()) {
    std::string from = name;
    if (name.starts_with("shared.1.") || name.starts_with("private.1."))
      from.replace(name.find(".1."), 3, ".0."), ++copied;
    if (tensor.shape.size() == 2)
      alike.put_copy(name, file.matrix(from));
    else
      alike.put(name, std::span<const float>(reinterpret_cast<const float*>(tensor.bytes.data()),
                                             tensor.bytes.size() / 4));
  }
  ASSERT_GT(copied, 0u);
  alike.write(folder / "alike");
  const Model model = Model::load(folder / "alike");
  Dataset swapped = data;
  std::swap(swapped.views[0].features, swapped.views[1].features);
  Matrix<std::uint8_t> present(data.rows, 3);
  for (std::size_t i = 0; i < data.rows; ++i) {
    present(i, 0) = data.has(i, 1), present(i, 1) = data.has(i, 0), present(i, 2) = data.has(i, 2);
  }
  swapped.present = Table<std::uint8_t>(std::move(present));
  const Explanation a = explain(model, select_all(data)), b = explain(model, select_all(swapped));
  double moved = 0;
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      ASSERT_NEAR(a.values[0](i, j), b.values[1](i, j), 1e-4);
      ASSERT_NEAR(a.values[1](i, j), b.values[0](i, j), 1e-4);
      ASSERT_NEAR(a.values[2](i, j), b.values[2](i, j), 1e-4);
      moved = std::max(moved, std::abs(a.values[0](i, j) - b.values[0](i, j)));
    }
  EXPECT_GT(moved, .01);  // it is not that nothing happens
}

TEST(Explain, CalibratedProbabilitiesAddUpToo) {
  const Dataset data = gappy_data();
  const Model model = fitted("lacuna", data, kSmall);
  const Explanation e = explain(model, select_all(data), {.calibrated = true});
  Matrix<float> expected = model.predict(data);
  model.calibrate(expected);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      // An item without views has the base as its score.
      const bool any = std::ranges::find(e.present.row(i), std::uint8_t{1}) != e.present.row(i).end();
      EXPECT_NEAR(e.score(i, j), any ? static_cast<double>(expected(i, j)) : e.base(i, j), 1e-5);
      double sum = e.base(i, j);
      for (std::size_t v = 0; v < 3; ++v) sum += e.values[v](i, j);
      EXPECT_NEAR(sum, e.score(i, j), 1e-6);
    }
}

TEST(Explain, ManyViewsAreSampledWithAnError) {
  const Dataset data = gappy_data(60, {3, 3, 3, 3, 3, 3});
  const Model model = fitted("lacuna", data, kSmall);
  const Explanation exact = explain(model, select_all(data)),
                    sampled = explain(model, select_all(data), {.exact_views = 3, .orders = 200});
  ASSERT_FALSE(sampled.errors.empty());
  std::size_t far = 0, all = 0;
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = sampled.base(i, j);
      for (std::size_t v = 0; v < 6; ++v) {
        sum += sampled.values[v](i, j);
        if (exact.present(i, v) == 0) continue;
        const double apart = std::abs(sampled.values[v](i, j) - exact.values[v](i, j));
        ++all;
        far += apart > 3 * sampled.errors[v](i, j) + 1e-6;
        EXPECT_LT(apart, 8 * sampled.errors[v](i, j) + 1e-5);
      }
      EXPECT_NEAR(sum, sampled.score(i, j), 1e-6);  // exact whatever was drawn
    }
  EXPECT_LT(static_cast<double>(far), .02 * static_cast<double>(all));
}

TEST(ViewSummary, FindsTheViewThatMatters) {
  // Each label is a function of one column of view 0; view 1 is noise.
  constexpr std::size_t kRows = 400, kLabels = 6;
  Dataset data;
  data.name = "planted";
  data.rows = kRows;
  Random random(11, Purpose::test);
  Matrix<float> useful(kRows, kLabels), noise(kRows, 4);
  Matrix<std::int8_t> labels(kRows, kLabels);
  Matrix<std::uint8_t> present(kRows, 2);
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t k = 0; k < kLabels; ++k) {
      useful(i, k) = random.uniform(-1, 1);
      labels(i, k) = useful(i, k) > .3f;
    }
    for (float& x : noise.row(i)) x = random.uniform(-1, 1);
    present(i, 0) = i % 4 != 0;
    present(i, 1) = i % 4 != 1;
  }
  data.views = {{"useful", Table<float>(std::move(useful)), {}},
                {"noise", Table<float>(std::move(noise)), {}}};
  data.labels = Table<std::int8_t>(std::move(labels));
  data.present = Table<std::uint8_t>(std::move(present));
  data.label_names = {"a", "b", "third", "d", "e", "f"};
  const Model model = fitted("lacuna", data,
                             small_with({{"epochs", "150"},
                                         {"embedding", "64"},
                                         {"encoder-widths", "128"},
                                         {"fused-dropout", "0"},
                                         {"hidden-dropout", "0"}}));
  const ViewSummary summary = summarise_views(model, select_all(data));
  ASSERT_EQ(summary.views.size(), 2u);
  EXPECT_EQ(summary.items, kRows);
  EXPECT_EQ(summary.views[0].items, 300u);
  EXPECT_GT(summary.views[0].ap_loss.interval.low, .1);
  EXPECT_LT(summary.views[1].ap_loss.value, .05);
  for (std::size_t j = 0; j < kLabels; ++j) {
    const Estimate &lost = summary.views[0].label_ap_loss[j], &idle = summary.views[1].label_ap_loss[j];
    EXPECT_GT(lost.interval.low, .05);
    EXPECT_LE(lost.interval.low, lost.value);
    EXPECT_GE(lost.interval.high, lost.value);
    EXPECT_LT(idle.value, lost.value / 2);
  }
  ASSERT_EQ(summary.patterns.size(), 3u);  // both, only useful, only noise
  EXPECT_EQ(summary.patterns[0].views, (std::vector<std::string>{"useful", "noise"}));
  EXPECT_EQ(summary.patterns[0].items, 200u);
  const auto of = [&](const std::string& view) {
    for (const auto& pattern : summary.patterns)
      if (pattern.views == std::vector<std::string>{view}) return pattern;
    return ViewPattern{};
  };
  EXPECT_EQ(of("noise").items, 100u);
  EXPECT_GT(of("useful").ap.interval.low, of("noise").ap.interval.high);
  const nlohmann::json document = to_json(summary);
  EXPECT_EQ(document["views"][0]["labels"][2]["label"], "third");
  EXPECT_EQ(document["alone"].size(), 2u);

  Dataset unlabelled = data;
  unlabelled.labels = {};
  unlabelled.label_names = {};
  EXPECT_THROW(summarise_views(model, select_all(unlabelled)), Error);
}

// The label's AP of a summary is the one that evaluate prints.
TEST(ViewSummary, LabelPrecisionIsThatOfTheMetrics) {
  const Dataset data = gappy_data(200);
  const Model model = fitted("lacuna", data, kSmall);
  Dataset complete = data;
  complete.present = {};
  const ViewSummary summary = summarise_views(model, select_all(complete));
  Dataset without = complete;
  without.views.erase(without.views.begin());
  const auto labels = [&](const Dataset& from) {
    Matrix<std::int8_t> truth(complete.rows, 4);
    truth.copy_from(complete.labels);
    return evaluate_labels(model.predict(from), truth);
  };
  const auto with_it = labels(complete), without_it = labels(without);
  for (std::size_t j = 0; j < 4; ++j)
    EXPECT_NEAR(summary.views[0].label_ap_loss[j].value, with_it[j].ap - without_it[j].ap, 1e-6);
}

}  // namespace
}  // namespace lacuna
