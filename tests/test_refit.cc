// The setting all-rows: a second fit on training and validation rows does what the first one selected.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "checks.h"
#include "data/prepared.h"
#include "data/protocol.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "methods/refit.h"
#include "program.h"
#include "temporary.h"

namespace lacuna {
namespace {

using nlohmann::json;
using Settings = std::vector<std::pair<std::string, std::string>>;

Dataset small_data() {
  return simulate({.rows = 80, .views = 3, .labels = 4, .sizes = {9, 7, 6}, .seed = 4}).data;
}

Folds small_folds(const Dataset& data) {
  MaskOptions mask;
  mask.missing_views = mask.missing_labels = .3;
  mask.repeats = 1;
  return make_folds(data, mask);
}

const Settings kSmall = {{"epochs", "4"}, {"batch", "32"}, {"embedding", "8"}, {"width", "0.01"}};
const Settings kSmallBest = {{"epochs", "4"},          {"batch", "32"},  {"embedding", "8"},
                             {"encoder-widths", "12"}, {"memory", "1"},  {"components", "4"},
                             {"precision", "f32"},     {"average", "0"}, {"decay-rows", "0"}};

struct Kind {
  std::string method, preset;
  Settings settings;
};
// One of each family: networks, an ensemble with teachers, candidates, a method that tries one view after the other, one
// that fills what is missing, one that selects a weight, one without anything to select, one without iterations.
const std::vector<Kind> kKinds = {
    {"lacuna", "best", kSmallBest},
    {"lacuna", "distilled", kSmall},
    {"lacuna", "auto", kSmall},
    {"mtd", "repaired", {{"epochs", "3"}, {"width", "0.01"}, {"batch", "32"}}},
    {"c2ae", "", {{"epochs", "3"}, {"hidden", "8"}}},
    {"lvsl", "", {{"iterations", "3"}}},
    {"naim3l", "", {{"iterations", "4"}}},
    {"imvwl", "", {}},
    {"linear", "", {}},
};

Model made(const Kind& kind, bool refit, const Settings& more = {}) {
  Model model(kind.method);
  if (!kind.preset.empty()) model.set_preset(kind.preset);
  for (const auto& [name, value] : kind.settings) model.options().set(name, value, "test");
  for (const auto& [name, value] : more) model.options().set(name, value, "test");
  model.options().set("all-rows", refit ? "true" : "false", "test");
  return model;
}

struct Stop {};

// Hears of epochs; may throw, diverge or stop at one of them.
struct Listener : FitContext {
  std::optional<Tensors> state;
  std::string checkpoint;
  int stop_at = 0, diverge_at = 0, end_at = 0, ask_at = 0;  // epochs, counted from 1; 0 = never
  int epochs = 0;
  std::vector<EpochRecord> records;
  std::vector<std::string> remarks;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    records.push_back(record);
    ++epochs;
    if (epochs == stop_at) {
      Tensors file;
      snapshot(file);
      file.write(checkpoint);
      throw Stop();
    }
    if (epochs == diverge_at) throw Diverged("the loss is no longer a number", false);
    return epochs != end_at;
  }
  bool stopping() override { return ask_at > 0 && epochs >= ask_at; }
  void remark(const std::string& text) override { remarks.push_back(text); }
  const Tensors* resume_from() override { return state ? &*state : nullptr; }
  int of_pass(std::int64_t pass) const {
    return static_cast<int>(
        std::ranges::count_if(records, [&](const EpochRecord& r) { return r.pass == pass; }));
  }
};

// On fold 0 of the small data.
struct Case {
  Dataset data = small_data();
  Folds folds = small_folds(data);
  LearningRows rows;
  explicit Case(Protocol protocol = Protocol::strict) : rows(learning_rows(data, folds, 0, protocol)) {}
  Model& fit(Model& model, FitContext& context) const {
    model.fit(rows.learn, rows.val, context);
    return model;
  }
  Matrix<float> scores(const Model& model) const {
    return model.predict(select_part(data, folds, 0, Part::test));
  }
};

std::string bytes_of(const Model& model) {
  return model.tensors().text();
}

TEST(Refit, RowsOfBothHaveTheGapsOfTheFold) {
  const Case strict, transductive(Protocol::transductive);
  const Fold& fold = strict.folds.folds[0];
  for (const auto* some : {&strict, &transductive}) {
    const Selection both = rows_of_both(some->rows.learn, some->rows.val);
    const std::size_t unlabelled = some == &strict ? 0 : some->rows.unlabelled - some->rows.val.rows.size();
    EXPECT_EQ(both.rows.size(), some->rows.labelled() + some->rows.val.rows.size() + unlabelled);
    EXPECT_EQ(std::set(both.rows.begin(), both.rows.end()).size(), both.rows.size());
    std::size_t hidden = 0, test = 0;
    const auto val = some->rows.val.rows;
    for (std::size_t i = 0; i < both.rows.size(); ++i) {
      const std::uint32_t row = both.rows[i];
      const bool is_val = std::ranges::find(val, row) != val.end(),
                 is_train = !is_val &&
                            std::ranges::find(strict.rows.learn.rows, row) != strict.rows.learn.rows.end();
      test += !is_val && !is_train;
      for (std::size_t j = 0; j < 4; ++j) {
        const bool known = (is_val || is_train) && fold.G(row, j) != 0;
        EXPECT_EQ(both.label(i, j), known ? strict.data.labels(row, j) : kUnknown);
        hidden += is_val && !known;
      }
    }
    EXPECT_GT(hidden, 0u);
    EXPECT_EQ(test, unlabelled);
    EXPECT_EQ(labelled_count(both), both.rows.size() - unlabelled);
  }
}

// Without a preparation that depends on the rows, the second fit is one that anybody could have made, with the settings
// that the first one found.
TEST(Refit, IsAFitOnAllRowsWithWhatWasSelected) {
  const Case c;
  const Selection both = rows_of_both(c.rows.learn, c.rows.val);
  const auto check = [&](const Kind& kind, FunctionRef<Settings(const json&)> settings) {
    Listener context, plain;
    Model twice = made(kind, true);
    c.fit(twice, context);
    ASSERT_TRUE(twice.refitted().is_object());
    EXPECT_EQ(twice.refitted()["rows"], both.rows.size());
    Model once = made(kind, false, settings(twice.refitted()["selected"]));
    once.fit(both, Selection{&c.data, nullptr, {}}, plain);
    EXPECT_TRUE(same(c.scores(twice), c.scores(once))) << kind.method;
    EXPECT_EQ(twice.prior(), once.prior());
  };
  const auto lambda = [](const json& selected) -> Settings {
    return {{"lambda", fmt::format("{}", selected.at("lambda").get<double>())}};
  };
  check({"linear", "", {{"prepare", "none"}}}, lambda);
  check({"naim3l", "", {{"prepare", "none"}, {"iterations", "5"}}}, lambda);
  Kind best{"lacuna", "best", kSmallBest};
  for (const auto& [name, value] :
       Settings{{"prepare", "none"}, {"schedule", "constant"}, {"memory", "auto"}, {"epochs", "9"}})
    best.settings.emplace_back(name, value);
  check(best, [](const json& selected) -> Settings {
    EXPECT_GE(selected.at("epoch"), 1);
    return {{"epochs", selected.at("epoch").dump()},
            {"memory", fmt::format("{}", selected.at("memory").get<double>())}};
  });
}

// What is measured on the validation rows is of a fit that had not seen them.
TEST(Refit, ValidationIsThatOfTheFirstFit) {
  const Case c;
  for (const Kind& kind : kKinds) {
    Listener one, two;
    Model once = made(kind, false), twice = made(kind, true);
    c.fit(once, one);
    c.fit(twice, two);
    EXPECT_EQ(once.validation_record(), twice.validation_record());
    EXPECT_EQ(once.calibration().thresholds(), twice.calibration().thresholds());
    EXPECT_EQ(once.calibration().slopes(), twice.calibration().slopes());
    EXPECT_EQ(once.label_links().about(), twice.label_links().about());
    ASSERT_NE(twice.validation_scores(), nullptr);
    EXPECT_TRUE(same(*once.validation_scores(), *twice.validation_scores()));
    EXPECT_FALSE(same(c.scores(once), c.scores(twice))) << kind.method << " has not learned again";
    EXPECT_TRUE(once.refitted().is_null());
    EXPECT_EQ(one.epochs, two.of_pass(0));
    if (kind.method == "linear") continue;  // it tells of no epochs
    EXPECT_GT(two.of_pass(1), 0);
    double before = 0;
    for (const EpochRecord& record : two.records) {
      EXPECT_EQ(record.passes, 2);
      if (record.pass > 0) EXPECT_FALSE(record.validated);
      EXPECT_GE(record.share_done(), before) << kind.method;
      EXPECT_LE(record.share_done(), 1 + 1e-12);
      before = record.share_done();
    }
  }
}

TEST(Refit, AFileHoldsTheSecondFitAndTheFirstOnesFigures) {
  const Case c;
  const TemporaryDirectory folder;
  for (const Kind& kind : kKinds) {
    FitContext context;
    Model model = made(kind, true);
    c.fit(model, context).save(folder / "model");
    const Model loaded = Model::load(folder / "model");
    EXPECT_TRUE(same(c.scores(loaded), c.scores(model))) << kind.method;
    EXPECT_EQ(loaded.refitted(), model.refitted());
    EXPECT_EQ(loaded.validation_record(), model.validation_record());
    loaded.save(folder / "again");
    EXPECT_TRUE(read_text(folder / "model") == read_text(folder / "again")) << kind.method;
  }
}

TEST(Refit, IsTheSameForAnyNumberOfThreads) {
  const Case c;
  const int before = threads();
  for (const Kind& kind : kKinds) {
    std::vector<std::string> files;
    for (const int count : {1, 3}) {
      set_threads(count);
      FitContext context;
      Model model = made(kind, true);
      files.push_back(bytes_of(c.fit(model, context)));
    }
    EXPECT_TRUE(files[0] == files[1]) << kind.method << ' ' << kind.preset;
  }
  set_threads(before);
}

TEST(Refit, ResumesToTheSameBitsFromEitherFit) {
  const Case c;
  for (const Kind& kind : kKinds) {
    Listener whole;
    Model model = made(kind, true);
    const std::string wanted = bytes_of(c.fit(model, whole));
    const int first = whole.of_pass(0), all = whole.epochs;
    for (const int stop : {1, first - 1, first, first + 1, first + (all - first) / 2, all}) {
      if (stop < 1 || stop > all) continue;
      const TemporaryDirectory folder;
      Listener begun, rest;
      begun.stop_at = stop;
      begun.checkpoint = folder / "checkpoint";
      Model stopped = made(kind, true), resumed = made(kind, true);
      EXPECT_THROW(c.fit(stopped, begun), Stop);
      rest.state = Tensors::read(folder / "checkpoint");
      EXPECT_TRUE(bytes_of(c.fit(resumed, rest)) == wanted)
          << kind.method << ' ' << kind.preset << " stopped after " << stop << " of " << all << " epochs";
      EXPECT_EQ(rest.epochs, all - stop) << kind.method << ' ' << kind.preset;
    }
  }
}

// Whoever ends the second fit early gets the first one's model, whole.
TEST(Refit, ASecondFitThatComesToNothingLeavesTheFirst) {
  const Case c;
  for (const Kind& kind : kKinds) {
    if (kind.method == "linear") continue;
    Listener undisturbed;
    Model once = made(kind, false);
    c.fit(once, undisturbed);
    const int at = undisturbed.epochs + 1;
    Listener to_the_end;
    Model twice = made(kind, true);
    c.fit(twice, to_the_end);
    for (const int how : {0, 1, 2}) {
      if (how == 2 && to_the_end.epochs == at) continue;  // nobody asks after the last epoch
      Listener context;
      (how == 0 ? context.diverge_at : how == 1 ? context.end_at : context.ask_at) = at;
      Model model = made(kind, true);
      c.fit(model, context);
      EXPECT_TRUE(same(c.scores(model), c.scores(once))) << kind.method << ' ' << kind.preset << ' ' << how;
      EXPECT_TRUE(model.refitted().is_null());
      EXPECT_TRUE(std::ranges::any_of(
          context.remarks, [](const std::string& text) { return has(text, "the second fit is not used"); }))
          << kind.method << ' ' << kind.preset << ' ' << how;
      model.options().set("all-rows", "false", "test");  // the only thing that is left of it
      EXPECT_TRUE(bytes_of(model) == bytes_of(once)) << kind.method << ' ' << kind.preset;
    }
  }
}

TEST(Refit, ATrainingThatIsEndedInItsFirstFitHasNoSecond) {
  const Case c;
  for (const bool asked : {false, true}) {
    Listener context;
    (asked ? context.ask_at : context.end_at) = 2;
    Model model = made(kKinds[0], true);
    c.fit(model, context);
    EXPECT_EQ(context.epochs, 2);
    EXPECT_TRUE(model.refitted().is_null());
    EXPECT_TRUE(std::ranges::any_of(
        context.remarks, [](const std::string& text) { return has(text, "ended during its first fit"); }));
  }
}

TEST(Refit, IsRefusedWhereItMeansNothing) {
  const Case c;
  FitContext context;
  Model model = made(kKinds[0], true);
  EXPECT_TRUE(has(message_of([&] { apply_protocol(Protocol::authors, model); }, Exit::usage),
                  "learns from the validation rows, which protocol authors scores"));
  model = made(kKinds[0], true);
  const Dataset other = small_data();
  Selection val = c.rows.val;
  val.data = &other;
  EXPECT_TRUE(
      has(message_of([&] { model.fit(c.rows.learn, val, context); }, Exit::usage), "of the same data"));
  const TemporaryDirectory folder;
  PreparedStore store(folder / "rows", content_hash(c.data));
  EXPECT_TRUE(has(message_of([&] { model.fit(c.rows.learn, c.rows.val, context, store); }, Exit::usage),
                  "in memory"));
  EXPECT_FALSE(std::filesystem::exists(folder / "rows"));
  Listener hears;
  model.fit(c.rows.learn, Selection{&c.data, nullptr, {}}, hears);
  EXPECT_TRUE(model.refitted().is_null());
  EXPECT_TRUE(has(hears.remarks.at(0), "--all-rows has no effect"));
}

TEST(Refit, ABrokenCheckpointIsRefused) {
  const Case c;
  const TemporaryDirectory folder;
  for (const Kind& kind : {kKinds[0], kKinds[1], kKinds[2], kKinds[4]}) {
    Listener whole, begun;
    Model first = made(kind, true), model = made(kind, true);
    c.fit(first, whole);
    begun.stop_at = whole.of_pass(0) + 1;
    begun.checkpoint = folder / "checkpoint";
    EXPECT_THROW(c.fit(model, begun), Stop);
    const Tensors good = Tensors::read(folder / "checkpoint");
    const auto refused = [&](FunctionRef<void(Tensors&)> spoil) {
      Listener context;
      context.state = good;
      spoil(*context.state);
      Model resumed = made(kind, true);
      message_of([&] { c.fit(resumed, context); }, Exit::data);
    };
    refused([](Tensors& file) { file.metadata["refit"] = 3; });
    refused([](Tensors& file) { file.metadata["refit"].erase("model"); });
    refused([](Tensors& file) { file.metadata["refit"]["selected"] = "best"; });
    refused([](Tensors& file) { file.metadata["refit"]["second"] = json::array(); });
    const Matrix<float> wrong(2, 3);
    refused([&](Tensors& file) { file.put_copy("first_scores", wrong); });
  }
}

// The program, on a table of its own.
struct RefitProgram : testing::Test {
  TemporaryDirectory folder_;
  std::string data_ = folder_ / "data";
  void SetUp() override {
    ASSERT_EQ(
        run({"data", "simulate", "--rows", "120", "--labels", "4", "--seed", "3", data_ + ".npz"})
            .code,
        0);
    data_ += ".npz";
  }
  std::vector<std::string> train(const std::string& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"train",   data_,  "--all-rows", "--epochs", "6",
                                    "--width", "0.05", "--out",   model};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(RefitProgram, SaysWhatItLearnedFrom) {
  const std::string model = folder_ / "model";
  const Ended ended = run(train(model, {"--report", folder_ / "page.html"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "kept, then fitted again on all 120 rows")) << ended.out;
  EXPECT_TRUE(has(ended.out, "before that, on 18 validation rows")) << ended.out;
  EXPECT_TRUE(has(ended.err, "again, all rows: epoch ")) << ended.err;
  const json history = json::parse(read_text(model + ".history.json"));
  EXPECT_EQ(history["rows"], (json{{"train", 102}, {"val", 18}, {"refit", 120}}));
  EXPECT_EQ(history["history"].back()["pass"], 1);
  EXPECT_EQ(history["history"].front().count("pass"), 0u);
  const Ended shown = run({"show", model});
  EXPECT_TRUE(has(shown.out, "again on all 120 rows")) << shown.out;
  const std::string page = read_text(folder_ / "page.html");
  EXPECT_TRUE(has(page, "They are of the first fit."));
  EXPECT_TRUE(has(page, "102 for training, 18 for validation; then all 120 in a second fit"));
}

TEST_F(RefitProgram, KilledInItsSecondFitItGoesOnToTheSameBytes) {
  const std::string whole = folder_ / "whole", killed = folder_ / "killed";
  const std::vector<std::string> long_run = {"--epochs", "60", "--checkpoint-every", "0"};
  ASSERT_EQ(run(train(whole, long_run)).code, 0);
  int kills = 0;
  for (int trial = 0; trial < 20 && kills < 2; ++trial) {
    std::error_code none;
    for (const char* ending : {"", ".checkpoint", ".history.json"})
      std::filesystem::remove(killed + ending, none);
    {
      Process process(train(killed, long_run));
      while (!has(process.errors_so_far(), "again, all rows: epoch") && !std::filesystem::exists(killed)) usleep(500);
      process.send(SIGKILL);
      process.wait();
    }
    if (std::filesystem::exists(killed) || !std::filesystem::exists(killed + ".checkpoint")) continue;
    const bool second = Tensors::read(killed + ".checkpoint").metadata.contains("refit");
    kills += second;
    auto again = train(killed, long_run);
    again.emplace_back("--resume");
    const Ended ended = run(again);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(read_text(killed) == read_text(whole));
  }
  EXPECT_EQ(kills, 2);
}

TEST_F(RefitProgram, RefusesWhatContradictsIt) {
  const std::string model = folder_ / "model";
  for (const auto& [more, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--hold-out", "0"}, "--all-rows has no effect with --hold-out 0"},
           {{"--time-limit", "60"}, "--time-limit would end the first fit"},
           {{"--members", "2", "--share"}, "cannot share the second fit"},
           {{"--memory-limit", "1G"}, "needs its rows in memory"}}) {
    const Ended ended = run(train(model, more));
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_TRUE(has(ended.err, words)) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(model));
  }
}

}  // namespace
}  // namespace lacuna
