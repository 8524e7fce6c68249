// lacuna recover and lacuna complete as a user meets them.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/random.h"
#include "base/tensors.h"
#include "base/text.h"
#include "data/folds.h"
#include "data/npy.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "program.h"

namespace lacuna {
namespace {

class RecoverProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    SimulateOptions options;
    options.rows = 300;
    options.views = 3;
    options.labels = 5;
    options.sizes = {12, 9, 7};
    data_ = new Dataset(simulate(options).data);
    data_->ids.clear();
    Random random(2, Purpose::test);
    Matrix<std::uint8_t> W(300, 3);
    Matrix<std::int8_t> Y(300, 5);
    for (std::size_t i = 0; i < 300; ++i) {
      data_->ids.push_back(fmt::format("item {}", i));
      for (std::uint8_t& w : W.row(i)) w = random.uniform_double() < .7;
      W(i, random.below(3)) = 1;
      for (std::size_t j = 0; j < 5; ++j)
        Y(i, j) = random.uniform_double() < .3 ? kUnknown : data_->labels(i, j);
    }
    data_->present = std::move(W);
    data_->labels = std::move(Y);
    write_dataset(*data_, path("data.npz"));
    const Ended ended =
        run({"train", path("data.npz"), "--method", "prior", "--keep-decoders", "--out", path("model")});
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    delete data_;
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static Ended recover(std::vector<std::string> more, const std::string& data = "data.npz") {
    std::vector<std::string> arguments = {"recover", path("model"), path(data)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  static void expect_refused(const Ended& ended, int code, const std::string& part) {
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  }
  static TemporaryDirectory* folder_;
  static Dataset* data_;
};
TemporaryDirectory* RecoverProgram::folder_ = nullptr;
Dataset* RecoverProgram::data_ = nullptr;

TEST_F(RecoverProgram, WritesTheSameDataSetInEveryForm) {
  std::string first;
  for (const char* form : {"filled", "filled.npz", "filled.mat", "filled.csv", "filled.h5mu"}) {
    const Ended ended = recover({"--out", path(form)});
    ASSERT_EQ(ended.code, 0) << form << ended.err;
    EXPECT_NE(ended.err.find("views recovered"), std::string::npos) << ended.err;
    const Dataset filled = read_dataset(path(form));
    EXPECT_EQ(filled.rows, 300u);
    EXPECT_TRUE(filled.present.empty()) << form;
    std::vector<float> was(9), is(9);
    double largest = 0;
    const std::size_t v = filled.view_index(data_->views[1].name);
    ASSERT_LT(v, filled.views.size());
    for (std::size_t i = 0; i < 300; ++i) {
      if (!data_->has(i, 1)) continue;
      data_->views[1].copy_row(i, was);
      filled.views[v].copy_row(i, is);
      for (std::size_t j = 0; j < 9; ++j)
        largest = std::max(largest, static_cast<double>(std::abs(was[j] - is[j])));
    }
    EXPECT_EQ(largest, 0) << form;
    for (std::size_t i = 0; i < 300; ++i)
      for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(filled.labels(i, j), data_->labels(i, j));
  }
  EXPECT_EQ(content_hash(read_dataset(path("filled"))), content_hash(read_dataset(path("filled.npz"))));
  const Ended again = recover({"--out", path("again"), "--threads", "1"}, "filled");
  ASSERT_EQ(again.code, 0) << again.err;  // nothing is missing any more
  EXPECT_EQ(content_hash(read_dataset(path("filled"))), content_hash(read_dataset(path("again"))));
}

TEST_F(RecoverProgram, DeviationsLieBesideTheValues) {
  ASSERT_EQ(recover({"--out", path("a"), "--deviations", path("sd")}).code, 0);
  ASSERT_EQ(recover({"--out", path("b.npz"), "--deviations", path("sd.npz")}).code, 0);
  const Dataset sd = read_dataset(path("sd"));
  EXPECT_EQ(content_hash(sd), content_hash(read_dataset(path("sd.npz"))));
  EXPECT_EQ(sd.ids, data_->ids);
  std::vector<float> row(12);
  for (std::size_t i = 0; i < 300; ++i) {
    sd.views[0].copy_row(i, row);
    for (const float s : row) EXPECT_EQ(s > 0, !data_->has(i, 0));
  }
}

TEST_F(RecoverProgram, AFoldsHiddenViewsAreRecovered) {
  ASSERT_EQ(run({"data", "mask", path("data.npz"), path("folds.npz"), "--repeats", "1"}).code, 0);
  const Ended ended = recover(
      {"--folds", path("folds.npz"), "--fold", "0", "--part", "test", "--out", path("test"), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto document = nlohmann::json::parse(ended.out);
  EXPECT_EQ(document["schema"], "lacuna.recover.1");
  const Folds folds = read_folds(path("folds.npz"));
  const auto rows = folds.part_rows(0, Part::test);
  EXPECT_EQ(document["items"], rows.size());
  std::size_t missing = 0;
  for (const std::uint32_t i : rows)
    for (std::size_t v = 0; v < 3; ++v) missing += !(data_->has(i, v) && folds.folds[0].W(i, v));
  EXPECT_EQ(document["recovered"], missing);
}

// Without ids nothing but their order tells rows apart.
TEST_F(RecoverProgram, RowsOfAFoldComeInTheOrderOfTheData) {
  Dataset nameless = *data_;
  nameless.ids.clear();
  write_dataset(nameless, path("nameless.npz"));
  ASSERT_EQ(run({"data", "mask", path("nameless.npz"), path("order.npz"), "--repeats", "1"}).code, 0);
  const Folds folds = read_folds(path("order.npz"));
  for (const char* part : {"test", "all"}) {
    ASSERT_EQ(recover({"--folds", path("order.npz"), "--fold", "0", "--part", part, "--out", path("ordered")},
                      "nameless.npz")
                  .code,
              0);
    std::vector<std::uint32_t> rows = folds.part_rows(0, part_from_name(part));
    std::ranges::sort(rows);
    const Dataset filled = read_dataset(path("ordered"));
    ASSERT_EQ(filled.rows, rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < 5; ++j) ASSERT_EQ(filled.labels(i, j), data_->labels(rows[i], j)) << part;
  }
}

TEST_F(RecoverProgram, EmptyCellsAreCounted) {
  std::filesystem::create_directory(path("cells"));
  std::ofstream(path("cells/") + data_->views[2].name + ".csv")
      << "id,a,b,c,d,e,f,g\nx,1,,3,4,5,6,7\ny,1,2,3,4,,,7\n";
  const Ended ended = recover({"--empty", "mean", "--out", path("whole"), "--json"}, "cells");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["empty_cells"], 3);
  const Ended told = recover({"--empty", "mean", "--out", path("whole")}, "cells");
  EXPECT_NE(told.err.find("empty cells in present views: 3; they contain the means"), std::string::npos)
      << told.err;
}

TEST_F(RecoverProgram, LinesComeInAndGoOut) {
  std::ofstream(path("items.jsonl")) << R"({"id": "x", "views": {")" << data_->views[0].name
                                     << R"(": [1,2,3,4,5,6,7,8,9,10,11,12]}})"
                                     << "\n"
                                     << "{\"id\": \"y\"}\n"
                                     << "no json\n";
  const Ended ended = recover({"--out", path("out.jsonl")}, "items.jsonl");
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::ifstream file(path("out.jsonl"));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["id"], "x");
  EXPECT_EQ(lines[0]["views"].size(), 3u);
  EXPECT_EQ(lines[0]["views"][data_->views[0].name][11], 12);
  EXPECT_EQ(lines[0]["deviations"].size(), 2u);
  EXPECT_EQ(lines[0]["deviations"][data_->views[2].name].size(), 7u);
  EXPECT_GT(lines[0]["deviations"][data_->views[2].name][0], 0);
  EXPECT_TRUE(lines[1]["views"].empty());
  EXPECT_EQ(lines[2]["line"], 3);
}

