#include "methods/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "data/simulate.h"
#include "temporary.h"

namespace lacuna {
namespace {

Dataset small_data(std::int64_t rows = 120) {
  SimulateOptions options;
  options.rows = rows;
  options.views = 3;
  options.labels = 4;
  options.sizes = {5, 4, 3};
  return simulate(options).data;
}

Model fitted(const Dataset& data, const std::string& prepare = "zscore") {
  Model model("prior");
  model.options().set("prepare", prepare, "test");
  model.fit(select_all(data));
  return model;
}

std::string bytes_of(const std::string& path) {
  return read_text(path);
}

TEST(Model, SavedTwiceHasTheSameBytesAndPredictsTheSame) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  const Model model = fitted(data);
  model.save(folder / "a");
  Model::load(folder / "a").save(folder / "b");
  EXPECT_TRUE(bytes_of(folder / "a") == bytes_of(folder / "b"));
  const Matrix<float> before = model.predict(data), after = Model::load(folder / "b").predict(data);
  EXPECT_TRUE(std::equal(before.values().begin(), before.values().end(), after.values().begin()));
  EXPECT_TRUE(model.validation().has_value());
  EXPECT_FALSE(model.calibration().empty());
}

// What is used after a fit is what is saved: the same scores bit for bit, and a file that stays as it is.
TEST(Model, EveryMethodPredictsAsItsFileDoes) {
  SimulateOptions options;
  options.rows = 300;
  options.views = 2;
  options.labels = 20;
  options.sizes = {70, 40};
  const Dataset data = simulate(options).data;
  const TemporaryDirectory folder;
  for (const std::string& name : method_names())
    for (const char* precision : {"f32", "bf16"}) {
      Model model(name);
      const bool network = model.options().find("precision") != nullptr;
      for (const auto& [key, value] :
           {std::pair{"epochs", "2"}, {"iterations", "3"}, {"precision", precision}})
        if (model.options().find(key) != nullptr) model.options().set(key, value, "test");
      model.fit(select_all(data));
      model.save(folder / "a");
      const Model loaded = Model::load(folder / "a");
      loaded.save(folder / "b");
      EXPECT_TRUE(bytes_of(folder / "a") == bytes_of(folder / "b")) << name;
      const Matrix<float> before = model.predict(data), after = loaded.predict(data);
      EXPECT_TRUE(std::ranges::equal(before.values(), after.values())) << name << " " << precision;
      if (!network) break;
    }
}

TEST(Model, WhatCannotBeLearnedIsRefusedAndWhatIsWeakIsRemarked) {
  struct Listener final : FitContext {
    std::vector<std::string> heard;
    void remark(const std::string& text) override { heard.push_back(text); }
  } listener;
  Dataset data = small_data();
  Matrix<std::int8_t> labels(data.rows, 4);
  std::ranges::fill(labels.values(), std::int8_t{1});
  data.labels = std::move(labels);
  Model model("prior");
  try {
    model.fit(select_all(data), Selection{&data, {}, {}, {}}, listener);
    ADD_FAILURE() << "labels that are all yes were learned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::data);
    EXPECT_NE(std::string(error.what()).find("nothing can be learned"), std::string::npos);
  }
  data = small_data();
  Matrix<std::uint8_t> present(data.rows, 3);
  for (std::size_t i = 0; i < data.rows; ++i) present(i, 0) = present(i, 2) = 1;
  data.present = std::move(present);
  model.fit(select_all(data), Selection{&data, {}, {}, {}}, listener);
  ASSERT_EQ(listener.heard.size(), 1u);
  EXPECT_NE(listener.heard[0].find("1 of 3 views is in no training row"), std::string::npos);
  EXPECT_NE(listener.heard[0].find("'" + data.views[1].name + "'"), std::string::npos);
}

TEST(Model, ViewsAreMatchedByName) {
  const Dataset data = small_data();
  const Model model = fitted(data);
  Dataset fewer = data;
  std::swap(fewer.views[0], fewer.views[2]);
  fewer.views.resize(2);
  fewer.present = {};
  EXPECT_EQ(model.predict(fewer).rows(), data.rows);

  const auto message = [&](const Dataset& wrong) -> std::string {
    try {
      model.predict(wrong);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::mismatch);
      return error.what();
    }
    return "";
  };
  Dataset renamed = data;
  renamed.views[1].name = "nobody-knows";
  EXPECT_NE(message(renamed).find("'nobody-knows'"), std::string::npos);
  Dataset resized = data;
  resized.views[1].features = Table<float>(Matrix<float>(data.rows, 9));
  EXPECT_NE(message(resized).find("9 columns, the model expects 4"), std::string::npos) << message(resized);
}

