// lacuna show, explain and evaluate as a user meets them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "base/tensors.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

class ShowProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    SimulateOptions options;
    options.rows = 300;
    options.views = 3;
    options.labels = 5;
    options.sizes = {8, 6, 4};
    data_ = new Dataset(simulate(options).data);
    Matrix<std::uint8_t> present(data_->rows, 3);
    for (std::size_t i = 0; i < data_->rows; ++i)
      for (std::size_t v = 0; v < 3; ++v) present(i, v) = i == 7 ? 0 : (i + v) % 5 != 0;
    data_->present = Table<std::uint8_t>(std::move(present));
    data_->ids.clear();
    for (std::size_t i = 0; i < data_->rows; ++i) data_->ids.push_back(fmt::format("p{}", i));
    write_dataset(*data_, path("data.npz"));
    ASSERT_EQ(train("model").code, 0);
  }
  static void TearDownTestSuite() {
    delete data_;
    delete folder_;
  }
  static Ended train(const std::string& name) {
    return run({"train", path("data.npz"), "--out", path(name), "--embedding", "16", "--encoder-widths", "24",
                "--decoder-widths", "16", "--epochs", "5", "--quiet"});
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static TemporaryDirectory* folder_;
  static Dataset* data_;
};
TemporaryDirectory* ShowProgram::folder_ = nullptr;
Dataset* ShowProgram::data_ = nullptr;

