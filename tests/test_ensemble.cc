// Ensembles whose members differ: preparations of their own, teachers that give soft labels, one model file,
// the same bits after any interruption.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/threads.h"
#include "checks.h"
#include "data/protocol.h"
#include "data/simulate.h"
#include "methods/ensemble.h"
#include "methods/model.h"
#include "temporary.h"

namespace lacuna {
namespace {

Dataset small_data() {
  SimulateOptions options;
  options.rows = 60;
  options.views = 3;
  options.labels = 4;
  options.sizes = {9, 7, 5};
  Dataset data = simulate(options).data;
  Matrix<std::int8_t> Y(60, 4);
  for (std::size_t i = 0; i < Y.rows(); ++i)
    for (std::size_t j = 0; j < Y.cols(); ++j)
      Y(i, j) = i % 4 == j ? kUnknown : data.labels(i, j);  // what teachers are for
  data.labels = std::move(Y);
  return data;
}

Model small_model(const std::string& preset, const std::string& members) {
  Model model("lacuna");
  model.set_preset(preset);
  for (const auto& [name, value] : {std::pair{"epochs", "2"},
                                    {"embedding", "6"},
                                    {"width", "0.01"},
                                    {"batch", "32"},
                                    {"components", "4"}})
    model.options().set(name, value, "test");
  model.options().set("members", members, "test");
  return model;
}

struct Stop {};

// Stops after some epochs, leaving a checkpoint; or continues from one.
struct Interrupted : FitContext {
  std::string path;
  int stop_after = -1, epochs = 0;
  std::optional<Tensors> state;
  std::set<std::int64_t> seen;
  std::int64_t members = 0;
  std::size_t at_once = 1;
  std::vector<std::pair<std::int64_t, std::int64_t>> told;  // member, epoch
  std::size_t fits_at_once(double) const override { return at_once; }
  void earlier_epoch(const EpochRecord& record) override {
    seen.insert(record.member);
    told.emplace_back(record.member, record.epoch);
    members = record.members;
    ++epochs;
  }
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    earlier_epoch(record);
    if (stop_after < 0 || epochs < stop_after) return true;
    Tensors file;
    snapshot(file);
    file.write(path);
    throw Stop();
  }
  const Tensors* resume_from() override { return state ? &*state : nullptr; }
};

void fit(Model& model, const Dataset& data, FitContext& context) {
  const LearningRows rows = learning_rows(select_all(data), .2, 1);
  model.fit(rows.learn, rows.val, context);
}

struct Resumed {
  Model model;
  int epochs;  // of the second process
};

// What one process began and another ended.
Resumed stopped_and_resumed(FunctionRef<Model()> make, const Dataset& data, int stop) {
  const TemporaryDirectory folder;
  Interrupted first, second;
  first.path = folder / "checkpoint";
  first.stop_after = stop;
  Model model = make(), resumed = make();
  EXPECT_THROW(fit(model, data, first), Stop);
  second.state = Tensors::read(folder / "checkpoint");
  fit(resumed, data, second);
  return {std::move(resumed), second.epochs};
}

TEST(Ensemble, DistilledIsOneModelAndResumesToTheSameBits) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model whole = small_model("distilled", "0");
  Interrupted context;
  fit(whole, data, context);
  const std::int64_t fits = context.members;
  EXPECT_EQ(context.epochs, 2 * fits);
  EXPECT_EQ(context.seen.size(), static_cast<std::size_t>(fits));
  const Matrix<float> scores = whole.predict(data);
  whole.save(folder / "whole");
  const Model loaded = Model::load(folder / "whole");
  EXPECT_TRUE(same(loaded.predict(data), scores));
  loaded.save(folder / "again");
  EXPECT_TRUE(read_text(folder / "whole") == read_text(folder / "again"));

