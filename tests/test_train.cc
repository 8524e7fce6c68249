// The epoch loop, with two small networks: a scripted one whose every number is known beforehand, and a
// linear classifier that really learns.
#include "nn/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/random.h"
#include "checks.h"
#include "nn/schedule.h"
#include "nn/tally.h"
#include "ops/engine.h"

namespace lacuna {
namespace {

constexpr std::size_t kLabels = 5;

// Two views, labels that depend on both, a third of the instances and of the labels missing.
Items make_items(std::size_t rows, std::uint64_t seed) {
  Items items;
  const std::size_t sizes[] = {6, 4};
  items.W = Matrix<std::uint8_t>(rows, 2);
  items.Y = Matrix<float>(rows, kLabels);
  items.G = Matrix<std::uint8_t>(rows, kLabels);
  for (std::size_t size : sizes) items.X.emplace_back(rows, size);
  for (std::size_t i = 0; i < rows; ++i) {
    Random random(seed, Purpose::test, static_cast<std::uint32_t>(i));
    std::vector<float> factors(kLabels);
    for (auto& factor : factors) factor = random.normal();
    for (std::size_t v = 0; v < 2; ++v) {
      items.W(i, v) = random.uniform() > .33f;
      if (v == 1 && items.W(i, 0) == 0) items.W(i, 1) = 1;
      for (std::size_t j = 0; j < sizes[v]; ++j) {
        const float value = factors[(j + v) % kLabels] + .3f * random.normal();
        items.X[v](i, j) = items.W(i, v) ? value : 0;
      }
    }
    for (std::size_t j = 0; j < kLabels; ++j) {
      items.G(i, j) = random.uniform() > .33f;
      items.Y(i, j) = items.G(i, j) && factors[j] > .5f ? 1.f : 0.f;
    }
  }
  return items;
}

// Logits = Σ_v X_v A_v + b; masked BCE; a buffer counts the steps, as running statistics would.
// Memory that counts as a device's, with or without room for copies.
class Device final : public OnHost<Engine> {
 public:
  explicit Device(std::size_t room) : room_(room) {}
  int place() const override { return 7; }
  std::size_t room() const override { return room_; }
  void duplicate(ByteRows<const std::byte> from, ByteRows<std::byte> to, std::size_t width,
                 std::size_t rows) const override {
    ++duplicates;
    OnHost::duplicate(from, to, width, rows);
  }
  mutable int duplicates = 0;

 private:
  std::size_t room_;
};

class LinearNetwork final : public Network {
 public:
  const Engine* memory = &host_engine();
  const Engine& engine() const override { return *memory; }
  explicit LinearNetwork(const Items& items) {
    for (std::size_t v = 0; v < items.views(); ++v) add(fmt::format("A{}", v), items.X[v].cols(), kLabels);
    add("b", 1, kLabels);
    parameters_.back().decay = false;
  }
  void keep(OptimiserState state) override {
    for (auto& p : parameters_) {
      if (state.second) p.second = Matrix<float>(p.value.rows(), p.value.cols());
      if (state.mean) p.mean = p.value;
    }
  }
  Losses step(const Batch& batch, const UpdateRule& rule) override {
    rules.push_back(rule);
    for (auto row : batch.rows) seen.push_back(row);
    sizes.push_back(batch.rows.size());
    ++counter_(0, 0);
    double loss = 0;
    std::vector<Matrix<float>> gradients;
    for (const auto& p : parameters_) gradients.emplace_back(p.value.rows(), p.value.cols());
    for (auto row : batch.rows) {
      for (std::size_t j = 0; j < kLabels; ++j) {
        if (!batch.items->G(row, j)) continue;
        const float z = logit(*batch.items, row, j, false), y = batch.items->Y(row, j);
        loss += std::max(z, 0.f) - z * y + std::log1p(std::exp(-std::abs(z)));
        const float d = (1 / (1 + std::exp(-z)) - y) / static_cast<float>(batch.rows.size());
        for (std::size_t v = 0; v < batch.items->views(); ++v)
          for (std::size_t k = 0; k < batch.items->X[v].cols(); ++k)
            gradients[v](k, j) += batch.items->X[v](row, k) * d;
        gradients.back()(0, j) += d;
      }
    }
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      auto& own = parameters_[p];
      update_parameter<float>(rule, std::as_const(gradients[p]).view(),
                              {own.value, own.first, own.second, own.mean, own.decay});
    }
    Losses losses;
    losses.add("total", loss / static_cast<double>(batch.rows.size()));
    return losses;
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    for (std::size_t i = 0; i < items.rows(); ++i)
      for (std::size_t j = 0; j < kLabels; ++j) scores(i, j) = 1 / (1 + std::exp(-logit(items, i, j, true)));
  }
  void visit(Visitor visitor) override {
    for (auto& p : parameters_) visitor(p.name, {p.value, p.first, p.second, p.mean, p.decay}, true);
  }
  void visit_buffers(BufferVisitor visitor) override { visitor("counter", counter_, true); }
  std::uint64_t parameters() const override { return 1; }
  std::uint64_t parameters_for_prediction() const override { return 1; }

