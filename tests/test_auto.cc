// Ensembles of candidates (preset auto): what is chosen and why, one model file, the same bits after any interruption,
// budgets, odd data, candidates that fail.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/protocol.h"
#include "data/simulate.h"
#include "methods/blend.h"
#include "methods/ensemble.h"
#include "methods/estimate.h"
#include "methods/model.h"
#include "temporary.h"

namespace lacuna {
namespace {

Dataset small_data(std::size_t rows = 60, std::size_t views = 3, std::size_t labels = 4) {
  SimulateOptions options;
  options.rows = rows;
  options.views = views;
  options.labels = labels;
  options.sizes = {9, 7, 5};
  options.sizes.resize(views);
  if (labels == 1) options.cardinality = 1;
  Dataset data = simulate(options).data;
  if (labels > 1) return data;
  Matrix<std::int8_t> Y(rows, 1);
  for (std::size_t i = 0; i < rows; ++i) Y(i, 0) = i % 3 == 0;
  data.labels = std::move(Y);
  return data;
}

Model small_auto(const std::string& budget = "") {
  Model model("lacuna");
  model.set_preset("auto");
  for (const auto& [name, value] :
       {std::pair{"epochs", "2"}, {"embedding", "6"}, {"width", "0.01"}, {"batch", "32"}})
    model.options().set(name, value, "test");
  if (!budget.empty()) model.options().set("budget", budget, "test");
  return model;
}

struct Remarks : FitContext {
  std::vector<std::string> remarks;
  void remark(const std::string& text) override { remarks.push_back(text); }
};

struct Stop {};
struct Interrupted : FitContext {
  std::string path;
  int stop_after = -1, epochs = 0;
  std::optional<Tensors> state;
  bool after_epoch(const EpochRecord&, FunctionRef<void(Tensors&)> snapshot) override {
    if (++epochs != stop_after) return true;
    Tensors file;
    snapshot(file);
    file.write(path);
    throw Stop();
  }
  const Tensors* resume_from() override { return state ? &*state : nullptr; }
};

void fit(Model& model, const Dataset& data, FitContext& context, double hold_out = .2) {
  const LearningRows rows = learning_rows(select_all(data), hold_out, 1);
  model.fit(rows.learn, rows.val, context);
}

bool same(const Matrix<float>& a, const Matrix<float>& b) {
  return std::ranges::equal(a.values(), b.values());
}

// Values of a candidate that knows the truth up to noise.
Matrix<float> noisy(const Matrix<std::int8_t>& truth, float noise, std::uint32_t stream) {
  Matrix<float> values(truth.rows(), truth.cols());
  Random random(7, Purpose::test, stream);
  for (std::size_t i = 0; i < truth.rows(); ++i)
    for (std::size_t j = 0; j < truth.cols(); ++j)
      values(i, j) = (truth(i, j) == 1 ? 1.f : -1.f) + noise * (2 * unit_float(random.bits()) - 1);
  return values;
}

Matrix<std::int8_t> some_truth(std::size_t rows) {
  Matrix<std::int8_t> truth(rows, 8);
  Random random(3, Purpose::test);
  for (auto& value : truth.values()) value = unit_float(random.bits()) < .3f;
  return truth;
}

TEST(Blend, WhatIsBetterIsChosenAndNoiseIsNot) {
  const Matrix<std::int8_t> truth = some_truth(300);
  const std::vector<Matrix<float>> values = {noisy(truth, 4, 1), noisy(truth, 100, 2), noisy(truth, 2, 3)};
  const BlendChoice choice = choose_blend(values, truth);
  EXPECT_EQ(choice.rows, 279u);  // the others have no label
  EXPECT_GE(choice.weights[2], choice.weights[0]);
  EXPECT_NEAR(choice.weights[0] + choice.weights[1] + choice.weights[2], 1, 1e-12);
  EXPECT_GT(choice.gain, choice.error);
  EXPECT_GE(choice.blended, choice.worth[0]);
  EXPECT_TRUE(choice.by_order);
  // If chance gives noise a share, its line makes it small: what it moves is little beside what the truth moves.
  if (choice.weights[1] > 0) {
    EXPECT_LT(100 * choice.blend.slopes[1], choice.blend.slopes.back());
  }
}

TEST(Blend, TheUnitOfACandidateDoesNotMatter) {
  const Matrix<std::int8_t> truth = some_truth(200);
  std::vector<Matrix<float>> values = {noisy(truth, 4, 1), noisy(truth, 3, 2)};
  const BlendChoice before = choose_blend(values, truth);
  for (float& value : values[1].values()) value = 1000 * value + 70;
  const BlendChoice after = choose_blend(values, truth);
  EXPECT_NEAR(before.blended, after.blended, 1e-3);  // rounding may move a share
  for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(before.weights[k], after.weights[k], .1);
}

// Whoever is better by chance must not take all: the mean of equals is better than each of them.
TEST(Blend, EqualsShareTheWeight) {
  const Matrix<std::int8_t> truth = some_truth(60);
  for (std::uint32_t stream = 10; stream < 40; stream += 3) {
    std::vector<Matrix<float>> values;
    for (std::uint32_t k = 0; k < 3; ++k) values.push_back(noisy(truth, 4, stream + k));
    const BlendChoice choice = choose_blend(values, truth);
    for (const double weight : choice.weights) EXPECT_GT(weight, .05) << stream;
    EXPECT_GT(choice.blended, std::ranges::max(choice.worth)) << stream;
  }
}

// The order of one label is always right, so its probability is judged.
TEST(Blend, OneLabelIsJudgedByLogLoss) {
  Matrix<std::int8_t> truth(200, 1);
  for (std::size_t i = 0; i < 200; ++i)
    truth(i, 0) = i % 7 == 6 ? kUnknown : static_cast<std::int8_t>(i % 3 == 0);
  const BlendChoice choice = choose_blend(std::vector{noisy(truth, 20, 1), noisy(truth, 2, 2)}, truth);
  EXPECT_FALSE(choice.by_order);
  EXPECT_EQ(choice.rows, 172u);
  EXPECT_GT(choice.weights[1], .9);
  EXPECT_GT(choice.worth[1], choice.worth[0] + .1);
  EXPECT_GT(choice.gain, 3 * choice.error);
}

TEST(Blend, FewRowsLeaveTheFirstAlone) {
  const Matrix<std::int8_t> truth = some_truth(kFewestJudged - 1);
  const BlendChoice choice = choose_blend(std::vector{noisy(truth, 50, 1), noisy(truth, .1f, 2)}, truth);
  EXPECT_EQ(choice.weights, (std::vector<double>{1, 0}));
}

// Nine training rows are not divided into parts, and two validation rows choose nothing.
TEST(Auto, TooFewRowsToJudgeByAreNoChoice) {
  const Dataset data = small_data(11, 2, 3);
  Model model = small_auto();
  Remarks context;
  fit(model, data, context);
  const nlohmann::json choice = choice_of(model.method());
  EXPECT_EQ(choice["members"][0]["weight"], 1);
  EXPECT_EQ(choice["members"][1]["left_out"], "too few rows to judge it by");
  EXPECT_TRUE(std::ranges::any_of(context.remarks, [](const std::string& text) {
    return text.starts_with("candidates are judged on 10 rows at least, and there were 2: lacuna alone");
  }));
}

TEST(Auto, IsOneModelWithTheSameBitsForAnyThreads) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  set_threads(1);
  Model model = small_auto();
  Remarks context;
  fit(model, data, context);
  model.save(folder / "one");
  set_threads(3);
  Model again = small_auto();
  Remarks other;
  fit(again, data, other);
  again.save(folder / "three");
  set_threads(0);
  EXPECT_TRUE(read_text(folder / "one") == read_text(folder / "three"));
  const Model loaded = Model::load(folder / "one");
  EXPECT_TRUE(same(loaded.predict(data), model.predict(data)));
  loaded.save(folder / "again");
  EXPECT_TRUE(read_text(folder / "one") == read_text(folder / "again"));

