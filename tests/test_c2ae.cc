// C2AE: its gradients, its update rule, and that it learns.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/threads.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "network_cases.h"
#include "nn/c2ae.h"

namespace lacuna {
namespace {

TEST(C2ae, GradientsAreThoseOfTheReturnedLoss) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Items items =
        random_items({.rows = 7, .columns = {6}, .labels = 4 + seed, .missing_views = 0}, seed);
    const C2aeOptions options{.hidden = 5, .alpha = .7, .margin = 2};
    C2aeNetwork<double> network(options, network_shape_of(items), seed, make_reference_ops<double>());
    network.keep({});
    // Larger weights than the authors start with, so that no unit is stuck at its bend.
    Random random(seed, Purpose::test, 1);
    network.visit([&](const std::string&, ParameterView<double> p, bool) {
      for (std::size_t i = 0; i < p.value.rows; ++i)
        for (double& w : p.value.row(i)) w = .5 * static_cast<double>(random.normal());
    });
    const auto rows = all_rows(items);
    const Batch batch{&items, rows, seed, 0, 0};
    std::map<std::string, Matrix<double>> before, after;
    const auto copy_to = [&](std::map<std::string, Matrix<double>>& to) {
      network.visit([&](const std::string& name, ParameterView<double> p, bool) {
        to[name] = Matrix<double>(p.value.rows, p.value.cols);
        to[name].copy_from(p.value);
      });
    };
    const auto restore = [&] {
      network.visit([&](const std::string& name, ParameterView<double> p, bool) {
        for (std::size_t i = 0; i < p.value.rows; ++i)
          std::ranges::copy(before[name].row(i), p.value.row(i).begin());
      });
    };
    copy_to(before);
    network.step(batch, gradient_rule());
    copy_to(after);
    restore();
    for (const auto& [name, old] : before)
      for (std::size_t i = 0; i < old.rows(); ++i)
        for (std::size_t j = 0; j < old.cols(); ++j) {
          const auto loss_at = [&, &name = name](double value) {
            network.visit([&](const std::string& other, ParameterView<double> p, bool) {
              if (other == name) p.value(i, j) = value;
            });
            const double loss = network.step(batch, gradient_rule()).total();
            restore();
            return loss;
          };
          const double h = 1e-6, numeric = (loss_at(old(i, j) + h) - loss_at(old(i, j) - h)) / (2 * h);
          ASSERT_NEAR(old(i, j) - after[name](i, j), numeric, 1e-6 + 1e-5 * std::abs(numeric)) << name;
        }
  }
}

// With all weights 0 every score is 1/2 and every embedding 0: each pair counts exp(0) / μ, and AᵀA is 0
// instead of I.
TEST(C2ae, LossesOfNothing) {
  Items items =
      random_items({.rows = 5, .columns = {4}, .labels = 6, .missing_views = 0, .missing_labels = 0}, 2);
  for (std::size_t j = 0; j < 6; ++j) items.Y(0, j) = 1;  // no negative, so no pair
  for (std::size_t i = 1; i < 5; ++i) items.Y(i, 0) = 1, items.Y(i, 1) = 0;
  C2aeNetwork<double> network({.reduction = .5, .hidden = 4, .orthogonal = .25, .margin = 3}, network_shape_of(items), 5, make_reference_ops<double>());
  network.keep({});
  network.visit([&](const std::string&, ParameterView<double> p, bool) {
    for (std::size_t i = 0; i < p.value.rows; ++i) std::ranges::fill(p.value.row(i), 0.);
  });
  const auto rows = all_rows(items);
  const Losses losses = network.step({&items, rows, 1, 0, 0}, {});
  EXPECT_NEAR(losses.entries[1].value, .25 * (3 + 3), 1e-12);
  EXPECT_NEAR(losses.entries[2].value, 4. / 3, 1e-12);
  EXPECT_NEAR(losses.total(), 1.5 + .5 * 4. / 3, 1e-12);
}

