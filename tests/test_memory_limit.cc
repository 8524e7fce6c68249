// lacuna train --memory-limit as a user meets it: more rows than memory, and nothing else changes.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <regex>
#include <thread>

#include "base/files.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer needs more memory than a limit allows";
#endif
  }
  std::string simulated(const std::vector<std::string>& sizes) const {
    const std::string path = folder_ / "data";
    std::vector<std::string> command = {"data", "simulate", path, "--labels", "8", "--threads", "2"};
    command.insert(command.end(), sizes.begin(), sizes.end());
    EXPECT_EQ(run(command).code, 0);
    return path;
  }
  std::vector<std::string> training(const std::string& data, const std::string& model,
                                    const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"train",
                                        data,
                                        "--out",
                                        folder_ / model,
                                        "--embedding",
                                        "32",
                                        "--device",
                                        "cpu",
                                        "--batch",
                                        "64",
                                        "--threads",
                                        "2",
                                        "--encoder-widths",
                                        "64",
                                        "--decoder-widths",
                                        "32"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  TemporaryDirectory folder_;
};

// 340 MB of rows within 210 MB: resident memory counts pages of mapped files too.
TEST_F(MemoryLimit, AppliesToDataLargerThanMemory) {
  const std::string data = simulated({"--rows", "24000", "--sizes", "2048,1500"});
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(data)) bytes += entry.file_size();
  const std::size_t limit = std::size_t{200} << 20;
  ASSERT_GT(bytes, limit * 8 / 5);
  for (const char* prepare : {"root-pca", "zscore"}) {
    const Ended ended = run(training(data, "m.safetensors",
                                     {"--memory-limit", "200M", "--epochs", "1", "--prepare", prepare,
                                      "--shuffle-window", "1000", "--view-weight", "1"}));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_LT(ended.peak_bytes, limit) << prepare;
    EXPECT_NE(ended.err.find("of prepared rows go to"), std::string::npos) << ended.err;
    EXPECT_FALSE(fs::exists(folder_ / "m.safetensors.prepared"));
  }
  // Those that only read, too.
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"data", "inspect", data},
        {"data", "inspect", data, "--check"},
        {"data", "mask", data, folder_ / "folds.npz"},
        {"data", "convert", data, folder_ / "copy"},
        {"predict", folder_ / "m.safetensors", data, "--out", folder_ / "scores.npz", "--threads", "2"},
        {"evaluate", folder_ / "scores.npz", data}}) {
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_LT(ended.peak_bytes, limit) << command[0] << " " << command[1];
  }
}

TEST_F(MemoryLimit, AnInterruptedTrainingGoesOnToTheSameBytes) {
  const std::string data = simulated({"--rows", "2000", "--sizes", "60,40,20"});
  const auto limited = [&](const std::string& model, std::vector<std::string> more) {
    more.insert(more.end(), {"--memory-limit", "400M", "--epochs", "60", "--shuffle-window", "300",
                             "--checkpoint-every", "0", "--guess-from", "2"});
    return training(data, model, more);
  };
  ASSERT_EQ(run(limited("whole.safetensors", {})).code, 0);
  Process process(limited("m.safetensors", {}));
  const std::string checkpoint = folder_ / "m.safetensors.checkpoint";
  for (int tries = 0; tries < 6000 && !fs::exists(checkpoint); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGTERM);
  const Ended stopped = process.wait();
  ASSERT_EQ(stopped.code, 143) << stopped.err;
  EXPECT_TRUE(fs::exists(folder_ / "m.safetensors.prepared"));
  // The order of rows is another one in memory: a checkpoint does not go over.
  const Ended other = run(training(
      data, "m.safetensors", {"--epochs", "60", "--shuffle-window", "300", "--guess-from", "2", "--resume"}));
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_NE(other.err.find("order"), std::string::npos) << other.err;
  const Ended resumed = run(limited("m.safetensors", {"--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("prepared rows are taken from"), std::string::npos) << resumed.err;
  EXPECT_EQ(read_text(folder_ / "m.safetensors"), read_text(folder_ / "whole.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "m.safetensors.prepared"));
}

TEST_F(MemoryLimit, NamedFoldersAreKeptAndUsedAgain) {
  const std::string data = simulated({"--rows", "300", "--sizes", "20,10"});
  const std::vector<std::string> more = {"--memory-limit", "400M",          "--epochs", "2",
                                         "--prepared",     folder_ / "rows"};
  const Ended first = run(training(data, "a.safetensors", more));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(fs::exists(folder_ / "rows"));
  const Ended second = run(training(data, "b.safetensors", more));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.err.find("prepared rows are taken from"), std::string::npos) << second.err;
  EXPECT_EQ(read_text(folder_ / "a.safetensors"), read_text(folder_ / "b.safetensors"));
}

TEST_F(MemoryLimit, WhatCannotWorkIsSaid) {
  const std::string data = simulated({"--rows", "200", "--sizes", "20,10"});
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& word,
                           const std::string& from = "") {
    const Ended ended = run(training(from.empty() ? data : from, "m.safetensors", more));
    EXPECT_EQ(ended.code, code) << word << ": " << ended.err;
    EXPECT_NE(ended.err.find(word), std::string::npos) << ended.err;
  };
  refused({"--memory-limit", "much"}, 2, "800M or 2G");
  refused({"--memory-limit", "2"}, 2, "800M or 2G");
  refused({"--prepared", folder_ / "rows"}, 2, "memory-limit");
  refused({"--memory-limit", ""}, 2, "is empty");
  refused({"--memory-limit", "1G", "--prepared", data}, 2, "write elsewhere");
  refused({"--memory-limit", "1G", "--prepared", data + "/rows"}, 2, "lies inside the input");
  refused({"--memory-limit", "40M"}, 1, "the memory limit is 42 MB: allow more");  // by the estimate
  EXPECT_FALSE(fs::exists(folder_ / "m.safetensors.prepared"));
  ASSERT_EQ(run({"data", "convert", data, folder_ / "data.csv"}).code, 0);
  refused({"--memory-limit", "1G"}, 2, "lacuna data convert", folder_ / "data.csv");
  const Ended other =
      run({"train", data, "--method", "naim3l", "--memory-limit", "1G", "--out", folder_ / "m"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("naim3l needs all rows in memory"), std::string::npos) << other.err;
}

// What the estimate does not foresee: both numbers are told, and what was prepared does not stay behind.
TEST_F(MemoryLimit, WhereMemoryRunsOutNothingIsLeft) {
  const std::string data = simulated({"--rows", "9000", "--sizes", "900,500,300"});
  const Ended ended =
      run(training(data, "m.safetensors", {"--memory-limit", "160M", "--keep-decoders", "--epochs", "1"}));
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_TRUE(std::regex_search(ended.err, std::regex("had taken [1-9][0-9.]* MB of 168 MB and needed more")))
      << ended.err;
  EXPECT_FALSE(fs::exists(folder_ / "m.safetensors.prepared"));
}

}  // namespace
}  // namespace lacuna