  const nlohmann::json choice = choice_of(loaded.method());
  ASSERT_EQ(choice["members"].size(), 8u);
  double sum = 0;
  for (const auto& member : choice["members"]) {
    if (member.contains("weight")) sum += member["weight"].get<double>();
    EXPECT_NE(member.contains("left_out"), member.value("weight", 0.) > 0) << member;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  std::set<std::string> names;  // each tells its member from the others
  for (const auto& member : choice["members"]) names.insert(member["member"].get<std::string>());
  EXPECT_EQ(names.size(), 8u);
  EXPECT_TRUE(names.contains("lacuna (prepare=auto)"));
  EXPECT_TRUE(choice["crossed"].get<bool>());
  EXPECT_EQ(choice["judged_rows"], 54);  // the others have labels of one kind alone
  EXPECT_TRUE(std::ranges::any_of(context.remarks, [](const std::string& text) {
    return text.find("chosen on 54 rows") != std::string::npos;
  }));
}

TEST(Auto, ResumesToTheSameBits) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model whole = small_auto();
  Interrupted context;
  fit(whole, data, context);
  const Matrix<float> scores = whole.predict(data);
  // Four networks of two epochs and the iterations of LVSL, on all rows and then without each of five parts of them.
  ASSERT_GT(context.epochs, 4 * 2 * 6);
  for (const int stop : {1, 3, 6, 7, 12, 23, 40, context.epochs - 1}) {
    Interrupted first;
    first.path = folder / "checkpoint";
    first.stop_after = stop;
    Model model = small_auto(), resumed = small_auto();
    EXPECT_THROW(fit(model, data, first), Stop);
    Interrupted second;
    second.state = Tensors::read(folder / "checkpoint");
    fit(resumed, data, second);
    EXPECT_EQ(second.epochs, context.epochs - stop);
    EXPECT_TRUE(same(resumed.predict(data), scores)) << "stopped after " << stop << " epochs";
  }
}

TEST(Auto, ABudgetIsSpentInOrderAndByEstimates) {
  const Dataset data = small_data();
  Model model = small_auto("0.000001s");
  Remarks context;
  fit(model, data, context);
  const nlohmann::json choice = choice_of(model.method());
  EXPECT_EQ(choice["members"][0]["weight"], 1);
  std::size_t beyond = 0;
  for (const auto& member :
       choice["members"])  // "beyond the budget, by its estimate of 3 ms after 2.1 s for ..."
    beyond += member.value("left_out", std::string()).ends_with("for those before it");
  EXPECT_EQ(beyond, 7u);
  EXPECT_TRUE(std::ranges::any_of(context.remarks, [](const std::string& text) {
    return text.starts_with("by its estimate lacuna alone takes");
  }));
  EXPECT_FALSE(choice["crossed"].get<bool>());

  // The first alone is `best` with the same seed, put through one line: the same order of labels.
  Model best("lacuna");
  for (const auto& option : model.options().all())
    if (option.name != "budget") best.options().set(option.name, option.text(), "test");
  FitContext plain;
  fit(best, data, plain);
  const Matrix<float> a = model.predict(data), b = best.predict(data);
  for (std::size_t i = 0; i < a.rows(); ++i)
    for (std::size_t j = 1; j < a.cols(); ++j)
      EXPECT_EQ(a(i, j) > a(i, 0), b(i, j) > b(i, 0)) << i << ", " << j;
}

TEST(Auto, ABudgetIsRefusedWhereItHasNoEffect) {
  const Dataset data = small_data();
  const auto refused = [&](const std::string& preset, const std::string& budget) {
    Model model("lacuna");
    model.set_preset(preset);
    model.options().set("budget", budget, "test");
    FitContext context;
    try {
      fit(model, data, context);
      ADD_FAILURE() << preset << " with " << budget << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage) << error.what();
    }
  };
  refused("best", "2m");
  refused("auto", "soon");
  refused("auto", "-1");
  refused("auto", "0");
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("2m"), 120);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_FALSE(parse_duration("m"));
  EXPECT_FALSE(parse_duration(""));
}

