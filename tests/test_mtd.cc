// The whole network: gradients in double against finite differences of the returned loss, for every preset
// and every option that changes what is computed; the row that stands for missing instances; gaps of every
// kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>

#include "data/label_graph.h"
#include "network_cases.h"
#include "nn/label_weights.h"
#include "nn/make.h"
#include "ops/cpu.h"
#include "ops/device.h"
#include "ops/machine.h"
#include "ops/ops.h"

namespace lacuna {
namespace {

using Net = BasicNetwork<double>;

std::map<std::string, Matrix<double>> values_of(Net& network) {
  std::map<std::string, Matrix<double>> values;
  network.visit([&](const std::string& name, ParameterView<double> p, bool) {
    values[name] = Matrix<double>(p.value.rows, p.value.cols);
    values[name].copy_from(p.value);
  });
  return values;
}

void restore(Net& network, const std::map<std::string, Matrix<double>>& values) {
  network.visit([&](const std::string& name, ParameterView<double> p, bool) {
    const Matrix<double>& old = values.at(name);
    for (std::size_t i = 0; i < p.value.rows; ++i) std::ranges::copy(old.row(i), p.value.row(i).begin());
  });
}

double& element(Net& network, const std::string& wanted, std::size_t i, std::size_t j) {
  double* found = nullptr;
  network.visit([&](const std::string& name, ParameterView<double> p, bool) {
    if (name == wanted) found = &p.value(i, j);
  });
  return *found;
}

// Compares every gradient (or up to `most` elements of each parameter) with central differences of the total
// loss. The teacher of the view classifiers is held constant by definition, so its share is checked apart
// (see below).
void check_gradients(const MtdOptions& options, const Items& items, std::uint64_t seed,
                     std::size_t most = 12) {
  const auto owner = make_network<double>(options, network_shape_of(items), seed, make_reference_ops<double>());
  Net& network = *owner;
  network.keep({});
  const auto rows = all_rows(items);
  const Batch batch{&items, rows, seed, 1, 3};
  const auto before = values_of(network);
  const double total = network.step(batch, gradient_rule()).total();
  ASSERT_TRUE(std::isfinite(total));
  const auto after = values_of(network);
  restore(network, before);
  const auto loss = [&] {
    const double value = network.step(batch, gradient_rule()).total();
    restore(network, before);
    return value;
  };
  EXPECT_EQ(loss(), total) << "a step must be a function of parameters and batch";
  Random pick(seed, Purpose::test, 7);
  double largest = 0;
  for (const auto& [name, old] : before)
    for (std::size_t t = 0; t < std::min(most, old.rows() * old.cols()); ++t) {
      const std::size_t at = pick.below(old.rows() * old.cols()), i = at / old.cols(), j = at % old.cols();
      const double gradient = old(i, j) - after.at(name)(i, j);
      const auto difference = [&, &name = name, &old = old](double h) {
        element(network, name, i, j) = old(i, j) + h;
        const double up = loss();
        element(network, name, i, j) = old(i, j) - h;
        return (up - loss()) / (2 * h);
      };
      // A ReLU may bend inside the wide interval: then the narrow one decides.
      double numeric = difference(1e-5);
      if (std::abs(numeric - gradient) > 1e-7 + 1e-5 * std::abs(gradient)) numeric = difference(1e-7);
      EXPECT_NEAR(gradient, numeric, 1e-7 + 2e-5 * std::abs(gradient))
          << name << " (" << i << ", " << j << ")";
      largest = std::max(largest, std::abs(gradient));
    }
  EXPECT_GT(largest, 1e-4) << "nothing was tested";
}

struct Case {
  const char* what;
  const char* preset;
  Changes changes;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"paper", "paper", {}},
      {"authors", "authors", {}},
      {"authors, loud losses", "authors", {{"alpha", "1"}, {"beta", "1"}, {"gamma", "1"}}},
      {"repaired", "repaired", {{"alpha", "1"}, {"beta", "1"}}},
      {"best without teacher", "best", {{"view-teacher", "0"}}},
      {"best, all parts",
       "best",
       {{"view-teacher", "0"}, {"channels", "2"}, {"alpha", "1"}, {"beta", ".5"}, {"gamma", "1"}}},
      {"best without view classifiers", "best", {{"view-weight", "0"}, {"reconstruct-hidden", "false"}}},
      {"layer norm, sum decoder", "best", {{"view-teacher", "0"}, {"decoder-input", "sum"}}},
      {"batch norm counting missing, dropout",
       "best",
       {{"view-teacher", "0"}, {"end-norm", "batch"}, {"hidden-dropout", "0"}}},
      {"decoder of the shared channel alone", "repaired", {{"decoder-input", "shared"}, {"beta", "1"}}},
      {"sum instead of gate", "repaired", {{"gate", "false"}, {"beta", "1"}}},
      {"one channel", "authors", {{"channels", "1"}, {"beta", "0"}}},
      {"no mask", "authors", {{"mask-rate", "0"}}},
      {"contrast: mean, pairs",
       "repaired",
       {{"contrast-share", "mean"}, {"contrast-count", "pairs"}, {"beta", "1"}}},
      {"contrast: self", "repaired", {{"contrast-positives", "self"}, {"beta", "1"}}},
      {"graph: pairwise", "repaired", {{"graph-form", "pairwise"}, {"alpha", "3"}, {"graph-eta", "2"}}},
      {"graph: not normalised",
       "repaired",
       {{"graph-normalise", "false"}, {"alpha", "3"}, {"graph-eta", "2"}}},
      {"bce over all labels", "authors", {{"bce-divisor", "all"}}},
      {"missing instances are noise to batch norm", "authors", {{"end-norm", "batch-noise"}}},
      {"linear encoders and decoders",
       "best",
       {{"view-teacher", "0"}, {"encoder-widths", ""}, {"decoder-widths", ""}}},
      {"own soft labels", "best", {{"view-teacher", "0"}, {"guess-weight", ".7"}, {"guess-from", "0"}}},
      {"rare labels weigh more, known labels speak in soft ones",
       "best",
       {{"view-teacher", "0"},
        {"guess-weight", ".7"},
        {"guess-from", "0"},
        {"guess-links", ".8"},
        {"label-weight", "sqrt"}}},
      {"rare labels, the paper's losses", "authors", {{"label-weight", "inverse"}}},
      {"early fusion, rare labels",
       "best",
       {{"fusion", "early"},
        {"gamma", "0"},
        {"view-teacher", "0"},
        {"guess-weight", "1"},
        {"guess-from", "0"},
        {"guess-links", ".5"},
        {"label-weight", "inverse"}}},
      {"early fusion",
       "best",
       {{"fusion", "early"}, {"gamma", "0"}, {"view-teacher", "0"}, {"guess-weight", "0"}}},
      {"early fusion, one pass, soft labels",
       "best",
       {{"fusion", "early"},
        {"gamma", "0"},
        {"view-weight", "0"},
        {"mask-rate", "0"},
        {"guess-weight", "1"},
        {"guess-from", "0"}}},
      {"early fusion, two hidden layers, batch norm",
       "best",
       {{"fusion", "early"},
        {"gamma", "0"},
        {"view-teacher", "0"},
        {"encoder-widths", "7,0.3d"},
        {"end-norm", "batch-present"},
        {"fused-relu", "false"}}},
      {"both branches",
       "best",
       {{"fusion", "both"}, {"joint-widths", "9"}, {"view-teacher", "0"}, {"guess-weight", "0"}}},
      {"both branches, all parts, soft labels of both",
       "best",
       {{"fusion", "both"},
        {"joint-widths", "7,0.3d"},
        {"view-teacher", "0"},
        {"channels", "2"},
        {"alpha", "1"},
        {"beta", ".5"},
        {"guess-weight", ".7"},
        {"guess-from", "0"},
        {"guess-links", ".5"},
        {"label-weight", "sqrt"}}},
  };
  return all;
}

