// The memory of training rows: the formula written down in double is the truth; who uses a model notices nothing but
// other scores.
#include "methods/row_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "checks.h"
#include "data/simulate.h"
#include "methods/explain.h"
#include "methods/label_shares.h"
#include "methods/model.h"
#include "small_items.h"

namespace lacuna {
namespace {

// A network whose fused vectors are the items' first view and whose logits are the second.
class Transparent final : public Network {
 public:
  Transparent(std::size_t size, std::size_t labels) : size_(size), labels_(labels) {}
  void keep(OptimiserState) override {}
  Losses step(const Batch&, const UpdateRule&) override { return {}; }
  void predict(const Items&, MatrixView<float>) const override {}
  bool fused(const Items& items, FusedSink sink) const override {
    constexpr std::size_t kBlock = 7;
    for (std::size_t begin = 0; begin < items.rows(); begin += kBlock) {
      const std::size_t count = std::min(kBlock, items.rows() - begin);
      Matrix<float> Z(count, size_), logits(count, labels_);
      Z.copy_from(items.X[0].view().slice(begin, count));
      logits.copy_from(items.X[1].view().slice(begin, count));
      sink(begin, Z, logits);
    }
    return true;
  }
  std::size_t fused_size() const override { return size_; }
  void visit(Visitor) override {}
  void visit_buffers(BufferVisitor) override {}
  std::uint64_t parameters() const override { return 0; }
  std::uint64_t parameters_for_prediction() const override { return 0; }

 private:
  std::size_t size_, labels_;
};

constexpr std::size_t kSize = 24, kLabels = 5;

Items transparent_items(std::size_t n, std::uint32_t stream) {
  return small_items({.n = n, .c = kLabels, .d = {kSize, kLabels}, .missing_views = 0}, stream);
}

MemoryOptions with_weight(const std::string& use) {
  MemoryOptions options;
  options.use = use;
  return options;
}

RowMemory remembered(const Items& train, const MemoryOptions& options, Precision precision = Precision::f32) {
  FitContext context;
  return RowMemory::fit(Transparent(kSize, kLabels), train, {}, options, precision, context);
}

std::vector<double> direction(std::span<const float> z) {
  std::vector<double> r;
  double square = 0;
  for (const float x : z) r.push_back(std::max(static_cast<double>(x), 0.)), square += r.back() * r.back();
  for (double& x : r) x = square > 0 ? x / std::sqrt(square) : 0;
  return r;
}

// The formula of the header, one sum after the other. `old`: of models that do not say how many rows π counts as.
Matrix<double> by_definition(const Items& train, const Items& items, double sharpness, double weight,
                             bool old = false) {
  const std::vector<double> shares = label_shares(train);
  Matrix<double> joined(items.rows(), kLabels);
  for (std::size_t i = 0; i < items.rows(); ++i) {
    const auto r = direction(items.X[0].row(i));
    std::vector<double> near;
    for (std::size_t j = 0; j < train.rows(); ++j) {
      const auto other = direction(train.X[0].row(j));
      const bool votes = std::ranges::any_of(train.G.row(j), [](std::uint8_t known) { return known != 0; });
      near.push_back(
          votes ? std::exp(sharpness * (std::inner_product(r.begin(), r.end(), other.begin(), 0.) - 1)) : 0.);
    }
    const double total = std::reduce(near.begin(), near.end()), prior = old ? .3 : std::ranges::max(near);
    for (std::size_t l = 0; l < kLabels; ++l) {
      double sum = prior * shares[l];
      for (std::size_t j = 0; j < train.rows(); ++j)
        sum += near[j] * (train.G(j, l) != 0 ? static_cast<double>(train.Y(j, l))
                                             : 1 / (1 + std::exp(-static_cast<double>(train.X[1](j, l)))));
      const double v = sum / (total + prior);
      joined(i, l) = (static_cast<double>(items.X[1](i, l)) + weight * std::log(v / (1 - v))) / (1 + weight);
    }
  }
  return joined;
}

Matrix<float> joined(const RowMemory& memory, const Items& items) {
  Matrix<float> logits(items.X[1].rows(), items.X[1].cols());
  logits.copy_from(items.X[1]);
  memory.join(items.X[0], logits);
  return logits;
}

double largest_difference(const Matrix<float>& a, const Matrix<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.values()[i]) - b.values()[i]));
  return largest;
}

