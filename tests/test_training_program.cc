// lacuna train as a user meets it: nothing is lost, and the same seed gives the same bits.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/random.h"
#include "base/tensors.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

class TrainProgram : public testing::Test {
 protected:
  void SetUp() override {
    SimulateOptions options;
    options.rows = 300;
    options.views = 3;
    options.labels = 6;
    options.sizes = {12, 9, 7};
    write_dataset(simulate(options).data, data());
  }
  std::string data() const { return folder_ / "data.npz"; }
  // A small network, a second or so of training.
  std::vector<std::string> command(const std::string& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"train",
                                          data(),
                                          "--out",
                                          model,
                                          "--method",
                                          "lacuna",
                                          "--embedding",
                                          "24",
                                          "--encoder-widths",
                                          "32",
                                          "--decoder-widths",
                                          "16",
                                          "--epochs",
                                          "12",
                                          "--batch",
                                          "32",
                                          "--threads",
                                          "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // What an uninterrupted run writes.
  std::string whole(std::vector<std::string> more = {}) const {
    const Ended ended = run(command(folder_ / "whole", std::move(more)));
    EXPECT_EQ(ended.code, 0) << ended.err;
    return read_text(folder_ / "whole");
  }
  static void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
  static bool exists(const std::string& path) { return std::filesystem::exists(path); }
  // Waits until the process has written its first checkpoint, or has ended before we saw one: false.
  static bool wait_for_checkpoint(const std::string& model) {
    const std::string path = model + ".checkpoint";
    for (int i = 0; i < 24000 && !exists(path) && !exists(model); ++i) pause(.005);
    return exists(path);
  }
  // Starts a training that writes a checkpoint after every epoch, and kills it behind the first one. On a busy machine
  // a short training is over before we see that: it takes more epochs then. Gives their number.
  std::string kill_behind_a_checkpoint(const std::string& model, int epochs = 12) const {
    for (;; epochs *= 4) {
      const std::string count = std::to_string(epochs);
      Process process(command(model, {"--epochs", count, "--checkpoint-every", "0"}));
      const bool written = wait_for_checkpoint(model);
      process.send(SIGKILL);
      const Ended ended = process.wait();
      if (written && ended.signal == SIGKILL && !exists(model)) return count;
      if (!exists(model)) ADD_FAILURE() << "neither a checkpoint nor a model: " << ended.err;
      if (!exists(model)) return count;
      for (const char* ending : {"", ".checkpoint", ".history.json"}) std::filesystem::remove(model + ending);
    }
  }

  TemporaryDirectory folder_;
};

TEST_F(TrainProgram, SameSeedSameBitsForAnyNumberOfThreads) {
  std::string first;
  for (const char* threads : {"1", "2", "4"}) {
    for (const char* preset : {"best", "authors"}) {
      const std::string model = folder_ / preset;
      const Ended ended = run({"train", data(), "--out", model, "--preset", preset, "--width", ".05",
                               "--embedding", "20", "--epochs", "3", "--threads", threads});
      ASSERT_EQ(ended.code, 0) << ended.err;
    }
    const std::string both = read_text(folder_ / "best") + read_text(folder_ / "authors");
    if (first.empty()) first = both;
    EXPECT_TRUE(both == first) << threads << " threads";
  }
  const Ended other = run({"train", data(), "--out", folder_ / "other", "--width", ".05", "--embedding", "20",
                           "--epochs", "3", "--seed", "2"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_FALSE(read_text(folder_ / "other") == read_text(folder_ / "best"));
}

TEST_F(TrainProgram, KilledAtAnyMomentAndResumed) {
  const auto begun = std::chrono::steady_clock::now();
  const std::string expected = whole();
  // Anywhere in the first part of a run, on a slow or fast machine. Runs that are over before the kill make it come
  // earlier.
  double most = .6 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  Random random(5, Purpose::test);
  int kills = 0;
  for (int trial = 0; trial < 3 || kills < 4; ++trial) {
    ASSERT_LT(trial, 40);
    const std::string model = folder_ / ("killed" + std::to_string(trial));
    // Every epoch, or every few milliseconds between any two steps.
    const std::string every = trial == 0 ? "0" : "0.004";
    bool done = false;  // a kill may also come between the model and the removal of the checkpoint
    for (int attempt = 0; !done; ++attempt) {
      ASSERT_LT(attempt, 60);
      Process process(command(model, {"--resume", "--checkpoint-every", every}));
      if (attempt < 4) {
        pause(most * random.uniform_double());
        process.send(SIGKILL);
      }
      const Ended ended = process.wait();
      kills += ended.signal == SIGKILL;
      done = ended.signal == 0;
      if (done && attempt < 4) most /= 2;
      if (done) {
        EXPECT_EQ(ended.code, 0) << ended.err;
      }
    }
    EXPECT_TRUE(read_text(model) == expected) << "trial " << trial;
    EXPECT_FALSE(exists(model + ".checkpoint"));
  }
}

TEST_F(TrainProgram, AnEnsembleResumesToo) {
  const std::vector<std::string> members = {"--members", "3", "--epochs", "4"};
  const std::string expected = whole(members);
  const std::string model = folder_ / "model";
  for (int attempt = 0; !exists(model); ++attempt) {
    ASSERT_LT(attempt, 60);
    auto arguments = command(model, {"--resume", "--checkpoint-every", "0"});
    arguments.insert(arguments.end(), members.begin(), members.end());
    Process process(arguments);
    if (attempt < 5) {
      if (wait_for_checkpoint(model)) pause(.05);
      process.send(SIGKILL);
    }
    process.wait();
  }
  EXPECT_TRUE(read_text(model) == expected);
  const json history = json::parse(read_text(model + ".history.json"));
  EXPECT_EQ(history["history"].size(), 12u);
  EXPECT_EQ(history["history"].back()["member"], 2);
}

TEST_F(TrainProgram, SignalsWriteACheckpointAndSayHowToGoOn) {
  int epochs = 60;  // more where a training is over before our signal reaches it
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    const std::string model = folder_ / ("stopped" + std::to_string(signal));
    Ended ended;
    for (;; epochs *= 4) {
      const std::string count = std::to_string(epochs);
      Process process(command(model, {"--epochs", count, "--checkpoint-every", "1000", "--json-events"}));
      for (int i = 0; i < 24000 && process.errors_so_far().find("\"epoch\":2,") == std::string::npos; ++i)
        pause(.005);
      process.send(signal);
      ended = process.wait();
      if (ended.code != 0) break;
      std::filesystem::remove(model);
    }
    ASSERT_EQ(ended.code, code) << ended.err;
    EXPECT_NE(ended.err.find("--resume"), std::string::npos) << ended.err;
    EXPECT_TRUE(exists(model + ".checkpoint"));
    EXPECT_FALSE(exists(model));
    const std::string count = std::to_string(epochs);
    const Ended resumed = run(command(model, {"--epochs", count, "--resume"}));
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(read_text(model) == whole({"--epochs", count}));
    EXPECT_EQ(json::parse(read_text(model + ".history.json"))["history"].size(),
              static_cast<std::size_t>(epochs));
  }
}

TEST_F(TrainProgram, ACheckpointOfAnotherTrainingIsRefused) {
  const std::string model = folder_ / "model";
  ASSERT_EQ(kill_behind_a_checkpoint(model, 50000), "50000");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& named) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find(named), std::string::npos) << ended.err;
  };
  refused(command(model, {"--epochs", "400", "--resume"}), "epochs was 50000 and is 400");
  refused(command(model, {"--epochs", "50000", "--seed", "9", "--resume"}), "seed was 1 and is 9");
  refused(command(model, {"--epochs", "50000", "--hold-out", ".2", "--resume"}),
          "hold-out was 0.15 and is 0.2");
  SimulateOptions options;
  options.rows = 301;
  options.views = 3;
  options.labels = 6;
  options.sizes = {12, 9, 7};
  write_dataset(simulate(options).data, data());
  refused(command(model, {"--epochs", "50000", "--resume"}), "data was");
  write_text(model + ".checkpoint", "garbage");
  EXPECT_EQ(run(command(model, {"--epochs", "50000", "--resume"})).code, 3);
}