class EveryCase : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryCase, GradientsAreThoseOfTheReturnedLoss) {
  const Case& c = cases()[GetParam()];
  SCOPED_TRACE(c.what);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CaseShape shape;
    if (seed == 2) shape = {.rows = 6, .columns = {10}, .labels = 3, .missing_views = 0};  // one view
    if (seed == 3) shape = {.rows = 8, .columns = {6, 8, 5, 7}, .some_view_nobody_has = true};
    check_gradients(small_options(c.preset, c.changes), random_items(shape, seed), seed);
  }
}

// The fast implementation against the naive one, over several steps of an optimiser with all of its state.
TEST_P(EveryCase, FastStepsAgreeWithNaiveOnes) {
  const Case& c = cases()[GetParam()];
  SCOPED_TRACE(c.what);
  const Items items = random_items({.rows = 37, .columns = {21, 40, 9}, .labels = 19}, 5);
  const auto options = small_options(c.preset, c.changes);
  for (const bool gpu : {false, true}) {
    if (gpu && !cuda_absence().empty()) continue;
    SCOPED_TRACE(gpu ? "cuda" : "cpu");
    const auto fast = make_network<float>(
        options, network_shape_of(items), 3, gpu ? make_cuda_ops(0, Precision::f32) : make_cpu_ops(Precision::f32));
    const auto naive = make_network<float>(options, network_shape_of(items), 3, make_reference_ops<float>());
    const auto rows = all_rows(items);
    UpdateRule rule;
    rule.optimiser = GetParam() % 2 ? Optimiser::sgd : Optimiser::adamw;
    rule.rate = GetParam() % 2 ? .1 : 1e-3;
    rule.epsilon = 1e-3;  // a tiny one would turn rounding errors of zero gradients into full steps
    rule.weight_decay = .1;
    rule.average = .9;
    for (auto* network : {fast.get(), naive.get()}) network->keep({.second = true, .mean = true});
    for (std::uint32_t step = 0; step < 4; ++step) {
      rule.step = step + 1;
      // Batches of different sizes; the last one is a single row.
      const auto part = std::span(rows).subspan(step * 9, step == 3 ? 1 : 9 + step);
      const Batch batch{&items, part, 11, 0, step};
      const Losses a = fast->step(batch, rule), b = naive->step(batch, rule);
      ASSERT_EQ(a.count, b.count);
      for (std::size_t k = 0; k < a.count; ++k)
        EXPECT_NEAR(a.entries[k].value, b.entries[k].value, 2e-4 * (1 + std::abs(b.entries[k].value)))
            << a.entries[k].name << " in step " << step;
    }
    Matrix<float> scores(items.rows(), items.labels()), truth(items.rows(), items.labels());
    fast->predict(items, scores);
    naive->predict(items, truth);
    for (std::size_t i = 0; i < scores.rows(); ++i)
      for (std::size_t j = 0; j < scores.cols(); ++j) ASSERT_NEAR(scores(i, j), truth(i, j), 2e-3);
  }
}

