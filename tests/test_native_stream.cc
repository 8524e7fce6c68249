// Native folders that are written in a stream: many parts, appended rows, checksums, bounded memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "data/checksums.h"
#include "data/native_writer.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class NativeStream : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  Ended convert(const std::string& in, const std::string& out, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"data",        "convert",         folder_ / in,
                                          folder_ / out, "--label-columns", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  void put_parts() {
    put("part-1.csv", "id,x,y,cat\na,1,2,1\nb,3,4,0\n");
    put("part-2.csv", "id,x,y,cat\nc,5,6,?\n");
    put("part-3.csv", "id,x,y,cat\nd,7,8,1\n");
  }
  TemporaryDirectory folder_;
};

TEST_F(NativeStream, PartsBecomeOneDataSet) {
  put_parts();
  const Ended ended = convert("part-*.csv", "all");
  ASSERT_EQ(ended.code, 0) << ended.err;
  put("whole.csv", "id,x,y,cat\na,1,2,1\nb,3,4,0\nc,5,6,?\nd,7,8,1\n");
  ASSERT_EQ(convert("whole.csv", "whole").code, 0);
  const Dataset all = read_dataset(folder_ / "all"), whole = read_dataset(folder_ / "whole");
  EXPECT_EQ(all.rows, 4u);
  EXPECT_EQ(content_hash(all), content_hash(whole));
  EXPECT_EQ(all.ids, whole.ids);
}

TEST_F(NativeStream, WhatDiffersIsRefusedByNameAndFile) {
  put_parts();
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    put("part-2.csv", text);
    const Ended ended = convert("part-*.csv", "all");
    EXPECT_EQ(ended.code, 3) << text;
    for (const auto& word : words) EXPECT_NE(ended.err.find(word), std::string::npos) << ended.err;
    EXPECT_FALSE(fs::exists(folder_ / "all"));
  };
  refused("id,x,z,cat\nc,5,6,1\n", {"part-2.csv", "part-1.csv", "'z'", "'y'"});
  refused("id,x,cat\nc,5,1\n", {"part-2.csv", "part-1.csv", "1 columns", "2"});
  refused("id,x,y,dog\nc,5,6,1\n", {"part-2.csv", "part-1.csv", "'dog'"});
  refused("id,x,y,cat\na,5,6,1\n", {"part-2.csv", "part-1.csv", "'a'"});
  const Ended npz = convert("part-*.csv", "all.npz"), none = convert("port-*.csv", "all");
  EXPECT_EQ(npz.code, 2);
  EXPECT_NE(npz.err.find("native folder"), std::string::npos) << npz.err;
  EXPECT_EQ(none.code, 3);
}

// Three views, the second sparse; every third instance of the last one is missing; ids.
Dataset made_up() {
  SimulateOptions options;
  options.rows = 37;
  options.sizes = {5, 9, 3};
  options.labels = 4;
  Dataset data = simulate(options).data;
  const auto& dense = std::get<Table<float>>(data.views[1].features);
  std::vector<std::uint32_t> index;
  Matrix<std::uint64_t> start(1, data.rows + 1);
  Matrix<std::uint8_t> present(data.rows, 3);
  for (std::size_t i = 0; i < data.rows; ++i) {
    for (std::uint32_t j = 0; j < 9; ++j)
      if ((i + j) % 4 == 0) index.push_back(j);
    start(0, i + 1) = index.size();
    for (std::size_t v = 0; v < 3; ++v) present(i, v) = v < 2 || i % 3 != 0;
    data.ids.push_back("item" + std::to_string(i));
  }
  Matrix<std::uint32_t> indices(1, index.size());
  Matrix<float> values(1, index.size());
  for (std::size_t k = 0; k < index.size(); ++k) {
    indices(0, k) = index[k];
    values(0, k) = dense(k % data.rows, index[k]);
  }
  data.views[1].features = Csr{std::move(start), std::move(indices), std::move(values), 9};
  data.present = std::move(present);
  data.check("made up");
  return data;
}

