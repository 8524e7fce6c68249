// Experiments as grids: parts, scripts, processes that are killed, and what can be seen from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "experiments/forecast.h"
#include "experiments/shard.h"
#include "experiments/slurm.h"
#include "experiments/store.h"
#include "ops/device.h"
#include "program.h"
#include "result_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void set_slurm(const char* id, const char* first, const char* last, const char* count) {
  setenv("SLURM_ARRAY_TASK_ID", id, 1);
  setenv("SLURM_ARRAY_TASK_MIN", first, 1);
  setenv("SLURM_ARRAY_TASK_MAX", last, 1);
  setenv("SLURM_ARRAY_TASK_COUNT", count, 1);
}

struct SlurmVariables : testing::Test {
  ~SlurmVariables() override {
    for (const char* name :
         {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT"})
      unsetenv(name);
  }
};
using ShardText = SlurmVariables;

TEST_F(ShardText, IsANumberOfPartsOrSlurmsVariables) {
  EXPECT_EQ(Shard::parse("3/8").text(), "3/8");
  for (const char* wrong : {"0/8", "9/8", "3", "3/", "/8", "a/8", "3/8/2", "-1/8", "", "network"})
    EXPECT_THROW(Shard::parse(wrong), Error) << wrong;
  for (const char* kind : {"networks", "others"}) EXPECT_EQ(Shard::parse(kind).text(), kind);
  EXPECT_THROW(Shard::parse("slurm"), Error) << "its variables are not set";
  set_slurm("7", "5", "9", "5");
  EXPECT_EQ(Shard::parse("slurm").text(), "3/5");
  set_slurm("0", "0", "3", "4");
  EXPECT_EQ(Shard::parse("slurm").text(), "1/4");
  set_slurm("5", "1", "5", "2");
  EXPECT_THROW(Shard::parse("slurm"), Error) << "--array=1,5";
}

TEST(Balanced, EveryCellHasAPartAndNoPartHasMuchMore) {
  std::mt19937 random(7);
  for (const std::size_t parts : {1u, 3u, 8u, 50u}) {
    std::vector<double> seconds(200);
    for (auto& each : seconds) each = std::exponential_distribution<>(.1)(random);
    const auto part = balanced(seconds, parts);
    std::vector<double> load(parts + 1);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      ASSERT_GE(part[i], 1u);
      ASSERT_LE(part[i], parts);
      load[part[i]] += seconds[i];
    }
    // The part that ends last was the least loaded one when it got its last cell.
    const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.) / static_cast<double>(parts);
    EXPECT_LE(*std::max_element(load.begin(), load.end()),
              mean + *std::max_element(seconds.begin(), seconds.end()));
    EXPECT_EQ(part, balanced(seconds, parts));
  }
  EXPECT_EQ(balanced({4, 3, 2, 1}, 2), (std::vector<std::size_t>{1, 2, 2, 1}));
  EXPECT_TRUE(balanced({}, 4).empty());
}

TEST(SlurmJobs, AskForTheEstimateTimesTheMargin) {
  SlurmJob job;
  job.longest = 3600, job.bytes = 1e9, job.margin = 2;
  EXPECT_EQ(job.time(), "0-02:05:00");
  EXPECT_EQ(job.memory(), "2256M");
  job.longest = 86400;
  EXPECT_EQ(job.time(), "2-00:05:00");
}