// The noise is what batch norm sees of missing instances: with all views present it makes no difference.
TEST(BatchNorm, NoiseStandsForMissingInstancesAlone) {
  for (const double missing : {0., .4}) {
    const Items items = random_items({.missing_views = missing}, 4);
    const auto rows = all_rows(items);
    std::vector<std::vector<float>> statistics;
    for (const char* kind : {"batch", "batch-noise", "batch-noise"}) {
      const auto network = make_network<float>(small_options("authors", {{"end-norm", kind}}),
                                               network_shape_of(items), 3, make_reference_ops<float>());
      network->keep({});
      network->step({&items, rows, 11, 0, 0}, UpdateRule{});
      auto& values = statistics.emplace_back();
      network->visit_buffers([&](const std::string&, MatrixView<float> running, bool) {
        for (std::size_t i = 0; i < running.rows; ++i)
          for (const float x : running.row(i)) values.push_back(x);
      });
      ASSERT_FALSE(values.empty());
    }
    EXPECT_EQ(statistics[0] == statistics[1], missing == 0);
    EXPECT_EQ(statistics[1], statistics[2]) << "drawn from the seed";
  }
}

// The CPU engine, which counts the products that took a fast path.
class WatchedOps final : public CpuOps {
 public:
  struct Counts {
    std::atomic<int> sparse = 0, packed = 0;  // of deviations from a background; of packed rows with packed weights
  };
  WatchedOps(Precision precision, Counts& counts) : CpuOps(precision), counts_(counts) {}
  void linear_forward(std::span<const ForwardJob<float>> jobs) const override {
    for (const auto& job : jobs) {
      const auto* rows = static_cast<const CpuRows*>(job.X_form);
      if (rows == nullptr) continue;
      counts_.sparse += !rows->few.empty();
      counts_.packed += rows->few.empty() && rows->is_packed && job.settled != nullptr;
    }
    CpuOps::linear_forward(jobs);
  }