TEST(Auto, OddDataGiveAModel) {
  const auto finite = [](const Model& model, const Dataset& data) {
    const Matrix<float> scores = model.predict(data);
    for (const float score : scores.values())
      ASSERT_TRUE(std::isfinite(score) && score >= 0 && score <= 1)
          << score << " " << choice_of(model.method());
  };
  struct Case {
    std::size_t rows, views, labels;
    double hold_out;
  };
  for (const Case& odd :
       {Case{60, 3, 1, .2}, Case{60, 1, 4, .2}, Case{20, 2, 3, .2}, Case{60, 2, 4, 0}, Case{8, 1, 4, 0}}) {
    SCOPED_TRACE(fmt::format("{} rows, {} views, {} labels, {} held out", odd.rows, odd.views, odd.labels,
                             odd.hold_out));
    const Dataset data = small_data(odd.rows, odd.views, odd.labels);
    Model model = small_auto();
    Remarks context;
    fit(model, data, context, odd.hold_out);
    finite(model, data);
    if (odd.rows >= 20) {
      EXPECT_EQ(choice_of(model.method())["measure"], odd.labels == 1 ? "1 - log loss" : "AP");
    }
    const TemporaryDirectory folder;
    model.save(folder / "odd");
    EXPECT_TRUE(same(Model::load(folder / "odd").predict(data), model.predict(data)));
  }
}