  std::vector<float> numbers() {
    std::vector<float> all;
    visit([&](const std::string&, ParameterView<float> p, bool) {
      for (std::size_t i = 0; i < p.value.rows; ++i)
        all.insert(all.end(), p.value.row(i).begin(), p.value.row(i).end());
    });
    all.push_back(counter_(0, 0));
    return all;
  }

  std::vector<UpdateRule> rules;
  std::vector<std::uint32_t> seen;
  std::vector<std::size_t> sizes;

 private:
  struct Own {
    std::string name;
    Matrix<float> value, first, second, mean;
    bool decay = true;
  };
  void add(const std::string& name, std::size_t rows, std::size_t cols) {
    parameters_.push_back({name, Matrix<float>(rows, cols), Matrix<float>(rows, cols), {}, {}, true});
  }
  float logit(const Items& items, std::size_t row, std::size_t j, bool predicting) const {
    const auto number = [&](std::size_t p) -> const Matrix<float>& {
      return predicting && !parameters_[p].mean.empty() ? parameters_[p].mean : parameters_[p].value;
    };
    float z = number(parameters_.size() - 1)(0, j);
    for (std::size_t v = 0; v < items.views(); ++v)
      for (std::size_t k = 0; k < items.X[v].cols(); ++k) z += items.X[v](row, k) * number(v)(k, j);
    return z;
  }
  std::vector<Own> parameters_;
  Matrix<float> counter_{1, 1};
};

// One number, the count of steps done; a script says how good it is on validation and when a loss breaks.
class ScriptedNetwork final : public Network {
 public:
  std::vector<bool> right;  // by the number of steps done: whether the positive label is ranked first
  int breaks_at = -1;

  void keep(OptimiserState) override {}
  Losses step(const Batch&, const UpdateRule&) override {
    ++steps_(0, 0);
    Losses losses;
    losses.add("total", 1);
    losses.add("graph", static_cast<int>(steps_(0, 0)) == breaks_at ? std::nan("") : .5);
    return losses;
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    const bool good = right.at(static_cast<std::size_t>(steps_(0, 0)));
    for (std::size_t i = 0; i < items.rows(); ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) scores(i, j) = (j == 0) == good ? .9f : .1f;
  }
  void visit(Visitor visitor) override { visitor("steps", {steps_, {}, {}, {}, true}, true); }
  void visit_buffers(BufferVisitor) override {}
  std::uint64_t parameters() const override { return 1; }
  std::uint64_t parameters_for_prediction() const override { return 1; }
  int steps() const { return static_cast<int>(steps_(0, 0)); }

 private:
  Matrix<float> steps_{1, 1};
};

Items one_positive(std::size_t rows) {
  Items items;
  items.X.emplace_back(rows, 1);
  items.W = Matrix<std::uint8_t>(rows, 1);
  items.Y = Matrix<float>(rows, 3);
  items.G = Matrix<std::uint8_t>(rows, 3);
  for (auto& w : items.W.values()) w = 1;
  for (auto& g : items.G.values()) g = 1;
  for (std::size_t i = 0; i < rows; ++i) items.Y(i, 0) = 1;
  return items;
}

struct Recorder : FitContext {
  std::vector<EpochRecord> records;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    records.push_back(record);
    return true;
  }
};