// Rows in any cut give the same folder, dense and sparse views alike, with gaps.
TEST_F(NativeStream, TheSameBytesInAnyCut) {
  const Dataset data = made_up();
  NativeWriter whole(folder_ / "whole"), pieces(folder_ / "pieces");
  whole.append(data, "data");
  for (std::size_t first = 0; first < data.rows; first += 10)
    pieces.append(data, "data", first, std::min<std::size_t>(10, data.rows - first));
  whole.commit();
  pieces.commit();
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "whole")) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(read_text(entry.path().string()), read_text(folder_ / ("pieces/" + name))) << name;
    ++files;
  }
  EXPECT_GT(files, 5u);
  EXPECT_EQ(content_hash(read_dataset(folder_ / "pieces")), content_hash(data));
}

TEST_F(NativeStream, AppendedRowsFollow) {
  put_parts();
  ASSERT_EQ(convert("part-1.csv", "all").code, 0);
  const Ended ended = convert("part-2.csv", "all", {"--append"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Dataset all = read_dataset(folder_ / "all");
  EXPECT_EQ(all.ids, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(all.labels(2, 0), kUnknown);
  EXPECT_TRUE(check_folder(folder_ / "all").damaged.empty());
  EXPECT_EQ(convert("part-1.csv", "all", {"--append"}).code, 3);  // its ids are there already
  EXPECT_EQ(read_dataset(folder_ / "all").rows, 3u);
  EXPECT_EQ(convert("part-1.csv", "new", {"--append"}).code, 2);
}

// Killed at whatever moment, the folder is the old one or the new one, and whole.
TEST_F(NativeStream, AKilledAppendLeavesTheOldOrTheNew) {
  const auto simulate = [&](const char* out, const char* rows, const char* seed) {
    return run({"data", "simulate", folder_ / out, "--rows", rows, "--sizes", "200,30", "--labels", "4",
                "--seed", seed});
  };
  ASSERT_EQ(simulate("all", "2000", "1").code, 0);
  ASSERT_EQ(simulate("more", "1500", "2").code, 0);
  fs::remove(folder_ / "all/truth.npz");
  std::size_t rows = 2000;
  for (int round = 0; round < 8; ++round) {
    Process process({"data", "convert", folder_ / "more", folder_ / "all", "--append"});
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    process.send(SIGKILL);
    process.wait();
    const std::size_t now = read_dataset(folder_ / "all").rows;
    EXPECT_TRUE(now == rows || now == rows + 1500) << now;
    EXPECT_TRUE(check_folder(folder_ / "all").damaged.empty());
    rows = now;
  }
}

TEST_F(NativeStream, ADamagedBlockIsNamed) {
  put_parts();
  ASSERT_EQ(convert("part-*.csv", "all").code, 0);
  const Ended whole = run({"data", "inspect", folder_ / "all", "--check"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_NE(whole.err.find("as they were written"), std::string::npos) << whole.err;
  {
    std::fstream file(folder_ / "all/view0.npy", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x11');
  }
  const Ended damaged = run({"data", "inspect", folder_ / "all", "--check"});
  EXPECT_EQ(damaged.code, 3);
  EXPECT_NE(damaged.err.find("view0.npy: bytes 128 to"), std::string::npos) << damaged.err;
  fs::remove(folder_ / "all/checksums.json");
  EXPECT_EQ(run({"data", "inspect", folder_ / "all", "--check"}).code, 3);
  EXPECT_EQ(run({"data", "inspect", folder_ / "part-1.csv", "--check"}).code, 3);
}

#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory
TEST_F(NativeStream, MemoryDoesNotGrowWithTheRows) {
  const std::size_t bytes = std::size_t{24000} * 1024 * sizeof(float);
  const Ended made =
      run({"data", "simulate", folder_ / "big", "--rows", "24000", "--sizes", "1024", "--labels", "3"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_LT(made.peak_bytes, bytes * 2 / 3);
  const Ended converted = run({"data", "convert", folder_ / "big", folder_ / "copy"});
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_LT(converted.peak_bytes, bytes * 2 / 3);
  const Ended checked = run({"data", "convert", folder_ / "big", folder_ / "copy", "--append"});
  ASSERT_EQ(checked.code, 0) << checked.err;
  EXPECT_LT(checked.peak_bytes, bytes * 2 / 3);
}
#endif

}  // namespace
}  // namespace lacuna