// Explanations start from values of sets of views; with all views they are the log-odds of the score.
TEST(Auto, ValuesOfAllViewsAreTheLogOddsOfTheScore) {
  const Dataset data = small_data();
  Model model = small_auto();
  FitContext context;
  fit(model, data, context);
  const Items items = model.prepare(select_all(data));
  ViewSets sets;
  for (std::uint32_t i = 0; i < items.rows(); ++i) sets.rows.push_back(i);
  sets.W = Matrix<std::uint8_t>(items.rows(), items.views());
  sets.W.copy_from(items.W.view());
  Matrix<float> values(items.rows(), 4);
  model.method().predict_sets(items, sets, values);
  const Matrix<float> scores = model.predict(data);
  for (std::size_t i = 0; i < scores.values().size(); ++i)
    EXPECT_NEAR(1 / (1 + std::exp(-values.values()[i])), scores.values()[i], 2e-6f);
}

std::unique_ptr<Method> with_candidates(std::vector<MemberSpec> specs, double seconds = 600) {
  return make_ensemble(make_method("lacuna"), "auto", std::move(specs), Choosing{seconds});
}

std::pair<Items, Items> small_items() {  // to learn from, and for validation
  const Dataset data = small_data();
  const LearningRows rows = learning_rows(select_all(data), .2, 1);
  const Preparation preparation = Preparation::fit(rows.learn, {});
  const std::vector<int> source = {0, 1, 2};
  return {preparation.apply(rows.learn, source, true), preparation.apply(rows.val, source, true)};
}

struct Counting : FitContext {
  std::int64_t fits = 0;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    fits = record.members;
    return true;
  }
};

TEST(Auto, TheBudgetSaysIntoHowManyPartsRowsAreDivided) {
  const auto [train, val] = small_items();
  const MemberSpec one{{{"epochs", "1"}, {"embedding", "6"}, {"width", "0.01"}}},
      other{{{"epochs", "1"}, {"embedding", "5"}, {"width", "0.01"}}};
  const auto cost = [size = fit_size(train)](std::vector<MemberSpec> specs, double budget) {
    return with_candidates(std::move(specs), budget)->cost(size).core_seconds;
  };
  const double seconds = cost({one}, 1) + cost({other}, 1);
  for (const auto& [budget, parts] : {std::pair{6., 5}, {4., 3}, {2., 0}}) {
    Counting context;
    with_candidates({one, other}, budget * seconds)->fit(train, val, context);
    EXPECT_EQ(context.fits, 2 + 2 * parts) << budget;
    EXPECT_NEAR(cost({one, other}, budget * seconds), std::max(1, parts) * seconds, 1e-9 * seconds) << budget;
  }
}