TEST_F(TrainProgram, AFullDiskNeverDestroysTheLastCheckpoint) {
  const std::string model = folder_ / "model";
  const std::string epochs = kill_behind_a_checkpoint(model);
  const std::string good = read_text(model + ".checkpoint");
  const Ended full =
      Process(command(model, {"--epochs", epochs, "--checkpoint-every", "0", "--resume"}), 4096).wait();
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_NE(full.err.find("training continues"), std::string::npos) << full.err;
  EXPECT_FALSE(exists(model));
  EXPECT_TRUE(read_text(model + ".checkpoint") == good);
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(model).parent_path()))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  const Ended resumed = run(command(model, {"--epochs", epochs, "--checkpoint-every", "0", "--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(read_text(model) == whole({"--epochs", epochs}));
}

TEST_F(TrainProgram, WhatCannotBeWrittenIsSaidBeforeTraining) {
  const Ended ended = run(command(folder_ / "nowhere/model"));
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("nowhere/model"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("epoch"), std::string::npos) << ended.err;
}

// Beside a device nothing is written.
TEST_F(TrainProgram, AModelForAPipeHasNothingBesideIt) {
  const TemporaryDirectory folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    std::ostringstream all;
    all << std::ifstream(fifo, std::ios::binary).rdbuf();
    read = all.str();
  });
  const Ended ended = run(command(fifo, {"--checkpoint-every", "0"}));
  reader.join();
  EXPECT_EQ(ended.code, 0) << ended.err;
  write_text(folder / "model", read);
  EXPECT_EQ(run({"show", folder / "model"}).code, 0);
  std::vector<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "."))
    there.push_back(entry.path().filename());
  std::ranges::sort(there);
  EXPECT_EQ(there, (std::vector<std::string>{"fifo", "model"}));
}

