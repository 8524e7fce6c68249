// How labels go together, as people meet it: the page with its pictures, and lacuna data inspect --label-graph.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/random.h"
#include "data/readers.h"
#include "experiments/report.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

Matrix<std::int8_t> groups(std::size_t rows, std::size_t labels, float unknown) {
  Random random(labels, Purpose::test);
  Matrix<std::int8_t> Y(rows, labels);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0, together = 0; j < labels; ++j) {
      if (j % 5 == 0) together = random.below(4);
      Y(i, j) = random.uniform() < (together == 0 ? .7f : .08f);
      if (random.uniform() < unknown) Y(i, j) = kUnknown;
    }
  return Y;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t times = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++times;
  return times;
}

TEST(LabelPage, NamesEveryLabelFrom2To300) {
  for (const std::size_t labels : {2u, 6u, 40u, 300u}) {
    SCOPED_TRACE(labels);
    std::vector<std::string> names;
    for (std::size_t j = 0; j < labels; ++j) names.push_back("tag" + std::to_string(j) + "x");
    const std::string page = label_page_text("set", names, LabelGraph(groups(500, labels, .5f)));
    for (const auto& name : names) EXPECT_NE(page.find(name), std::string::npos) << name;
    EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
    EXPECT_LT(page.size(), std::size_t{3} << 20);
  }
}

TEST(LabelPage, HostileNamesAreEscaped) {
  const std::string page =
      label_page_text("<b>set</b>", {"<script>alert(1)</script>", "\"a\" & 'b'", "", "plain"},
                      LabelGraph(groups(300, 4, .2f)));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<b>set"), std::string::npos);
}

TEST(ForestPlot, LongListsGoIntoColumnsAndStayInside) {
  ForestPlot plot{.title = "ties", .rows = {}};
  for (std::size_t k = 0; k < 300; ++k)
    plot.rows.push_back({"a rather long name of a label, number " + std::to_string(k), k % 30, .5, .5, ""});
  const Svg wide = draw(plot);
  EXPECT_EQ(wide.width(), kFull);
  EXPECT_LT(wide.height(), 1700);  // four columns
  plot.width = kNarrow;
  EXPECT_GT(draw(plot).height(), 5000);  // one
  plot.rows.clear();
  EXPECT_GT(draw(plot).height(), 0);
}

class LabelGraphProgram : public testing::Test {
 protected:
  void SetUp() override {
    Dataset data;
    data.name = "toy";
    data.rows = 120;
    data.views.push_back({"x", Table<float>(Matrix<float>(120, 1)), {}});
    data.labels = groups(120, 7, .3f);
    for (std::size_t j = 0; j < 7; ++j) data.label_names.push_back("l" + std::to_string(j));
    write_dataset(data, folder_ / "toy.npz");
  }
  TemporaryDirectory folder_;
};

TEST_F(LabelGraphProgram, JsonHoldsEveryPairTheStrongestFirst) {
  const Ended ended = run({"data", "inspect", folder_ / "toy.npz", "--label-graph", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json graph = json::parse(ended.out).at("label_graph");
  ASSERT_EQ(graph["pairs"].size(), 21u);
  ASSERT_EQ(graph["labels"].size(), 7u);
  const Matrix<std::int8_t> Y = groups(120, 7, .3f);
  double before = 1;
  for (const auto& pair : graph["pairs"]) {
    const auto j = pair["a"].get<std::string>().back() - '0', k = pair["b"].get<std::string>().back() - '0';
    std::uint32_t known = 0, both = 0;
    for (std::size_t i = 0; i < 120; ++i) {
      const auto a = Y(i, static_cast<std::size_t>(j)), b = Y(i, static_cast<std::size_t>(k));
      known += a != kUnknown && b != kUnknown;
      both += a == 1 && b == 1;
    }
    EXPECT_EQ(pair["known"], known);
    EXPECT_EQ(pair["both"], both);
    const double strength = std::abs(pair["shrunk"].get<double>());
    EXPECT_LE(strength, before);
    EXPECT_LE(strength, std::abs(pair["correlation"].get<double>()) + 1e-12);
    before = strength;
  }
}

TEST_F(LabelGraphProgram, TextAndPage) {
  const std::string page = folder_ / "labels.html";
  const Ended ended = run({"data", "inspect", folder_ / "toy.npz", "--label-graph", "--report", page});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("labels that go together"), std::string::npos);
  EXPECT_NE(read_text(page).find("Labels of toy"), std::string::npos);
}

TEST_F(LabelGraphProgram, WhatCannotBeDrawnIsSaid) {
  EXPECT_EQ(run({"data", "inspect", folder_ / "toy.npz", "--report", folder_ / "x.html"}).code, 2);
  EXPECT_EQ(
      run({"data", "inspect", folder_ / "toy.npz", "--label-graph", "--report", folder_ / "toy.npz"}).code,
      2);
  Dataset one;
  one.rows = 3;
  one.views.push_back({"x", Table<float>(Matrix<float>(3, 1)), {}});
  one.labels = Matrix<std::int8_t>(3, 1);
  one.label_names = {"only"};
  write_dataset(one, folder_ / "one.npz");
  const Ended ended = run({"data", "inspect", folder_ / "one.npz", "--label-graph"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_NE(ended.err.find("has 1 labels; --label-graph needs two or more"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace lacuna
