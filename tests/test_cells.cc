// Experiments that are interrupted, shared and repeated: the program itself, killed and started again.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/files.h"
#include "experiments/store.h"
#include "result_files.h"
#include "temporary.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Starts the program with its output in a file; its process number.
pid_t start(std::vector<std::string> arguments, const std::string& output) {
  arguments.insert(arguments.begin(), LACUNA_PROGRAM);
  std::vector<char*> words;
  for (auto& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    if (std::freopen(output.c_str(), "w", stdout) == nullptr ||
        std::freopen((output + ".err").c_str(), "w", stderr) == nullptr)
      _exit(99);
    execv(words[0], words.data());
    _exit(98);
  }
  return pid;
}

int finish(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(const std::vector<std::string>& arguments, const std::string& output) {
  const int code = finish(start(arguments, output));
  if (code != 0)
    std::cerr << "exit code " << code << ": " << read_text(output + ".err");  // for the log of a failed test
  return code;
}

class Cells : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run({"data", "simulate", data_, "--rows", "120", "--views", "2", "--labels", "5"},
                  directory_ / "log"),
              0);
  }
  std::vector<std::string> table(const std::string& out, bool resume) const {
    std::vector<std::string> words = {"bench",        "table",          "--data", data_,       "--methods",
                                      "prior,naim3l", "--repeats",      "8",      "--threads", "1",
                                      "--out",        directory_ / out, "--json"};
    if (resume) words.push_back("--resume");
    return words;
  }
  TemporaryDirectory directory_;
  std::string data_ = directory_ / "toy.npz";
};

TEST_F(Cells, KilledTenTimesAndResumedGivesTheFilesOfOneRun) {
  ASSERT_EQ(run(table("whole", false), directory_ / "whole.json"), 0);
  const std::string folder = directory_ / "killed";
  int interrupted = 0;
  for (int kill_count = 0; kill_count < 10; ++kill_count) {
    const std::size_t before = finished_cells(folder);
    const pid_t pid = start(table("killed", kill_count > 0), directory_ / "log");
    // Killed once it has made progress: some of the kills hit a cell at work, some the writing of one.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    int status = 0;
    bool over = false;
    while (!(over = waitpid(pid, &status, WNOHANG) == pid) && finished_cells(folder) == before &&
           std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::microseconds(200 + 300 * kill_count));
    if (over) break;  // there is nothing more to interrupt
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    interrupted += WIFSIGNALED(status) ? 1 : 0;
  }
  EXPECT_GT(interrupted, 0) << "the kills came too late to interrupt anything";
  ASSERT_EQ(run(table("killed", true), directory_ / "killed.json"), 0);
  const auto whole = result_files(directory_ / "whole"), killed = result_files(folder);
  for (const auto& [name, content] : killed) EXPECT_TRUE(whole.count(name)) << name << " was left behind";
  for (const auto& [name, content] : whole) {
    if (name.starts_with("experiments/")) continue;  // holds the command, which names the folder
    ASSERT_TRUE(killed.count(name)) << name;
    EXPECT_EQ(killed.at(name), content) << name;
  }
  EXPECT_TRUE(fs::is_empty(folder + "/claims"));
}

TEST_F(Cells, SeveralProcessesShareAFolder) {
  ASSERT_EQ(run(table("whole", false), directory_ / "whole.json"), 0);
  std::vector<pid_t> workers;
  for (int i = 0; i < 3; ++i)
    workers.push_back(start(table("shared", true), directory_ / ("w" + std::to_string(i))));
  std::size_t ran = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(finish(workers[static_cast<std::size_t>(i)]), 0)
        << read_text(directory_ / ("w" + std::to_string(i) + ".err"));
    const json outcome = json::parse(read_text(directory_ / ("w" + std::to_string(i))));
    EXPECT_EQ(outcome.at("done"), 16);
    ran += outcome.at("ran_here").get<std::size_t>();
  }
  EXPECT_EQ(ran, 16u) << "some cell was run twice, or not at all";
  const auto whole = result_files(directory_ / "whole"), shared = result_files(directory_ / "shared");
  for (const auto& [name, content] : whole) {
    if (name.starts_with("experiments/")) continue;
    ASSERT_TRUE(shared.count(name)) << name;
    EXPECT_EQ(shared.at(name), content) << name;
  }
}

TEST_F(Cells, FinishedCellsAreNotRunAgainAndOtherPlansAreRefused) {
  ASSERT_EQ(run(table("once", false), directory_ / "a.json"), 0);
  EXPECT_EQ(run(table("once", false), directory_ / "log"), 2) << "without --resume";
  ASSERT_EQ(run(table("once", true), directory_ / "b.json"), 0);
  EXPECT_EQ(json::parse(read_text(directory_ / "b.json")).at("ran_here"), 0);
  auto other = table("once", true);
  other.insert(other.end(), {"--seed", "7"});
  EXPECT_EQ(run(other, directory_ / "log"), 2);
  EXPECT_NE(read_text(directory_ / "log.err").find("another"), std::string::npos);
  // More repetitions under another name find the cells that are there.
  auto more = table("once", true);
  more[6] = "--repeats", more[7] = "9";
  more.insert(more.end(), {"--name", "nine"});
  ASSERT_EQ(run(more, directory_ / "c.json"), 0);
  EXPECT_EQ(json::parse(read_text(directory_ / "c.json")).at("ran_here"), 2);
}