// A number of 20 digits is no double, and ids come out as they went in.
TEST_F(RecoverProgram, IdsOfLinesStayAsTheyAre) {
  for (const char* id : {"98765432109876543210", "-7", R"("a \"b\" \\ é")"}) {
    std::ofstream(path("items.jsonl")) << R"({"id": )" << id << R"(, "views": {")" << data_->views[0].name
                                       << R"(": [1,2,3,4,5,6,7,8,9,10,11,12]}})"
                                       << "\n";
    ASSERT_EQ(recover({"--out", path("out.jsonl")}, "items.jsonl").code, 0);
    const std::string line = read_text(path("out.jsonl"));
    EXPECT_NE(line.find(fmt::format("\"id\":{},", id)), std::string::npos) << line;
  }
}

// Which lines wait together must not show in what an item gets.
TEST_F(RecoverProgram, ALineGetsTheSameBytesAloneAndAmongOthers) {
  const auto lines = [&](std::size_t begin, std::size_t end) {
    std::string text;
    for (std::size_t i = begin; i < end; ++i) {
      nlohmann::json views = nlohmann::json::object();
      for (std::size_t v = 0; v < 3; ++v) {
        if (!data_->has(i, v)) continue;
        std::vector<float> row(data_->views[v].columns());
        data_->views[v].copy_row(i, row);
        views[data_->views[v].name] = row;
      }
      text += nlohmann::json{{"id", data_->ids[i]}, {"views", views}}.dump() + "\n";
    }
    std::ofstream(path("some.jsonl")) << text;
    const Ended ended = recover({"--out", path("some.out.jsonl")}, "some.jsonl");
    EXPECT_EQ(ended.code, 0) << ended.err;
    return read_text(path("some.out.jsonl"));
  };
  std::string alone, by_three, by_seven;
  for (std::size_t i = 0; i < 21; ++i) alone += lines(i, i + 1);
  for (std::size_t i = 0; i < 21; i += 3) by_three += lines(i, i + 3);
  for (std::size_t i = 0; i < 21; i += 7) by_seven += lines(i, i + 7);
  const std::string together = lines(0, 21);
  EXPECT_EQ(alone, together);
  EXPECT_EQ(by_three, together);
  EXPECT_EQ(by_seven, together);
}