// Complete labels are fed as 0 and 1. With one positive a row that is the code of rows whose negatives are unknown, so the
// embedding of the labels must be the same.
TEST(C2ae, CompleteLabelsAreFedAsTheyAre) {
  Items known =
      random_items({.rows = 5, .columns = {4}, .labels = 6, .missing_views = 0, .missing_labels = 0}, 2);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 6; ++j) known.Y(i, j) = j == i;
  Items positives = known;
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 6; ++j) positives.G(i, j) = j == i;
  const auto correlation = [](const Items& items, bool complete) {
    C2aeNetwork<double> network({.hidden = 4, .complete = complete}, network_shape_of(items), 5, make_reference_ops<double>());
    network.keep({});
    const auto rows = all_rows(items);
    return network.step({&items, rows, 1, 0, 0}, {}).entries[1].value;
  };
  EXPECT_EQ(correlation(known, true), correlation(positives, false));
  EXPECT_NE(correlation(known, true), correlation(known, false));
}

// The first step divides every gradient by itself: all parameters with a gradient move by the rate.
TEST(C2ae, FirstStepMovesByTheRate) {
  const Items items = random_items({.rows = 9, .columns = {4}, .labels = 6, .missing_views = 0}, 2);
  C2aeNetwork<double> network({.hidden = 4}, network_shape_of(items), 5, make_reference_ops<double>());
  network.keep({.second = true});
  std::vector<double> before;
  network.visit([&](const std::string&, ParameterView<double> p, bool) {
    for (std::size_t i = 0; i < p.value.rows; ++i)
      before.insert(before.end(), p.value.row(i).begin(), p.value.row(i).end());
  });
  const auto rows = all_rows(items);
  UpdateRule rule;
  rule.optimiser = Optimiser::rmsprop;
  rule.rate = 1e-3;
  rule.epsilon = 1e-12;
  network.step({&items, rows, 1, 2, 0}, rule);  // epoch 2: two factors of .98
  std::size_t at = 0;
  network.visit([&](const std::string& name, ParameterView<double> p, bool) {
    for (std::size_t i = 0; i < p.value.rows; ++i)
      for (const double w : p.value.row(i)) {
        const double moved = std::abs(w - before[at++]);
        EXPECT_TRUE(std::abs(moved - 1e-3 * .98 * .98) < 1e-9 || moved == 0) << name << " " << moved;
      }
  });
}

// The CPU's engine takes the reference's steps, for any number of threads the same.
TEST(C2ae, EnginesAgree) {
  const Items items = random_items({.rows = 40, .columns = {30}, .labels = 20, .missing_views = 0}, 3);
  const auto rows = all_rows(items);
  const auto learned = [&](std::unique_ptr<Ops<float>> ops) {
    C2aeNetwork<float> network({.hidden = 24}, network_shape_of(items), 5, std::move(ops));
    network.keep({.second = true});
    UpdateRule rule;
    rule.optimiser = Optimiser::rmsprop;
    rule.rate = 1e-3;
    for (rule.step = 1; rule.step <= 4; ++rule.step) network.step({&items, rows, 1, 0, 0}, rule);
    Matrix<float> scores(items.rows(), items.labels());
    network.predict(items, scores);
    return scores;
  };
  const Matrix<float> slow = learned(make_reference_ops<float>()), fast = learned(make_cpu_ops(Precision::f32));
  for (std::size_t at = 0; at < slow.values().size(); ++at)
    ASSERT_NEAR(slow.values()[at], fast.values()[at], 2e-4);
  const int before = threads();
  set_threads(1);
  const Matrix<float> alone = learned(make_cpu_ops(Precision::f32));
  set_threads(before);
  EXPECT_TRUE(std::ranges::equal(alone.values(), fast.values()));
}

TEST(C2ae, LearnsAndPredictsTheSameAfterLoading) {
  const Simulated simulated =
      simulate({.rows = 500, .views = 2, .labels = 6, .noise = .3, .sizes = {20, 12}, .seed = 4});
  Model model("c2ae");
  for (const auto& [name, value] : Changes{{"epochs", "100"},
                                           {"batch", "100"},
                                           {"hidden", "64"},
                                           {"rate", "1e-3"},
                                           {"rate-decay", "1"},
                                           {"select", "AP"}})
    model.options().set(name, value, "test");
  model.fit(select_all(simulated.data), .2, 3);
  EXPECT_GT(model.validation()->macro_auc, .6);  // no knowledge of the items: .5
  const auto path = std::filesystem::temp_directory_path() / fmt::format("lacuna_c2ae_{}", ::getpid());
  model.save(path.string());
  const Matrix<float> before = model.predict(simulated.data),
                      after = Model::load(path.string()).predict(simulated.data);
  EXPECT_TRUE(std::ranges::equal(before.values(), after.values()));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lacuna
