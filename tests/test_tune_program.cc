// lacuna tune as a user meets it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

class TuneProgram : public testing::Test {
 protected:
  void SetUp() override {
    SimulateOptions options;
    options.rows = 200;
    options.views = 2;
    options.labels = 5;
    options.sizes = {8, 6};
    write_dataset(simulate(options).data, folder_ / "data.npz");
  }
  std::vector<std::string> command(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "tune", folder_ / "data.npz", "--out", folder_ / out, "--embedding", "12",    "--encoder-widths",
        "16",   "--decoder-widths",   "8",     "--epochs",    "3",           "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::size_t trials(const std::string& out) const {
    if (!std::filesystem::exists(folder_ / out)) return 0;
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / out))
      count += entry.path().filename().string().starts_with("trial-") && entry.path().extension() == ".json";
    return count;
  }
  TemporaryDirectory folder_;
};

TEST_F(TuneProgram, TriesTheWholeGridAndKeepsTheBest) {
  const Ended ended =
      run(command("grid", {"--grid", "rate=1e-6,1e-2", "--grid", "batch=16,64", "--trials", "0"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json document = json::parse(ended.out);
  ASSERT_EQ(document["trials"].size(), 5u) << "the settings as given, and four combinations";
  EXPECT_TRUE(document["trials"][0]["settings"].empty());
  EXPECT_EQ(trials("grid"), 5u);
  double best = 0;
  for (const auto& trial : document["trials"]) best = std::max(best, trial["metrics"]["AP"].get<double>());
  EXPECT_EQ(document["best"]["metrics"]["AP"], best);
  EXPECT_EQ(document["best"]["settings"]["rate"], "1e-2");
  Model model = Model::load(folder_ / "grid/best.safetensors");
  EXPECT_EQ(model.options().find("rate")->text(), "0.01");
  EXPECT_EQ(model.options().find("batch")->text(), document["best"]["settings"]["batch"]);
}

TEST_F(TuneProgram, RandomTrialsAreDistinctAndFromTheMethodsOwnRanges) {
  const Ended ended = run(command("random", {"--trials", "3"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json document = json::parse(ended.out);
  ASSERT_EQ(document["trials"].size(), 3u);
  EXPECT_EQ(trials("random"), 3u);
  EXPECT_TRUE(document["trials"][0]["settings"].empty()) << "the settings as given come first";
  EXPECT_FALSE(document["trials"][1]["settings"].empty());
}

TEST_F(TuneProgram, KilledAndStartedAgain) {
  const std::vector<std::string> grid = {"--grid", "rate=1e-3,3e-3,1e-2", "--grid", "batch=16,32", "--trials",
                                         "0"};
  const Ended whole = run(command("whole", grid));
  ASSERT_EQ(whole.code, 0) << whole.err;
  {
    Process process(command("killed", grid));
    for (int i = 0; i < 60000 && trials("killed") < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    process.send(SIGKILL);
    process.wait();
  }
  const std::size_t kept = trials("killed");
  EXPECT_GE(kept, 2u);
  const Ended again = run(command("killed", grid));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("(kept)"), std::string::npos) << again.err;
  EXPECT_EQ(trials("killed"), 7u) << "the settings as given, and six combinations";
  EXPECT_EQ(json::parse(again.out)["best"]["settings"], json::parse(whole.out)["best"]["settings"]);
  EXPECT_TRUE(read_text(folder_ / "killed/best.safetensors") ==
              read_text(folder_ / "whole/best.safetensors"));

  auto other = command("killed", grid);
  other.insert(other.end(), {"--seed", "5"});
  const Ended refused = run(other);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("seed was 1 and is 5"), std::string::npos) << refused.err;
}

TEST_F(TuneProgram, SeveralProcessesShareTheTrials) {
  const std::vector<std::string> grid = {"--grid", "rate=1e-3,3e-3,1e-2", "--grid", "batch=16,32", "--trials",
                                         "0",      "--threads",           "1"};
  const Ended whole = run(command("whole", grid));
  ASSERT_EQ(whole.code, 0) << whole.err;
  std::vector<std::unique_ptr<Process>> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(std::make_unique<Process>(command("shared", grid)));
  // One is killed once there is something to lose; what it had at work is done by another.
  for (int i = 0; i < 4000 && trials("shared") < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  workers[0]->send(SIGKILL);
  workers[0]->wait();
  for (std::size_t i = 1; i < workers.size(); ++i) {
    const Ended ended = workers[i]->wait();
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json document = json::parse(ended.out), alone = json::parse(whole.out);
    EXPECT_EQ(document["best"]["settings"], alone["best"]["settings"]);
    ASSERT_EQ(document["trials"].size(), 7u);
    for (std::size_t k = 0; k < 7; ++k)
      EXPECT_EQ(document["trials"][k]["metrics"], alone["trials"][k]["metrics"]) << k;
    EXPECT_LT(document["ran_here"], 7) << "the others did nothing";
  }
  EXPECT_EQ(trials("shared"), 7u);
  EXPECT_TRUE(read_text(folder_ / "shared/best.safetensors") ==
              read_text(folder_ / "whole/best.safetensors"));
  const Ended again = run(command("shared", grid));
  EXPECT_EQ(json::parse(again.out)["ran_here"], 0);
}

// One label, which no validation row has.
TEST_F(TuneProgram, WhatCannotBeMeasuredIsNoFaultOfTheTrials) {
  Dataset data = simulate({.rows = 40, .views = 2, .labels = 5, .sizes = {8, 6}}).data;
  Matrix<std::int8_t> labels(data.rows, 1);
  labels(3, 0) = labels(7, 0) = 1;
  data.labels = std::move(labels);
  data.label_names = {"rare"};
  write_dataset(data, folder_ / "rare.npz");
  const Ended ended =
      run({"tune", folder_ / "rare.npz", "--method", "mlknn", "--trials", "2", "--out", folder_ / "rare"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("AP is not defined on the 6 validation rows, so that no trial is better"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(ended.err.find("nan"), std::string::npos) << ended.err;
}

TEST_F(TuneProgram, MistakesAreSaidAtOnce) {
  EXPECT_EQ(run(command("no", {"--grid", "rathe=1,2"})).code, 2);
  EXPECT_EQ(run(command("no", {"--grid", "rate=1,-2"})).code, 2);
  EXPECT_EQ(run(command("no", {"--grid", "rate"})).code, 2);
  EXPECT_EQ(run({"tune", folder_ / "data.npz", "--method", "prior", "--out", folder_ / "no"}).code, 2);
  EXPECT_EQ(trials("no"), 0u);
}

}  // namespace
}  // namespace lacuna