  for (const int stop : {1, 2, 5, 6, 7, 2 * static_cast<int>(fits) - 1}) {
    const Resumed resumed = stopped_and_resumed([] { return small_model("distilled", "0"); }, data, stop);
    EXPECT_EQ(resumed.epochs, 2 * fits - stop);
    EXPECT_TRUE(same(resumed.model.predict(data), scores)) << "stopped after " << stop << " epochs";
  }
}

// Small networks share a GPU. Records come in the order of fits one after the other, and so does the model.
TEST(Ensemble, FitsAtTheSameTimeAreTheSameModel) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model alone = small_model("distilled", "0");
  Interrupted context;
  fit(alone, data, context);
  alone.save(folder / "alone");
  for (const std::size_t at_once : {2, 4, 20}) {
    Model model = small_model("distilled", "0");
    Interrupted together;
    together.at_once = at_once;
    fit(model, data, together);
    EXPECT_EQ(together.told, context.told) << at_once;
    model.save(folder / "together");
    EXPECT_TRUE(read_text(folder / "alone") == read_text(folder / "together")) << at_once;
  }
  const Matrix<float> scores = alone.predict(data);
  for (const int stop : {1, 2, 6, 7, context.epochs - 1}) {
    Interrupted first;
    first.path = folder / "checkpoint";
    first.stop_after = stop;
    first.at_once = 4;
    Model model = small_model("distilled", "0");
    bool stopped = false;  // fits that are over before their turn cannot be stopped
    try {
      fit(model, data, first);
    } catch (const Stop&) {
      stopped = true;
    }
    EXPECT_TRUE(stopped || stop > 2);
    if (!stopped) {
      EXPECT_EQ(first.epochs, context.epochs);
      EXPECT_TRUE(same(model.predict(data), scores));
      continue;
    }
    Interrupted second;
    second.state = Tensors::read(folder / "checkpoint");
    second.at_once = 3;
    Model resumed = small_model("distilled", "0");
    fit(resumed, data, second);
    EXPECT_EQ(first.epochs + second.epochs, context.epochs);
    EXPECT_TRUE(same(resumed.predict(data), scores)) << "stopped after " << stop << " epochs";
  }
}

// Each student as docs/ensembles.md describes it: one hidden layer, of its own width, on its own preparation.
TEST(Ensemble, DistilledStudentsHaveTheirShapes) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model model = small_model("distilled", "0");
  model.options().set("width", "1", "test");
  model.options().set("epochs", "1", "test");
  FitContext context;
  fit(model, data, context);
  model.save(folder / "model");
  const Tensors file = Tensors::read(folder / "model");
  const std::size_t hidden[] = {2048, 2048, 2048, 1024, 1024, 2048};
  const bool early[] = {false, true, true, false, false, true};
  for (std::size_t k = 0; k < 6; ++k) {
    const std::string layers = fmt::format("member{}.{}", k, early[k] ? "encoder." : "shared.0.");
    EXPECT_EQ(file.matrix(layers + "0.weight").cols(), hidden[k]) << layers;
    EXPECT_EQ(file.matrix(layers + "1.weight").cols(), 6u) << layers;  // the embedding: no layer between
  }
}

// Own soft labels of an earlier epoch cannot be made again: they are part of the checkpoint.
TEST(Ensemble, OwnSoftLabelsAreResumed) {
  const Dataset data = small_data();
  using Settings = std::vector<std::pair<const char*, const char*>>;
  const Settings linked = {{"guess-links", ".7"}, {"label-weight", "sqrt"}},
                 early = {{"guess-links", ".7"},
                          {"label-weight", "inverse"},
                          {"fusion", "early"},
                          {"gamma", "0"},
                          {"precision", "bf16"}},
                 both = {{"fusion", "both"}, {"joint-widths", "8"}};
  for (const Settings& settings : {Settings(), linked, early, both}) {
    const auto make = [&] {
      Model model = small_model("best", "1");
      for (const auto& [name, value] : {std::pair{"epochs", "6"}, {"guess-from", "1"}, {"guess-every", "3"}})
        model.options().set(name, value, "test");
      for (const auto& [name, value] : settings) model.options().set(name, value, "test");
      return model;
    };
    Model whole = make();
    FitContext context;
    set_threads(1);
    fit(whole, data, context);
    set_threads(3);
    const Matrix<float> scores = whole.predict(data);
    for (const int stop : {1, 2, 3, 5}) {
      const Resumed resumed = stopped_and_resumed(make, data, stop);
      EXPECT_TRUE(same(resumed.model.predict(data), scores)) << "stopped after " << stop << " epochs";
    }
    set_threads(0);
  }
}

