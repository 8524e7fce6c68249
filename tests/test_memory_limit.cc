// --memory-limit of lacuna train and lacuna complete as a user meets it: more rows than memory, and nothing else changes.
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
  // The same network for `lacuna complete`, with half of the labels unknown.
  std::vector<std::string> completion(const std::string& data, const std::string& filled,
                                      const std::vector<std::string>& more) const {
    std::vector<std::string> command = training(data, filled, more);
    command[0] = "complete";
    const std::string folds = folder_ / "folds.npz";
    if (!fs::exists(folds)) EXPECT_EQ(run({"data", "mask", data, folds, "--repeats", "1"}).code, 0);
    command.insert(command.end(), {"--folds", folds, "--parts", "2"});
    return command;
  }
  // Files and folders that belong to `filled` and were left beside it.
  std::vector<std::string> left_beside(const std::string& filled) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / ""))
      if (const std::string name = entry.path().filename(); name.starts_with(filled + "."))
        names.push_back(name);
    return names;
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

// What few rows need of a file is less than a view in memory may take, but they lie all over it.
TEST_F(MemoryLimit, AppliesToFewRowsOfALargeFile) {
  const std::string data = simulated({"--rows", "24000", "--sizes", "2048,1500"}),
                    folds = folder_ / "few.npz";
  ASSERT_EQ(run({"data", "mask", data, folds, "--repeats", "1", "--train", ".42", "--val", ".08"}).code, 0);
  const Ended ended =
      run(training(data, "m.safetensors", {"--memory-limit", "200M", "--epochs", "1", "--folds", folds}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_LT(ended.peak_bytes, std::size_t{200} << 20);
}

// 340 MB of rows within 210 MB. The rows of a part lie all over the file: what is between them is given back too.
TEST_F(MemoryLimit, LabelsOfDataLargerThanMemoryAreCompleted) {
  const std::string data = simulated({"--rows", "24000", "--sizes", "2048,1500"});
  for (const char* prepare : {"root-pca", "zscore"}) {
    const Ended ended = run(completion(
        data, "filled.npy",
        {"--memory-limit", "200M", "--epochs", "1", "--prepare", prepare, "--shuffle-window", "1000"}));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_LT(ended.peak_bytes, std::size_t{200} << 20) << prepare;
    EXPECT_NE(ended.err.find("of prepared rows go to"), std::string::npos) << ended.err;
    EXPECT_TRUE(left_beside("filled.npy").empty()) << left_beside("filled.npy").front();
  }
}

TEST_F(MemoryLimit, AnInterruptedCompletionGoesOnToTheSameBytes) {
  const std::string data = simulated({"--rows", "2000", "--sizes", "60,40,20"});
  const auto limited = [&](const std::string& filled, std::vector<std::string> more) {
    more.insert(more.end(), {"--memory-limit", "400M", "--epochs", "60", "--checkpoint-every", "0"});
    return completion(data, filled, more);
  };
  ASSERT_EQ(run(limited("whole.npy", {})).code, 0);
  Process process(limited("f.npy", {}));
  const std::string checkpoint = folder_ / "f.npy.part1.checkpoint";
  for (int tries = 0; tries < 6000 && !fs::exists(checkpoint); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGTERM);
  const Ended stopped = process.wait();
  ASSERT_EQ(stopped.code, 143) << stopped.err;
  EXPECT_EQ(left_beside("f.npy").size(), 3u);  // part 0, the checkpoint of part 1, and its prepared rows
  const Ended resumed = run(limited("f.npy", {"--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("prepared rows are taken from"), std::string::npos) << resumed.err;
  EXPECT_EQ(read_text(folder_ / "f.npy"), read_text(folder_ / "whole.npy"));
  EXPECT_TRUE(left_beside("f.npy").empty());
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
  const Ended piped = run(completion(data, "-", {"--memory-limit", "1G", "--out", "-"}));
  EXPECT_EQ(piped.code, 2) << piped.err;
  EXPECT_NE(piped.err.find("is not a file, so there are no prepared rows"), std::string::npos) << piped.err;
  const Ended small = run(completion(data, "filled.npy", {"--memory-limit", "40M"}));
  EXPECT_EQ(small.code, 1) << small.err;
  EXPECT_NE(small.err.find("the memory limit is 42 MB: allow more"), std::string::npos) << small.err;
  EXPECT_TRUE(left_beside("filled.npy").empty());
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