 private:
  Counts& counts_;
};

// A network that computes with the few entries that differ from a background takes the steps it would take
// without, and predicts the same.
TEST(SparseInputs, TakeTheSameSteps) {
  const Items plain = random_items({.rows = 70, .columns = {30, 300}, .labels = 6}, 5);
  const Items told = with_background(plain, 1, true), untold = with_background(plain, 1, false);
  const auto rows = all_rows(plain);
  for (const char* preset : {"authors", "repaired", "paper", "best"})
    for (const char* mask_rate : {"0.25", "0"})
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        SCOPED_TRACE(fmt::format("{}, mask rate {}, {}", preset, mask_rate,
                                 precision == Precision::bf16 ? "bf16" : "f32"));
        const auto options = small_options(preset, {{"mask-rate", mask_rate}});
        const auto make = [&](WatchedOps::Counts& counts) {
          auto network = make_network<float>(options, network_shape_of(plain), 3,
                                             std::make_unique<WatchedOps>(precision, counts));
          network->keep({.second = false, .mean = true});
          return network;
        };
        WatchedOps::Counts of_few, of_all;
        const auto few = make(of_few), all = make(of_all);
        UpdateRule rule;
        rule.rate = .01;
        rule.average = .9;
        for (std::uint32_t step = 0; step < 3; ++step) {
          rule.step = step + 1;
          const Losses a = few->step({&told, rows, 11, 0, step}, rule),
                       b = all->step({&untold, rows, 11, 0, step}, rule);
          for (std::size_t k = 0; k < a.count; ++k)
            ASSERT_NEAR(a.entries[k].value, b.entries[k].value, 1e-3 * (1 + std::abs(b.entries[k].value)))
                << a.entries[k].name << " in step " << step;
        }
        EXPECT_GT(of_few.sparse, 0) << "no step computed with deviations";
        const int in_steps = of_few.sparse;
        Matrix<float> scores(70, 6), truth(70, 6);
        few->predict(told, scores);
        all->predict(untold, truth);
        EXPECT_GT(of_few.sparse, in_steps) << "no prediction computed with deviations";
        EXPECT_EQ(of_all.sparse, 0);
        for (std::size_t i = 0; i < scores.values().size(); ++i)
          ASSERT_NEAR(scores.values()[i], truth.values()[i], 2e-3);
      }
}

Items only_row(const Items& items, std::size_t row) {
  Items one;
  const auto copy = [row](const auto& from) {
    auto to = std::remove_cvref_t<decltype(from)>(1, from.cols());
    std::ranges::copy(from.row(row), to.row(0).begin());
    return to;
  };
  for (const auto& X : items.X) one.X.push_back(copy(X));
  one.W = copy(items.W);
  one.Y = copy(items.Y);
  one.G = copy(items.G);
  return one;
}

// A network that has settled may keep its weights packed, and hand packed rows from layer to layer if there
// are many: it predicts as before, and for a row alone what it predicts for it among others.
TEST(Settled, PredictsAsBefore) {
  const Items items = random_items({.rows = 90, .columns = {30, 70}, .labels = 6}, 8);
  for (const char* preset : {"authors", "best"}) {
    SCOPED_TRACE(preset);
    const auto options = small_options(preset, {{"encoder-widths", "40,24,9"}});
    WatchedOps::Counts counts;
    const auto network = make_network<float>(options, network_shape_of(items), 3,
                                             std::make_unique<WatchedOps>(Precision::bf16, counts));
    Matrix<float> before(90, 6), scores(90, 6), alone(1, 6);
    network->predict(items, before);
    EXPECT_EQ(counts.packed, 0);
    network->settle();
    network->predict(items, scores);
    const bool packs = isa() == Isa::bf16 || isa() == Isa::amx;  // elsewhere weights stay as they are
    EXPECT_EQ(counts.packed > 0, packs) << isa_name(isa());
    for (std::size_t i = 0; i < scores.values().size(); ++i)
      ASSERT_NEAR(scores.values()[i], before.values()[i], 1e-4);
    for (std::size_t row = 0; row < 90; ++row) {
      network->predict(only_row(items, row), alone);
      ASSERT_TRUE(std::ranges::equal(alone.row(0), scores.row(row))) << "row " << row;
    }
  }
}