TEST(Ensemble, TeachersAreNotInTheFileAndChangeTheStudents) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model model = small_model("distilled", "1");
  model.options().set("epochs", "19", "test");
  model.options().set("decay-rows", "0", "test");
  FitContext context;
  fit(model, data, context);
  model.save(folder / "one");
  const Tensors file = Tensors::read(folder / "one");
  for (const auto& [name, tensor] : file.all()) {
    EXPECT_FALSE(name.starts_with("member1.")) << name;
    EXPECT_FALSE(name.starts_with("prepare1.")) << name << ": a preparation that predictions do not need";
    EXPECT_FALSE(name.starts_with("taught")) << name;
  }
  // The same student without teachers: its own soft labels begin with epoch 20.
  Model alone = small_model("best", "1");
  alone.options().set("epochs", "19", "test");
  alone.options().set("decay-rows", "0", "test");
  alone.options().set("encoder-widths", "2048", "test");
  alone.options().set("weight-decay", "8", "test");
  FitContext other;
  other.seed = member_seed(context.seed, 3);
  fit(alone, data, other);
  const Matrix<float> taught = model.predict(data), untaught = alone.predict(data);
  float largest = 0;
  for (std::size_t i = 0; i < taught.values().size(); ++i)
    largest = std::max(largest, std::abs(taught.values()[i] - untaught.values()[i]));
  EXPECT_GT(largest, 1e-5f) << "nothing but the teachers makes a difference between the two";
}

TEST(Ensemble, MembersAreSeedsWhoseLogitsAreAveraged) {
  const Dataset data = small_data();
  Model model = small_model("best", "3");
  FitContext context;
  fit(model, data, context);
  const Matrix<float> scores = model.predict(data);
  Matrix<float> sum(scores.rows(), scores.cols());
  for (std::size_t k = 0; k < 3; ++k) {
    Model single = small_model("best", "1");
    FitContext own;
    own.seed = member_seed(context.seed, k);
    fit(single, data, own);
    const Matrix<float> p = single.predict(data);
    for (std::size_t i = 0; i < p.values().size(); ++i)
      sum.values()[i] += std::log(p.values()[i] / (1 - p.values()[i]));
  }
  for (std::size_t i = 0; i < sum.values().size(); ++i)
    EXPECT_NEAR(scores.values()[i], 1 / (1 + std::exp(-sum.values()[i] / 3)), 1e-6f);
}

TEST(Ensemble, ALyingFileIsRefused) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model model = small_model("distilled", "2");
  FitContext context;
  fit(model, data, context);
  model.save(folder / "whole");
  const Tensors whole = Tensors::read(folder / "whole");
  const auto refused = [&](const char* what, auto change) {
    Tensors file = whole;
    change(file.metadata);
    file.write(folder / "lie");
    try {
      Model::load(folder / "lie");
      ADD_FAILURE() << what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::data) << what << ": " << error.what();
    }
  };
  using nlohmann::json;
  refused("no second preparation", [](json& m) { m.erase("prepare1.views"); });
  refused("a view less in the second preparation", [](json& m) {
    auto& views = m["prepare1.views"];
    views.erase(views.size() - 1);
  });
  refused("one member more", [](json& m) { m["ensemble"]["done"] = 3; });
  refused("no member", [](json& m) { m["ensemble"]["done"] = 0; });
  refused("the settings of one network", [](json& m) { m["preset"] = "best"; });
}

}  // namespace
}  // namespace lacuna