TEST_F(TrainProgram, TheKeptEpochIsSaid) {
  const Ended ended = run(command(folder_ / "model", {"--epochs", "12"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json history = json::parse(read_text(folder_ / "model.history.json"))["history"];
  const auto kept = history.back()["kept"].get<int>();
  EXPECT_GT(kept, 0);
  EXPECT_NE(ended.out.find("epoch " + std::to_string(kept) + " of 12 kept"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("--patience") != std::string::npos, 3 * kept < 12);
}

TEST_F(TrainProgram, DivergenceHasItsOwnExitCodeAndKeepsTheBestModel) {
  const std::string model = folder_ / "model";
  // The rate rises to an absurd one, so that the first epoch is still sound.
  const std::vector<std::string> absurd = {"--optimiser", "sgd", "--rate",     "1000", "--warm-up",      "40",
                                           "--epochs",    "40",  "--end-norm", "none", "--weight-decay", "0",
                                           "--batch",     "128"};
  const Ended ended = run(command(model, absurd));
  EXPECT_EQ(ended.code, 5) << ended.err;
  EXPECT_NE(ended.err.find("the loss '"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("in epoch "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("saved in " + model), std::string::npos) << ended.err;
  EXPECT_EQ(run({"predict", model, data(), "--out", folder_ / "scores.csv"}).code, 0);
  EXPECT_TRUE(exists(model + ".history.json"));

  auto blind = absurd;
  blind.insert(blind.end(), {"--hold-out", "0"});
  const Ended nothing = run(command(folder_ / "nothing", blind));
  EXPECT_EQ(nothing.code, 5) << nothing.err;
  EXPECT_FALSE(exists(folder_ / "nothing"));
}

TEST_F(TrainProgram, AModelThatCannotBeWrittenLeavesNoHistoryOfItsOwn) {
  const std::string model = folder_ / "unwritten", history = model + ".history.json";
  const std::vector<std::string> words = command(model, {"--epochs", "1", "--checkpoint-every", "1000"});
  ASSERT_EQ(run(words).code, 0);
  const auto bytes = std::filesystem::file_size(model);
  const std::string written = read_text(history);
  const auto most = static_cast<rlim_t>(bytes - 1);
  ASSERT_LT(written.size(), most);  // the history fits, the model does not

  const Ended again = Process(words, most).wait();
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_NE(again.err.find("the old file is kept"), std::string::npos) << again.err;
  EXPECT_EQ(std::filesystem::file_size(model), bytes);
  EXPECT_EQ(read_text(history), written);

  std::filesystem::remove(model);
  std::filesystem::remove(history);
  const Ended first = Process(words, most).wait();
  EXPECT_EQ(first.code, 1) << first.err;
  EXPECT_EQ(first.err.find("the old file is kept"), std::string::npos) << first.err;
  EXPECT_FALSE(exists(model) || exists(history));
}

// A method for one view tries them one after the other; those are no members.
TEST_F(TrainProgram, ProgressTellsViewsFromMembers) {
  const auto told = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"train", data(), "--out", folder_ / "tried", "--method", "c2ae", "--epochs", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.err;
  };
  const std::string each = told({}), one = told({"--view", "0"}), both = told({"--members", "2"});
  EXPECT_TRUE(each.find("view 1/") != std::string::npos && each.find("member") == std::string::npos) << each;
  const json history = json::parse(read_text(folder_ / "tried.history.json"))["history"];
  EXPECT_EQ(history.back()["member"], 1);
  EXPECT_GT(history.back()["view"], 0);
  EXPECT_TRUE(one.find("view 1/") == std::string::npos && one.find("member") == std::string::npos) << one;
  EXPECT_NE(both.find("member 1/2, view 1/"), std::string::npos) << both;

  const Ended refused = run({"export", folder_ / "tried", folder_ / "tried.onnx"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_NE(refused.err.find((folder_ / "tried") + ": ensembles of c2ae"), std::string::npos) << refused.err;
}

TEST_F(TrainProgram, ADamagedCheckpointMayBeRemoved) {
  const std::string model = folder_ / "damaged";
  kill_behind_a_checkpoint(model);
  const std::string path = model + ".checkpoint", bytes = read_text(path);
  write_text(path, bytes.substr(0, bytes.size() / 2));
  const Ended ended = run(command(model, {"--resume"}));
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_NE(ended.err.find("damaged"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("remove it"), std::string::npos) << ended.err;
}

TEST_F(TrainProgram, DocumentAndEvents) {
  const Ended ended = run(command(folder_ / "model", {"--json", "--json-events"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json document = json::parse(ended.out);
  EXPECT_EQ(document["schema"], "lacuna.train.1");
  EXPECT_GT(document["parameters"].get<int>(), 100);
  EXPECT_EQ(document["history"].size(), 12u);
  for (const char* metric : {"AP", "1-HL", "1-RL", "AUC", "1-OE", "1-Cov"})
    EXPECT_TRUE(document["metrics"][metric].is_number());
  double before = 0;
  for (const auto& entry : document["history"]) {
    EXPECT_GT(entry["seconds"].get<double>(), before);
    before = entry["seconds"].get<double>();
    EXPECT_TRUE(entry["losses"]["total"].is_number());
    EXPECT_TRUE(entry["validation"]["AP"].is_number());
  }
  std::istringstream lines(ended.err);
  int events = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string event = json::parse(line)["event"];
    EXPECT_TRUE(event == "epoch" || event == "note") << line;
    events += event == "epoch" ? 1 : 0;
  }
  EXPECT_EQ(events, 12);
}

TEST_F(TrainProgram, ConfigFilesAndTheCommandLineSayTheSame) {
  const std::string expected = whole({"--rate", "0.002"});
  auto printing = command(folder_ / "model", {"--rate", "0.002", "--print-config"});
  const Ended printed = run(printing);
  ASSERT_EQ(printed.code, 0) << printed.err;
  write_text(folder_ / "config.toml", printed.out);
  const Ended ended = run({"train", data(), "--out", folder_ / "model", "--config", folder_ / "config.toml"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(read_text(folder_ / "model") == expected);

  write_text(folder_ / "config.toml", "method = \"lacuna\"\n[training]\nepohcs = 3\n");
  const Ended misspelt =
      run({"train", data(), "--out", folder_ / "model", "--config", folder_ / "config.toml"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_NE(misspelt.err.find("config.toml:3"), std::string::npos) << misspelt.err;
  EXPECT_NE(misspelt.err.find("'epochs'"), std::string::npos) << misspelt.err;
  write_text(folder_ / "config.toml", "epochs = = 3\n");
  EXPECT_EQ(run({"train", data(), "--out", folder_ / "model", "--config", folder_ / "config.toml"}).code, 3);
}

}  // namespace
}  // namespace lacuna