// DICNet's settings; its contrast is no option of MTD.
TEST(Dicnet, GradientsAreThoseOfTheReturnedLoss) {
  MtdOptions options =
      small_options("authors", {{"channels", "1"}, {"beta", "0"}, {"alpha", "0"}, {"mask-rate", "0"}});
  options.embedding = 0;
  options.instance_weight = 2;
  options.reconstruction_target = ReconstructionTarget::clean;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) check_gradients(options, random_items({}, seed), seed);
}

INSTANTIATE_TEST_SUITE_P(Mtd, EveryCase, testing::Range(std::size_t{0}, cases().size()));

// Of two branches: the mean of the logits, the fused vectors side by side, and each branch as if it were alone.
TEST(BothBranches, SayTheMeanOfWhatEachSays) {
  const Items items = random_items({.rows = 40, .columns = {6, 9, 5}, .labels = 4}, 3);
  const Changes none = {{"guess-weight", "0"}, {"joint-widths", "8"}};
  const auto with = [&](Changes more) {
    more.insert(more.end(), none.begin(), none.end());
    auto network = make_network<double>(small_options("best", more), network_shape_of(items), 3,
                                        make_reference_ops<double>());
    network->keep({});
    const auto rows = all_rows(items);
    for (std::uint32_t step = 0; step < 3; ++step) network->step({&items, rows, 11, 0, step}, UpdateRule{});
    Matrix<double> Z(items.rows(), network->fused_size()), logits(items.rows(), items.labels());
    network->fused(items, [&](std::size_t begin, MatrixView<const double> z, MatrixView<double> out) {
      for (std::size_t i = 0; i < z.rows; ++i) {
        std::ranges::copy(z.row(i), Z.row(begin + i).begin());
        std::ranges::copy(out.row(i), logits.row(begin + i).begin());
      }
    });
    Matrix<double> scores(items.rows(), items.labels());
    network->predict(items, scores);
    return std::tuple(std::move(Z), std::move(logits), std::move(scores), network->parameters());
  };
  const auto [Z, logits, scores, parameters] = with({{"fusion", "both"}});
  const auto [Zm, mean, mean_scores, mean_parameters] = with({{"fusion", "mean"}});
  const auto [Ze, early, early_scores, early_parameters] = with({{"fusion", "early"}, {"gamma", "0"}});
  EXPECT_EQ(parameters, mean_parameters + early_parameters);
  ASSERT_EQ(Z.cols(), Zm.cols() + Ze.cols());
  for (std::size_t i = 0; i < items.rows(); ++i) {
    for (std::size_t j = 0; j < Z.cols(); ++j)
      ASSERT_EQ(Z(i, j), j < Zm.cols() ? Zm(i, j) : Ze(i, j - Zm.cols()));
    for (std::size_t j = 0; j < logits.cols(); ++j) {
      ASSERT_DOUBLE_EQ(logits(i, j), (mean(i, j) + early(i, j)) / 2);
      ASSERT_NEAR(scores(i, j), 1 / (1 + std::exp(-logits(i, j))), 1e-12);
    }
  }
}

// Soft labels of teachers teach unknown entries alone: with weight 1, and answers that happen to be right,
// the gradients are those of fully known labels up to the divisor.
TEST(SoftLabels, OfTeachersActLikeLabels) {
  for (const char* fusion : {"mean", "early", "both"}) {
    SCOPED_TRACE(fusion);
    Items taught = random_items({.rows = 12, .columns = {6, 9}, .labels = 4}, 3);
    Items known = taught;
    taught.Q = Matrix<float>(12, 4);
    double entries = 0;
    for (std::size_t i = 0; i < 12; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        entries += taught.G(i, j);
        taught.Q(i, j) = taught.G(i, j) ? .123f : static_cast<float>((i + j) % 2);
        if (known.G(i, j) == 0) known.Y(i, j) = taught.Q(i, j), known.G(i, j) = 1;
      }
    const auto options = small_options("best", {{"fusion", fusion},
                                                {"gamma", "0"},
                                                {"view-weight", "0"},
                                                {"guess-weight", "1"},
                                                {"guess-from", "0"}});
    const auto total = [&](const Items& items) {
      const auto network = make_network<double>(options, network_shape_of(items), 1, make_reference_ops<double>());
      network->keep({});
      const auto rows = all_rows(items);
      return network->step({&items, rows, 1, 0, 0}, gradient_rule()).total();
    };
    EXPECT_NEAR(total(taught) * entries / (12 * 4), total(known), 1e-12);
  }
}