TEST_F(RecoverProgram, MistakesAreNamed) {
  ASSERT_EQ(run({"train", path("data.npz"), "--method", "prior", "--out", path("bare")}).code, 0);
  expect_refused(run({"recover", path("bare"), path("data.npz"), "--out", path("x")}), 4, "--keep-decoders");
  EXPECT_FALSE(std::filesystem::exists(path("x")));
  expect_refused(recover({"--out", path("x.jsonl")}), 2, "JSON lines");
  expect_refused(recover({"--out", path("x.arff")}), 2, "only read");
  expect_refused(recover({"--out", path("x.npx")}), 2, "no data set ends with .npx");
  expect_refused(run({"data", "convert", path("data.npz"), path("x.parquet")}), 2, "ends with .parquet");
  EXPECT_FALSE(std::filesystem::exists(path("x.parquet")));
  ASSERT_EQ(run({"data", "convert", path("data.npz"), path("folder.v2/")}).code, 0);
  EXPECT_EQ(read_dataset(path("folder.v2")).rows, 300u);
  expect_refused(recover({"--out", path("x"), "--deviations", path("x")}), 2, "same file");
  expect_refused(recover({"--out", path("x"), "--strict"}), 2, "--strict has no effect");
  expect_refused(recover({"--out", path("data.npz")}), 2, "data.npz");
  expect_refused(recover({"--out", path("x"), "--json", "--quiet"}), 2, "contradict");
  const Ended shown = run({"show", path("model")});
  EXPECT_NE(shown.out.find("squared error of hidden views relative to that of the mean"), std::string::npos) << shown.out;
  const auto card = nlohmann::json::parse(run({"show", path("model"), "--json"}).out);
  EXPECT_EQ(card["recovery"]["views"].size(), 3u);
}

TEST_F(RecoverProgram, ANativeFolderIsFilledInAStream) {
  // 40 times the rows take hardly more memory.
  ASSERT_EQ(run({"data", "convert", path("data.npz"), path("small")}).code, 0);
  Dataset large = *data_;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t k = 0; k < 40; ++k)
    for (std::uint32_t i = 0; i < 300; ++i) rows.push_back(i);
  Dataset repeated = select_rows(large, rows);
  for (std::size_t i = 0; i < repeated.ids.size(); ++i) repeated.ids[i] += fmt::format("/{}", i);
  write_dataset(repeated, path("large"));
  const Ended a = recover({"--out", path("small-out"), "--threads", "1"}, "small"),
              b = recover({"--out", path("large-out"), "--threads", "1"}, "large");
  ASSERT_EQ(a.code, 0) << a.err;
  ASSERT_EQ(b.code, 0) << b.err;
  EXPECT_EQ(read_dataset(path("large-out")).rows, 12000u);
