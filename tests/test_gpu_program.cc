// The program with a GPU, as its users meet it: which one is chosen, what doctor says of it, trainings that go on on another
// device, and one that is lost or full in mid-run: one sentence, exit code 1, and what was done before is kept. The driver
// and the engine only pretend (tests/fake_cuda.c, tests/fake_engine.cc).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "data/readers.h"
#include "serve_model.h"

namespace lacuna {
namespace {

class WithGpu : public testing::Test {
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
    for (const char* name : {"LD_LIBRARY_PATH", "LACUNA_CUDA_LIBRARY", "FAKE_CUDA", "FAKE_LOST_AFTER",
                             "FAKE_LOST_AFTER_FORWARD", "FAKE_ROOM"})
      unsetenv(name);
  }
  std::string data() const { return folder_ / "data.npz"; }
  std::vector<std::string> training(const std::string& model, const std::vector<std::string>& more = {},
                                    const std::string& device = "cuda") const {
    std::vector<std::string> arguments = {"train",
                                          data(),
                                          "--out",
                                          model,
                                          "--device",
                                          device,
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
    return arguments;
  }
  Ended train(const std::string& model, const std::vector<std::string>& more = {},
              const std::string& device = "cuda") const {
    return run(training(model, more, device));
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

TEST_F(WithGpu, DoctorShowsWhatIsThere) {
  const Ended ended = run({"doctor", "--json", "--threads", "1"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto gpu = nlohmann::json::parse(ended.out)["gpu"];
  EXPECT_EQ(gpu["absence"], "");
  EXPECT_EQ(gpu["driver_cuda"], "13.0");
  EXPECT_EQ(gpu["engine"], LACUNA_FAKE_ENGINE);
  ASSERT_EQ(gpu["list"].size(), 2u);
  for (const auto& each : gpu["list"]) {
    EXPECT_EQ(each["name"], "Fake GPU");
    EXPECT_EQ(each["compute_capability"], "9.0");
    EXPECT_EQ(each["memory_bytes"], std::uint64_t{8} << 30);
    EXPECT_EQ(each["free_bytes"], 1 << 30);
    EXPECT_EQ(each["copy_bytes_per_second"], 1.);
    EXPECT_EQ(each["bf16_flops"], 1.);
  }
}

TEST_F(WithGpu, OneThatIsNotThereIsRefusedByEveryVerb) {
  const std::string model = folder_ / "model";
  ASSERT_EQ(train(model).code, 0);
  for (const auto& verb :
       std::vector<std::vector<std::string>>{{"train", data(), "--out", folder_ / "other"},
                                             {"tune", data(), "--out", folder_ / "other"},
                                             {"bench", "table", "--data", data(), "--out", folder_ / "bench"},
                                             {"predict", model, data(), "--out", folder_ / "scores.npz"},
                                             {"explain", model, data()},
                                             {"serve", model, "--listen", "127.0.0.1:0"}}) {
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), {"--device", "cuda:2"});
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 2) << verb[0] << ": " << ended.err;
    EXPECT_NE(ended.err.find("there are 2 GPUs here (cuda:0 to cuda:1)"), std::string::npos)
        << verb[0] << ": " << ended.err;
  }
}

// With one precision the engine that pretends gives the CPU's bits; a real one rounds in another order.
TEST_F(WithGpu, ACheckpointOfOneDeviceContinuesOnTheOther) {
  int epochs = 120;  // more where a training is over before our signal reaches it
  for (const auto& [first, second] : {std::pair("cpu", "cuda"), std::pair("cuda", "cpu")}) {
    const std::string whole = folder_ / first + std::string("-whole"), broken = folder_ / first;
    std::vector<std::string> longer;
    Ended interrupted;
    for (;; epochs *= 4) {
      longer = {"--precision", "f32", "--epochs", std::to_string(epochs)};
      Process process(training(broken, longer, first));
      for (int tries = 0; tries < 12000 && !std::filesystem::exists(broken + ".checkpoint"); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      process.send(SIGINT);
      interrupted = process.wait();
      if (interrupted.code != 0) break;
      std::filesystem::remove(broken);
    }
    ASSERT_EQ(interrupted.code, 130) << interrupted.err;
    std::vector<std::string> again = longer;
    again.push_back("--resume");
    const Ended resumed = train(broken, again, second);
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    ASSERT_EQ(train(whole, longer, second).code, 0);
    EXPECT_TRUE(read_text(whole) == read_text(broken)) << first;
  }
}

TEST_F(WithGpu, ServerAnswersAndEndsWhenItIsLost) {
  const SmallModel small;
  const std::string request = post(infer_target(), small.request(0, 2, 7).dump());
  {
    ServeProcess server({small.path, "--device", "cuda"});
    const HttpAnswer answer = server.ask(request);
    ASSERT_EQ(answer.status, 200) << answer.body;
    expect_scores(answer.json(), small.expected(small.path, 0, 2, 7));
    EXPECT_EQ(server.stop().code, 0);
  }
  setenv("FAKE_LOST_AFTER_FORWARD", "0", 1);
  ServeProcess server({small.path, "--device", "cuda"});
  const HttpAnswer answer = server.ask(request);
  EXPECT_EQ(answer.status, 500);
  EXPECT_NE(answer.body.find("the GPU was lost"), std::string::npos) << answer.body;
  expect_lost(server.process().wait());
}

TEST_F(WithGpu, TrainingGoesOnFromItsCheckpointToTheSameBits) {
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

TEST_F(WithGpu, EnsembleEndsWithAllOfItsThreads) {
  for (const char* after : {"1", "40", "200"}) {
    setenv("FAKE_LOST_AFTER", after, 1);
    expect_lost(train(folder_ / after, {"--members", "3"}));
  }
}

// Cells run in several threads; what the GPU left undone stays open and is no failure.
TEST_F(WithGpu, BenchEndsWithTheSentenceAndGoesOn) {
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
TEST_F(WithGpu, FullMemoryIsTheCellsFailure) {
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