// The known labels of a row move its soft labels by what their pairs say in the training rows, and the guesses are told by
// exactly that rule.
TEST(SoftLabels, KnownLabelsHaveASay) {
  Items items = random_items({.rows = 60, .columns = {6, 9}, .labels = 4}, 3);
  for (std::size_t i = 0; i < 60; ++i)
    items.Y(i, 1) = items.G(i, 1) != 0 ? items.Y(i, 0) : 0;  // mostly alike
  for (const char* links : {"0", ".7"}) {
    const auto options =
        small_options("best", {{"guess-weight", ".3"}, {"guess-from", "0"}, {"guess-links", links}});
    const auto network = make_network<double>(options, network_shape_of(items), 1, make_reference_ops<double>());
    network->keep({});
    Matrix<double> before(60, 4);
    network->predict(items, before);
    const auto rows = all_rows(items);
    network->step({&items, rows, 1, 0, 0}, gradient_rule());
    const LabelGraph graph(truth_of(items));
    const double weight = std::stod(links);
    std::size_t moved = 0;
    network->visit_buffers([&](const std::string& name, MatrixView<double> made, bool) {
      if (name != "guesses") return;
      for (std::size_t i = 0; i < 60; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          if (items.G(i, j) != 0) continue;
          double x = std::log(before(i, j) / (1 - before(i, j)));
          for (std::size_t k = 0; k < 4; ++k)
            if (k != j && items.G(i, k) != 0)
              x += weight * graph.log_odds_ratio(j, k) * (static_cast<double>(items.Y(i, k)) - before(i, k));
          EXPECT_NEAR(made(i, j), 1 / (1 + std::exp(-x)), 1e-5);
          moved += std::abs(made(i, j) - before(i, j)) > 1e-3;
        }
    });
    EXPECT_EQ(moved > 0, weight > 0);
  }
}

// Elsewhere, with so much room for data; counts what lies in memory that the host reads too.
class Elsewhere final : public OnHost<Engine> {
 public:
  explicit Elsewhere(std::size_t room) : room_(room) {}
  int place() const override { return 7; }
  std::size_t room() const override { return room_; }
  std::shared_ptr<void> allocate_mapped(std::size_t bytes) const override {
    mapped_bytes += bytes;
    return allocate(bytes);
  }
  mutable std::size_t mapped_bytes = 0;

 private:
  std::size_t room_;
};

TEST(ItemsAway, ViewsThatDoNotFitStayInMappedMemory) {
  const Items items = random_items({.rows = 37, .columns = {21, 40, 9}, .labels = 19}, 5);
  const std::size_t bytes[] = {37 * 21 * 4, 37 * 40 * 4, 37 * 9 * 4};
  const std::pair<std::size_t, std::size_t> cases[] = {{0, bytes[0] + bytes[1] + bytes[2]},
                                                       {bytes[0], bytes[1] + bytes[2]},
                                                       {bytes[0] + bytes[2], bytes[1]},
                                                       {bytes[1] - 1, bytes[1]},
                                                       {1 << 30, 0}};
  for (const auto& [room, mapped] : cases) {
    const Elsewhere engine(room);
    const Items copy = items;
    for (std::size_t v = 0; v < 3; ++v) {
      const MatrixView<const float> X = copy.rows_on(engine, v).table;
      ASSERT_EQ(X.rows, 37u);
      for (std::size_t r = 0; r < X.rows; ++r)
        EXPECT_TRUE(std::ranges::equal(X.row(r), items.X[v].row(r))) << room << " view " << v << " row " << r;
    }
    EXPECT_EQ(engine.mapped_bytes, mapped) << room;
  }
}

