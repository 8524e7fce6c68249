// The paper's experiments: ranks as it prints them, its methods in its order, settings per data set, one command.
#include "experiments/paper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

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

TEST(Paper, WhoIsFirstEverywhereHasARankOfExactlyOne) {
  Matrix<double> means(3, 6);
  for (std::size_t m = 0; m < 6; ++m)
    means(0, m) = .9, means(1, m) = m < 3 ? .8 : .7, means(2, m) = m < 3 ? .7 : .8;
  const auto ranks = average_ranks(means);
  EXPECT_EQ(ranks[0], 1.) << "and not 0.9999999999999999";
  EXPECT_EQ(ranks, (std::vector<double>{1, 2.5, 2.5}));
  EXPECT_EQ(rank_place(ranks, 0), 0u);
  EXPECT_EQ(rank_place(ranks, 1), 1u);
  EXPECT_EQ(rank_place(ranks, 2), 1u) << "ties are marked alike";
  EXPECT_EQ(rank_place({1, std::nan("")}, 1), 2u);
}

TEST(Paper, TiesShareTheBestRankInTablesAndTheMeanRankInTests) {
  const std::vector<double> values = {.5, .7, .7, std::nan(""), .1};
  EXPECT_EQ(best_ranks(values), (std::vector<double>{3, 1, 1, 5, 4}));
  EXPECT_EQ(ranks(values), (std::vector<double>{3, 1.5, 1.5, 5, 4}));
}

TEST(Paper, TheDefaultMethodsAreTheNineInItsOrderAndFourBeside) {
  const std::vector<std::string> names = {"c2ae",   "glocal", "cdmm",   "dm2l",        "lvsl",
                                          "imvwl",  "naim3l", "dicnet", "mtd:authors", "prior",
                                          "linear", "mlknn",  "lacuna"};
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
  // The authors' width for emotions is for inputs that are not scaled; with ours it ended below the floor.
  EXPECT_TRUE(file.find(MethodChoice::parse("cdmm"), "emotion").empty());
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
    data_name_ = read_dataset(folder_ / "tiny.npz").name;
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
  std::string data_name_;
};

