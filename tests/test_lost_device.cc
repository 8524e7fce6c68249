// A GPU that is lost or full in mid-run, as a user of the program meets it: one sentence, exit code 1, and what was done
// before is kept. The driver and the engine only pretend (tests/fake_cuda.c, tests/fake_engine.cc).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "program.h"

namespace lacuna {
namespace {

class LostDevice : public testing::Test {
 protected:
  void SetUp() override {
    SimulateOptions options;
    options.rows = 240;
    options.views = 3;
    options.labels = 6;
    options.sizes = {12, 9, 7};
    write_dataset(simulate(options).data, data());
    setenv("LD_LIBRARY_PATH", LACUNA_FAKE_CUDA, 1);
    setenv("LACUNA_CUDA_LIBRARY", LACUNA_FAKE_ENGINE, 1);
    setenv("FAKE_CUDA", "two", 1);
  }
  void TearDown() override {
    for (const char* name :
         {"LD_LIBRARY_PATH", "LACUNA_CUDA_LIBRARY", "FAKE_CUDA", "FAKE_LOST_AFTER", "FAKE_ROOM"})
      unsetenv(name);
  }
  std::string data() const { return folder_ / "data.npz"; }
  Ended train(const std::string& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"train",
                                          data(),
                                          "--out",
                                          model,
                                          "--device",
                                          "cuda",
                                          "--embedding",
                                          "24",
                                          "--encoder-widths",
                                          "32",
                                          "--decoder-widths",
                                          "16",
                                          "--epochs",
                                          "6",
                                          "--batch",
                                          "32",
                                          "--threads",
                                          "1",
                                          "--checkpoint-every",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  Ended bench(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "bench",     "table", "--data",   data(),     "--methods", "dicnet,lacuna",
        "--repeats", "3",     "--set",    "epochs=3", "--set",     "dicnet.width=.05",
        "--threads", "1",     "--device", "cuda",     "--out",     out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  // Names and bytes of the results of all cells.
  static std::string results(const std::string& out) {
    std::string all;
    for (const auto& cell : std::filesystem::directory_iterator(out + "/cells"))
      if (std::filesystem::exists(cell.path() / "result.json"))
        all += cell.path().filename().string() + "\n" + read_text((cell.path() / "result.json").string());
    return all;
  }
  TemporaryDirectory folder_;
};

void expect_lost(const Ended& ended) {
  EXPECT_EQ(ended.code, 1) << "signal " << ended.signal << ": " << ended.err;
  EXPECT_NE(ended.err.find("the GPU was lost"), std::string::npos) << ended.err;
}

TEST_F(LostDevice, TrainingGoesOnFromItsCheckpointToTheSameBits) {
  const std::string whole = folder_ / "whole", lost = folder_ / "lost";
  ASSERT_EQ(train(whole).code, 0);
  setenv("FAKE_LOST_AFTER", "70", 1);
  expect_lost(train(lost));
  EXPECT_FALSE(std::filesystem::exists(lost));
  EXPECT_TRUE(std::filesystem::exists(lost + ".checkpoint"));
  unsetenv("FAKE_LOST_AFTER");
  const Ended resumed = train(lost, {"--resume"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(read_text(whole) == read_text(lost));
}

TEST_F(LostDevice, EnsembleEndsWithAllOfItsThreads) {
  for (const char* after : {"1", "40", "200"}) {
    setenv("FAKE_LOST_AFTER", after, 1);
    expect_lost(train(folder_ / after, {"--members", "3"}));
  }
}

// Cells run in several threads; what the GPU left undone stays open and is no failure.
TEST_F(LostDevice, BenchEndsWithTheSentenceAndGoesOn) {
  const std::string whole = folder_ / "whole";
  ASSERT_EQ(bench(whole).code, 0);
  for (const char* after : {"1", "60", "150"}) {
    const std::string out = folder_ / after;
    setenv("FAKE_LOST_AFTER", after, 1);
    expect_lost(bench(out));
    for (const auto& file : std::filesystem::recursive_directory_iterator(out))
      EXPECT_EQ(file.path().filename().string().find("failure"), std::string::npos) << file.path();
    unsetenv("FAKE_LOST_AFTER");
    const Ended resumed = bench(out, {"--resume"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(results(out), results(whole));
  }
}

// One that is only full leaves a failed cell that says so.
TEST_F(LostDevice, FullMemoryIsTheCellsFailure) {
  setenv("FAKE_ROOM", "1000", 1);
  const Ended ended = train(folder_ / "model");
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.err.find("the GPU has 1000 bytes"), std::string::npos) << ended.err;
  const Ended cells = bench(folder_ / "cells");
  EXPECT_EQ(cells.code, 1) << "signal " << cells.signal << ": " << cells.err;
  EXPECT_NE(cells.err.find("the GPU has 1000 bytes"), std::string::npos) << cells.err;
}

}  // namespace
}  // namespace lacuna
