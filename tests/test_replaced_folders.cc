// Which folders data convert and data simulate replace: those that they wrote, and nothing that is somebody's own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class ReplacedFolders : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(simulate(folder_ / "toy.npz").code, 0);
    put("own/a.csv", "id,x\n1,2\n");
    put("own/labels.csv", "id,y\n1,1\n");
    put("own/dataset.toml",
        "schema = \"lacuna.dataset.1\"\n[[views]]\nname = \"a\"\nfile = \"a.csv\"\n[labels]\nfile = "
        "\"labels.csv\"\n");
  }
  static Ended simulate(const std::string& out) {
    return run({"data", "simulate", out, "--rows", "30", "--labels", "3", "--sizes", "4,3", "--views", "2"});
  }
  Ended convert(const std::string& out, const std::string& in = "toy.npz") {
    return run({"data", "convert", folder_ / in, folder_ / out});
  }
  void put(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  TemporaryDirectory folder_;
};

TEST_F(ReplacedFolders, WhatWasWrittenIsWrittenAgain) {
  for (const char* out : {"set", "set.csv"})
    for (int again = 0; again < 2; ++again) EXPECT_EQ(convert(out).code, 0) << out;
  for (int again = 0; again < 2; ++again) EXPECT_EQ(simulate(folder_ / "set").code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "set/truth.npz"));
  EXPECT_EQ(simulate(folder_ / "set").code, 0);  // over the planted factors
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(convert("empty").code, 0);
}

TEST_F(ReplacedFolders, AnAuthorsOwnDataSetStays) {
  for (const Ended& ended : {convert("own"), simulate(folder_ / "own")}) {
    EXPECT_EQ(ended.code, 1);
    EXPECT_NE(ended.err.find("would be lost"), std::string::npos) << ended.err;
  }
  EXPECT_EQ(read_text(folder_ / "own/a.csv"), "id,x\n1,2\n");
  EXPECT_TRUE(fs::exists(folder_ / "own/dataset.toml"));
}

TEST_F(ReplacedFolders, FilesAddedByTheUserAreNotLost) {
  const std::string names[] = {"notes.txt", "view7.npy", "truth.npz", "sub/notes.txt", ".hidden"};
  for (const auto& name : names) {
    const std::string set = "set " + name.substr(name.find_first_not_of('.'), 3);
    ASSERT_EQ(convert(set, "own").code, 0);
    put(set + "/" + name, "mine");
    const Ended ended = convert(set, "own");
    EXPECT_EQ(ended.code, 1) << name;
    EXPECT_NE(ended.err.find("contains '" + name.substr(0, name.find('/')) + "'"), std::string::npos)
        << ended.err;
    EXPECT_EQ(read_text(folder_ / (set + "/" + name)), "mine");
  }
}

// A folder's tables may be put in by a link: what it points to is not lacuna's.
TEST_F(ReplacedFolders, LinksAreNotReplaced) {
  ASSERT_EQ(convert("set").code, 0);
  fs::rename(folder_ / "set/view0.npy", folder_ / "view0.npy");
  fs::create_symlink("../view0.npy", folder_ / "set/view0.npy");
  EXPECT_EQ(convert("set").code, 1);
}

}  // namespace
}  // namespace lacuna