// What benches announce.
TEST(Auto, AModelsCostIsThatOfItsMembersWithinTheBudget) {
  const FitSize size{
      .rows = 1000, .labels = 10, .columns = {50, 50}, .present = {1000, 500}, .positives = 2000};
  const auto seconds = [&](const char* preset, const std::string& budget) {
    Model model("lacuna");
    model.set_preset(preset);
    if (!budget.empty()) model.options().set("budget", budget, "test");
    return model.cost(size).core_seconds;
  };
  const double best = seconds("best", "");
  EXPECT_GT(seconds("distilled", ""), 9 * best);  // three teachers and six students, some of them wider
  EXPECT_EQ(seconds("auto", "0.001s"), best);
  for (const double budget : {2., 30.}) {
    EXPECT_GT(seconds("auto", fmt::format("{}s", budget * best)), best);
    EXPECT_LE(seconds("auto", fmt::format("{}s", budget * best)), budget * best);
  }
}

TEST(Auto, ACandidateThatFailsIsLeftOutWithANote) {
  const auto [train, val] = small_items();
  const MemberSpec good{{}, 0, false, "linear"}, bad{{{"view", "99"}}, 0, false, "glocal"};
  for (const auto& specs : {std::vector{good, bad}, std::vector{bad, good}}) {
    const auto ensemble = with_candidates(specs);
    Remarks context;
    ensemble->fit(train, val, context);
    const nlohmann::json choice = choice_of(*ensemble);
    const std::size_t failed = specs[0].method == "glocal" ? 0 : 1;
    EXPECT_EQ(choice["members"][1 - failed]["weight"], 1);
    EXPECT_TRUE(choice["members"][failed]["left_out"].get<std::string>().find("view 99") !=
                std::string::npos);
    ASSERT_FALSE(context.remarks.empty());
    EXPECT_TRUE(context.remarks.back().find("view 99") != std::string::npos) << context.remarks.back();
  }
  const auto none = with_candidates({bad, bad});
  Remarks context;
  EXPECT_THROW(none->fit(train, val, context), Error);
}

// Otherwise the other candidates would make another model, and nobody would know.
TEST(Auto, AFullDiskIsNoFaultOfACandidate) {
  struct FullDisk : FitContext {
    bool after_epoch(const EpochRecord&, FunctionRef<void(Tensors&)>) override {
      fail(Exit::failed, "m.safetensors: the disk is full");
    }
  };
  const Dataset data = small_data();
  FullDisk context;
  Model model = small_auto();
  try {
    fit(model, data, context);
    ADD_FAILURE() << "a model was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::failed);
    EXPECT_EQ(std::string(error.what()), "m.safetensors: the disk is full");
  }
}

TEST(Auto, ALyingFileIsRefused) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  Model model = small_auto();
  FitContext context;
  fit(model, data, context);
  model.save(folder / "whole");
  const Tensors whole = Tensors::read(folder / "whole");
  const auto refused = [&](const char* what, auto change) {
    Tensors file = whole;
    change(file);
    file.write(folder / "lie");
    try {
      Model::load(folder / "lie");
      ADD_FAILURE() << what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::data) << what << ": " << error.what();
    }
  };
  refused("a member beyond the plan", [](Tensors& f) { f.metadata["ensemble"]["which"][0] = 99; });
  refused("no list of members", [](Tensors& f) { f.metadata["ensemble"].erase("which"); });
  refused("a list of texts", [](Tensors& f) { f.metadata["ensemble"]["which"] = {"a"}; });
  const std::vector<float> wrong(7, 1.f), broken = {std::nanf("")};
  refused("slopes of other members", [&](Tensors& f) { f.put("blend.slopes", std::span(wrong)); });
  refused("no number as intercept", [&](Tensors& f) { f.put("blend.intercept", std::span(broken)); });
}

}  // namespace
}  // namespace lacuna