#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory
  EXPECT_LT(b.peak_bytes, a.peak_bytes + (24u << 20));
#endif
}

TEST_F(RecoverProgram, UnknownLabelsBecomeProbabilities) {
  const Ended ended = run(
      {"complete", path("data.npz"), "--method", "linear", "--parts", "3", "--out", path("p.npy"), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto document = nlohmann::json::parse(ended.out);
  EXPECT_EQ(document["schema"], "lacuna.complete.1");
  const Array array = read_npy(path("p.npy"));
  ASSERT_EQ(array.shape, (std::vector<std::uint64_t>{300, 5}));
  const auto* p = reinterpret_cast<const float*>(array.bytes.data());
  std::size_t known = 0;
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 5; ++j) {
      const float x = p[i * 5 + j];
      if (data_->labels(i, j) == kUnknown) {
        EXPECT_GT(x, 0.f);
        EXPECT_LT(x, 1.f);
      } else {
        EXPECT_EQ(x, static_cast<float>(data_->labels(i, j)));
        ++known;
      }
    }
  EXPECT_EQ(document["known"], known);
  EXPECT_EQ(document["filled"], 1500 - known);
  for (const auto& entry : std::filesystem::directory_iterator(path("")))
    EXPECT_EQ(entry.path().filename().string().find(".part"), std::string::npos) << entry.path();
}

TEST_F(RecoverProgram, WhereNothingIsUnknownNothingIsLearned) {
  Dataset known = *data_;
  Matrix<std::int8_t> Y(300, 5);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 5; ++j) Y(i, j) = static_cast<std::int8_t>((i + j) % 3 == 0);
  known.labels = std::move(Y);
  write_dataset(known, path("known.npz"));
  const Ended ended = run({"complete", path("known.npz"), "--out", path("known.csv"), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["filled"], 0);
  EXPECT_NE(ended.err.find("no label is unknown: nothing is learned"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("part 1"), std::string::npos) << ended.err;
  const std::string text = read_text(path("known.csv"));
  EXPECT_NE(text.find("\nitem 4,0,0,1,0,0\n"), std::string::npos) << text.substr(0, 200);
}

// One validation row, whose known labels are all alike, calibrates nothing.
TEST_F(RecoverProgram, AFewRowsAreCompletedByTheLabelsShares) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < 12; ++i) rows.push_back(i);
  Dataset few = select_rows(*data_, rows);
  Matrix<std::int8_t> Y(12, 5);
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t j = 0; j < 5; ++j)
      Y(i, j) = (i + j) % 5 == 0 ? kUnknown : static_cast<std::int8_t>(i % 2);
  few.labels = std::move(Y);
  write_dataset(few, path("few.npz"));
  const Ended ended = run({"complete", path("few.npz"), "--method", "linear", "--out", path("few.npy")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("nothing can be calibrated"), std::string::npos) << ended.err;
  const Array array = read_npy(path("few.npy"));
  const auto* p = reinterpret_cast<const float*>(array.bytes.data());
  for (std::size_t k = 0; k < 60; ++k) {
    const bool unknown = (k / 5 + k % 5) % 5 == 0;
    EXPECT_EQ(p[k] > 0 && p[k] < 1, unknown) << k;
  }
}

