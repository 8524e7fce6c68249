// One protocol for every verb: who learns from which rows.
#include "data/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
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
  const auto rows = learning_rows(data, folds, 1, Protocol::strict);
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

TEST(Protocol, NamesAndWarnings) {
  EXPECT_EQ(protocol_names(), (std::vector<std::string>{"strict", "transductive", "authors"}));
  EXPECT_STREQ(protocol_name(Protocol::strict), "strict");
  EXPECT_STREQ(protocol_name(Protocol::authors), "authors");
  EXPECT_EQ(protocol_from_name("strict"), Protocol::strict);
  EXPECT_EQ(protocol_from_name("authors"), Protocol::authors);
  try {
    protocol_from_name("author");
    FAIL() << "an unknown name was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_STREQ(
        error.what(),
        "there is no protocol 'author'; did you mean 'authors'? (there are strict, transductive, authors)");
  }
  EXPECT_STREQ(protocol_warning(Protocol::strict), "");
  EXPECT_NE(std::string(protocol_warning(Protocol::authors)).find("leaks"), std::string::npos);
}

// The split by its definition: rows with a view, shuffled; of the last ones that know a label, the held-out share; the order
// of both stays.
TEST(Protocol, HeldOutRowsAreTheLastThatCanJudge) {
  Dataset data = simulate({.rows = 30, .views = 2, .labels = 3, .sizes = {5, 4}, .seed = 4}).data;
  Matrix<std::uint8_t> present(30, 2);
  Matrix<std::int8_t> labels(30, 3);
  for (std::size_t i = 0; i < 30; ++i) {
    present(i, 0) = i % 10 != 3 && i % 2 == 0, present(i, 1) = i % 10 != 3 && i % 2 == 1;
    for (std::size_t j = 0; j < 3; ++j) labels(i, j) = i % 3 == j && i % 5 != 0 ? std::int8_t{0} : kUnknown;
  }
  data.present = std::move(present);
  data.labels = std::move(labels);
  std::vector<std::uint32_t> shuffled;
  for (std::uint32_t i = 0; i < 30; ++i)
    if (i % 10 != 3) shuffled.push_back(i);
  Random(7, Purpose::row_order).shuffle(shuffled);
  std::size_t able = 0;
  for (const auto i : shuffled) able += i % 5 != 0;
  for (const double hold_out : {0., .01, .3, .5, .99, 1.}) {
    const std::size_t held =
        hold_out == 0 ? 0
                      : std::clamp<std::size_t>(
                            static_cast<std::size_t>(hold_out * static_cast<double>(able)), 1, able - 1);
    std::vector<std::uint32_t> learn, val;
    std::size_t first = shuffled.size();
    for (std::size_t left = held; left > 0;) left -= shuffled[--first] % 5 != 0;
    for (std::size_t k = 0; k < shuffled.size(); ++k)
      (k >= first && shuffled[k] % 5 != 0 ? val : learn).push_back(shuffled[k]);
    const auto rows = learning_rows(select_all(data), hold_out, 7);
    EXPECT_EQ(rows.learn.rows, learn) << hold_out;
    EXPECT_EQ(rows.val.rows, val) << hold_out;
    EXPECT_EQ(rows.without_view, 3u);
  }
  // One row that can judge, or none: nothing is held out.
  for (const std::size_t judges : {0, 1, 2}) {
    Matrix<std::int8_t> few(30, 3);
    for (auto& y : few.values()) y = kUnknown;
    for (std::size_t i = 0; i < judges; ++i) few(i, 2) = 1;
    data.labels = std::move(few);
    EXPECT_EQ(learning_rows(select_all(data), .5, 7).val.rows.size(), judges == 2 ? 1u : 0u);
  }
}

TEST(Protocol, TrueLabelsAreThoseOfTheDataWhateverAFoldHides) {
  const Dataset data = data_with_bare_rows();
  MaskOptions mask;
  mask.repeats = 1;
  const Folds folds = make_folds(data, mask);
  const Selection hidden = select_part(data, folds, 0, Part::train);
  ASSERT_TRUE(hidden.hide_labels);
  const auto truth = true_labels(hidden);
  ASSERT_EQ(truth.rows(), hidden.rows.size());
  ASSERT_EQ(truth.cols(), 3u);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < truth.rows(); ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(truth(i, j), data.labels(hidden.rows[i], j));
      differ += truth(i, j) != hidden.label(i, j);
    }
  EXPECT_GT(differ, 0u);
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
