// lacuna predict --known-labels: "this photo is tagged beach; what else?"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/random.h"
#include "data/metrics.h"
#include "data/readers.h"
#include "data/scores.h"
#include "methods/model.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

const std::vector<std::string> kNames = {"sea", "beach", "city", "street", "snow", "ski; piste"};

// Labels in pairs that go together; one view that tells a little about the first of each pair.
Dataset photos(std::size_t rows, std::uint64_t seed) {
  Random random(seed, Purpose::test);
  Matrix<float> X(rows, 3);
  Matrix<std::int8_t> Y(rows, 6);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < 6; j += 2) {
      Y(i, j) = random.uniform() < .35f;
      Y(i, j + 1) = random.uniform() < .92f ? Y(i, j) : static_cast<std::int8_t>(random.uniform() < .3f);
      X(i, j / 2) = static_cast<float>(Y(i, j)) + 1.5f * random.normal();
    }
  Dataset data;
  data.name = "photos";
  data.rows = rows;
  data.views.push_back(
      {.name = "image", .features = Table<float>(std::move(X)), .column_names = {"r", "g", "b"}});
  data.labels = std::move(Y);
  data.label_names = kNames;
  for (std::size_t i = 0; i < rows; ++i) data.ids.push_back("p" + std::to_string(i));
  return data;
}

class KnownLabelsProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    write_dataset(photos(600, 1), path("train.npz"));
    const Ended ended =
        run({"train", path("train.npz"), "--method", "linear", "--out", path("model"), "--quiet"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    ASSERT_FALSE(Model::load(path("model")).label_links().empty());
    write_dataset(photos(300, 2), path("new.npz"));
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static Ended predict(const std::string& data, std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", path("model"), path(data)});
    return run(more);
  }
  static std::vector<json> json_lines(const std::string& text) {
    std::vector<json> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
    return all;
  }
  // The data set with labels hidden where `hide` says so.
  static void write_hidden(const std::string& name, std::function<bool(std::size_t, std::size_t)> hide) {
    Dataset data = photos(300, 2);
    Matrix<std::int8_t> Y(300, 6);
    for (std::size_t i = 0; i < 300; ++i)
      for (std::size_t j = 0; j < 6; ++j) Y(i, j) = hide(i, j) ? kUnknown : data.labels(i, j);
    data.labels = std::move(Y);
    write_dataset(data, path(name));
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* KnownLabelsProgram::folder_ = nullptr;

TEST_F(KnownLabelsProgram, UnknownOnesLeaveTheScoresAsTheyAre) {
  write_hidden("nothing.npz", [](std::size_t, std::size_t) { return true; });
  ASSERT_EQ(predict("new.npz", {"--out", path("plain.npz")}).code, 0);
  const Ended ended = predict("nothing.npz", {"--known-labels", "--out", path("told.npz")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("items with known labels: 0 of 300"), std::string::npos) << ended.err;
  EXPECT_EQ(read_text(path("plain.npz")), read_text(path("told.npz")));
}

TEST_F(KnownLabelsProgram, KnownOnesRaiseThePrecisionOfTheOthersAndAreWrittenAsKnown) {
  write_hidden("half.npz", [](std::size_t, std::size_t j) { return j % 2 == 1; });
  ASSERT_EQ(predict("half.npz", {"--out", path("plain.npz")}).code, 0);
  ASSERT_EQ(predict("half.npz", {"--known-labels", "--out", path("told.npz")}).code, 0);
  const Scores plain = read_scores(path("plain.npz")), told = read_scores(path("told.npz"));
  const Dataset data = photos(300, 2);
  Matrix<std::int8_t> rest(300, 6);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 6; ++j) {
      rest(i, j) = j % 2 == 1 ? data.labels(i, j) : kUnknown;
      EXPECT_TRUE(j % 2 == 1 || told.values(i, j) == static_cast<float>(data.labels(i, j)));
    }
  const auto ap = [&](const Scores& scores) { return evaluate(scores.values, rest).ap; };
  EXPECT_GT(ap(told), ap(plain) + .1);
}

TEST_F(KnownLabelsProgram, LinesOfJsonTellLabelsAndGiveWhatAFileGives) {
  const Dataset data = photos(300, 2);
  std::ofstream lines(path("items.jsonl"));
  for (std::size_t i = 0; i < 300; ++i) {
    const auto x = std::get<Table<float>>(data.views[0].features).row(i);
    json item = {{"id", data.ids[i]}, {"views", {{"image", {x[0], x[1], x[2]}}}}, {"labels", json::object()}};
    for (std::size_t j = 0; j < 6; j += 2) item["labels"][kNames[j]] = data.labels(i, j) == 1;
    lines << item.dump() << '\n';
  }
  lines.close();
  write_hidden("half.npz", [](std::size_t, std::size_t j) { return j % 2 == 1; });
  const Ended stream = predict("items.jsonl", {"--known-labels", "--out", "-"}),
              file = predict("half.npz", {"--known-labels", "--out", "-", "--format", "jsonl"});
  ASSERT_EQ(stream.code, 0) << stream.err;
  EXPECT_EQ(stream.out, file.out);
  const json first = json_lines(stream.out).at(0);
  EXPECT_EQ(first["known"].size(), 3u);
  EXPECT_EQ(first["known"]["sea"], data.labels(0, 0));
  EXPECT_EQ(first["scores"]["sea"], data.labels(0, 0));
  // Without the flag the key is skipped, as any other.
  EXPECT_EQ(predict("items.jsonl", {"--out", "-"}).out,
            predict("new.npz", {"--out", "-", "--format", "jsonl"}).out);
}

TEST_F(KnownLabelsProgram, AListOfTagsNamesWhatIsKnownAndNothingElse) {
  std::ofstream(path("tagged.csv")) << "id,r,g,b,tags\na,0,0,0,sea\nb,0,0,0,\nc,0,0,0,grandma|snow\n";
  const Ended ended = predict("tagged.csv", {"--tags-column", "tags", "--known-labels", "--top", "2", "--out",
                                             "-", "--format", "jsonl"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("1 of its 3 labels are ignored, the model does not have them: 'grandma'"),
            std::string::npos)
      << ended.err;
  const auto lines = json_lines(ended.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["known"], json({{"sea", 1}}));
  EXPECT_EQ(lines[0]["tags"][0]["label"],
            "beach");  // what goes with it comes first, and it is no suggestion itself
  EXPECT_EQ(lines[1]["known"], json::object());
  EXPECT_EQ(lines[2]["tags"][0]["label"], "ski; piste");
  for (const auto& line : lines)
    for (const auto& tag : line["tags"])
      EXPECT_FALSE(line["known"].contains(tag["label"].get<std::string>()));
}

TEST_F(KnownLabelsProgram, EveryFormOfTextTellsWhatIsKnown) {
  std::ofstream(path("one.jsonl"))
      << R"({"id": "a", "views": {"image": [0, 0, 0]}, "labels": {"snow": 1, "sea": 0, "city": null}})"
      << '\n'
      << R"({"id": "b", "views": {}, "labels": ["ski; piste"]})" << '\n';
  const auto text = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--known-labels", "--quiet", "--out", "-"});
    const Ended ended = predict("one.jsonl", more);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  };
  const std::string wide = text({"--format", "csv"});
  EXPECT_EQ(wide.find("id,sea,beach,city,street,snow,\"ski; piste\"\na,0,0."), 0u) << wide;
  EXPECT_NE(wide.find(",1,0."), std::string::npos) << wide;         // snow, then a score
  EXPECT_NE(wide.find("\nb,,,,,,1\n"), std::string::npos) << wide;  // no view, yet one label is known
  const std::string tags = text({"--format", "tsv", "--top", "2"});
  EXPECT_EQ(tags.find("id\tlabels\tscores\tknown\na\tski\\; piste;"), 0u) << tags;
  EXPECT_NE(tags.find("\tsnow\n"), std::string::npos) << tags;
  EXPECT_NE(tags.find("\nb\t\t\tski\\; piste\n"), std::string::npos) << tags;
  const std::string rows = text({"--format", "long"});
  EXPECT_EQ(rows.find("id,rank,label,score,decided,known\na,1,"), 0u) << rows;
  EXPECT_NE(rows.find("\na,,sea,,,0\na,,snow,,,1\n"), std::string::npos) << rows;
  EXPECT_EQ(std::ranges::count(rows, '\n'), 1 + 4 + 2 + 1);
  const auto lines = json_lines(text({"--top", "6"}));
  EXPECT_EQ(lines[0]["tags"].size(), 4u);
  EXPECT_EQ(lines[1]["known"], json({{"ski; piste", 1}}));
  EXPECT_TRUE(lines[1]["tags"].is_null());
}

TEST_F(KnownLabelsProgram, ABadLineSaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"beech": 1})", "the model has no label 'beech'"},
      {R"({"sea": 1, "sea": 0})", "label 'sea' occurs twice in \"labels\""},
      {R"(["sea", "sea"])", "label 'sea' occurs twice in \"labels\""},
      {R"({"sea": 2})", "label 'sea' is 1, 0, true, false or null (unknown), found '2'"},
      {R"({"sea": "yes"})", "label 'sea' is 1, 0"},
      {R"("sea")", "\\\"labels\\\" is an object"},
      {R"([1])", "expected the name of a label in quotes"},
      {R"({"sea": 1)", "expected ',' or '}'"},
  };
  for (const auto& [labels, message] : cases) {
    std::ofstream(path("bad.jsonl")) << R"({"views": {"image": [0, 0, 0]}})" << '\n'
                                     << R"({"views": {"image": [0, 0, 0]}, "labels": )" << labels << "}\n";
    const Ended ended = predict("bad.jsonl", {"--known-labels", "--out", "-"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.out.find("{\"line\": 2, \"error\": "), std::string::npos) << ended.out;
    EXPECT_NE(json_lines(ended.out).at(1)["error"].get<std::string>().find(
                  std::string(message).starts_with("\\") ? "\"labels\" is an object" : message),
              std::string::npos)
        << ended.out;
  }
}

TEST_F(KnownLabelsProgram, WhatHasNoEffectIsRefused) {
  const auto refused = [&](const std::string& data, std::vector<std::string> more, int code,
                           const char* message) {
    more.insert(more.end(), {"--out", "-"});
    const Ended ended = predict(data, more);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_NE(ended.err.find(message), std::string::npos) << ended.err;
  };
  std::ofstream(path("plain.csv")) << "id,r,g,b\na,0,0,0\n";
  std::ofstream(path("other.csv")) << "id,r,g,b,tags\na,0,0,0,grandma\n";
  refused("plain.csv", {"--known-labels"}, 4, "has no labels, so --known-labels has no effect");
  refused("other.csv", {"--tags-column", "tags", "--known-labels"}, 4,
          "none of its 1 labels is one of the model's 6");
  refused("plain.csv", {"--known-labels", "--from", "tsv"}, 2, "its name says csv");
  refused("new.npz", {"--label-code", "01"}, 2, "known-labels");
  std::ofstream(path("stream.tsv.txt")) << "id\tr\tg\tb\na\t0\t0\t0\n";
  refused("stream.tsv.txt", {"--from", "tsv", "--known-labels"}, 2, "--known-labels needs JSON lines");
  // A model without validation rows has learned nothing about labels that are known.
  const Ended ended = run({"train", path("train.npz"), "--method", "linear", "--hold-out", "0", "--out",
                           path("bare"), "--quiet"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Ended bare =
      run({"predict", path("bare"), path("new.npz"), "--known-labels", "--out", path("x.csv")});
  EXPECT_EQ(bare.code, 4);
  EXPECT_NE(bare.err.find("has not learned how known labels inform others"), std::string::npos)
      << bare.err;
}

TEST_F(KnownLabelsProgram, TheDocumentOfTheRunTellsTheLinks) {
  const Ended ended = predict("new.npz", {"--known-labels", "--json", "--out", path("x.csv")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json document = json::parse(ended.out);
  EXPECT_EQ(document["known_labels"]["items"], 300);
  EXPECT_GT(document["known_labels"]["links"]["weight"], 0);
  EXPECT_GT(document["known_labels"]["links"]["gain"], 0);
}

}  // namespace
}  // namespace lacuna
