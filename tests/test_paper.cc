// The paper's experiments: ranks as it prints them, its methods in its order, settings per data set, one command.
#include "experiments/paper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "experiments/published.h"
#include "experiments/results.h"
#include "experiments/search.h"
#include "experiments/settings_file.h"
#include "experiments/statistics.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

// All nine methods on all five sets: the rule that gives the printed Ave.R from the printed means.
TEST(Paper, AverageRanksAreThePrintedOnes) {
  ASSERT_EQ(published_sets().size(), 5u);
  for (const PublishedSet& set : published_sets()) {
    Matrix<double> means(9, 6);
    for (std::size_t i = 0; i < 9; ++i)
      for (std::size_t m = 0; m < 6; ++m) means(i, m) = set.methods[i][m].mean;
    const auto ranks = average_ranks(means);
    for (std::size_t i = 0; i < 9; ++i)
      EXPECT_NEAR(ranks[i], set.average_rank[i], .0051) << set.name << " " << published_methods()[i];
  }
}

TEST(Paper, TiesShareTheBestRankInTablesAndTheMeanRankInTests) {
  const std::vector<double> values = {.5, .7, .7, std::nan(""), .1};
  EXPECT_EQ(best_ranks(values), (std::vector<double>{3, 1, 1, 5, 4}));
  EXPECT_EQ(ranks(values), (std::vector<double>{3, 1.5, 1.5, 5, 4}));
}

TEST(Paper, TheDefaultMethodsAreTheNineInItsOrderAndTwoBeside) {
  const std::vector<std::string> names = {"c2ae",   "glocal", "cdmm",        "dm2l",  "lvsl",  "imvwl",
                                          "naim3l", "dicnet", "mtd:authors", "prior", "lacuna"};
  EXPECT_EQ(default_methods(), names);
  EXPECT_EQ(MethodChoice::parse("mtd").title(), "MTD (repaired)");
  EXPECT_EQ(MethodChoice::parse("authors").title(), "MTD (authors)");
  EXPECT_EQ(MethodChoice::parse("lacuna").title(), "Lacuna (best)");
  EXPECT_EQ(MethodChoice::parse("naim3l").title(), "NAIM3L");
  EXPECT_EQ(MethodChoice::parse("naim3l:original").title(), "NAIM3L (original)");
  EXPECT_THROW(MethodChoice::parse("original"), Error) << "several methods have it";
}

TEST(SettingsFile, TheShippedOneHasTheAuthorsValues) {
  const SettingsFile file = SettingsFile::read("paper");
  const auto value = [&](const char* method, const char* data, const char* key) {
    const auto found = file.find(MethodChoice::parse(method), data);
    return found.contains(key) ? std::stod(found.at(key)) : -1;
  };
  EXPECT_EQ(value("mtd:authors", "MIRFLICKR", "beta"), 1e-3);
  EXPECT_EQ(value("mtd:authors", "corel5k_six_view", "beta"), -1);
  EXPECT_EQ(value("mtd", "mirflickr", "beta"), -1) << "of another preset";
  EXPECT_EQ(value("naim3l", "Corel5k", "lambda"), .4);
  EXPECT_EQ(value("naim3l", "pascal07", "lambda"), 1.5);
  EXPECT_EQ(value("naim3l", "ESP-Game", "lambda"), .2);
  EXPECT_EQ(value("naim3l", "iaprtc12", "lambda"), .2);
  EXPECT_EQ(value("naim3l", "mirflickr", "lambda"), .6);
}

