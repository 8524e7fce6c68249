// Exported models, judged by a runtime that is not ours: onnxruntime computes what lacuna predict computes, for every
// pattern of missing views. Needs npm (tools/npm-packages.sh) and Debian's python3-onnx; says so where they are absent.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "data/npy.h"
#include "data/readers.h"
#include "data/scores.h"
#include "data/simulate.h"
#include "program.h"
#include "shared_data.h"

namespace lacuna {
namespace {

constexpr double kMostDifference = 1e-5;
constexpr const char* kRuntime = "onnxruntime-node@1.30.0";

struct Command {
  int code = 0;
  std::string out;
};
Command shell(const std::string& line) {
  std::FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  Command result;
  char buffer[4096];
  for (std::size_t size = 0; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    result.out.append(buffer, size);
  result.code = WEXITSTATUS(pclose(pipe));
  return result;
}

// Rows of `data`, each with one pattern of missing views after the other, the empty one included.
Dataset with_every_pattern(const Dataset& data, std::size_t rows) {
  const std::size_t patterns = std::size_t{1} << data.views.size();
  std::vector<std::uint32_t> chosen;
  Matrix<std::uint8_t> present(std::max(rows, patterns), data.views.size());
  for (std::size_t i = 0; i < present.rows(); ++i) {
    chosen.push_back(static_cast<std::uint32_t>(i * 7 % data.rows));
    for (std::size_t v = 0; v < data.views.size(); ++v)
      present(i, v) = (i % patterns >> v & 1) != 0 && data.has(chosen.back(), v);
  }
  Dataset result = select_rows(data, chosen);
  result.present = std::move(present);
  result.ids.clear();
  result.labels = {};
  result.label_names.clear();
  return result;
}

void write_floats(const std::string& path, std::span<const float> values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
}

class Onnx : public testing::Test {
 protected:
  static std::string path(const std::string& name) { return *folder_ / name; }

  static void SetUpTestSuite() { folder_ = new TemporaryDirectory; }
  static void TearDownTestSuite() { delete folder_; }

  // Trains, exports, predicts with the program, and lays out a case for the judge; returns its folder.
  static std::string make_case(const std::string& name, const Dataset& data,
                               std::vector<std::string> settings, float huge = 0) {
    const std::string at = path(name);
    make_directories(at);
    write_dataset(data, at + "/train.npz");
    std::vector<std::string> train = {"train", at + "/train.npz", "--out", at + "/model.safetensors"};
    train.insert(train.end(), settings.begin(), settings.end());
    Ended ended = run(train);
    EXPECT_EQ(ended.code, 0) << name << ": " << ended.err;
    ended = run({"export", at + "/model.safetensors", at + "/model.onnx"});
    EXPECT_EQ(ended.code, 0) << name << ": " << ended.err;
    Dataset asked = with_every_pattern(data, 40);
    if (huge > 0) {  // the first of all values
      Matrix<float> values(asked.rows, asked.views[0].columns());
      for (std::size_t i = 0; i < asked.rows; ++i) asked.views[0].copy_row(i, values.row(i));
      std::size_t row = 0;
      while (!asked.has(row, 0)) ++row;
      values(row, 0) = huge;
      asked.views[0].features = Table<float>(std::move(values));
    }
    write_dataset(asked, at + "/asked.npz");
    nlohmann::json about = {{"rows", asked.rows}, {"views", nlohmann::json::array()}};
    for (std::size_t v = 0; v < asked.views.size(); ++v) {
      const std::size_t columns = asked.views[v].columns();
      std::vector<float> values(asked.rows * columns, std::numeric_limits<float>::quiet_NaN());
      for (std::size_t i = 0; i < asked.rows; ++i)
        if (asked.has(i, v)) asked.views[v].copy_row(i, std::span(values).subspan(i * columns, columns));
      const std::string file = "view" + std::to_string(v);
      write_floats(at + "/" + file, values);
      about["views"].push_back({{"name", asked.views[v].name}, {"columns", columns}, {"file", file}});
    }
    const auto predict = [&](std::vector<std::string> more, const std::string& file) {
      std::vector<std::string> arguments = {"predict", at + "/model.safetensors", at + "/asked.npz", "--out",
                                            at + "/" + file + ".npy"};
      arguments.insert(arguments.end(), {"--precision", "f32"});
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Ended predicted = run(arguments);
      EXPECT_EQ(predicted.code, 0) << name << ": " << predicted.err;
      return read_scores(at + "/" + file + ".npy").values;
    };
    const Table<float> scores = predict({}, "plain"), probabilities = predict({"--calibrated"}, "calibrated"),
                       decided = predict({"--labels"}, "labels");
    about["labels"] = scores.cols();
    write_floats(at + "/scores", {scores.view().data, scores.rows() * scores.cols()});
    write_floats(at + "/probabilities", {probabilities.view().data, scores.rows() * scores.cols()});
    std::ofstream flags(at + "/decided", std::ios::binary);
    for (std::size_t i = 0; i < scores.rows(); ++i)
      for (const float one : decided.row(i)) flags.put(static_cast<char>(std::isnan(one) ? 2 : one));
    std::ofstream(at + "/case.json") << about;
    return at;
  }

  static void judge(const std::vector<std::string>& cases, double most_of_probabilities = kMostDifference) {
    std::string files, folders;
    for (const auto& at : cases) files += " " + at + "/model.onnx", folders += " " + at;
    if (shell("/usr/bin/python3 -c 'import onnx'").code == 0) {
      const Command checked = shell("/usr/bin/python3 " LACUNA_SOURCE_DIR "/tests/onnx/check.py" + files);
      EXPECT_EQ(checked.code, 0) << checked.out;
    } else {
      std::printf("no python3-onnx here: its checker was not asked\n");
    }
    const std::string modules = LACUNA_NPM_FOLDER;
    const Command installed = shell(LACUNA_SOURCE_DIR "/tools/npm-packages.sh " + modules + " " + kRuntime);
    if (installed.code == 77) GTEST_SKIP() << "onnxruntime did not judge: " << installed.out;
    ASSERT_EQ(installed.code, 0) << installed.out;
    const Command judged =
        shell("node " LACUNA_SOURCE_DIR "/tests/onnx/judge.mjs " + modules + "/node_modules" + folders);
    ASSERT_EQ(judged.code, 0) << judged.out;
    const auto results = nlohmann::json::parse(judged.out.substr(judged.out.find('{')));
    ASSERT_EQ(results.size(), cases.size());
    for (const auto& at : cases) {
      const auto& result = results.at(at);
      std::printf("%s: scores %.2g, probabilities %.2g, %d decisions differ\n",
                  at.substr(at.rfind('/') + 1).c_str(), result["scores"].get<double>(),
                  result["probabilities"].get<double>(), result["decided"].get<int>());
      EXPECT_LE(result["scores"].get<double>(), kMostDifference) << at;
      EXPECT_LE(result["probabilities"].get<double>(), most_of_probabilities) << at;
      EXPECT_EQ(result["decided"].get<int>(), 0) << at;
      EXPECT_GT(result["compared"].get<int>(), 400) << at;
    }
  }

  static Dataset simulated(std::size_t views, std::uint64_t seed) {
    SimulateOptions options;
    options.rows = 240;
    options.views = static_cast<std::int64_t>(views);
    options.labels = 7;
    options.sizes = {11, 8, 14, 6};
    options.sizes.resize(views);
    options.seed = seed;
    return simulate(options).data;
  }
  static const std::vector<std::string> kSmall;

  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Onnx::folder_ = nullptr;
const std::vector<std::string> Onnx::kSmall = {"--epochs", "3",           "--encoder-widths",
                                               "24",       "--embedding", "16"};

std::vector<std::string> operator+(std::vector<std::string> left, const std::vector<std::string>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST_F(Onnx, EveryPresetAndMethodThatIsANetwork) {
  const Dataset data = simulated(4, 3);
  std::vector<std::string> cases;
  cases.push_back(make_case("best", data, {"--preset", "best", "--epochs", "3"}));
  cases.push_back(make_case("members", data, kSmall + std::vector<std::string>{"--members", "3"}));
  cases.push_back(make_case("distilled", data, {"--preset", "distilled", "--epochs", "2"}));
  for (const char* preset : {"repaired", "authors", "paper"})
    cases.push_back(make_case(preset, data, {"--preset", preset, "--epochs", "2", "--width", ".1"}));
  cases.push_back(
      make_case("early", data, kSmall + std::vector<std::string>{"--fusion", "early", "--gamma", "0"}));
  cases.push_back(make_case("paired", data, {"--preset", "paired", "--epochs", "2"}));
  cases.push_back(
      make_case("memory-both", data, kSmall + std::vector<std::string>{"--fusion", "both", "--memory", "1"}));
  cases.push_back(
      make_case("ungated", data, {"--preset", "repaired", "--epochs", "2", "--width", ".1", "--no-gate"}));
  cases.push_back(make_case("dicnet", data, {"--method", "dicnet", "--epochs", "2", "--width", ".1"}));
  cases.push_back(make_case("c2ae", data, {"--method", "c2ae", "--epochs", "2"}));
  cases.push_back(make_case("memory", data, {"--preset", "best", "--epochs", "3", "--memory", "1"}));
  cases.push_back(make_case("memory-of-members", data,
                            kSmall + std::vector<std::string>{"--members", "2", "--memory", ".5"}));
  cases.push_back(make_case("memory-early", data,
                            kSmall + std::vector<std::string>{"--fusion", "early", "--gamma", "0", "--memory",
                                                              "1.5", "--memory-rows", "50"}));
  cases.push_back(
      make_case("blend", data, kSmall + std::vector<std::string>{"--preset", "auto", "--members", "1"}));
  cases.push_back(make_case("top", data, kSmall + std::vector<std::string>{"--aim", "top=3"}));
  judge(cases);
}

// Thresholds of saturated scores lie near 0, where a runtime's own sigmoid rounds to multiples of 6e-8.
TEST_F(Onnx, SaturatedScoresAreDecidedAlike) {
  judge({make_case("saturated", simulated(4, 3), kSmall + std::vector<std::string>{"--rate", "1"})}, 1e-3);
}

TEST_F(Onnx, EveryPreparation) {
  Dataset data = simulated(3, 5);
  data.views[1].name = "a view/with \"odd\" letters";
  std::vector<std::string> cases;
  for (const char* kind :
       {"none", "zscore", "minmax", "pca", "log-pca", "root-pca", "rbf-pca", "root-rbf-pca"})
    cases.push_back(make_case(
        std::string("prepare-") + kind, data,
        kSmall + std::vector<std::string>{"--prepare", kind, "--components", "5", "--whiten", ".5"},
        3e38f));
  judge(cases);
}

TEST_F(Onnx, RealDataSets) {
  LACUNA_NEEDS(emotions, "emotions/emotions.mat");
  LACUNA_NEEDS(msrc, "msrc_v2/msrc_v2_six_view.mat");
  judge({make_case("emotions", read_dataset(emotions), {"--epochs", "3"}),
         make_case("msrc_v2", read_dataset(msrc), {"--epochs", "3"})});
}

TEST_F(Onnx, MethodsThatAreNoNetworksSayWhy) {
  const Dataset data = simulated(2, 9);
  write_dataset(data, path("none.npz"));
  for (const char* method : {"prior", "naim3l", "cdmm"}) {
    ASSERT_EQ(run({"train", path("none.npz"), "--out", path("none.safetensors"), "--method", method}).code,
              0);
    const Ended ended = run({"export", path("none.safetensors"), path("none.onnx")});
    EXPECT_EQ(ended.code, 4);
    EXPECT_NE(ended.err.find(std::string("method ") + method + " cannot be exported"), std::string::npos)
        << ended.err;
    EXPECT_FALSE(std::filesystem::exists(path("none.onnx")));
  }
}

TEST_F(Onnx, AViewMayNotHaveTheNameOfAnOutput) {
  Dataset data = simulated(2, 11);
  data.views[0].name = "scores";
  write_dataset(data, path("named.npz"));
  ASSERT_EQ(
      run(std::vector<std::string>{"train", path("named.npz"), "--out", path("named.safetensors")} + kSmall)
          .code,
      0);
  const Ended ended = run({"export", path("named.safetensors"), path("named.onnx")});
  EXPECT_EQ(ended.code, 4);
  EXPECT_NE(ended.err.find("view 'scores' has the name of an output"), std::string::npos) << ended.err;
}

TEST_F(Onnx, TheNameSaysWhatIsWritten) {
  const Ended ended = run({"export", "model.safetensors", path("model.tflite")});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find(".onnx"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