// A label changes nothing in the part that it lies in, but for the unknown labels of its own item.
TEST_F(RecoverProgram, NoLabelJudgesItself) {
  const auto probabilities = [&](const Dataset& data, const char* name) {
    write_dataset(data, path(std::string(name) + ".npz"));
    const Ended ended = run({"complete", path(std::string(name) + ".npz"), "--method", "linear", "--parts",
                             "2", "--out", path(std::string(name) + ".npy")});
    EXPECT_EQ(ended.code, 0) << ended.err;
    const Array array = read_npy(path(std::string(name) + ".npy"));
    const auto* p = reinterpret_cast<const float*>(array.bytes.data());
    return std::vector<float>(p, p + 1500);
  };
  Dataset turned = *data_;
  Matrix<std::int8_t> Y(300, 5);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 5; ++j) Y(i, j) = data_->labels(i, j);
  std::size_t at = 0;
  while (Y(at, 0) == kUnknown) ++at;
  Y(at, 0) = static_cast<std::int8_t>(1 - Y(at, 0));
  turned.labels = std::move(Y);
  const std::vector<float> a = probabilities(*data_, "as-is"), b = probabilities(turned, "turned");
  std::size_t same = 0, changed = 0;  // rows with an unknown label, by whether it moved
  for (std::size_t i = 0; i < 300; ++i) {
    bool unknown = false, moved = false;
    for (std::size_t j = 0; j < 5; ++j) {
      if (i == at || data_->labels(i, j) != kUnknown) continue;
      unknown = true;
      moved = moved || a[i * 5 + j] != b[i * 5 + j];
    }
    same += unknown && !moved;
    changed += moved;
  }
  EXPECT_GT(same, 100u);    // about half of the rows share its part
  EXPECT_GT(changed, 60u);  // the models of the other part learned from it
}

TEST_F(RecoverProgram, AnInterruptedCompletionGoesOnToTheSameBytes) {
  for (const std::string precision : {"f32", "bf16"}) {
    const auto command = [&](const char* out, const char* threads) {
      return std::vector<std::string>{"complete",  path("data.npz"),     "--epochs",  "40",
                                      "--parts",   "2",                  "--out",     path(out),
                                      "--threads", threads,              "--device",  "cpu",
                                      "--checkpoint-every", "0",         "--precision", precision};
    };
    ASSERT_EQ(run(command("whole.csv", "2")).code, 0);
    Process process(command("stopped.csv", "2"));
    const std::string checkpoint = path("stopped.csv.part1.checkpoint");
    for (int tries = 0; tries < 6000 && !std::filesystem::exists(checkpoint); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    process.send(SIGTERM);
    const Ended stopped = process.wait();
    ASSERT_EQ(stopped.code, 143) << stopped.err;
    EXPECT_TRUE(std::filesystem::exists(path("stopped.csv.part0")));
    std::vector<std::string> resumed = command("stopped.csv", "1");
    resumed.push_back("--resume");
    const Ended again = run(resumed);
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_NE(again.err.find("continuing from"), std::string::npos) << again.err;
    EXPECT_EQ(read_text(path("stopped.csv")), read_text(path("whole.csv"))) << precision;
  }
}

TEST_F(RecoverProgram, CompletionGoesOnWhereItStopped) {
  const std::vector<std::string> command = {"complete", path("data.npz"), "--method",   "linear", "--parts",
                                            "3",        "--out",          path("r.csv")};
  ASSERT_EQ(run(command).code, 0);
  const std::string whole = read_text(path("r.csv"));
  std::filesystem::remove(path("r.csv"));
  // A file of another run in the way.
  std::vector<std::string> resumed = command;
  resumed.push_back("--resume");
  {
    Tensors other;
    Matrix<float> wrong(100, 5);
    other.put_copy("probabilities", wrong);
    other.metadata["fingerprint"] = {{"method", "prior"}};
    other.write(path("r.csv.part0"));
    expect_refused(run(resumed), 2, "another run");
  }
  std::filesystem::remove(path("r.csv.part0"));
  const Ended again = run(resumed);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_text(path("r.csv")), whole);
  expect_refused(run({"complete", path("data.npz"), "--out", path("x.mat")}), 2, ".csv, .tsv, .jsonl");
  expect_refused(run({"complete", path("data.npz"), "--out", path("x.csv"), "--hold-out", "0"}), 2,
                 "held out");
  expect_refused(run({"complete", path("data.npz")}), 2, "--out");
  expect_refused(run({"complete", path("data.npz"), "--keep-decoders", "--out", path("x.csv")}), 2,
                 "--keep-decoders has no effect");
}

}  // namespace
}  // namespace lacuna
