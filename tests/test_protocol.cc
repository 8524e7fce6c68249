// One protocol for every verb: who learns from which rows.
#include "data/protocol.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "experiments/cell.h"
#include "program.h"

namespace lacuna {
namespace {

// 101 rows, two views; the last ten rows have no view at all.
Dataset data_with_bare_rows() {
  Dataset data = simulate({.rows = 101, .views = 2, .labels = 3, .sizes = {5, 4}, .seed = 4}).data;
  Matrix<std::uint8_t> present(data.rows, 2);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t v = 0; v < 2; ++v) present(i, v) = i < 91;
  data.present = std::move(present);
  return data;
}

TEST(Protocol, SplitWithoutFolds) {
  const Dataset data = simulate({.rows = 101, .views = 2, .labels = 3, .sizes = {5, 4}, .seed = 4}).data;
  const auto rows = learning_rows(select_all(data), .15, 3);
  EXPECT_EQ(rows.val.rows.size(), 15u);
  EXPECT_EQ(rows.learn.rows.size(), 86u);
  std::set<std::uint32_t> all(rows.learn.rows.begin(), rows.learn.rows.end());
  all.insert(rows.val.rows.begin(), rows.val.rows.end());
  EXPECT_EQ(all.size(), 101u);
  EXPECT_TRUE(learning_rows(select_all(data), 0, 3).val.rows.empty());
  EXPECT_EQ(learning_rows(select_all(data), 1e-6, 3).val.rows.size(), 1u);
  EXPECT_EQ(learning_rows(select_all(data), 1, 3).learn.rows.size(), 1u);
}

TEST(Protocol, RowsWithoutAViewAreNotLearnedFrom) {
  const Dataset data = data_with_bare_rows();
  const auto split = learning_rows(select_all(data), .15, 3);
  for (const auto i : split.learn.rows) EXPECT_LT(i, 91u);
  for (const auto i : split.val.rows) EXPECT_LT(i, 91u);
  EXPECT_EQ(split.val.rows.size(), 13u);  // of 91
  EXPECT_EQ(split.without_view, 10u);
  MaskOptions mask;
  mask.repeats = 2;
  const Folds folds = make_folds(data, mask);
  const auto rows = learning_rows(data, folds, 1);
  EXPECT_LT(rows.learn.rows.size(), folds.train_rows());
  for (const auto i : rows.learn.rows) EXPECT_LT(i, 91u);
  for (const auto i : rows.val.rows) EXPECT_LT(i, 91u);
  EXPECT_EQ(rows.without_view + rows.learn.rows.size() + rows.val.rows.size(),
            folds.part_rows(1, Part::train).size() + folds.part_rows(1, Part::val).size());
  EXPECT_TRUE(rows.learn.hide_labels);
  EXPECT_FALSE(rows.val.hide_labels);
}

// Rows of which no label is known can be learned from, by their views, and judge nothing.
TEST(Protocol, RowsWithoutAKnownLabelAreNotHeldOut) {
  Dataset data = simulate({.rows = 100, .views = 2, .labels = 3, .sizes = {5, 4}, .seed = 4}).data;
  Matrix<std::int8_t> labels(100, 3);
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t j = 0; j < 3; ++j) labels(i, j) = i < 40 ? data.labels(i, j) : kUnknown;
  data.labels = std::move(labels);
  const auto rows = learning_rows(select_all(data), .25, 3);
  EXPECT_EQ(rows.val.rows.size(), 10u);
  EXPECT_EQ(rows.learn.rows.size(), 90u);
  for (const auto i : rows.val.rows) EXPECT_LT(i, 40u);
  EXPECT_EQ(rows.without_view, 0u);
}