TEST_F(Cells, AFailedCellIsRecordedAndDoesNotStopTheRest) {
  const std::string folder = directory_ / "failing";
  const std::vector<std::string> words = {
      "bench", "table",           "--data",    data_, "--methods", "lacuna,prior", "--set", "lacuna.beta=1",
      "--set", "lacuna.epochs=3", "--repeats", "2",   "--out",     folder,         "--json"};
  EXPECT_EQ(run(words, directory_ / "out.json"), 1);
  const json outcome = json::parse(read_text(directory_ / "out.json"));
  EXPECT_EQ(outcome.at("done"), 2);
  EXPECT_EQ(outcome.at("failed"), 2);
  std::size_t failures = 0;
  for (const auto& entry : fs::directory_iterator(folder + "/failed")) {
    const json failure = read_json(entry.path().string());
    EXPECT_FALSE(failure.at("error").get<std::string>().empty());
    EXPECT_EQ(failure.at("spec").at("method"), "lacuna");
    ++failures;
  }
  EXPECT_EQ(failures, 2u);
  ASSERT_EQ(run({"report", folder}, directory_ / "log"), 0);
  EXPECT_NE(read_text(folder + "/report.html").find("2 cells failed: lacuna on"), std::string::npos);
}

TEST_F(Cells, TimingMeasuresEachCellInAProcessOfItsOwn) {
  const std::string folder = directory_ / "timed";
  const std::vector<std::string> words = {"bench",        "timing",    "--data", data_,       "--methods",
                                          "prior,naim3l", "--repeats", "2",      "--threads", "1",
                                          "--out",        folder,      "--json"};
  ASSERT_EQ(run(words, directory_ / "timed.json"), 0);
  const json outcome = json::parse(read_text(directory_ / "timed.json"));
  EXPECT_EQ(outcome.at("ran_here"), 4);
  std::set<int> processes;
  for (const auto& cell : outcome.at("cells")) {
    const json& measured = cell.at("run");
    processes.insert(measured.at("process").get<int>());
    EXPECT_GT(measured.at("peak_bytes"), 1 << 20);
    EXPECT_GT(measured.at("seconds").at("fit"), 0);
    EXPECT_GE(measured.at("seconds").at("fit_processor"), 0);
  }
  EXPECT_EQ(processes.size(), 4u);
  // A table runs its own cells: times and memory of one are never those of the other.
  ASSERT_EQ(run({"bench", "table", "--data", data_, "--methods", "prior,naim3l", "--repeats", "2", "--out",
                 folder, "--json"},
                directory_ / "table.json"),
            0);
  const json table = json::parse(read_text(directory_ / "table.json"));
  EXPECT_EQ(table.at("ran_here"), 4);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.at("cells")[i].at("metrics"), outcome.at("cells")[i].at("metrics"));
    EXPECT_NE(table.at("cells")[i].at("cell"), outcome.at("cells")[i].at("cell"));
  }
  EXPECT_EQ(run({"bench", "cell", "0123456789abcdef", "--spec",
                 read_text(folder + "/cells/" + outcome.at("cells")[0].at("cell").get<std::string>() +
                           "/spec.json"),
                 "--out", folder},
                directory_ / "log"),
            2)
      << "the id of another cell";
}

TEST_F(Cells, RerunTellsTheSameFromAnother) {
  ASSERT_EQ(run(table("again", false), directory_ / "log"), 0);
  const std::string cell = fs::directory_iterator(directory_ / "again/cells")->path().string();
  EXPECT_EQ(run({"bench", "rerun", cell, "--threads", "2"}, directory_ / "same"), 0);
  EXPECT_NE(read_text(directory_ / "same").find("the same result"), std::string::npos);
  json result = read_json(cell + "/result.json");
  result["metrics"]["AP"] = result["metrics"]["AP"].get<double>() + 1e-9;
  write_text(cell + "/result.json", result.dump(1) + "\n");
  EXPECT_EQ(run({"bench", "rerun", cell}, directory_ / "differs"), 1);
  EXPECT_NE(read_text(directory_ / "differs").find("another result"), std::string::npos);
}

TEST(CellStore, ClaimsAreExclusiveAndVoidOnesAreTakenOver) {
  TemporaryDirectory directory;
  CellStore store(directory / "s");
  auto first = store.claim("a");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(store.state("a"), CellStore::State::running);
  EXPECT_EQ(store.claim("a"), nullptr);
  first.reset();
  EXPECT_EQ(store.state("a"), CellStore::State::open);
  // A claim of a process that is gone: this test's own world, with a process number that cannot start at that
  // time.
  auto mine = store.claim("a");
  json owner = read_json(directory / "s/claims/a.1");
  mine.reset();
  owner["start"] = "1";
  write_text(directory / "s/claims/a.1", owner.dump());
  auto second = store.claim("a");
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(fs::exists(directory / "s/claims/a.2"));
  store.finish(*second, {{"result.json", "{}"}});
  second.reset();
  EXPECT_EQ(store.state("a"), CellStore::State::done);
  EXPECT_TRUE(fs::is_empty(directory / "s/claims"));
  EXPECT_EQ(store.claim("a"), nullptr);
  // A process that cannot be seen from here counts as alive while its claim is fresh.
  owner["world"] = "elsewhere";
  write_text(directory / "s/claims/b.1", owner.dump());
  EXPECT_EQ(store.state("b"), CellStore::State::running);
  fs::last_write_time(directory / "s/claims/b.1", fs::file_time_type::clock::now() - std::chrono::minutes(5));
  EXPECT_EQ(store.state("b"), CellStore::State::open);
  EXPECT_NE(store.claim("b"), nullptr);
}

}  // namespace
}  // namespace lacuna