TEST_F(PaperProgram, RunsEverythingIntoOneFolder) {
  const Ended dry = run(paper("all", {"--dry-run"}));
  ASSERT_EQ(dry.code, 0) << dry.err;
  const Ended forecast = run(paper("all", {"--dry-run", "--json"}));
  ASSERT_EQ(forecast.code, 0) << forecast.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "all"));
  const Ended ended = run(paper("all"));
  ASSERT_EQ(ended.code, 0) << ended.err;
  // One count everywhere: distinct cells.
  std::size_t cells = 0, forecast_cells = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "all/cells"))
    cells += entry.is_directory();
  const json estimate = json::parse(forecast.out);
  EXPECT_EQ(estimate.at("schema"), "lacuna.forecast.1");
  EXPECT_EQ(estimate.at("cells"), cells);
  EXPECT_GT(estimate.at("seconds"), 0);
  for (const auto& line : estimate.at("lines")) forecast_cells += line.at("cells").get<std::size_t>();
  EXPECT_EQ(forecast_cells, cells);
  const std::string n = std::to_string(cells);
  EXPECT_NE(dry.out.find(n + " cells, 0 of them done"), std::string::npos) << dry.out;
  EXPECT_NE(ended.err.find(n + " of " + n + " done"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(n + " cells done, 0 failed"), std::string::npos) << ended.err;
  EXPECT_NE(read_text(folder_ / "all/report.html").find(n + " of " + n + " cells are done"),
            std::string::npos);
  // Only its own cells make table 1; the times say what ran.
  const std::string times = ended.out.substr(ended.out.find("# timing"));
  EXPECT_EQ(times.find("1-HL"), std::string::npos) << times;
  EXPECT_NE(times.find("preparation of the inputs"), std::string::npos) << times;
  EXPECT_NE(read_text(folder_ / "all/tables/timing-time-" + data_name_ + ".csv").find("DICNet,10,"),
            std::string::npos);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "all/experiments"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"ablation", "complete", "sensitivity", "similarity", "table",
                                             "timing"}));
  const std::string page = read_text(folder_ / "all/report.html");
  for (const char* words :
       {"Ave.R", "MTD (authors)", "Lacuna (best) †", "prior", "labels per row", "is neither ranked nor marked"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  const std::string stacked = read_text(folder_ / "all/tables/table-stacked.tex");
  for (const char* words : {"\\multirow{7}", "Ave.R", "C2AE", "\\underline", "\\textbf"})
    EXPECT_NE(stacked.find(words), std::string::npos) << words;
  EXPECT_LT(stacked.find("DICNet"), stacked.find("MTD"));
  // What a quick run is worth is said once, before any figure, and in every file that may travel alone.
  const auto caution = page.find("This is a quick run");
  EXPECT_LT(caution, page.find("<table"));
  EXPECT_EQ(page.find("This is a quick run", caution + 1), std::string::npos);
  EXPECT_NE(stacked.find("This is a quick run"), std::string::npos);
  EXPECT_NE(read_text(folder_ / "all/tables/table-" + data_name_ + ".md").find("This is a quick run"),
            std::string::npos);
  const auto command = page.find("lacuna bench paper --data");
  EXPECT_EQ(page.find("lacuna bench paper --data", command + 1), std::string::npos)
      << "the command stands there once";
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

TEST_F(PaperProgram, FlagsThatAFoldsFileLeavesWithoutMeaningAreRefused) {
  const std::string data = folder_ / "tiny.npz", folds = folder_ / "f.npz";
  ASSERT_EQ(run({"data", "mask", data, folds, "--repeats", "2"}).code, 0);
  const auto refused = [&](const char* kind, const std::vector<std::string>& more, const std::string& words) {
    std::vector<std::string> command = {"bench", kind,        "--data", data,    "--folds",
                                        folds,   "--methods", "prior",  "--out", folder_ / "refused"};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  };
  refused("missing", {}, "--folds");
  refused("table", {"--missing-views", ".3"}, "--missing-views");
  refused("table", {"--missing-labels", ".3"}, "--missing-labels");
  refused("complete", {"--train", ".5"}, "--train");
  refused("paper", {"--test-views", "complete"}, "--test-views");
  refused("table", {"--repeats", "3"}, "--repeats 3 was requested, --folds " + folds + " has 2");
}

TEST_F(PaperProgram, WhatIsSaidOfAFoldsFileIsTrueOfIt) {
  const std::string data = folder_ / "tiny.npz", folds = folder_ / "f.npz";
  ASSERT_EQ(run({"data", "mask", data, folds, "--repeats", "2", "--missing-views", ".25", "--missing-labels",
                 "0", "--train", ".6", "--val", ".2"})
                .code,
            0);
  ASSERT_EQ(run({"bench", "table", "--data", data, "--folds", folds, "--methods", "prior,naim3l", "--out",
                 folder_ / "facts"})
                .code,
            0);
  const json header = json::parse(read_text(folder_ / "facts/experiments/table.json"));
  EXPECT_EQ(header.at("cells").size(), 4u);
  EXPECT_EQ(header.at("mask").at("repeats"), 2);
  EXPECT_EQ(header.at("mask").at("missing-views"), .25);
  EXPECT_EQ(header.at("mask").at("missing-labels"), 0);
  EXPECT_EQ(header.at("mask").at("train"), .6);
  ASSERT_EQ(run({"report", folder_ / "facts"}).code, 0);
  const std::string page = read_text(folder_ / "facts/report.html");
  EXPECT_NE(page.find("up to 2 repetitions, 25 % of the views and 0 % of the training labels missing"),
            std::string::npos);
}

// The complete part of the paper on somebody's splits: the same rows for training and test, nothing hidden.
TEST_F(PaperProgram, CompleteDataKeepTheSplitsOfAFoldsFile) {
  const std::string data = folder_ / "tiny.npz", folds = folder_ / "f.npz";
  ASSERT_EQ(run({"data", "mask", data, folds, "--repeats", "2", "--seed", "9"}).code, 0);
  PaperOptions options;
  options.bench.data = {data};
  options.bench.folds = folds;
  options.bench.methods = {"prior", "naim3l"};
  Shelf shelf;
  std::size_t complete = 0;
  const Folds file = read_folds(folds);
  for (const Plan& plan : paper_plans(options, "lacuna", shelf))
    for (const PlannedCell& cell : plan.cells) {
      const Folds& used = shelf.folds(cell.spec.data, CellSpec::from_json(cell.spec.json()).folds);
      ASSERT_LT(cell.spec.fold, file.folds.size());
      EXPECT_EQ(used.folds[cell.spec.fold].order, file.folds[cell.spec.fold].order);
      const auto W = used.folds[cell.spec.fold].W.values();
      const auto G = used.folds[cell.spec.fold].G.values();
      const bool gaps = std::count(W.begin(), W.end(), 0) + std::count(G.begin(), G.end(), 0) > 0;
      EXPECT_EQ(gaps, plan.experiment != Experiment::complete);
      complete += plan.experiment == Experiment::complete;
    }
  EXPECT_EQ(complete, 4u);
}

TEST_F(PaperProgram, NothingIsNamedTwice) {
  const std::string data = folder_ / "tiny.npz", copy = folder_ / "copy.npz";
  std::filesystem::copy_file(data, copy);
  const auto refused = [&](const char* kind, const std::vector<std::string>& more, const std::string& words) {
    std::vector<std::string> command = {"bench", kind, "--out", folder_ / "twice", "--repeats", "1"};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
  };
  refused("table", {"--data", data, "--methods", "prior,naim3l,prior"}, "name each method once");
  refused("table", {"--data", data, "--methods", "mtd,mtd:repaired"}, "mtd and mtd:repaired are the same");
  refused("table", {"--data", data + "," + data, "--methods", "prior"}, "name each data set once");
  refused("table", {"--data", data + "," + copy, "--methods", "prior"}, "are the same data");
  refused("sensitivity", {"--data", data, "--alphas", "1,0.1,1"}, "--alphas has 1 twice");
}

// The time table runs what the other parts run: no part has epochs of its own.
TEST_F(PaperProgram, TheTimesAreThoseOfTheMethodsAsTheyAre) {
  PaperOptions options;
  options.bench.data = {folder_ / "tiny.npz"};
  Shelf shelf;
  const auto plans = paper_plans(options, "lacuna", shelf);
  ASSERT_EQ(plans.back().experiment, Experiment::timing);
  for (const PlannedCell& timed : plans.back().cells) {
    EXPECT_EQ(timed.spec.task, Task::timing);
    for (const PlannedCell& cell : plans.front().cells) {
      if (cell.spec.method.text() != timed.spec.method.text()) continue;
      EXPECT_EQ(resolved_options(cell.spec), resolved_options(timed.spec)) << cell.spec.method.text();
    }
  }
}

TEST_F(PaperProgram, AFitOfHoursIsAnnouncedBeforeItStarts) {
  Process process({"bench", "table", "--data", folder_ / "tiny.npz", "--methods", "prior,mtd:authors",
                   "--set", "epochs=100000000", "--repeats", "1", "--out", folder_ / "long"});
  const auto told = [&] {
    return process.errors_so_far().find("mtd:authors on " + data_name_ + ", table: about");
  };
  for (int tries = 0; tries < 12000 && process.errors_so_far().find("done") == std::string::npos; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGINT);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 130) << ended.err;
  ASSERT_NE(told(), std::string::npos) << ended.err;
  EXPECT_LT(told(), ended.err.find("done")) << "before the first cell";
  EXPECT_EQ(ended.err.find("prior on " + data_name_ + ", table: about"), std::string::npos)
      << "it takes no time";
}

// Several data sets, with and without gaps: every LaTeX file of the folder fits into one document.
TEST_F(PaperProgram, LatexLabelsAndCaptionsAreUnique) {
  write_dataset(simulate({.rows = 60, .views = 2, .labels = 4, .sizes = {6, 5}, .seed = 5}).data,
                folder_ / "more_data.npz");
  for (const char* kind : {"table", "complete"})
    ASSERT_EQ(run({"bench", kind, "--data", folder_ / "tiny.npz", "--data", folder_ / "more_data.npz",
                   "--methods", "prior,naim3l,dm2l,cdmm", "--repeats", "1", "--out", folder_ / "several"})
                  .code,
              0);
  ASSERT_EQ(run({"report", folder_ / "several"}).code, 0);
  std::map<std::string, std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "several/tables")) {
    if (entry.path().extension() != ".tex") continue;
    std::istringstream lines(read_text(entry.path().string()));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("\\label") && !line.starts_with("\\caption")) continue;
      const auto [at, fresh] = seen.emplace(line, entry.path().filename());
      EXPECT_TRUE(fresh) << line << " in " << at->second << " and " << entry.path().filename();
      EXPECT_EQ(line.find("\\label{tab:\\"), std::string::npos);
    }
  }
  EXPECT_GE(seen.size(), 16u);
  const std::string ranks = read_text(folder_ / "several/tables/table-ranks.tex");
  EXPECT_NE(ranks.find("\\underline"), std::string::npos) << "the second best is marked in ranks too";
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
