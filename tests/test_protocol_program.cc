// The verbs around data and metrics, run as a user runs them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "checks.h"
#include "data/folds.h"
#include "data/metrics.h"
#include "data/npy.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "program.h"
#include "shared_data.h"

namespace lacuna {
namespace {

class ProtocolProgram : public testing::Test {
 protected:
  void simulate_toy() {
    const Ended ended = run({"data", "simulate", folder_ / "toy.npz", "--rows", "200", "--labels", "8"});
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  TemporaryDirectory folder_;
};

// Of a fold whose validation rows are those that nobody has labelled.
TEST_F(ProtocolProgram, ValidationRowsWithoutKnownLabelsSelectNothing) {
  Dataset data = simulate({.rows = 60, .labels = 4}).data;
  const Folds folds = make_folds(data, {.repeats = 1});
  Matrix<std::int8_t> labels(data.rows, 4);
  for (std::size_t i = 0; i < data.rows; ++i) std::ranges::copy(data.labels.row(i), labels.row(i).begin());
  for (const std::uint32_t i : folds.part_rows(0, Part::val)) std::ranges::fill(labels.row(i), kUnknown);
  data.labels = std::move(labels);
  write_dataset(data, folder_ / "d.npz");
  write_folds(folds, folder_ / "f.npz");
  for (const char* method : {"linear", "naim3l", "prior"}) {
    const Ended ended = run({"train", folder_ / "d.npz", "--folds", folder_ / "f.npz", "--fold", "0",
                             "--method", method, "--out", folder_ / method});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(has(ended.err, "none of the 9 validation rows has a known label: nothing is selected"))
        << ended.err;
    EXPECT_TRUE(has(ended.out, "on 9 validation rows:  AP -")) << ended.out;
    EXPECT_FALSE(has(ended.out, "nan")) << ended.out;
  }
}

TEST_F(ProtocolProgram, SimulateKeepsTheTruth) {
  simulate_toy();
  const Dataset data = read_dataset(folder_ / "toy.npz");
  EXPECT_EQ(data.rows, 200u);
  EXPECT_EQ(content_hash(data), content_hash(simulate({.rows = 200, .labels = 8}).data));
  const auto truth = read_npz(folder_ / "toy.truth.npz");
  const Array* shared = find_array(truth, "shared");
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->rows(), 200u);
  for (const char* name : {"seen", "own_view0", "own_view3", "affinity"})
    EXPECT_NE(find_array(truth, name), nullptr) << name;
}

TEST_F(ProtocolProgram, SimulateViewsForRealLabels) {
  LACUNA_NEEDS(labels, "labels/pascal07.npz");
  const Ended ended =
      run({"data", "simulate", folder_ / "voc.npz", "--labels-from", labels, "--sizes", "16,8"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Dataset data = read_dataset(folder_ / "voc.npz");
  EXPECT_EQ(data.rows, 9963u);
  EXPECT_EQ(data.label_count(), 20u);
  EXPECT_EQ(data.views[1].columns(), 8u);
}

TEST_F(ProtocolProgram, InspectAsTextAndJson) {
  simulate_toy();
  const Ended text = run({"data", "inspect", folder_ / "toy.npz"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "200 rows, 4 views, 8 labels")) << text.out;
  const Ended ended = run({"data", "inspect", folder_ / "toy.npz", "--json"});
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["rows"], 200);
  EXPECT_EQ(json["views"][0]["columns"], 64);
  EXPECT_EQ(json["views"][0]["missing"], 0.);
  EXPECT_EQ(json["labels"]["count"], 8);
  EXPECT_EQ(json["labels"]["cardinality"], 2.);
  EXPECT_EQ(json["labels"]["unknown"], 0.);
}

TEST_F(ProtocolProgram, InspectShowsNonFiniteValuesThatTrainingRefuses) {
  Matrix<float> view(20, 3);
  for (std::size_t i = 0; i < 20; ++i)
    for (std::size_t j = 0; j < 3; ++j) view(i, j) = static_cast<float>(i + j);
  view(4, 1) = std::numeric_limits<float>::quiet_NaN();
  Matrix<std::uint8_t> label(20, 2);
  for (std::size_t i = 0; i < 20; ++i) label(i, i % 2) = 1;
  write_npz(folder_ / "bad.npz", std::vector{borrow("a", view), borrow("label", label)});
  const Ended shown = run({"data", "inspect", folder_ / "bad.npz"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, "1 value is not finite, the first at row 4, column 1")) << shown.out;
  const Ended refused = run({"data", "mask", folder_ / "bad.npz", folder_ / "f.npz"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(has(refused.err, "row 4, column 1")) << refused.err;
  write_text(folder_ / "gap.csv", "id,a,b\nx,1,2\ny,,4\nz,5,nan\n");
  const Ended gaps = run({"data", "inspect", folder_ / "gap.csv"});
  EXPECT_EQ(gaps.code, 0) << gaps.err;
  EXPECT_TRUE(has(gaps.out, "2 values are not finite, the first at row 1, column 0")) << gaps.out;
  EXPECT_TRUE(has(gaps.out, "--empty mean")) << gaps.out;
  const Ended filled = run({"data", "inspect", folder_ / "gap.csv", "--empty", "mean"});
  EXPECT_FALSE(has(filled.out, "not finite")) << filled.out;
  EXPECT_EQ(run({"data", "convert", folder_ / "gap.csv", folder_ / "gap"}).code, 3);
}

TEST_F(ProtocolProgram, MaskWritesBothFormsAndPrintsRates) {
  simulate_toy();
  const Ended ended =
      run({"data", "mask", folder_ / "toy.npz", folder_ / "f.npz", "--repeats", "2", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_EQ(json["views"][2]["hidden"], .5);
  EXPECT_EQ(json["train"], 140);
  EXPECT_NEAR(json["labels"]["positives_hidden"].get<double>(), .5, .02);
  const Ended other =
      run({"data", "mask", folder_ / "toy.npz", folder_ / "f.mat", "--from", folder_ / "f.npz"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(has(other.out, "50.00 %")) << other.out;
  EXPECT_EQ(read_folds(folder_ / "f.mat").hash(), json["hash"].get<std::string>());
}

TEST_F(ProtocolProgram, MaskRefusals) {
  simulate_toy();
  const Ended rate = run({"data", "mask", folder_ / "toy.npz", folder_ / "f.npz", "--missing-views", ".9"});
  EXPECT_EQ(rate.code, 2);
  EXPECT_TRUE(has(rate.err, "at most 0.75 is possible")) << rate.err;
  const Ended misspelt =
      run({"data", "mask", folder_ / "toy.npz", folder_ / "f.npz", "--missing-veiws", ".9"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_TRUE(has(misspelt.err, "did you mean '--missing-views'")) << misspelt.err;
  ASSERT_EQ(run({"data", "simulate", folder_ / "other.npz", "--rows", "150"}).code, 0);
  ASSERT_EQ(run({"data", "mask", folder_ / "other.npz", folder_ / "o.npz", "--repeats", "1"}).code, 0);
  const Ended fit =
      run({"data", "mask", folder_ / "toy.npz", folder_ / "f.npz", "--from", folder_ / "o.npz"});
  EXPECT_EQ(fit.code, 4);
  EXPECT_TRUE(has(fit.err, "150 rows")) << fit.err;
  EXPECT_TRUE(has(fit.err, "200")) << fit.err;
}

TEST_F(ProtocolProgram, EvaluateKnownAnswer) {
  const float S[] = {.1f, .2f, .1f, .4f, .8f, .9f, .1f, .2f, .1f, .4f, .8f, .9f};
  const std::uint8_t Y[] = {1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0};
  write_npy(folder_ / "s.npy", borrow("scores", MatrixView<const float>(S, 2, 6)));
  write_npz(folder_ / "y.npz", std::vector{borrow("label", MatrixView<const std::uint8_t>(Y, 2, 6))});
  const Ended ended = run({"evaluate", folder_ / "s.npy", folder_ / "y.npz", "--json", "--per-label"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto json = nlohmann::json::parse(ended.out);
  const auto metric = [&](const char* name) { return json["metrics"][name].get<double>(); };
  EXPECT_NEAR(metric("AP"), .5388889, 5e-8);
  EXPECT_NEAR(metric("1-HL"), 1 - .6666667, 5e-8);
  EXPECT_NEAR(metric("1-RL"), 1 - .7222222, 5e-8);
  EXPECT_NEAR(metric("AUC"), .3166667, 5e-8);
  EXPECT_NEAR(metric("1-OE"), .5, 5e-8);
  EXPECT_NEAR(metric("1-Cov"), 1 - .8333333, 5e-8);
  EXPECT_EQ(json["per_label"].size(), 6u);
  EXPECT_TRUE(json["per_label"][4]["AP"].is_null());  // no positive

  const std::uint8_t D[] = {1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0};
  write_npy(folder_ / "d.npy", borrow("decided", MatrixView<const std::uint8_t>(D, 2, 6)));
  const Ended decided =
      run({"evaluate", folder_ / "s.npy", folder_ / "y.npz", "--json", "--decided", folder_ / "d.npy"});
  EXPECT_EQ(nlohmann::json::parse(decided.out)["metrics"]["1-HL"], 1.);
}

TEST_F(ProtocolProgram, EvaluateRefusals) {
  simulate_toy();
  Matrix<float> scores(200, 8);
  scores(17, 5) = std::numeric_limits<float>::quiet_NaN();
  write_npy(folder_ / "nan.npy", borrow("scores", scores));
  Ended ended = run({"evaluate", folder_ / "nan.npy", folder_ / "toy.npz"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(has(ended.err, "row 17 (from 0) has no score for label 5 (from 0)")) << ended.err;
  write_npy(folder_ / "short.npy", borrow("scores", scores.view().top(150)));
  ended = run({"evaluate", folder_ / "short.npy", folder_ / "toy.npz"});
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(has(ended.err, "150 rows") && has(ended.err, "200")) << ended.err;
  scores(17, 5) = 0;
  write_npz(folder_ / "names.npz",
            std::vector{borrow("scores", scores),
                        text_array("label_names", {"label0", "label1", "label2", "label3", "label4", "label5",
                                                   "label7", "other"})});
  ended = run({"evaluate", folder_ / "names.npz", folder_ / "toy.npz"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(has(ended.err, "1 scored label that the data does not have ('other')")) << ended.err;
  EXPECT_TRUE(has(ended.err, "1 label of the data without scores ('label6')")) << ended.err;
}

// What predict writes for a part of a fold, evaluate takes for the same part and for no other.
TEST_F(ProtocolProgram, PredictThenEvaluateByFolds) {
  simulate_toy();
  const std::string data = folder_ / "toy.npz", folds = folder_ / "f.npz", model = folder_ / "m.safetensors";
  ASSERT_EQ(run({"data", "mask", data, folds, "--repeats", "2"}).code, 0);
  Ended ended = run({"train", data, "--method", "prior", "--folds", folds, "--fold", "1", "--out", model});
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char* name : {"s.npz", "s.npy", "s.csv"}) {
    const std::string scores = folder_ / name;
    ended = run({"predict", model, data, "--folds", folds, "--fold", "1", "--part", "test", "--out", scores});
    ASSERT_EQ(ended.code, 0) << ended.err;
    ended = run({"evaluate", scores, data, "--folds", folds, "--fold", "1", "--part", "test", "--json"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const auto json = nlohmann::json::parse(ended.out);
    EXPECT_EQ(json["rows"], 30);
    EXPECT_NEAR(json["metrics"]["macro-AUC"].get<double>(), .5, 1e-12);
    if (std::string(name) == "s.npy") continue;  // it has no ids
    ended = run({"evaluate", scores, data, "--folds", folds, "--fold", "0", "--part", "test"});
    EXPECT_EQ(ended.code, 4) << name;
    EXPECT_TRUE(has(ended.err, "are --fold and --part those of the scores?")) << ended.err;
  }
}

TEST_F(ProtocolProgram, MetricsAreExplained) {
  const Ended ended = run({"metrics", "--json"});
  ASSERT_EQ(ended.code, 0);
  const auto list = nlohmann::json::parse(ended.out)["metrics"];
  ASSERT_EQ(list.size(), metric_names().size());
  for (std::size_t k = 0; k < list.size(); ++k) EXPECT_EQ(list[k]["name"], metric_names()[k]);
}

TEST_F(ProtocolProgram, HelpOfTheProgramAGroupAndAVerb) {
  const Ended version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("lacuna ")) << version.out;
  const Ended all = run({"--help"}), group = run({"bench", "--help"}), verb = run({"help", "data", "mask"});
  EXPECT_EQ(all.code, 0);
  EXPECT_TRUE(has(all.out, "bench table") && has(all.out, "predict"));
  EXPECT_EQ(group.code, 0);
  EXPECT_TRUE(has(group.out, "bench table") && !has(group.out, "predict")) << group.out;
  EXPECT_EQ(verb.code, 0);
  EXPECT_EQ(verb.out, run({"data", "mask", "--help"}).out);
  const Ended bare = run({"data"}), wrong = run({"data", "inspekt"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(has(bare.err, "data inspect") && bare.out.empty()) << bare.err;
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "there is no verb 'data inspekt'")) << wrong.err;
}

// The words that the bash script offers for a command line.
std::string completions(const TemporaryDirectory& folder, const std::string& words) {
  const Ended script = run({"completion", "bash"});
  write_text(folder / "lacuna.bash", script.out);
  const std::string command = "bash -c 'source " + (folder / "lacuna.bash") +
                              "; COMP_WORDS=(" LACUNA_PROGRAM " " + words +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lacuna; echo \"${COMPREPLY[*]}\"'";
  std::FILE* pipe = popen(command.c_str(), "r");
  char line[4096] = "";
  EXPECT_NE(std::fgets(line, sizeof line, pipe), nullptr);
  EXPECT_EQ(pclose(pipe), 0);
  return line;
}

TEST_F(ProtocolProgram, CompletionOffersVerbsOptionsAndChoices) {
  EXPECT_TRUE(has(completions(folder_, "ev"), "evaluate"));
  EXPECT_EQ(completions(folder_, "data si"), "simulate\n");
  EXPECT_EQ(completions(folder_, "bench sens"), "sensitivity\n");  // the longest verb
  EXPECT_EQ(completions(folder_, "data mask --missing-v"), "--missing-views\n");
  EXPECT_TRUE(has(completions(folder_, "evaluate s.npy d.npz --part t"), "train test"));
  EXPECT_TRUE(has(completions(folder_, "train d.npz --method pr"), "prior"));
  EXPECT_EQ(run({"completion", "tcsh"}).code, 2);
}

}  // namespace
}  // namespace lacuna
