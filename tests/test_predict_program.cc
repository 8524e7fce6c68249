// lacuna predict as a user meets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "data/folds.h"
#include "data/npy.h"
#include "data/readers.h"
#include "data/scores.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "program.h"

namespace lacuna {
namespace {

class PredictProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    SimulateOptions options;
    options.rows = 400;
    options.views = 3;
    options.labels = 6;
    options.sizes = {12, 9, 7};
    data_ = new Dataset(simulate(options).data);
    data_->ids.clear();
    for (std::size_t i = 0; i < data_->rows; ++i) data_->ids.push_back(fmt::format("item, {}", i));
    data_->label_names[2] = "a \"quoted\" name";
    write_dataset(*data_, path("data.npz"));
    const Ended ended = run({"train", path("data.npz"), "--out", path("model"), "--embedding", "24",
                             "--encoder-widths", "32", "--decoder-widths", "16", "--epochs", "20"});
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    delete data_;
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static Ended predict(std::vector<std::string> more, const std::string& data = "data.npz") {
    std::vector<std::string> arguments = {"predict", path("model"), path(data)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static std::vector<std::string> lines(const std::string& name) {
    std::vector<std::string> all;
    std::ifstream file(path(name));
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

  static TemporaryDirectory* folder_;
  static Dataset* data_;
};
TemporaryDirectory* PredictProgram::folder_ = nullptr;
Dataset* PredictProgram::data_ = nullptr;

void expect_equal(MatrixView<const float> a, MatrixView<const float> b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.cols, b.cols);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.cols; ++j) ASSERT_EQ(a(i, j), b(i, j)) << i << ", " << j;
}

TEST_F(PredictProgram, EveryFormHoldsTheSameScores) {
  const Matrix<float> expected = Model::load(path("model")).predict(*data_);
  for (const char* name : {"scores.npy", "scores.npz"}) {
    const Ended ended = predict({"--out", path(name)});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out, "");
    const Scores scores = read_scores(path(name));
    expect_equal(scores.values, expected);
    if (std::string(name) != "scores.npy") {
      EXPECT_EQ(scores.ids, data_->ids);
      EXPECT_EQ(scores.label_names, data_->label_names);
    }
  }
  ASSERT_EQ(predict({"--out", path("scores.csv")}).code, 0);
  const auto table = lines("scores.csv");
  ASSERT_EQ(table.size(), data_->rows + 1);
  EXPECT_EQ(table[0], "id,label0,label1,\"a \"\"quoted\"\" name\",label3,label4,label5");
  for (std::size_t i = 0; i < data_->rows; ++i) {
    const std::string id = fmt::format("\"item, {}\",", i);
    ASSERT_TRUE(table[i + 1].starts_with(id)) << table[i + 1];
    const auto values = split(std::string_view(table[i + 1]).substr(id.size()), ',');
    ASSERT_EQ(values.size(), 6u);
    for (std::size_t j = 0; j < 6; ++j)
      ASSERT_EQ(static_cast<float>(parse_double(values[j]).value()), expected(i, j));
  }
  EXPECT_EQ(predict({"--out", path("scores.txt")}).code, 2);
}

TEST_F(PredictProgram, PrecisionMayBeChosenAnew) {
  const Matrix<float> own = Model::load(path("model")).predict(*data_);
  for (const char* precision : {"f32", "bf16"})
    ASSERT_EQ(predict({"--out", path(std::string(precision) + ".npy"), "--precision", precision}).code, 0);
  const Scores high = read_scores(path("f32.npy")), low = read_scores(path("bf16.npy"));
  float apart = 0, high_from_own = 0, low_from_own = 0;
  for (std::size_t i = 0; i < own.rows(); ++i)
    for (std::size_t j = 0; j < own.cols(); ++j) {
      apart = std::max(apart, std::abs(low.values(i, j) - high.values(i, j)));
      high_from_own = std::max(high_from_own, std::abs(high.values(i, j) - own(i, j)));
      low_from_own = std::max(low_from_own, std::abs(low.values(i, j) - own(i, j)));
    }
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, .02f);
  EXPECT_EQ(std::min(high_from_own, low_from_own), 0);  // one of them is what the model was trained in
  ASSERT_EQ(run({"train", path("data.npz"), "--method", "glocal", "--out", path("other"), "--quiet"}).code,
            0);
  const Ended refused =
      run({"predict", path("other"), path("data.npz"), "--out", path("x.npy"), "--precision", "bf16"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_NE(refused.err.find("no choice of precision"), std::string::npos) << refused.err;
}

TEST_F(PredictProgram, AnySubsetOfTheViews) {
  Dataset fewer = *data_;
  fewer.views.erase(fewer.views.begin());
  fewer.labels = {};
  fewer.label_names = {};
  write_dataset(fewer, path("fewer.npz"));
  ASSERT_EQ(predict({"--out", path("fewer.npy")}, "fewer.npz").code, 0);
  expect_equal(read_scores(path("fewer.npy")).values, Model::load(path("model")).predict(fewer));

  Dataset wrong = *data_;
  wrong.views[1].features = Table<float>(Matrix<float>(wrong.rows, 11));
  write_dataset(wrong, path("wrong.npz"));
  const Ended sizes = predict({"--out", path("no.npy")}, "wrong.npz");
  EXPECT_EQ(sizes.code, 4);
  EXPECT_NE(sizes.err.find("11 columns, the model expects 9"), std::string::npos) << sizes.err;
  wrong = *data_;
  wrong.views[1].name = "viev1";
  write_dataset(wrong, path("wrong.npz"));
  const Ended unknown = predict({"--out", path("no.npy")}, "wrong.npz");
  EXPECT_EQ(unknown.code, 4);
  EXPECT_NE(unknown.err.find("viev1"), std::string::npos) << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(path("no.npy")));
}

TEST_F(PredictProgram, TopAndLabelsByName) {
  const Model model = Model::load(path("model"));
  const Matrix<float> scores = model.predict(*data_);
  ASSERT_EQ(predict({"--out", path("top.csv"), "--top", "2"}).code, 0);
  const auto top = lines("top.csv");
  ASSERT_EQ(top.size(), data_->rows + 1);
  EXPECT_EQ(top[0], "id,labels,scores");
  std::size_t first = 0;
  for (std::size_t j = 1; j < 6; ++j)
    if (scores(0, j) > scores(0, first)) first = j;
  std::string name = data_->label_names[first];
  if (first == 2) name = "a \"\"quoted\"\" name";
  EXPECT_NE(top[1].find(name), std::string::npos) << top[1];
  EXPECT_TRUE(top[1].starts_with("\"item, 0\",")) << top[1];

  ASSERT_EQ(predict({"--out", path("labels.csv"), "--labels"}).code, 0);
  ASSERT_EQ(predict({"--out", path("labels.npy"), "--labels"}).code, 0);
  const Matrix<std::uint8_t> decided = model.decide(scores);
  const auto written = read_scores(path("labels.npy"));
  const auto named = lines("labels.csv");
  for (std::size_t i = 0; i < data_->rows; ++i) {
    std::ptrdiff_t count = 0;
    for (std::size_t j = 0; j < 6; ++j) {
      ASSERT_EQ(written.values(i, j), decided(i, j));
      count += decided(i, j);
    }
    const std::string numbers = named[i + 1].substr(named[i + 1].rfind(',') + 1);
    EXPECT_EQ(numbers.empty() ? 0 : 1 + std::count(numbers.begin(), numbers.end(), ';'), count)
        << named[i + 1];
  }

  ASSERT_EQ(predict({"--out", path("half.npy"), "--labels", "--threshold", ".5"}).code, 0);
  ASSERT_EQ(predict({"--out", path("own.npy"), "--labels", "--labels-by", "method"}).code, 0);
  const auto half = read_scores(path("half.npy"));
  expect_equal(half.values, read_scores(path("own.npy")).values);
  for (std::size_t i = 0; i < data_->rows; ++i)
    for (std::size_t j = 0; j < 6; ++j) ASSERT_EQ(half.values(i, j), scores(i, j) > .5f);
}

TEST_F(PredictProgram, CalibratedProbabilitiesAreMoreReliable) {
  ASSERT_EQ(predict({"--out", path("raw.npy")}).code, 0);
  ASSERT_EQ(predict({"--out", path("calibrated.npy"), "--calibrated"}).code, 0);
  const auto ece = [&](const char* name) {
    const Ended ended = run({"evaluate", path(name), path("data.npz"), "--reliability", "--json"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    const auto document = nlohmann::json::parse(ended.out);
    EXPECT_EQ(document["reliability"]["bins"].size(), 10u);
    return document["reliability"]["ece"].get<double>();
  };
  EXPECT_LT(ece("calibrated.npy"), ece("raw.npy") + .05);
  EXPECT_NE(read_text(path("raw.npy")), read_text(path("calibrated.npy")));
}

TEST_F(PredictProgram, PartsOfAFold) {
  MaskOptions options;
  options.repeats = 2;
  const Folds folds = make_folds(*data_, options);
  write_folds(folds, path("folds.npz"));
  for (const char* protocol : {"strict", "authors"}) {
    const Ended ended = predict({"--out", path("part.npz"), "--folds", path("folds.npz"), "--fold", "1",
                                 "--part", "test", "--protocol", protocol});
    ASSERT_EQ(ended.code, 0) << ended.err;
    auto rows = folds.part_rows(1, Part::test);
    if (std::string(protocol) == "authors") {
      auto both = folds.part_rows(1, Part::val);
      both.insert(both.end(), rows.begin(), rows.end());
      rows = both;
    }
    const Scores scores = read_scores(path("part.npz"));
    ASSERT_EQ(scores.ids.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(scores.ids[i], data_->ids[rows[i]]);
    const Selection selection{data_, &folds.folds[1], rows, false};
    expect_equal(scores.values, Model::load(path("model")).predict(selection));
  }
  EXPECT_EQ(predict({"--out", path("part.npz"), "--folds", path("folds.npz"), "--fold", "2"}).code, 2);
  EXPECT_EQ(predict({"--out", path("part.npz"), "--part", "test"}).code, 2);
}

TEST_F(PredictProgram, MemoryDoesNotGrowWithTheRows) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory would be counted; the build without it runs this test";
#endif
  Dataset many = *data_;
  many.rows = 500000;
  many.present = {};
  many.labels = {};
  many.label_names = {};
  many.ids = {};
  for (auto& view : many.views) {
    Matrix<float> values(many.rows, view.columns());
    for (std::size_t i = 0; i < values.values().size(); ++i)
      values.values()[i] = static_cast<float>(i % 17) - 8;
    view.features = Table<float>(std::move(values));
  }
  write_dataset(many, path("many"));
  const std::size_t size = many.rows * (12 + 9 + 7) * sizeof(float);
  many.views.clear();
  const Ended few = predict({"--out", path("few.npy")});
  const Ended ended = run({"predict", path("model"), path("many"), "--out", path("many.npy")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_LT(ended.peak_bytes, few.peak_bytes + size / 2) << few.peak_bytes << " for 400 rows";
  std::filesystem::remove_all(path("many"));
}

TEST_F(PredictProgram, DamagedModelsAreRefused) {
  const std::string whole = read_text(path("model"));
  write_text(path("cut"), std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_EQ(run({"predict", path("cut"), path("data.npz"), "--out", path("no.npy")}).code, 3);
  EXPECT_EQ(run({"predict", path("data.npz"), path("data.npz"), "--out", path("no.npy")}).code, 3);
  EXPECT_EQ(run({"predict", path("absent"), path("data.npz"), "--out", path("no.npy")}).code, 3);
}

}  // namespace
}  // namespace lacuna