TEST(Protocol, OnlyTheAuthorsTestHoldsValidationRows) {
  const Dataset data = data_with_bare_rows();
  MaskOptions mask;
  mask.repeats = 1;
  const Folds folds = make_folds(data, mask);
  const auto val = folds.part_rows(0, Part::val), test = folds.part_rows(0, Part::test);
  EXPECT_EQ(part_of_fold(data, folds, 0, Part::test, Protocol::strict).rows, test);
  auto both = val;
  both.insert(both.end(), test.begin(), test.end());
  EXPECT_EQ(part_of_fold(data, folds, 0, Part::test, Protocol::authors).rows, both);
  EXPECT_EQ(part_of_fold(data, folds, 0, Part::val, Protocol::authors).rows, val);
}

TEST(Protocol, StrictNeverLeaksWhateverTheSettingsSay) {
  for (const char* name : {"repaired", "authors", "paper"}) {
    Model model("mtd");
    model.set_preset(name);
    apply_protocol(Protocol::strict, model.options());
    EXPECT_EQ(model.options().find("leaky-prepare")->text(), "false") << name;
    apply_protocol(Protocol::authors, model.options());
    EXPECT_EQ(model.options().find("leaky-prepare")->text(), "true") << name;
    EXPECT_THROW(apply_protocol(Protocol::strict, model.options()), Error);
  }
}

// `train` and `bench` learn from the very same rows: with the same seed and settings they end with the same
// model.
class ProtocolOfPrograms : public testing::Test {
 protected:
  void SetUp() override { write_dataset(data_with_bare_rows(), folder_ / "data.npz"); }
  TemporaryDirectory folder_;
};

TEST_F(ProtocolOfPrograms, TrainAndBenchLearnFromTheSameRows) {
  for (const std::string protocol : {"strict", "authors"}) {
    const std::string folds = folder_ / (protocol + ".npz"), model = folder_ / (protocol + ".safetensors"),
                      scores = folder_ / (protocol + ".npy"), out = folder_ / protocol;
    ASSERT_EQ(run({"data", "mask", folder_ / "data.npz", folds, "--repeats", "1"}).code, 0);
    ASSERT_EQ(run({"train", folder_ / "data.npz", "--folds", folds, "--method", "glocal", "--protocol",
                   protocol, "--out", model, "--quiet"})
                  .code,
              0);
    ASSERT_EQ(run({"predict", model, folder_ / "data.npz", "--folds", folds, "--part", "test", "--protocol",
                   protocol, "--out", scores})
                  .code,
              0);
    const Ended ended = run({"evaluate", scores, folder_ / "data.npz", "--folds", folds, "--part", "test",
                             "--protocol", protocol, "--threshold", "0", "--json"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Ended bench = run({"bench", "table", "--data", folder_ / "data.npz", "--folds", folds, "--methods",
                             "glocal", "--protocol", protocol, "--out", out, "--json"});
    ASSERT_EQ(bench.code, 0) << bench.err;
    const auto own = nlohmann::json::parse(ended.out).at("metrics"),
               cell = nlohmann::json::parse(bench.out).at("cells").at(0).at("metrics");
    for (const char* metric : {"AP", "1-RL", "AUC", "1-OE", "1-Cov"})
      EXPECT_EQ(own.at(metric), cell.at(metric)) << protocol << " " << metric;
    const bool leaks = Model::load(model).notes().contains("leaks");
    EXPECT_EQ(leaks, protocol == "authors");
  }
}

TEST_F(ProtocolOfPrograms, ALeakUnderStrictIsRefused) {
  const Ended train = run({"train", folder_ / "data.npz", "--method", "prior", "--set", "leaky-prepare=true",
                           "--out", folder_ / "m"});
  EXPECT_EQ(train.code, 2);
  EXPECT_NE(train.err.find("--protocol authors"), std::string::npos) << train.err;
  EXPECT_EQ(run({"bench", "table", "--data", folder_ / "data.npz", "--methods", "prior", "--set",
                 "leaky-prepare=true", "--repeats", "1", "--out", folder_ / "r"})
                .code,
            2);
}

}  // namespace
}  // namespace lacuna