// A loss too many is an error of ours that must not write beyond the others.
TEST(Losses, OfMoreThanAStepHoldsAreRefused) {
  Losses losses;
  for (std::size_t k = 0; k < Losses::kMost; ++k) losses.add("some", 1);
  EXPECT_THROW(losses.add("more", 1), std::length_error);
  EXPECT_EQ(losses.count, Losses::kMost);
  Tally tally;
  tally.reserve(host_engine(), 2);
  tally.begin();
  EXPECT_THROW(tally.add("parts", 1, 3), std::length_error);
  for (std::size_t k = 1; k < Losses::kMost; ++k) {  // the total comes too
    double* const values = tally.add("some", 1, 2);
    values[0] = 1, values[1] = 2;
  }
  EXPECT_THROW(tally.add("more", 1), std::length_error);
  tally.end();
  const Losses read = tally.read();
  EXPECT_EQ(read.count, Losses::kMost);
  EXPECT_EQ(read.total(), 3. * (Losses::kMost - 1));
}

TEST(Schedule, WarmUpThenCosine) {
  EXPECT_DOUBLE_EQ(rate_factor(Schedule::constant, 0, 0, 100), 1);
  EXPECT_DOUBLE_EQ(rate_factor(Schedule::constant, 0, 10, 100), .1);
  EXPECT_DOUBLE_EQ(rate_factor(Schedule::constant, 9, 10, 100), 1);
  EXPECT_DOUBLE_EQ(rate_factor(Schedule::constant, 99, 10, 100), 1);
  EXPECT_DOUBLE_EQ(rate_factor(Schedule::cosine, 10, 10, 110), 1);
  EXPECT_NEAR(rate_factor(Schedule::cosine, 60, 10, 110), .5, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::cosine, 110, 10, 110), 0, 1e-12);
  EXPECT_DOUBLE_EQ(average_decay(.99, 1), 2. / 11);
  EXPECT_DOUBLE_EQ(average_decay(.99, 1000000), .99);
}

TEST(Train, EveryRowOnceAnEpochInANewOrder) {
  const Items items = make_items(50, 1);
  for (bool drop : {false, true}) {
    LinearNetwork network(items);
    TrainOptions options;
    options.epochs = 2;
    options.batch = 16;
    options.drop_last = drop;
    FitContext context;
    train_network(network, items, {}, options, context);
    const std::size_t each = drop ? 48 : 50;
    ASSERT_EQ(network.seen.size(), 2 * each);
    const std::set<std::uint32_t> first(network.seen.begin(),
                                        network.seen.begin() + static_cast<std::ptrdiff_t>(each));
    EXPECT_EQ(first.size(), each);
    EXPECT_FALSE(std::equal(network.seen.begin(), network.seen.begin() + static_cast<std::ptrdiff_t>(each),
                            network.seen.begin() + static_cast<std::ptrdiff_t>(each)));
    EXPECT_EQ(network.sizes.back(), drop ? 16u : 2u);
    EXPECT_EQ(network.rules.back().step, drop ? 6 : 8);
  }
}