TEST(RowMemory, IsTheFormula) {
  const Items train = transparent_items(90, 1), items = transparent_items(300, 2);
  for (const double weight : {.25, 1., 4.}) {
    MemoryOptions options = with_weight(std::to_string(weight));
    for (const double sharpness : {1., 20.}) {
      options.sharpness = sharpness;
      const Matrix<double> truth = by_definition(train, items, sharpness, weight);
      EXPECT_LT(largest_difference(joined(remembered(train, options), items), truth), 2e-5);
      // bf16 keeps 8 bits: an angle's cosine is off by .004 at most, and less than that in a sum.
      EXPECT_LT(largest_difference(joined(remembered(train, options, Precision::bf16), items), truth), .05);
    }
  }
}

// A file that does not say how many rows the shares count as is of a version in which they counted as .3.
TEST(RowMemory, OldFilesVoteAsTheyDid) {
  const Items train = transparent_items(90, 1), items = transparent_items(40, 2);
  const RowMemory memory = remembered(train, with_weight("1"));
  Tensors now, old;
  memory.save(now);
  const Matrix<float> rows = now.matrix("memory.rows"), labels = now.matrix("memory.labels"),
                      prior = now.matrix("memory.prior");
  const std::vector<float> sharp = now.floats("memory.sharpness"), weight = now.floats("memory.weight");
  old.put("memory.rows", rows.view());
  old.put("memory.labels", labels.view());
  old.put("memory.prior", prior.view());
  old.put("memory.sharpness", std::span(sharp));
  old.put("memory.weight", std::span(weight));
  const auto loaded = [&](const Tensors& file) {
    return RowMemory::load(file, train.X[0].cols(), kLabels, Precision::f32);
  };
  const double sharpness = MemoryOptions().sharpness;
  EXPECT_LT(largest_difference(joined(loaded(now), items), by_definition(train, items, sharpness, 1)), 2e-5);
  EXPECT_LT(largest_difference(joined(loaded(old), items), by_definition(train, items, sharpness, 1, true)),
            2e-5);
}

// Far from all rows the nearest ones still speak: the vote does not depend on how far they are together.
TEST(RowMemory, TheNearestRowsSpeakHoweverFarTheyAre) {
  const Items train = transparent_items(90, 1), items = transparent_items(40, 2);
  MemoryOptions options = with_weight("1");
  options.sharpness = 300;  // e^(300 (r·r_j - 1)) is next to nothing for most items
  const Matrix<float> scores = joined(remembered(train, options), items);
  EXPECT_LT(largest_difference(scores, by_definition(train, items, 300, 1)), 1e-3);
}

TEST(RowMemory, TheOrderOfTheRowsDoesNotMatter) {
  const Items train = transparent_items(90, 1), items = transparent_items(40, 2);
  const auto rows = Random(3, Purpose::test).permutation(90);
  const Items other = permuted(train, rows, {0, 1}, {0, 1, 2, 3, 4});
  const MemoryOptions options = with_weight("1");
  expect_same(joined(remembered(train, options), items), joined(remembered(other, options), items), 1e-5);
}

TEST(RowMemory, WithoutADirectionTheLabelFrequenciesDecide) {
  const Items train = transparent_items(90, 1);
  Items items = transparent_items(3, 2);
  std::ranges::fill(items.X[0].values(), -1.f);  // nothing is positive
  const Matrix<float> logits = joined(remembered(train, with_weight("1")), items);
  const std::vector<double> shares = label_shares(train);
  for (std::size_t l = 0; l < kLabels; ++l) {
    const double prior = std::log(shares[l] / (1 - shares[l]));
    EXPECT_NEAR(static_cast<double>(logits(1, l)), (static_cast<double>(items.X[1](1, l)) + prior) / 2, 1e-4);
  }
}

struct Listening : FitContext {
  std::vector<std::string> remarks;
  void remark(const std::string& text) override { remarks.push_back(text); }
};

TEST(RowMemory, KeepsAPartOfTooManyRowsAndSaysSo) {
  Items train = transparent_items(90, 1);
  const Items items = transparent_items(40, 2);
  for (std::size_t i = 0; i < 90; ++i) train.G(i, 0) = 1;  // otherwise a row without known labels has no vote
  MemoryOptions options = with_weight("1");
  const auto fit = [&](std::int64_t rows, std::uint64_t seed, std::size_t remarks) {
    options.rows = rows;
    Listening context;
    context.seed = seed;
    RowMemory memory =
        RowMemory::fit(Transparent(kSize, kLabels), train, {}, options, Precision::f32, context);
    EXPECT_EQ(context.remarks.size(), remarks);
    if (remarks > 0) {
      EXPECT_NE(context.remarks[0].find("30 of 90"), std::string::npos) << context.remarks[0];
    }
    return memory;
  };
  EXPECT_EQ(fit(90, 1, 0).rows(), 90u);
  const RowMemory part = fit(30, 1, 1);
  EXPECT_EQ(part.rows(), 30u);
  expect_same(joined(part, items), joined(fit(30, 1, 1), items));
  const Matrix<float> a = joined(part, items), b = joined(fit(30, 2, 1), items);
  EXPECT_FALSE(std::ranges::equal(a.values(), b.values()));  // another seed draws others
}