TEST_F(ShowProgram, SaysWhatIsInTheModel) {
  const Ended ended = run({"show", path("model"), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json card = json::parse(ended.out);
  const Model model = Model::load(path("model"));
  EXPECT_EQ(card["method"], model.method().traits().name);
  EXPECT_EQ(card["preset"], model.preset());
  EXPECT_EQ(card["protocol"], "strict");
  EXPECT_TRUE(card["version"].is_string());
  EXPECT_EQ(card["training"]["rows"], 255);  // of 300 one has no view, and 44 are held out
  EXPECT_TRUE(card["training"]["data_hash"].is_string());
  ASSERT_EQ(card["views"].size(), 3u);
  EXPECT_EQ(card["views"][1]["name"], data_->views[1].name);
  EXPECT_EQ(card["views"][1]["columns"], 6);
  EXPECT_TRUE(card["views"][1].contains("column_names"));
  EXPECT_TRUE(card["views"][1]["preparation"].is_string());
  ASSERT_EQ(card["labels"].size(), 5u);
  for (std::size_t j = 0; j < 5; ++j) {
    EXPECT_EQ(card["labels"][j]["name"], data_->label_names[j]);
    EXPECT_EQ(card["labels"][j]["threshold"].get<float>(), model.calibration().thresholds()[j]);
    EXPECT_TRUE(card["labels"][j]["slope"].is_number());
  }
  const json& validation = card["validation"];
  EXPECT_EQ(validation["rows"], 44);
  for (const char* name : {"AP", "1-RL", "AUC", "1-HL"}) {
    const double value = validation["metrics"][name];
    EXPECT_LE(validation["intervals"][name][0].get<double>(), value) << name;
    EXPECT_GE(validation["intervals"][name][1].get<double>(), value) << name;
    EXPECT_LT(validation["intervals"][name][0].get<double>(), validation["intervals"][name][1].get<double>());
  }
  EXPECT_EQ(card["date_from"], "file");

  const Ended text = run({"show", path("model")});
  ASSERT_EQ(text.code, 0);
  for (const std::string& word : {data_->views[0].name, data_->label_names[4],
                                  std::string("validation, 44 rows"), std::string("principal directions")})
    EXPECT_NE(text.out.find(word), std::string::npos) << word << "\n" << text.out;
}

TEST_F(ShowProgram, ALeakIsNamedInTheModelAndOnItsPage) {
  for (const char* protocol : {"strict", "authors"}) {
    const Ended ended =
        run({"train", path("data.npz"), "--out", path("leaky"), "--protocol", protocol, "--report",
             path("leaky.html"), "--preset", "authors", "--width", ".01", "--epochs", "1", "--quiet"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const bool leaks = std::string(protocol) == "authors";
    EXPECT_EQ(run({"show", path("leaky")}).out.find("authors, which leaks") != std::string::npos, leaks);
    EXPECT_EQ(read_text(path("leaky.html")).find("authors, which leaks") != std::string::npos, leaks);
  }
}

TEST_F(ShowProgram, SaysWhatTheMemoryHolds) {
  const std::string to = path("remembers");
  ASSERT_EQ(run({"train", path("data.npz"), "--out", to, "--embedding", "16", "--epochs", "2", "--quiet",
                 "--memory", ".5", "--memory-rows", "200"})
                .code,
            0);
  const json card = json::parse(run({"show", to, "--json"}).out);
  EXPECT_EQ(card["memory"], json({{"rows", 200}, {"sharpness", 25.}, {"weight", .5}}));
  const Ended text = run({"show", to});
  EXPECT_NE(text.out.find("200 training rows, sharpness 25, weight 0.5"), std::string::npos) << text.out;
}

// The metrics that a model holds are those that its training printed.
TEST_F(ShowProgram, ValidationIsThatOfTheTraining) {
  const json history = json::parse(read_text(path("model.history.json")));
  const json card = json::parse(run({"show", path("model"), "--json"}).out);
  for (const auto& [name, value] : history["metrics"].items())
    EXPECT_EQ(card["validation"]["metrics"][name], value) << name;
}

TEST_F(ShowProgram, SameSeedSameBytesAndADateOnlyIfAskedFor) {
  ASSERT_EQ(train("again").code, 0);
  EXPECT_TRUE(read_text(path("model")) == read_text(path("again")));
  ASSERT_EQ(setenv("SOURCE_DATE_EPOCH", "1700000000", 1), 0);
  const int code = train("dated").code;
  unsetenv("SOURCE_DATE_EPOCH");
  ASSERT_EQ(code, 0);
  const json card = json::parse(run({"show", path("dated"), "--json"}).out);
  EXPECT_EQ(card["date"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(card["date_from"], "model");
}

// A file of version 0.1 holds neither version nor validation nor means.
TEST_F(ShowProgram, OlderFilesLoad) {
  const Tensors file = Tensors::read(path("model"));
  Tensors older;
  older.metadata = file.metadata;
  for (const char* key : {"version", "validation", "column_names"}) older.metadata.erase(key);
  for (const auto& [name, tensor] : file.all())
    if (!name.starts_with("columns.") && name != "label_prior") {
      if (tensor.shape.size() == 2)
        older.put_copy(name, file.matrix(name));
      else
        older.put(name, std::span<const float>(reinterpret_cast<const float*>(tensor.bytes.data()),
                                               tensor.bytes.size() / 4));
    }
  older.write(path("older"));
  const Ended ended = run({"show", path("older"), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(json::parse(ended.out)["validation"].is_null());
  EXPECT_TRUE(json::parse(ended.out)["version"].is_null());
  EXPECT_EQ(run({"show", path("older")}).code, 0);
  ASSERT_EQ(run({"predict", path("older"), path("data.npz"), "--out", path("old.csv")}).code, 0);
  ASSERT_EQ(run({"predict", path("model"), path("data.npz"), "--out", path("new.csv")}).code, 0);
  EXPECT_EQ(read_text(path("old.csv")), read_text(path("new.csv")));
  const Ended why = run({"explain", path("older"), path("data.npz"), "--json"});
  EXPECT_EQ(json::parse(why.out)["base"], "model");
  EXPECT_NE(why.err.find("--base model): the model file is of a version"), std::string::npos) << why.err;
  EXPECT_EQ(run({"explain", path("older"), path("data.npz"), "--base", "prior"}).code, 4);
  const Ended mean = run({"predict", path("older"), "-", "--out", "-", "--empty", "mean"});
  EXPECT_EQ(mean.code, 4);
  EXPECT_NE(mean.err.find("no means of its training rows"), std::string::npos) << mean.err;
}

TEST_F(ShowProgram, NotAModel) {
  const Ended ended = run({"show", path("data.npz")});
  EXPECT_EQ(ended.code, 3);
  EXPECT_NE(ended.err.find("not a model file"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("data.npz"), ended.err.rfind("data.npz")) << ended.err;  // said once
  EXPECT_EQ(ended.err.find("DATA"), std::string::npos) << ended.err;                // show has none
}

// Which base explanations have is said wherever they are; what would change nothing is refused.
TEST_F(ShowProgram, TheBaseOfExplanations) {
  const json card = json::parse(run({"show", path("model"), "--json"}).out);
  EXPECT_EQ(card["base"], "prior");
  const Model model = Model::load(path("model"));
  for (std::size_t j = 0; j < 5; ++j)
    EXPECT_NEAR(card["labels"][j]["prior"].get<double>(),
                1 / (1 + std::exp(-static_cast<double>(model.prior()[j]))), 1e-6);
  EXPECT_NE(run({"show", path("model")}).out.find("start from the label frequencies in training"),
            std::string::npos);
  const std::vector<std::string> call = {"explain", path("model"), path("data.npz")};
  const auto explain = [&](std::vector<std::string> more) {
    more.insert(more.begin(), call.begin(), call.end());
    return run(more);
  };
  const json prior = json::parse(explain({"--json"}).out),
             own = json::parse(explain({"--json", "--base", "model"}).out);
  EXPECT_EQ(prior["base"], "prior");
  EXPECT_EQ(own["base"], "model");
  EXPECT_NE(prior["items"][0]["tags"][0]["base"], own["items"][0]["tags"][0]["base"]);
  EXPECT_EQ(prior["items"][0]["tags"][0]["score"], own["items"][0]["tags"][0]["score"]);
  EXPECT_NE(explain({}).out.find("base is the tag's frequency in training"), std::string::npos);
  EXPECT_EQ(json::parse(explain({"--summary", "--json"}).out)["base"], "prior");
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--orders", "9"},
                                                {"--seed", "3"},
                                                {"--exact-views", "3"},
                                                {"--exact-views", "20"},
                                                {"--label-code", "01"},
                                                {"--label-file", "x.txt"},
                                                {"--summary", "--json", "--top", "3"},
                                                {"--part", "all"}}) {
    const Ended ended = explain(flags);
    EXPECT_EQ(ended.code, 2) << flags[0];
    EXPECT_NE(ended.err.find(" has no effect"), std::string::npos) << ended.err;
  }
  EXPECT_EQ(explain({"--exact-views", "2", "--orders", "20", "--seed", "3"}).code, 0);
}

TEST_F(ShowProgram, ExplanationsAddUp) {
  const Ended ended = run({"explain", path("model"), path("data.npz"), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json document = json::parse(ended.out);
  ASSERT_EQ(document["items"].size(), data_->rows);
  for (std::size_t i = 0; i < data_->rows; ++i) {
    const json& item = document["items"][i];
    ASSERT_EQ(item["id"], data_->ids[i]);
    ASSERT_EQ(item["tags"].size(), 5u);
    for (const auto& tag : item["tags"]) {
      double sum = tag["base"];
      std::size_t views = 0;
      for (std::size_t v = 0; v < 3; ++v) {
        ASSERT_EQ(tag["views"].contains(data_->views[v].name), data_->has(i, v));
        views += data_->has(i, v);
      }
      ASSERT_EQ(tag["views"].size(), views);
      for (const auto& [name, value] : tag["views"].items()) sum += value.get<double>();
      ASSERT_NEAR(sum, tag["score"].get<double>(), 1e-6);
    }
  }
  EXPECT_NE(ended.err.find("items without any view, whose score is the base: 1 of 300"), std::string::npos) << ended.err;

  // The same as lines and as tables, and the best tags only.
  ASSERT_EQ(run({"explain", path("model"), path("data.npz"), "--out", path("why.jsonl"), "--top", "2"}).code,
            0);
  std::ifstream lines(path("why.jsonl"));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json item = json::parse(line);
    ASSERT_EQ(item["tags"].size(), 2u);
    ASSERT_EQ(item["tags"][0], document["items"][count]["tags"][0]);
    ASSERT_EQ(item["tags"][1], document["items"][count]["tags"][1]);
  }
  EXPECT_EQ(count, data_->rows);
  ASSERT_EQ(run({"explain", path("model"), path("data.npz"), "--out", path("why.csv"), "--top", "1"}).code,
            0);
  const std::string table = read_text(path("why.csv"));
  EXPECT_TRUE(table.starts_with("id,rank,label,score,base,view0,view1,view2\np0,1,")) << table.substr(0, 80);
  const Ended shown = run({"explain", path("model"), path("data.npz")});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find("p0\n"), std::string::npos);
  EXPECT_EQ(run({"explain", path("model"), path("data.npz"), "--out", path("why.txt")}).code, 2);
}

TEST_F(ShowProgram, SummaryIsOfTheValidationRows) {
  const Ended ended = run({"explain", path("model"), path("data.npz"), "--summary", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json summary = json::parse(ended.out);
  const json card = json::parse(run({"show", path("model"), "--json"}).out);
  EXPECT_EQ(summary["rows"], "validation rows of the training");
  EXPECT_EQ(summary["items"].get<int>(), 44);  // .15 of the 299 that have a view
  EXPECT_NEAR(summary["AP"].get<double>(), card["validation"]["metrics"]["AP"].get<double>(), .02);
  EXPECT_EQ(summary["views"].size(), 3u);
  EXPECT_EQ(summary["views"][0]["labels"].size(), 5u);
  EXPECT_GE(summary["patterns"].size(), 3u);
  const Ended text = run({"explain", path("model"), path("data.npz"), "--summary"});
  EXPECT_NE(text.out.find("accuracy by available views"), std::string::npos) << text.out;
}

TEST_F(ShowProgram, EvaluateJoinsByIdAndName) {
  ASSERT_EQ(run({"predict", path("model"), path("data.npz"), "--out", path("scores.csv")}).code, 0);
  const Ended whole = run({"evaluate", path("scores.csv"), path("data.npz"), "--json"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(json::parse(whole.out)["rows"], 299);
  EXPECT_EQ(json::parse(whole.out)["left_out"]["items_without_view"], 1);

  // The rows backwards and the labels turned: the same figures.
  std::istringstream file(read_text(path("scores.csv")));
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    cells.resize(6);
    std::swap(cells[1], cells[5]);
    std::string turned = cells[0];
    for (std::size_t k = 1; k < 6; ++k) turned += "," + cells[k];
    rows.insert(rows.empty() ? rows.end() : rows.begin() + 1, turned);
  }
  std::string text;
  for (const auto& row : rows) text += row + "\n";
  write_text(path("turned.csv"), text);
  const Ended turned = run({"evaluate", path("turned.csv"), path("data.npz"), "--json"});
  ASSERT_EQ(turned.code, 0) << turned.err;
  EXPECT_EQ(json::parse(turned.out)["metrics"], json::parse(whole.out)["metrics"]);

  // Half of the rows, and one that nobody knows.
  text.clear();
  for (std::size_t i = 0; i < 150; ++i) text += rows[i] + "\n";
  write_text(path("half.csv"), text + "nobody,.1,.2,.3,.4,.5\n");
  const Ended half = run({"evaluate", path("half.csv"), path("data.npz")});
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_NE(half.err.find("1 scored item that the data does not have ('nobody')"), std::string::npos)
      << half.err;
  EXPECT_NE(half.err.find("items of the data without scores"), std::string::npos) << half.err;

  // Without ids there is only the order, which is said; views are not looked at.
  ASSERT_EQ(run({"predict", path("model"), path("data.npz"), "--out", path("scores.npy")}).code, 0);
  const Ended plain = run({"evaluate", path("scores.npy"), path("data.npz"), "--json"});
  EXPECT_EQ(json::parse(plain.out)["metrics"], json::parse(whole.out)["metrics"]);
  EXPECT_EQ(json::parse(plain.out)["joined"], "order");
  EXPECT_EQ(json::parse(whole.out)["joined"], "id");
  EXPECT_NE(plain.err.find("joined by position: the scores have no ids; 300 rows each"), std::string::npos)
      << plain.err;
  EXPECT_EQ(run({"evaluate", path("scores.npy"), path("data.npz"), "--views", "a"}).code, 2);
  EXPECT_EQ(run({"evaluate", path("scores.npy"), path("data.npz"), "--empty", "zero"}).code, 2);
  write_text(path("truth.csv"), "id,a,b,label0\np0,1,,1\np1,,2,0\n");
  EXPECT_EQ(run({"evaluate", path("scores.csv"), path("truth.csv"), "--label-columns", "label0"}).code, 0);

  write_text(path("others.csv"), "id,label0\nq,1\n");
  EXPECT_EQ(run({"evaluate", path("others.csv"), path("data.npz")}).code, 4);
}

}  // namespace
}  // namespace lacuna