// The same steps to the same bits, whether the rows are in the GPU's memory or on the other side of the bus.
TEST(ItemsAway, AGpuReadsRowsFromTheHost) {
  if (!cuda_absence().empty()) GTEST_SKIP() << "no CUDA device: " << cuda_absence();
  const auto options = small_options("repaired", {});
  Matrix<float> scores[2];
  for (const bool far : {false, true}) {
    if (far) setenv("LACUNA_GPU_DATA", "0", 1);
    const Items items = random_items({.rows = 37, .columns = {21, 40, 9}, .labels = 19}, 5);
    const auto network = make_network<float>(options, network_shape_of(items), 3, make_cuda_ops(0, Precision::bf16));
    network->keep({});
    UpdateRule rule;
    rule.optimiser = Optimiser::sgd;
    rule.rate = .1;
    const auto rows = all_rows(items);
    for (std::uint32_t step = 0; step < 4; ++step) {
      rule.step = step + 1;
      network->step({&items, std::span(rows).subspan(step * 9, 9), 11, 0, step}, rule);
    }
    scores[far] = Matrix<float>(items.rows(), items.labels());
    network->predict(items, scores[far]);
    unsetenv("LACUNA_GPU_DATA");
  }
  EXPECT_TRUE(std::ranges::equal(scores[0].values(), scores[1].values()));
}

TEST(LabelWeights, RareLabelsWeighMoreAndTheMeanIsOne) {
  Items items = random_items({.rows = 90, .columns = {4}, .labels = 3}, 4);
  for (std::size_t i = 0; i < 90; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      items.Y(i, j) = items.G(i, j) != 0 && i % (j == 0 ? 2 : j == 1 ? 9 : 80) == 0;
  for (const LabelWeight kind : {LabelWeight::sqrt, LabelWeight::inverse}) {
    const std::vector<float> weights = label_weights(items, kind);
    EXPECT_LT(weights[0], weights[1]);
    EXPECT_LT(weights[1], weights[2]);
    double sum = 0, known = 0;
    std::array<double, 3> share{}, count{};
    for (std::size_t i = 0; i < 90; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        if (items.G(i, j) != 0) {
          sum += static_cast<double>(weights[j]), known += 1;
          share[j] += static_cast<double>(items.Y(i, j)), count[j] += 1;
        }
    EXPECT_NEAR(sum / known, 1, 1e-5);
    const double ratio = (share[0] + 1) / (count[0] + 2) / ((share[2] + 1) / (count[2] + 2));
    EXPECT_NEAR(weights[2] / weights[0], kind == LabelWeight::inverse ? ratio : std::sqrt(ratio), 1e-4);
  }
}

// Own soft labels are renewed at guess-from and every guess-every epochs after it, and at no other time.
TEST(SoftLabels, OwnOnesAreRenewedWhenDue) {
  const Items items = random_items({}, 2);
  const auto options =
      small_options("best", {{"guess-weight", ".3"}, {"guess-from", "2"}, {"guess-every", "3"}});
  const auto network = make_network<float>(options, network_shape_of(items), 1, make_reference_ops<float>());
  network->keep({.mean = true});
  const auto rows = all_rows(items);
  UpdateRule rule = gradient_rule();
  rule.rate = .05;
  rule.average = .5;
  std::vector<float> made;
  std::vector<std::uint32_t> renewed;
  for (std::uint32_t epoch = 0; epoch < 10; ++epoch) {
    Matrix<float> before(items.rows(), items.labels());
    network->predict(items, before);
    const Losses losses = network->step({&items, rows, 1, epoch, epoch}, rule);
    const bool used = std::ranges::any_of(losses, [](auto& l) { return std::string(l.name) == "guess"; });
    EXPECT_EQ(used, epoch >= 2);
    network->visit_buffers([&](const std::string& name, MatrixView<float> buffer, bool) {
      if (name != "guesses" || std::ranges::equal(made, std::span(buffer.data, buffer.size()))) return;
      made.assign(buffer.data, buffer.data + buffer.size());
      if (epoch < 2) return;  // zeros
      renewed.push_back(epoch);
      EXPECT_TRUE(std::ranges::equal(made, before.values())) << "not the averaged parameters' clean scores";
    });
  }
  EXPECT_EQ(renewed, (std::vector<std::uint32_t>{2, 5, 8}));
}

}  // namespace
}  // namespace lacuna