// From eight threads at once, of which each may also use the pool: `model` gives what it gives alone.
void expect_reentrant(const Model& model, const Dataset& data) {
  const Matrix<float> alone = model.predict(data);
  std::vector<std::thread> threads;
  std::vector<int> same(8);
  for (std::size_t k = 0; k < same.size(); ++k)
    threads.emplace_back([&, k] {
      const Matrix<float> scores = model.predict(data);
      same[k] = std::ranges::equal(scores.values(), alone.values());
    });
  for (auto& thread : threads) thread.join();
  for (int ok : same) EXPECT_TRUE(ok) << model.method().traits().name;
}

TEST(Model, PredictIsReentrant) {
  const Dataset data = small_data(3000);
  expect_reentrant(fitted(data), data);
}

TEST(Model, PredictIsReentrantForEveryMethod) {
  const Dataset data = small_data(300);
  for (const std::string& name : method_names()) {
    Model model(name);
    for (const auto& [key, value] : {std::pair{"epochs", "2"}, {"iterations", "3"}})
      if (model.options().find(key) != nullptr) model.options().set(key, value, "test");
    model.fit(select_all(data));
    expect_reentrant(model, data);
  }
}

TEST(Model, AnEnsembleIsOneModel) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model model("prior");
  model.options().set("members", "3", "test");
  model.fit(select_all(data));
  model.fit(select_all(data));  // again: still three members
  EXPECT_EQ(model.method().parameters(), 12u);
  model.save(folder / "e");
  const Model loaded = Model::load(folder / "e");
  EXPECT_EQ(loaded.method().parameters(), 12u);
  const Matrix<float> a = model.predict(data), b = loaded.predict(data);
  EXPECT_TRUE(std::equal(a.values().begin(), a.values().end(), b.values().begin()));
}

TEST(Model, UnknownPresetAndOption) {
  EXPECT_THROW(Model("prior").set_preset("paper"), Error);
  EXPECT_THROW(Model("pryor"), Error);
  Model model("prior");
  EXPECT_THROW(model.options().set("mambers", "3", "test"), Error);
}

// A file that is cut or changed anywhere either loads (the change hit a number) and predicts without harm, or
// is Exit::data. Run under sanitizers this also shows that nothing is read out of bounds.
void expect_harmless(const std::string& bytes, const Dataset& data, const std::string& what) {
  try {
    const auto owner = std::make_shared<const std::string>(bytes);
    const Model model = Model::load(Tensors::parse(owner, as_bytes(*owner), "damaged"));
    Dataset own = data;  // views of changed names do not fit: that is said before anything is computed
    model.predict(own);
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Exit::data || error.code() == Exit::mismatch) << what << ": " << error.what();
  }
}

TEST(Model, DamagedFilesAreRefused) {
  const Dataset data = small_data(30);
  const TemporaryDirectory folder;
  for (const char* prepare : {"zscore", "log-pca"}) {
    fitted(data, prepare).save(folder / "whole");
    const std::string whole = bytes_of(folder / "whole");
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 60) {
      expect_harmless(whole.substr(0, size), data, fmt::format("cut to {}", size));
    }
    std::uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof(header));
    Random random(1, Purpose::test);
    for (int trial = 0; trial < 1500; ++trial) {
      std::string damaged = whole;
      const std::size_t at = trial % 4 == 0 ? random.below(damaged.size()) : 8 + random.below(header);
      // In the header mostly digits and letters are changed into others, so that it stays JSON.
      char& c = damaged[at];
      if (c >= '0' && c <= '9') {
        c = static_cast<char>('0' + random.below(10));
      } else {
        c = static_cast<char>(c ^ (1u << random.below(5)));
      }
      expect_harmless(damaged, data, fmt::format("byte {} changed", at));
    }
  }
}

TEST(Model, MetadataThatLies) {
  const Dataset data = small_data(30);
  const TemporaryDirectory folder;
  fitted(data).save(folder / "whole");
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
  refused("other schema", [](json& m) { m["schema"] = 99; });
  refused("no method", [](json& m) { m.erase("method"); });
  refused("unknown method", [](json& m) { m["method"] = "magic"; });
  refused("method is a number", [](json& m) { m["method"] = 7; });
  refused("unknown option", [](json& m) { m["options"]["depth"] = 3; });
  refused("option out of range", [](json& m) { m["options"]["members"] = -1; });
  refused("too many members", [](json& m) { m["options"]["members"] = 200; });
  refused("options are a list", [](json& m) { m["options"] = json::array({1, 2}); });
  refused("one label more", [](json& m) { m["labels"].push_back("extra"); });
  refused("labels are numbers", [](json& m) { m["labels"] = json::array({1, 2, 3, 4}); });
  refused("preset without presets", [](json& m) { m["preset"] = "paper"; });
}

}  // namespace
}  // namespace lacuna