class Grid : public testing::Test {
 protected:
  void SetUp() override {
    const Ended ended =
        run({"data", "simulate", data_, "--rows", "120", "--views", "2", "--labels", "5", "--sizes", "6,5"});
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  std::vector<std::string> table(const std::string& out, std::vector<std::string> more) const {
    std::vector<std::string> words = {"bench",          "table",     "--data",       data_,       "--out",
                                      directory_ / out, "--methods", "prior,naim3l", "--repeats", "8",
                                      "--threads",      "1",         "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The same files, but for the command, which names the folder.
  void expect_same(const std::string& a, const std::string& b) const {
    const auto one = result_files(directory_ / a), other = result_files(directory_ / b);
    for (const auto& [name, content] : other) EXPECT_TRUE(one.count(name)) << name << " was left behind";
    for (const auto& [name, content] : one) {
      ASSERT_TRUE(other.count(name)) << name;
      std::string there = other.at(name);
      for (std::size_t at = 0; (at = there.find(directory_ / b, at)) != std::string::npos;)
        there.replace(at, std::string(directory_ / b).size(), directory_ / a);
      EXPECT_EQ(content, there) << name;
    }
  }
  TemporaryDirectory directory_;
  std::string data_ = directory_ / "toy.npz";
};

TEST_F(Grid, PartsInAnyOrderAreTheWhole) {
  const Ended whole = run(table("whole", {}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  std::size_t ran = 0;
  for (const char* part : {"3/3", "1/3", "2/3"}) {
    const Ended ended = run(table("parts", {"--shard", part}));
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json outcome = json::parse(ended.out);
    EXPECT_EQ(outcome.at("shard"), part);
    EXPECT_EQ(outcome.at("ran_here"), outcome.at("cells"));
    EXPECT_GE(outcome.at("cells"), 5);
    EXPECT_LE(outcome.at("cells"), 6);
    ran += outcome.at("ran_here").get<std::size_t>();
  }
  EXPECT_EQ(ran, 16u);
  const Ended joined = run(table("parts", {"--resume"}));
  ASSERT_EQ(joined.code, 0) << joined.err;
  json first = json::parse(whole.out), then = json::parse(joined.out);
  EXPECT_EQ(then.at("ran_here"), 0);
  first.erase("ran_here"), then.erase("ran_here");
  EXPECT_EQ(first, then);
  expect_same("whole", "parts");
}

TEST_F(Grid, NetworksAndTheOthersAreTheWhole) {
  const auto words = [&](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> all = {"bench",     "table",
                                    "--data",    data_,
                                    "--out",     directory_ / out,
                                    "--methods", "c2ae,naim3l,dicnet,lacuna",
                                    "--repeats", "2",
                                    "--threads", "1",
                                    "--json"};
    for (const char* set : {"c2ae.epochs=1", "dicnet.epochs=1", "dicnet.width=0.02", "lacuna.epochs=1"})
      all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ASSERT_EQ(run(words("whole", {})).code, 0);
  for (const char* part : {"networks", "others"}) {
    const Ended ended = run(words("parts", {"--shard", part}));
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json outcome = json::parse(ended.out);
    EXPECT_EQ(outcome.at("shard"), part);
    EXPECT_EQ(outcome.at("ran_here"), part == std::string("networks") ? 6 : 2) << part;
    for (const auto& entry : fs::directory_iterator(directory_ / "parts/cells")) {
      const std::string method = read_json(entry.path() / "spec.json").at("method");
      const bool network = method != "naim3l";
      EXPECT_TRUE(network || part == std::string("others")) << method;
    }
  }
  const Ended joined = run(words("parts", {"--resume"}));
  ASSERT_EQ(joined.code, 0) << joined.err;
  EXPECT_EQ(json::parse(joined.out).at("ran_here"), 0);
  expect_same("whole", "parts");
}

TEST_F(Grid, ThreadsDoNotDivideWhatAGpuTakes) {
  BenchOptions bench = BenchOptions::defaults(Experiment::table);
  bench.data = {data_}, bench.methods = {"naim3l", "lacuna"}, bench.mask.repeats = 1;
  const auto seconds = [&](int count, bool gpu) {
    set_threads(count);
    set_device({.cuda = gpu});
    Shelf shelf;
    const Plan plan = make_plan(Experiment::table, bench, "", shelf);
    const Forecast found = forecast(std::span(&plan, 1), nullptr, shelf);
    set_device({});
    set_threads(0);
    return std::pair(found.lines.at(0).each(), found.lines.at(1).each());
  };
  const auto [naim3l, lacuna] = seconds(1, false);
  EXPECT_DOUBLE_EQ(seconds(2, false).first, naim3l / 2);
  EXPECT_DOUBLE_EQ(seconds(2, false).second, lacuna / 2);
  EXPECT_DOUBLE_EQ(seconds(2, true).first, naim3l / 2);
  EXPECT_DOUBLE_EQ(seconds(2, true).second, seconds(1, true).second);
}

TEST_F(Grid, WhatAPartCannotDoIsRefused) {
  EXPECT_EQ(run(table("no", {"--shard", "4/3"})).code, 2);
  EXPECT_EQ(run(table("no", {"--shard", "1/3", "--dry-run"})).code, 2);
  EXPECT_EQ(run({"bench", "timing", "--data", data_, "--out", directory_ / "no", "--shard", "1/2"}).code, 2);
  EXPECT_EQ(run({"bench", "slurm", "table", "--data", data_, "--out", "no", "--shard", "1/2"}).code, 2);
  EXPECT_EQ(run({"bench", "slurm", "--data", data_, "--out", "no"}).code, 2);
  EXPECT_EQ(run({"bench", "status", directory_ / "no"}).code, 2);
  EXPECT_FALSE(fs::exists(directory_ / "no"));
  // More parts than cells: the last ones have nothing to do, and that is no failure.
  const Ended idle = run(table("idle", {"--shard", "99/99"}));
  EXPECT_EQ(idle.code, 0) << idle.err;
  EXPECT_EQ(json::parse(idle.out).at("cells"), 0);
}

TEST_F(Grid, EightProcessesKilledAtRandomGiveTheFilesOfOne) {
  ASSERT_EQ(run(table("whole", {})).code, 0);
  const std::string folder = directory_ / "killed";
  ASSERT_EQ(run(table("killed", {"--shard", "99/99"})).code, 0);  // the plan is there, and nothing is run
  const auto words = table("killed", {"--resume"});
  std::array<std::unique_ptr<Process>, 8> workers;
  for (auto& worker : workers) worker = std::make_unique<Process>(words);
  std::mt19937 random(3);
  for (int kills = 0; kills < 24; ++kills) {
    // Some hit a cell at work, some the writing of one, some a process that has just begun.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    auto& victim = workers[random() % workers.size()];
    victim->send(SIGKILL);
    victim->wait();
    victim = std::make_unique<Process>(words);
  }
  for (auto& worker : workers) {
    const Ended ended = worker->wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(json::parse(ended.out).at("done"), 16);
  }
  EXPECT_EQ(finished_cells(folder), 16u);
  // What the last of the killed left is cleared away by whoever comes next.
  ASSERT_EQ(run(words).code, 0);
  EXPECT_TRUE(fs::is_empty(folder + "/claims"));
  expect_same("whole", "killed");
}

TEST_F(Grid, TheScriptForSlurmRunsUnderBash) {
  ASSERT_EQ(run(table("whole", {})).code, 0);
  const std::string out = directory_ / "it's";  // a name that a shell would stumble over
  const Ended printed = run({"bench", "slurm", "table", "--data", data_, "--out", out, "--methods",
                             "prior,naim3l", "--repeats", "8", "--threads", "1", "--tasks", "3"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_FALSE(fs::exists(out)) << "printing runs nothing";
  for (const char* line : {"#!/bin/bash\n", "\n#SBATCH --array=1-3\n", "\n#SBATCH --cpus-per-task=1\n",
                           "\n#SBATCH --time=0-00:06:00\n", "\n#SBATCH --mem="})
    EXPECT_NE(printed.out.find(line), std::string::npos) << line << printed.out;
  const std::string script = directory_ / "job.sbatch";
  write_text(script, printed.out);
  const std::string bash = "LACUNA=" LACUNA_PROGRAM " bash " + script, quiet = " >/dev/null 2>&1";
  EXPECT_NE(std::system((bash + quiet).c_str()), 0) << "not a task of an array";
  for (const char* task : {"2", "3", "1"})
    EXPECT_EQ(std::system(fmt::format("SLURM_ARRAY_TASK_ID={} {}{}", task, bash, quiet).c_str()), 0) << task;
  EXPECT_EQ(finished_cells(out), 16u);
  EXPECT_EQ(std::system((bash + " last" + quiet).c_str()), 0);
  const auto whole = result_files(directory_ / "whole"), there = result_files(out);
  for (const auto& [name, content] : whole) {
    if (name.starts_with("experiments/")) continue;  // holds the command, which names the folder
    EXPECT_EQ(there.at(name), content) << name;
  }
  // All is done by now, and the next script says so.
  const Ended again = run({"bench", "slurm", "table", "--data", data_, "--out", out, "--methods",
                           "prior,naim3l", "--repeats", "8", "--threads", "1"});
  EXPECT_NE(again.out.find("16 cells, 16 of them done, in 1 tasks"), std::string::npos) << again.out;
}

class Status : public Grid {
 protected:
  json status() const {
    const Ended ended = run({"bench", "status", directory_ / "s", "--json"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return json::parse(ended.out);
  }
  std::vector<std::string> open_cells() const {
    std::vector<std::string> open;
    const json plan = read_json(directory_ / "s/experiments/table.json");
    for (const auto& place : plan.at("cells"))
      if (const std::string id = place.at("cell"); !fs::exists(directory_ / ("s/cells/" + id)))
        open.push_back(id);
    return open;
  }
  void write_claim(const std::string& id, const std::string& world, const std::string& start) const {
    write_text(directory_ / ("s/claims/" + id + ".1"),
               json{{"world", world}, {"host", "node7"}, {"pid", 1}, {"start", start}}.dump());
  }
};

TEST_F(Status, TellsDoneRunningFailedStaleAndOpen) {
  ASSERT_EQ(run(table("s", {"--shard", "1/2"})).code, 0);
  json now = status();
  EXPECT_EQ(now.at("cells"), 16);
  EXPECT_EQ(now.at("done"), 8);
  EXPECT_EQ(now.at("open"), 8);
  EXPECT_EQ(now.at("untimed"), 0);
  EXPECT_GT(now.at("cells_per_hour"), 0);
  EXPECT_GT(now.at("seconds_left"), 0);
  const auto open = open_cells();
  ASSERT_EQ(open.size(), 8u);
  write_claim(open[0], "elsewhere", "1");
  write_claim(open[1], "elsewhere", "1");
  fs::last_write_time(directory_ / ("s/claims/" + open[1] + ".1"),
                      fs::file_time_type::clock::now() - std::chrono::minutes(5));
  write_text(directory_ / ("s/failed/" + open[2] + ".json"), json{{"error", "no memory"}}.dump());
  now = status();
  EXPECT_EQ(now.at("running"), 1);
  EXPECT_EQ(now.at("stale"), 1);
  EXPECT_EQ(now.at("failed"), 1);
  EXPECT_EQ(now.at("open"), 5);
  EXPECT_EQ(now.at("running_cells")[0].at("host"), "node7");
  EXPECT_EQ(now.at("running_cells")[0].at("cell"), open[0]);
  EXPECT_EQ(now.at("stale_cells")[0].at("cell"), open[1]);
  EXPECT_EQ(now.at("failed_cells")[0].at("error"), "no memory");
  const std::string text = run({"bench", "status", directory_ / "s"}).out;
  for (const char* part : {"node7", "no memory", "cells per hour", "with 1 working"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST_F(Status, GoesByTheClockOfTheFolder) {
  ASSERT_EQ(run(table("s", {"--shard", "1/16"})).code, 0);
  for (const auto& id : open_cells()) write_claim(id, "elsewhere", "1");
  setenv("LD_PRELOAD", LACUNA_FAKE_CLOCK, 1);
  setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
  const json now = status();
  unsetenv("LD_PRELOAD");
  unsetenv("ASAN_OPTIONS");
  EXPECT_EQ(now.at("running"), 15) << "the claims were made just now, whatever the time is here";
  EXPECT_EQ(now.at("stale"), 0);
}

TEST(Leftovers, StayForAnHourInFoldersThatMachinesShare) {
  TemporaryDirectory directory;
  const std::string gone = directory / "table.json.tmp-999999999-0",
                    young = directory / "table.json.tmp-999999998-0",
                    mine = directory / fmt::format("table.json.tmp-{}-7", getpid());
  for (const auto& path : {gone, young, mine}) write_text(path, "{");
  for (const auto& path : {gone, mine})
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  CellStore store(directory / "s");
  for (const auto& path : {gone, young, mine})
    fs::rename(path, directory / ("s/experiments/" + fs::path(path).filename().string()));
  store.sweep();
  const auto there = [&](const std::string& path) {
    return fs::exists(directory / ("s/experiments/" + fs::path(path).filename().string()));
  };
  EXPECT_FALSE(there(gone));
  EXPECT_TRUE(there(young)) << "another machine may be writing it";
  EXPECT_TRUE(there(mine));
}

TEST(Claims, OneThatWasTakenForVoidLeavesItsSuccessorAlone) {
  TemporaryDirectory directory;
  const Claims claims(directory / "c", [](const std::string&) { return false; });
  auto mine = claims.take("a");
  ASSERT_NE(mine, nullptr);
  EXPECT_TRUE(mine->first());
  write_text(directory / "c/a.2", json{{"world", "elsewhere"}, {"host", "node7"}, {"pid", 1}}.dump());
  mine.reset();
  EXPECT_FALSE(fs::exists(directory / "c/a.1"));
  EXPECT_TRUE(fs::exists(directory / "c/a.2"));
  EXPECT_TRUE(claims.taken("a"));
  EXPECT_EQ(claims.owners().at("a").host, "node7");
}

}  // namespace
}  // namespace lacuna
