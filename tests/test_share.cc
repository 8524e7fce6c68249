// The members of an ensemble, learned by several processes: one model, the bytes of one process's.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class Share : public testing::Test {
 protected:
  void SetUp() override {
    SimulateOptions options;
    options.rows = 150;
    options.views = 2;
    options.labels = 5;
    options.sizes = {8, 6};
    write_dataset(simulate(options).data, folder_ / "data.npz");
  }
  std::vector<std::string> train(const std::string& out, std::vector<std::string> more) const {
    std::vector<std::string> words = {"train",  folder_ / "data.npz", "--out", folder_ / out, "--epochs",
                                      "4",      "--embedding",        "12",    "--threads",   "1",
                                      "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::size_t members(const std::string& model) const {
    std::error_code error;
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / (model + ".members"), error))
      count += entry.path().extension() == ".safetensors" && entry.path().filename().string()[0] == 'm';
    return count;
  }
  TemporaryDirectory folder_;
};

// Started three times at once, one of them killed once there is something to lose.
TEST_F(Share, ProcessesLearnOneModelTogether) {
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{"--members", "5"}, std::vector<std::string>{"--preset", "distilled"},
        std::vector<std::string>{"--preset", "auto"}}) {
    const std::string whole = kind[1] + ".whole", shared = kind[1] + ".shared";
    const Ended alone = run(train(whole, kind));
    ASSERT_EQ(alone.code, 0) << alone.err;
    auto together = kind;
    together.push_back("--share");
    std::vector<std::unique_ptr<Process>> workers;
    for (int i = 0; i < 3; ++i) workers.push_back(std::make_unique<Process>(train(shared, together)));
    for (int i = 0; i < 4000 && members(shared) < 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    workers[0]->send(SIGKILL);
    workers[0]->wait();
    for (std::size_t i = 1; i < workers.size(); ++i) {
      const Ended ended = workers[i]->wait();
      ASSERT_EQ(ended.code, 0) << ended.err;
    }
    EXPECT_TRUE(read_text(folder_ / whole) == read_text(folder_ / shared)) << kind[1];
    EXPECT_GE(members(shared), 3u);
  }
}

TEST_F(Share, WhatItCannotDoIsRefused) {
  EXPECT_EQ(run(train("one", {"--share"})).code, 2) << "one network";
  EXPECT_EQ(run(train("m", {"--share", "--members", "2", "--resume"})).code, 2);
  EXPECT_EQ(run(train("m", {"--share", "--members", "2", "--time-limit", "9"})).code, 2);
  ASSERT_EQ(run(train("m", {"--share", "--members", "2"})).code, 0);
  const Ended other = run(train("m", {"--share", "--members", "2", "--seed", "5"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("seed was 1 and is 5"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace lacuna