// Rows whose labels the logits know well or badly, and so the votes.
double chosen_weight(std::size_t rows, float logit_noise, float vote_noise, std::uint32_t stream) {
  constexpr std::size_t kMany = 12;
  Random random(11, Purpose::test, stream);
  Matrix<float> logits(rows, kMany), votes(rows, kMany);
  Matrix<std::int8_t> truth(rows, kMany);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < kMany; ++j) {
      truth(i, j) = random.below(4) == 0;
      const float right = truth(i, j) ? 1.f : -1.f;
      logits(i, j) = right + logit_noise * random.normal();
      votes(i, j) = right + vote_noise * random.normal();
    }
  return choose_weight(try_memory_weights(logits, votes, truth), rows).weight;
}

TEST(MemoryWeight, IsLargeWhereVotesHelpForSure) {
  for (std::uint32_t stream = 0; stream < 5; ++stream) EXPECT_GE(chosen_weight(500, 1.5f, 1.5f, stream), .5);
}

TEST(MemoryWeight, IsSmallWhereLittleIsThereToChooseBy) {
  double sum = 0;
  for (std::uint32_t stream = 0; stream < 100; ++stream) sum += chosen_weight(20, 1.f, 5.f, stream);
  EXPECT_LT(sum / 100, .1);
  for (std::uint32_t stream = 0; stream < 20; ++stream)
    EXPECT_EQ(chosen_weight(kFewestRows - 1, 1.5f, 1.f, stream), 0);
  for (std::uint32_t stream = 0; stream < 20; ++stream) EXPECT_EQ(chosen_weight(500, 1.f, 20.f, stream), 0);
}

TEST(MemoryWeight, RowsOfWhichNothingIsKnownDoNotCount) {
  Matrix<float> logits(3, 2), votes(3, 2);
  Matrix<std::int8_t> truth(3, 2);
  std::ranges::fill(truth.values(), kUnknown);
  for (const WeightTrial& trial : try_memory_weights(logits, votes, truth)) {
    EXPECT_EQ(trial.gain, 0);
    EXPECT_EQ(trial.error, 0);
  }
}

// Models.

Dataset some_data(std::int64_t rows = 220) {
  SimulateOptions options;
  options.rows = rows;
  options.views = 3;
  options.labels = 6;
  options.sizes = {9, 7, 5};
  Dataset data = simulate(options).data;
  Matrix<std::uint8_t> present(data.rows, 3);
  Matrix<std::int8_t> Y(data.rows, 6);
  Random random(3, Purpose::test);
  for (std::size_t i = 0; i < data.rows; ++i) {
    for (std::size_t v = 0; v < 3; ++v) present(i, v) = i == 5 ? 0 : random.below(4) > 0 || i < 3;
    for (std::size_t j = 0; j < 6; ++j) Y(i, j) = random.below(3) == 0 ? kUnknown : data.labels(i, j);
  }
  data.present = Table<std::uint8_t>(std::move(present));
  data.labels = std::move(Y);
  return data;
}

Model fitted(const Dataset& data, std::vector<Setting> settings, double hold_out = .2) {
  Model model;
  for (const auto& [name, value] : {Setting{"epochs", "4"},
                                    {"embedding", "16"},
                                    {"encoder-widths", "24"},
                                    {"decoder-widths", "16"},
                                    {"components", "4"}})
    model.options().set(name, value, "test");
  for (const auto& [name, value] : settings) model.options().set(name, value, "test");
  model.fit(select_all(data), hold_out);
  return model;
}

TEST(MemoryOfAModel, WithoutWeightTheNetworkSpeaksAlone) {
  const Dataset data = some_data();
  const Matrix<float> off = fitted(data, {{"memory", "off"}}).predict(data);
  EXPECT_TRUE(same(off, fitted(data, {{"memory", "0"}}).predict(data)));
  EXPECT_FALSE(same(off, fitted(data, {{"memory", "1"}}).predict(data)));
  const Model blind = fitted(data, {{"memory", "auto"}}, 0);  // no validation rows to choose by
  EXPECT_TRUE(memory_of(blind.method()).is_null());
  EXPECT_TRUE(same(fitted(data, {{"memory", "off"}}, 0).predict(data), blind.predict(data)));
}

