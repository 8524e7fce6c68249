#include "data/score_join.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/scores_writer.h"
#include "temporary.h"

namespace lacuna {
namespace {

Dataset truth() {
  Dataset data;
  data.name = "truth";
  data.rows = 4;
  data.ids = {"a", "b", "c", "d"};
  data.label_names = {"x", "y", "z"};
  Matrix<std::int8_t> labels(4, 3);
  data.labels = Table<std::int8_t>(std::move(labels));
  return data;
}

Scores scored(std::vector<std::string> ids, std::vector<std::string> labels, std::size_t rows = 0,
              std::size_t cols = 0) {
  Scores scores;
  Matrix<float> values(ids.empty() ? rows : ids.size(), labels.empty() ? cols : labels.size());
  for (std::size_t i = 0; i < values.values().size(); ++i) values.values()[i] = static_cast<float>(i) / 100;
  scores.values = Table<float>(std::move(values));
  scores.ids = std::move(ids);
  scores.label_names = std::move(labels);
  return scores;
}

using Places = std::vector<std::uint32_t>;

TEST(ScoreJoin, ByIdAndByNameInAnyOrder) {
  const Dataset data = truth();
  const ScoreJoin join =
      join_scores(scored({"d", "a", "c", "b"}, {"z", "x", "y"}), select_all(data), "s.csv");
  EXPECT_EQ(join.score_rows, (Places{1, 3, 2, 0}));
  EXPECT_EQ(join.data_rows, (Places{0, 1, 2, 3}));
  EXPECT_EQ(join.score_labels, (Places{1, 2, 0}));
  EXPECT_EQ(join.data_labels, (Places{0, 1, 2}));
  EXPECT_TRUE(join.told().empty());
}

TEST(ScoreJoin, SubsetsAreScoredAndReported) {
  const Dataset data = truth();
  const ScoreJoin join = join_scores(scored({"c", "new", "a"}, {"y", "extra"}), select_all(data), "s.csv");
  EXPECT_EQ(join.score_rows, (Places{2, 0}));
  EXPECT_EQ(join.data_rows, (Places{0, 2}));
  EXPECT_EQ(join.score_labels, (Places{0}));
  EXPECT_EQ(join.data_labels, (Places{1}));
  EXPECT_EQ(join.unknown_items, (std::vector<std::string>{"new"}));
  EXPECT_EQ(join.unscored_items, (std::vector<std::string>{"b", "d"}));
  EXPECT_EQ(join.unknown_labels, (std::vector<std::string>{"extra"}));
  EXPECT_EQ(join.unscored_labels, (std::vector<std::string>{"x", "z"}));
  const auto told = join.told();
  ASSERT_EQ(told.size(), 5u);
  EXPECT_TRUE(told[0].starts_with("items are joined by id: 2 of 3 scored items, of 4 in the data")) << told[0];
  EXPECT_EQ(told[1], "left out: 1 scored item that the data does not have ('new')");
  EXPECT_EQ(told[2], "left out: 2 items of the data without scores ('b', 'd')");
}

TEST(ScoreJoin, RowsOfNothingAreItemsWithoutViews) {
  const Dataset data = truth();
  Scores scores = scored({"a", "b", "c", "d"}, {"x", "y", "z"});
  Matrix<float> values(4, 3);
  for (float& x : values.row(1)) x = std::nanf("");
  scores.values = Table<float>(std::move(values));
  const ScoreJoin join = join_scores(scores, select_all(data), "s.csv");
  EXPECT_EQ(join.data_rows, (Places{0, 2, 3}));
  EXPECT_EQ(join.empty_items, (std::vector<std::string>{"b"}));
}

TEST(ScoreJoin, PlainArraysAreTakenInOrder) {
  Dataset data = truth();
  const ScoreJoin plain = join_scores(scored({}, {}, 4, 3), select_all(data), "s.npy");
  EXPECT_EQ(plain.data_rows.size(), 4u);
  ASSERT_EQ(plain.told().size(), 1u);
  EXPECT_EQ(plain.told()[0], "joined by position: the scores have no ids; 4 rows each");
  data.ids.clear();  // ids are then positions
  EXPECT_EQ(join_scores(scored({"3", "1"}, {}, 0, 3), select_all(data), "s.csv").data_rows, (Places{1, 3}));
}

TEST(ScoreJoin, WhatCannotBeJoinedIsRefused) {
  const Dataset data = truth();
  const auto refused = [&](const Scores& scores) -> std::pair<Exit, std::string> {
    try {
      join_scores(scores, select_all(data), "s");
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {Exit::ok, ""};
  };
  auto [code, message] = refused(scored({"A", "B"}, {"x"}));
  EXPECT_EQ(code, Exit::mismatch);
  EXPECT_NE(message.find("none of its 2 items ('A', 'B') is among the 4 of truth"), std::string::npos)
      << message;
  EXPECT_NE(message.find("(is 'A' the same as 'a'?)"), std::string::npos) << message;
  EXPECT_EQ(message.find("--fold"), std::string::npos) << message;  // there are none
  EXPECT_EQ(refused(scored({"a", "a"}, {"x"})).first, Exit::data);
  EXPECT_EQ(refused(scored({"a", "b"}, {"q"})).first, Exit::mismatch);
  EXPECT_NE(refused(scored({}, {}, 3, 3)).second.find("s has 3 rows and no ids, truth has 4"),
            std::string::npos);
  EXPECT_NE(refused(scored({}, {}, 4, 2)).second.find("2 labels without names, truth has 3"),
            std::string::npos);
}

// All ids take as much as the longest, and places in the file have 32 bits.
TEST(ScoresWriter, WhatAnNpzCannotHoldIsRefusedBeforeItIsWritten) {
  const TemporaryDirectory folder;
  const auto refused = [&](std::size_t rows, std::size_t labels) -> std::string {
    const std::string id(200, 'x');
    try {
      write_scores(folder / "s.npz", {rows, std::vector<std::string>(labels, "y"), [&](std::size_t) { return id; }});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused(900'000, 900), "");
  EXPECT_NE(refused(1'000'000, 900).find("scores and ids are more than a .npz can hold"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