TEST(SettingsFile, MistakesAreNamedWithTheirLine) {
  TemporaryDirectory folder;
  const auto refused = [&](const std::string& text, const std::string& words) {
    write_text(folder / "s.toml", text);
    try {
      SettingsFile::read(folder / "s.toml");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused("[naim3l]\nlamda = 1\n", "s.toml:2");
  refused("[naim31.corel5k]\nlambda = 1\n", "naim3l");
  refused("lambda = 1\n", "[method]");
  refused("[naim3l]\nlambda = -1\n", "s.toml:2");
  write_text(folder / "s.toml", "[naim3l]\nlambda = 1\nmu = 2\n[naim3l.yeast]\nlambda = 3\n");
  const SettingsFile file = SettingsFile::read(folder / "s.toml");
  EXPECT_EQ(file.find(MethodChoice::parse("naim3l"), "Yeast").at("lambda"), "3");
  EXPECT_EQ(file.find(MethodChoice::parse("naim3l"), "Yeast").at("mu"), "2");
  EXPECT_EQ(file.find(MethodChoice::parse("naim3l"), "birds").at("lambda"), "1");
  EXPECT_TRUE(file.find(MethodChoice::parse("dm2l"), "birds").empty());
}

TEST(Search, TheSettingsAsGivenComeFirstAndOnce) {
  Model model("mtd");
  const auto axes = own_axes(model);
  std::vector<std::string> names;
  for (const auto& axis : axes) names.push_back(axis.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mask-rate", "alpha", "beta", "gamma"}));
  const auto some = search_plan(axes, 7, 3, model);
  ASSERT_EQ(some.size(), 7u);
  EXPECT_TRUE(some[0].empty());
  const auto all = search_plan({{"alpha", {"1e-4", "1e-3"}}, {"gamma", {"0.1", "1"}}}, 0, 3, model);
  ASSERT_EQ(all.size(), 4u) << "alpha 1e-4 with gamma .1 is what is given";
  EXPECT_EQ(combination_text(all[0]), "the settings as given");
}

class PaperProgram : public testing::Test {
 protected:
  void SetUp() override {
    Dataset data = simulate({.rows = 80, .views = 2, .labels = 4, .sizes = {6, 5}, .seed = 4}).data;
    write_dataset(data, folder_ / "tiny.npz");
  }
  std::vector<std::string> paper(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"bench",
                                      "paper",
                                      "--data",
                                      folder_ / "tiny.npz",
                                      "--out",
                                      folder_ / out,
                                      "--quick",
                                      "--set",
                                      "mtd.width=0.02",
                                      "--set",
                                      "dicnet.width=0.02",
                                      "--set",
                                      "mtd.embedding=4",
                                      "--set",
                                      "lacuna.encoder-widths=8",
                                      "--set",
                                      "lacuna.embedding=8",
                                      "--set",
                                      "c2ae.hidden=8"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  TemporaryDirectory folder_;
};

TEST_F(PaperProgram, RunsEverythingIntoOneFolder) {
  const Ended dry = run(paper("all", {"--dry-run"}));
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_NE(dry.out.find("in all about"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "all"));
  const Ended ended = run(paper("all"));
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "all/experiments"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"ablation", "complete", "sensitivity", "similarity", "table",
                                             "timing"}));
  const std::string page = read_text(folder_ / "all/report.html");
  for (const char* words :
       {"Ave.R", "MTD (authors)", "Lacuna (best) †", "prior", "labels a row", "takes no part in ranks"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  const std::string stacked = read_text(folder_ / "all/tables/table-stacked.tex");
  for (const char* words : {"\\multirow{7}", "Ave.R", "C2AE", "\\underline", "\\textbf"})
    EXPECT_NE(stacked.find(words), std::string::npos) << words;
  EXPECT_LT(stacked.find("DICNet"), stacked.find("MTD"));
  // Every cell says in which arithmetic it ran.
  for (const auto& cell : std::filesystem::directory_iterator(folder_ / "all/cells")) {
    const json spec = json::parse(read_text(cell.path().string() + "/spec.json"));
    EXPECT_EQ(spec.at("options").value("precision", "f32"), "f32");
  }
  const Ended again = run(paper("all", {"--resume"}));
  EXPECT_EQ(again.code, 0) << again.err;
}

// The whole of it is `tools/kill_test.sh PROGRAM 20`.
TEST_F(PaperProgram, KilledAndResumedGivesTheSameFiles) {
  const std::string command = LACUNA_SOURCE_DIR "/tools/kill_test.sh " LACUNA_PROGRAM " 3 >" +
                              std::string(folder_ / "kill.log") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(folder_ / "kill.log");
}

TEST_F(PaperProgram, FoldsThatWouldBeIgnoredAreRefused) {
  ASSERT_EQ(run({"data", "mask", folder_ / "tiny.npz", folder_ / "f.npz", "--repeats", "1"}).code, 0);
  for (const char* kind : {"complete", "missing"}) {
    const Ended ended = run({"bench", kind, "--data", folder_ / "tiny.npz", "--folds", folder_ / "f.npz",
                             "--methods", "prior", "--out", folder_ / kind});
    EXPECT_EQ(ended.code, 2);
    EXPECT_NE(ended.err.find("--folds"), std::string::npos) << ended.err;
  }
}

TEST_F(PaperProgram, ASettingThatMeansDifferentThingsNeedsItsMethod) {
  const auto bench = [&](const std::string& set) {
    return run({"bench", "table", "--data", folder_ / "tiny.npz", "--methods", "cdmm,mtd:authors", "--set",
                set, "--repeats", "1", "--dry-run", "--out", folder_ / "r"});
  };
  const Ended both = bench("width=.05");
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("means different things"), std::string::npos) << both.err;
  EXPECT_EQ(bench("mtd.width=.05").code, 0);
  EXPECT_EQ(bench("epochs=3").code, 0);
}

TEST_F(PaperProgram, TuningInsideACellIsRecorded) {
  const Ended ended = run({"bench", "table", "--data", folder_ / "tiny.npz", "--methods", "cdmm,naim3l",
                           "--tune", "4", "--repeats", "1", "--out", folder_ / "tuned", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json document = json::parse(ended.out);
  for (const auto& cell : document.at("cells")) {
    const std::string path = folder_ / "tuned/cells/" + cell.at("cell").get<std::string>();
    const json result = json::parse(read_text(path + "/result.json"));
    EXPECT_EQ(result.contains("tuning"), cell.at("method") == "cdmm") << "naim3l is not among --tune-methods";
    if (!result.contains("tuning")) continue;
    const json& tuning = result.at("tuning");
    ASSERT_EQ(tuning.at("tried").size(), 4u);
    EXPECT_TRUE(tuning.at("tried")[0].at("settings").empty()) << "the settings as given";
    double best = -1;
    json chosen;
    for (const auto& one : tuning.at("tried"))
      if (one.at("AP") > best) best = one.at("AP"), chosen = one.at("settings");
    EXPECT_EQ(tuning.at("chosen"), chosen);
    EXPECT_TRUE(tuning.at("grid").contains("fit"));
  }
}

}  // namespace
}  // namespace lacuna