TEST(Train, WithoutShufflingRowsComeInOrderAndASmallSetIsOneBatch) {
  const Items items = make_items(5, 1);
  LinearNetwork network(items);
  TrainOptions options;
  options.epochs = 1;
  options.shuffle = false;
  options.drop_last = true;
  FitContext context;
  train_network(network, items, {}, options, context);
  EXPECT_EQ(network.seen, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(Train, Learns) {
  const Items train = make_items(400, 1), val = make_items(200, 2);
  for (const Optimiser optimiser :
       {Optimiser::sgd, Optimiser::adam, Optimiser::adamw, Optimiser::rmsprop}) {
    LinearNetwork network(train);
    TrainOptions options;
    options.epochs = 30;
    options.optimiser = optimiser;
    options.rate = optimiser == Optimiser::sgd ? .3 : .03;
    options.average = .9;
    Recorder context;
    train_network(network, train, val, options, context);
    ASSERT_EQ(context.records.size(), 30u);
    EXPECT_LT(context.records.back().losses.at("total"), .6 * context.records.front().losses.at("total"));
    EXPECT_GT(context.records.back().validation.auc, .85) << static_cast<int>(optimiser);
    EXPECT_GT(context.records.back().rows_per_second, 0);
  }
}

TEST(Train, TheBestEpochIsPutBackAndTheLaterOfEqualOnes) {
  const Items items = one_positive(10);
  ScriptedNetwork network;
  network.right = {false, false, true, false, true, false, false};
  TrainOptions options;
  options.epochs = 6;
  FitContext context;
  train_network(network, items, items, options, context);
  EXPECT_EQ(network.steps(), 4);

  ScriptedNetwork last;
  last.right = network.right;
  options.select = "last";
  train_network(last, items, items, options, context);
  EXPECT_EQ(last.steps(), 6);

  ScriptedNetwork patient;
  patient.right = {false, false, true, false, false, false, true};
  options.select = "AP";
  options.patience = 3;
  Recorder recorder;
  train_network(patient, items, items, options, recorder);
  EXPECT_EQ(patient.steps(), 2);
  EXPECT_EQ(recorder.records.size(), 5u);

  ScriptedNetwork seldom;  // epochs 2, 4 and the last are looked at
  seldom.right = {false, true, false, true, false, false};
  options = TrainOptions();
  options.epochs = 5;
  options.validate_every = 2;
  train_network(seldom, items, items, options, context);
  EXPECT_EQ(seldom.steps(), 5);
}

TEST(Train, DivergenceNamesLossAndEpochAndKeepsTheBest) {
  const Items items = one_positive(10);
  TrainOptions options;
  options.epochs = 9;
  for (bool validated : {true, false}) {
    ScriptedNetwork network;
    network.right.assign(10, true);
    network.breaks_at = 4;
    FitContext context;
    try {
      train_network(network, items, validated ? items : Items(), options, context);
      FAIL() << "no divergence";
    } catch (const Diverged& diverged) {
      EXPECT_EQ(diverged.code(), Exit::diverged);
      EXPECT_EQ(diverged.kept, validated);
      EXPECT_NE(std::string(diverged.what()).find("'graph'"), std::string::npos) << diverged.what();
      EXPECT_NE(std::string(diverged.what()).find("epoch 4 "), std::string::npos) << diverged.what();
      if (validated) {
        EXPECT_EQ(network.steps(), 3);
      }
    }
  }
}

// Stops the fit at its k-th opportunity, writing the state to a file as the program does.
struct Stopper : FitContext {
  struct Stopped {};
  std::string path;
  int left = 0;
  std::optional<Tensors> state;
  void look(FunctionRef<void(Tensors&)> snapshot) {
    if (left-- > 0) return;
    Tensors file;
    snapshot(file);
    file.write(path);
    throw Stopped();
  }
  void after_step(FunctionRef<void(Tensors&)> snapshot) override { look(snapshot); }
  bool after_epoch(const EpochRecord&, FunctionRef<void(Tensors&)> snapshot) override {
    look(snapshot);
    return true;
  }
  const Tensors* resume_from() override { return state ? &*state : nullptr; }
};

TEST(Train, ResumeFromAnyStepEndsWithTheSameBits) {
  const Items train = make_items(100, 1), val = make_items(40, 2);
  const std::string path = testing::TempDir() + "train_resume.safetensors";
  for (const Optimiser optimiser : {Optimiser::sgd, Optimiser::adamw}) {
    TrainOptions options;
    options.epochs = 4;
    options.batch = 32;
    options.optimiser = optimiser;
    options.rate = .1;
    options.schedule = Schedule::cosine;
    options.warm_up = 1;
    options.average = optimiser == Optimiser::sgd ? 0 : .9;
    options.weight_decay = .01;
    LinearNetwork whole(train);
    FitContext context;
    train_network(whole, train, val, options, context);
    int stops = 0;
    for (;; ++stops) {
      Stopper stopper;
      stopper.path = path;
      stopper.left = stops;
      bool stopped = false;
      try {
        LinearNetwork network(train);
        train_network(network, train, val, options, stopper);
      } catch (const Stopper::Stopped&) {
        stopped = true;
      }
      if (!stopped) break;
      stopper.state = Tensors::read(path);
      stopper.left = 1000;
      LinearNetwork network(train);
      train_network(network, train, val, options, stopper);
      ASSERT_EQ(network.numbers(), whole.numbers()) << static_cast<int>(optimiser) << ", stopped at " << stops;
    }
    EXPECT_EQ(stops, 16);  // four steps an epoch: after each of them
  }
  std::filesystem::remove(path);
}

// The best epoch is kept in a device's memory where there is room, otherwise in the host's: the same comes out, in
// checkpoints too.
TEST(Train, TheBestEpochIsKeptInEitherMemory) {
  const Items train = make_items(100, 1), val = make_items(40, 2);
  const std::string path = testing::TempDir() + "train_best.safetensors";
  TrainOptions options;
  options.epochs = 5;
  options.batch = 32;
  options.rate = 2;  // so large that the best epoch is not the last
  options.select = "AP";
  LinearNetwork whole(train);
  FitContext context;
  train_network(whole, train, val, options, context);
  for (const std::size_t room : {std::size_t{0}, std::size_t{1} << 30}) {
    const Device device(room);
    Stopper stopper;
    stopper.path = path;
    stopper.left = 13;
    LinearNetwork first(train), second(train);
    first.memory = second.memory = &device;
    EXPECT_THROW(train_network(first, train, val, options, stopper), Stopper::Stopped);
    stopper.state = Tensors::read(path);
    stopper.left = 1000;
    train_network(second, train, val, options, stopper);
    EXPECT_EQ(second.numbers(), whole.numbers()) << room;
    EXPECT_EQ(device.duplicates > 0, room > 0);
  }
  std::filesystem::remove(path);
}

// A decay that is meant for 400 rows is twice as strong on 100 of them, and as it is on 400.
TEST(Train, DecayGrowsAsRowsGetFewer) {
  const Items train = make_items(100, 1), none = make_items(0, 2);
  const auto trained = [&](double decay, double rows) {
    TrainOptions options;
    options.epochs = 3;
    options.batch = 32;
    options.weight_decay = decay;
    options.decay_rows = rows;
    LinearNetwork network(train);
    FitContext context;
    train_network(network, train, none, options, context);
    return network.numbers();
  };
  EXPECT_EQ(trained(5, 400), trained(10, 0));
  EXPECT_EQ(trained(5, 100), trained(5, 0));
  EXPECT_NE(trained(5, 400), trained(5, 0));
}

TEST(Train, ABrokenCheckpointIsRefused) {
  const Items train = make_items(20, 1);
  LinearNetwork network(train);
  Stopper context;
  context.state = Tensors();
  const auto refusal = [&] {
    return message_of([&] { train_network(network, train, {}, {}, context); }, Exit::data);
  };
  EXPECT_NE(refusal().find("broken checkpoint: [json.exception"), std::string::npos) << refusal();
  auto& state = context.state->metadata["train"];
  state = {{"epoch", 3}, {"next", 0}};  // and nothing else
  EXPECT_NE(refusal().find("key 'step' not found"), std::string::npos) << refusal();
  state = {{"epoch", 1000000}, {"next", 0},     {"step", 0},        {"best_epoch", 0}, {"best_score", 0.},
           {"finished", false}, {"seconds", 0.}, {"epoch_began", 0.}, {"rows", 0.},      {"sums", nlohmann::json::object()}};
  EXPECT_NE(refusal().find("broken checkpoint: epoch 1000000, step 0, best epoch 0"), std::string::npos) << refusal();
  state["epoch"] = 3;
  EXPECT_NE(refusal().find("has no tensor"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace lacuna