TEST(MemoryOfAModel, IsSavedAndLoaded) {
  const Dataset data = some_data();
  const TemporaryDirectory folder;
  for (const std::string precision : {"f32", "bf16"})
    for (const std::string fusion : {"mean", "early", "both"}) {
      const Model model = fitted(data, {{"memory", "1.5"},
                                        {"precision", precision},
                                        {"fusion", fusion},
                                        {"gamma", "0"},
                                        {"memory-sharpness", "7"}});
      model.save(folder / "model");
      const Model loaded = Model::load(folder / "model");
      EXPECT_TRUE(same(model.predict(data), loaded.predict(data))) << precision << " " << fusion;
      const nlohmann::json about = memory_of(loaded.method());
      EXPECT_EQ(about.at("weight"), 1.5);
      EXPECT_EQ(about.at("sharpness"), 7);
      EXPECT_GT(about.at("rows").get<int>(), 150);
    }
}

TEST(MemoryOfAModel, SameBitsForAnyNumberOfThreads) {
  const Dataset data = some_data(1500);
  for (const std::string precision : {"f32", "bf16"}) {
    std::vector<Matrix<float>> scores;
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      scores.push_back(
          fitted(data, {{"memory", "1"}, {"epochs", "1"}, {"precision", precision}}).predict(data));
      EXPECT_TRUE(same(scores[0], scores.back())) << precision << ", " << count << " threads";
    }
    set_threads(0);
  }
}

TEST(MemoryOfAModel, ExplanationsAddUpToTheScore) {
  const Dataset data = some_data();
  for (const auto& settings : {std::vector<Setting>{{"members", "1"}},
                               {{"fusion", "early"}, {"gamma", "0"}},
                               {{"fusion", "both"}},
                               {{"members", "2"}}}) {
    std::vector<Setting> all = settings;
    all.push_back({"memory", "1"});
    all.push_back({"precision", "f32"});
    const Model model = fitted(data, all);
    const Matrix<float> scores = model.predict(data);
    const Explanation why = explain(model, select_all(data));
    for (std::size_t i = 0; i < data.rows; ++i) {
      if (std::ranges::none_of(why.present.row(i), [](std::uint8_t w) { return w != 0; })) continue;
      for (std::size_t j = 0; j < 6; ++j) {
        double sum = why.base(i, j);
        for (const auto& values : why.values) sum += values(i, j);
        EXPECT_NEAR(sum, why.score(i, j), 1e-6);
        EXPECT_NEAR(why.score(i, j), static_cast<double>(log_odds(scores(i, j))), 1e-4);
      }
    }
  }
}

TEST(MemoryOfAModel, ItemsWithoutViewsHaveFiniteScores) {
  const Dataset data = some_data();
  const Matrix<float> scores = fitted(data, {{"memory", "1"}}).predict(data);
  for (const float p : scores.row(5)) EXPECT_TRUE(p > 0 && p < 1);
}

TEST(MemoryOfAModel, TeachersHaveNoneAndStudentsTheirOwn) {
  const Dataset data = some_data(120);
  Model model;
  model.set_preset("distilled");
  for (const auto& [name, value] :
       {Setting{"epochs", "2"}, {"members", "2"}, {"width", ".02"}, {"memory", ".5"}})
    model.options().set(name, value, "test");
  model.fit(select_all(data), .2);
  const nlohmann::json memory = memory_of(model.method());
  ASSERT_EQ(memory.size(), 2u);
  for (const auto& one : memory) EXPECT_EQ(one.at("weight"), .5);
}

TEST(MemoryOfAModel, NonsenseIsRefused) {
  const Dataset data = some_data(60);
  for (const char* use : {"on", "-1", "1e9", "nan"}) {
    try {
      fitted(data, {{"memory", use}});
      ADD_FAILURE() << use;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      EXPECT_NE(std::string(error.what()).find("auto, off, or a weight"), std::string::npos) << error.what();
    }
  }
}

TEST(MemoryOfAModel, ALyingFileIsRefused) {
  const Dataset data = some_data(60);
  const Model model = fitted(data, {{"memory", "1"}});
  const auto load_with = [&](const std::string& name, MatrixView<const float> matrix) {
    Tensors file = model.tensors();
    file.put(name, matrix);
    try {
      Model::load(file);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::data) << error.what();
    }
  };
  const Matrix<float> wrong(2, 3);
  for (const char* name : {"memory.rows", "memory.labels", "memory.prior"}) load_with(name, wrong);
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"memory.sharpness", "memory.nearest"}) {
    Tensors lying = model.tensors();
    lying.put(name, std::span(&none, 1));
    EXPECT_THROW(Model::load(lying), Error) << name;
  }
}

}  // namespace
}  // namespace lacuna
