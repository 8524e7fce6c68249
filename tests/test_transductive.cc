// Protocol transductive: rows that will be scored take part in training by their views, and by nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/prepared.h"
#include "data/protocol.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "methods/row_memory.h"
#include "program.h"
#include "small_items.h"

namespace lacuna {
namespace {

using nlohmann::json;

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// 120 rows, three views; the last six rows have no view.
Dataset small_data() {
  Dataset data = simulate({.rows = 120, .views = 3, .labels = 4, .sizes = {9, 7, 6}, .seed = 4}).data;
  Matrix<std::uint8_t> present(data.rows, 3);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t v = 0; v < 3; ++v) present(i, v) = i < 114;
  data.present = std::move(present);
  return data;
}

Folds small_folds(const Dataset& data) {
  MaskOptions mask;
  mask.missing_views = .3;
  mask.repeats = 2;
  return make_folds(data, mask);
}

std::vector<std::uint32_t> with_view(const Dataset& data, const Folds& folds, Part part) {
  Selection rows = select_part(data, folds, 0, part);
  drop_rows_without_view(rows);
  return rows.rows;
}

TEST(Transductive, RowsThatAreScoredTakePartByTheirViewsAlone) {
  const Dataset data = small_data();
  const Folds folds = small_folds(data);
  const LearningRows strict = learning_rows(data, folds, 0, Protocol::strict),
                     rows = learning_rows(data, folds, 0, Protocol::transductive);
  std::vector<std::uint32_t> wanted = with_view(data, folds, Part::train);
  EXPECT_EQ(strict.learn.rows, wanted);
  EXPECT_EQ(strict.unlabelled, 0u);
  EXPECT_EQ(rows.labelled(), wanted.size());
  for (const Part part : {Part::val, Part::test})
    for (const auto row : with_view(data, folds, part)) wanted.push_back(row);
  EXPECT_EQ(rows.learn.rows, wanted);
  EXPECT_EQ(rows.unlabelled, wanted.size() - rows.labelled());
  EXPECT_EQ(wanted.size(), 114u);
  EXPECT_EQ(rows.without_view, strict.without_view);
  EXPECT_EQ(rows.val.rows, strict.val.rows);
  EXPECT_EQ(rows.val.unlabelled, nullptr);
  std::size_t known = 0;
  for (std::size_t i = 0; i < rows.learn.rows.size(); ++i) {
    for (std::size_t v = 0; v < 3; ++v)
      EXPECT_EQ(rows.learn.has(i, v), folds.folds[0].W(rows.learn.rows[i], v) != 0);
    for (std::size_t j = 0; j < 4; ++j) {
      if (i < rows.labelled())
        EXPECT_EQ(rows.learn.label(i, j), strict.learn.label(i, j));
      else
        EXPECT_EQ(rows.learn.label(i, j), kUnknown);
      known += rows.learn.label(i, j) != kUnknown;
    }
  }
  EXPECT_GT(known, 0u);
  EXPECT_EQ(part_of_fold(data, folds, 0, Part::test, Protocol::transductive).rows,
            folds.part_rows(0, Part::test));
  // Whatever order the rows are brought into.
  Selection sorted = rows.learn;
  std::ranges::sort(sorted.rows);
  std::size_t again = 0;
  for (std::size_t i = 0; i < sorted.rows.size(); ++i)
    for (std::size_t j = 0; j < 4; ++j) again += sorted.label(i, j) != kUnknown;
  EXPECT_EQ(again, known);
  const auto truth = true_labels(rows.learn);
  for (const std::int8_t y : truth.values()) EXPECT_NE(y, kUnknown);
}

Model small_model(const std::string& preset, const std::string& precision, const std::string& epochs = "4") {
  Model model("lacuna");
  model.set_preset(preset);
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"epochs", epochs},
                                                                                    {"batch", "32"},
                                                                                    {"embedding", "16"},
                                                                                    {"encoder-widths", "24"},
                                                                                    {"guess-from", "2"},
                                                                                    {"guess-every", "2"},
                                                                                    {"memory", "1"},
                                                                                    {"components", "5"},
                                                                                    {"precision", precision}})
    model.options().set(name, value, "test");
  return model;
}

std::string fitted(Model model, const Dataset& data, Protocol protocol, FitContext& context,
                   const std::string& store = "") {
  const TemporaryDirectory folder;
  const Folds folds = small_folds(data);
  const LearningRows rows = learning_rows(data, folds, 0, protocol);
  apply_protocol(protocol, model);
  if (store.empty()) {
    model.fit(rows.learn, rows.val, context);
  } else {
    PreparedStore files(store, content_hash(data));
    model.fit(rows.learn, rows.val, context, files);
  }
  model.save(folder / "model");
  return read_text(folder / "model");
}

std::string fitted(Model model, const Dataset& data, Protocol protocol) {
  FitContext context;
  return fitted(std::move(model), data, protocol, context);
}

// The data with other labels of the test rows of fold 0.
Dataset with_flipped_test_labels(const Dataset& data) {
  Dataset other = data;
  Matrix<std::int8_t> labels(data.rows, data.label_count());
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < data.label_count(); ++j) labels(i, j) = data.labels(i, j);
  for (const auto i : small_folds(data).part_rows(0, Part::test))
    for (std::size_t j = 0; j < data.label_count(); ++j)
      labels(i, j) = static_cast<std::int8_t>(1 - labels(i, j));
  other.labels = std::move(labels);
  return other;
}

// The data with another first view of one test row of fold 0 that has this view.
Dataset with_another_test_row(const Dataset& data) {
  const Folds folds = small_folds(data);
  Dataset other = data;
  Matrix<float> rows(data.rows, data.views[0].columns());
  for (std::size_t i = 0; i < data.rows; ++i) data.views[0].copy_row(i, rows.row(i));
  for (const auto i : with_view(data, folds, Part::test))
    if (folds.folds[0].W(i, 0) != 0) {
      for (float& x : rows.row(i)) x = 3 - x;
      break;
    }
  other.views[0].features = Table<float>(std::move(rows));
  return other;
}

TEST(Transductive, LabelsOfTestRowsHaveNoInfluenceAndTheirViewsHave) {
  const Dataset data = small_data(), flipped = with_flipped_test_labels(data),
                moved = with_another_test_row(data);
  for (const std::string precision : {"f32", "bf16"})
    for (const std::string preset : {"best", "paired", "distilled"}) {
      const auto model = [&] { return small_model(preset, precision); };
      const std::string plain = fitted(model(), data, Protocol::transductive);
      EXPECT_TRUE(plain == fitted(model(), flipped, Protocol::transductive)) << preset << " " << precision;
      EXPECT_FALSE(plain == fitted(model(), moved, Protocol::transductive)) << preset << " " << precision;
      if (preset != "best") continue;
      const std::string strict = fitted(model(), data, Protocol::strict);
      EXPECT_FALSE(plain == strict);
      EXPECT_TRUE(strict == fitted(model(), flipped, Protocol::strict));
      EXPECT_TRUE(strict == fitted(model(), moved, Protocol::strict));
    }
  for (const char* method :
       {"linear", "mlknn", "naim3l", "glocal", "imvwl", "mtd", "dicnet", "c2ae", "prior"}) {
    const auto model = [&] {
      Model one(method);
      if (one.options().find("epochs") != nullptr) one.options().set("epochs", "2", "test");
      if (one.options().find("width") != nullptr && one.options().find("epochs") != nullptr)
        one.options().set("width", ".05", "test");
      return one;
    };
    EXPECT_TRUE(fitted(model(), data, Protocol::transductive) ==
                fitted(model(), flipped, Protocol::transductive))
        << method;
  }
}

TEST(Transductive, RowsInFilesHaveNoLabelsEither) {
  const TemporaryDirectory folder;
  const auto at = [&](const std::string& name, const Dataset& from) {
    write_dataset(from, folder / name);
    return read_dataset(folder / name);
  };
  const Dataset data = at("data", small_data()),
                flipped = at("flipped", with_flipped_test_labels(small_data()));
  FitContext context;
  const auto model = [] { return small_model("best", "f32"); };
  const std::string one = fitted(model(), data, Protocol::transductive, context, folder / "one"),
                    two = fitted(model(), flipped, Protocol::transductive, context, folder / "two");
  EXPECT_TRUE(one == two);
  // The rows of another protocol are other rows.
  EXPECT_FALSE(one == fitted(model(), data, Protocol::strict, context, folder / "one"));
  EXPECT_TRUE(one == fitted(model(), data, Protocol::transductive, context, folder / "one"));
}

TEST(Transductive, SameBitsForAnyNumberOfThreads) {
  const Dataset data = small_data();
  for (const std::string precision : {"f32", "bf16"}) {
    std::set<std::string> files;
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      files.insert(fitted(small_model("best", precision), data, Protocol::transductive));
    }
    set_threads(0);
    EXPECT_EQ(files.size(), 1u) << precision;
  }
}

struct Stop {};
// Stops after some epochs, leaving a checkpoint; or continues from one.
struct Interrupted : FitContext {
  int epochs = 0, stop_after = -1;
  std::string path;
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

TEST(Transductive, ResumesToTheSameBits) {
  const Dataset data = small_data();
  const TemporaryDirectory folder;
  for (const std::string preset : {"best", "distilled"}) {
    const auto model = [&] { return small_model(preset, "f32"); };
    const std::string whole = fitted(model(), data, Protocol::transductive);
    for (const int stop : {1, 3, preset == "best" ? 2 : 17}) {  // before and after the first soft labels
      Interrupted first, second;
      first.stop_after = stop;
      first.path = folder / "checkpoint";
      EXPECT_THROW(fitted(model(), data, Protocol::transductive, first), Stop);
      second.state = Tensors::read(first.path);
      EXPECT_TRUE(whole == fitted(model(), data, Protocol::transductive, second)) << preset << " " << stop;
    }
  }
}

// What a row without known labels could say of labels is the network's own opinion.
TEST(Transductive, RowsWithoutKnownLabelsDoNotVote) {
  const Dataset data = small_data();
  const Folds folds = small_folds(data);
  const LearningRows rows = learning_rows(data, folds, 0, Protocol::transductive);
  std::size_t labelled = 0;
  for (std::size_t i = 0; i < rows.learn.rows.size(); ++i) {
    bool known = false;
    for (std::size_t j = 0; j < 4; ++j) known = known || rows.learn.label(i, j) != kUnknown;
    labelled += known;
  }
  EXPECT_LE(labelled, rows.labelled());
  Model model = small_model("best", "f32");
  FitContext context;
  model.fit(rows.learn, rows.val, context);
  EXPECT_EQ(memory_of(model.method()).at("rows"), labelled);
}

// Methods that take unknown labels for negative ones do not see rows without known labels. Nor are these neighbours: an
// item that took part in training would be its own nearest.
TEST(Transductive, RowsWithoutKnownLabelsAreNoNegatives) {
  for (const char* name : {"cdmm", "lvsl", "mlknn"}) {
    Items items = small_items({.n = 60}, 1);
    Items few = items;
    constexpr std::size_t kKept = 40;
    Matrix<std::uint8_t> G(60, items.labels()), W(kKept, items.views()), G_few(kKept, items.labels());
    Matrix<float> Y(60, items.labels()), Y_few(kKept, items.labels());
    for (std::size_t i = 0; i < kKept; ++i) {
      for (std::size_t j = 0; j < items.labels(); ++j) {
        G(i, j) = G_few(i, j) = items.G(i, j);
        Y(i, j) = Y_few(i, j) = items.Y(i, j);
      }
      G(i, 0) = G_few(i, 0) = 1;  // every kept row has a known label
      for (std::size_t v = 0; v < items.views(); ++v) W(i, v) = items.W(i, v);
    }
    for (std::size_t v = 0; v < items.views(); ++v) {
      Matrix<float> X(kKept, items.X[v].cols());
      X.copy_from(items.X[v].view().top(kKept));
      few.X[v] = std::move(X);
    }
    items.G = std::move(G), items.Y = std::move(Y);
    few.W = std::move(W), few.G = std::move(G_few), few.Y = std::move(Y_few);
    const Items asked = small_items({.n = 20}, 2);
    Matrix<float> with(20, items.labels()), without(20, items.labels());
    FitContext context;
    const auto one = make_method(name), other = make_method(name);
    one->fit(items, {}, context);
    one->predict(asked, with);
    other->fit(few, {}, context);
    other->predict(asked, without);
    EXPECT_TRUE(std::ranges::equal(with.values(), without.values())) << name;
  }
}

class TransductiveProgram : public testing::Test {
 protected:
  void SetUp() override {
    write_dataset(small_data(), folder_ / "tiny.npz");
    ASSERT_EQ(run({"data", "mask", folder_ / "tiny.npz", folder_ / "f.npz", "--repeats", "2"}).code, 0);
  }
  std::vector<std::string> train(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"train",       folder_ / "tiny.npz", "--out",
                                      folder_ / out, "--method",           "linear"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> bench(const std::string& protocol, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {
        "bench",        "table",  "--data", folder_ / "tiny.npz", "--out", folder_ / "r", "--methods",
        "linear,mlknn", "--name", protocol, "--repeats",          "2",     "--protocol",  protocol};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void refused(const std::vector<std::string>& command, const std::string& words) const {
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 2) << words << "\n" << ended.out;
    EXPECT_TRUE(says(ended.err, words)) << ended.err;
  }
  TemporaryDirectory folder_;
};

// Validation rows are training rows as well: decoders, whose errors are measured on rows that a part of the fit did not
// see, must see them once.
TEST(Transductive, DecodersSeeEveryRowOnce) {
  const Dataset data = small_data();
  const Folds folds = small_folds(data);
  const LearningRows rows = learning_rows(data, folds, 0, Protocol::transductive);
  Model model("linear");
  model.options().set("keep-decoders", "true", "test");
  FitContext context;
  model.fit(rows.learn, rows.val, context);
  EXPECT_EQ(model.recovery().about()["rows"], 114);
}

TEST_F(TransductiveProgram, ASecondFitCountsTheRowsWhoseLabelsItSees) {
  auto words = train("m", {"--folds", folder_ / "f.npz", "--protocol", "transductive", "--all-rows"});
  words.insert(words.end(), {"--report", folder_ / "m.html"});
  const Ended trained = run(words);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const json rows = json::parse(read_text(folder_ / "m.history.json"))["rows"];
  EXPECT_EQ(rows["refit"], rows["train"].get<int>() + rows["val"].get<int>());
  const std::string both = "then all " + rows["refit"].dump() + " in a second fit; the views of";
  EXPECT_TRUE(says(read_text(folder_ / "m.html"), both));
}

TEST_F(TransductiveProgram, ModelAndScoresStateIt) {
  const std::vector<std::string> fold = {"--folds", folder_ / "f.npz", "--protocol", "transductive"};
  auto words = train("m", fold);
  words.insert(words.end(), {"--report", folder_ / "m.html"});
  const Ended trained = run(words);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(says(trained.err, "protocol transductive: the views of validation and test rows"))
      << trained.err;
  EXPECT_TRUE(says(trained.out, "more rows that will be scored")) << trained.out;
  const Model model = Model::load(folder_ / "m");
  EXPECT_EQ(model.notes().at("protocol"), "transductive");
  EXPECT_FALSE(model.notes().contains("leaks"));
  const int labelled = model.notes().at("rows"), unlabelled = model.notes().at("unlabelled_rows");
  EXPECT_GT(unlabelled, 20);
  const json history = json::parse(read_text(folder_ / "m.history.json"));
  EXPECT_EQ(history.at("protocol"), "transductive");
  EXPECT_EQ(history.at("rows").at("train"), labelled);
  EXPECT_EQ(history.at("rows").at("unlabelled"), unlabelled);
  EXPECT_TRUE(says(read_text(folder_ / "m.html"), "transductive"));
  const std::string shown = run({"show", folder_ / "m"}).out;
  EXPECT_TRUE(says(shown, "transductive") && says(shown, "views of " + std::to_string(unlabelled) + " more"))
      << shown;
  EXPECT_FALSE(says(shown, "leaks"));
  const std::vector<std::string> part = {"--folds", folder_ / "f.npz", "--part", "test"};
  const auto score = [&](const std::string& out, const std::string& protocol) {
    std::vector<std::string> command = {
        "predict", folder_ / "m", folder_ / "tiny.npz", "--out", folder_ / out, "--protocol", protocol};
    command.insert(command.end(), part.begin(), part.end());
    return run(command);
  };
  EXPECT_FALSE(says(score("t.npy", "transductive").err, "was trained by"));
  EXPECT_TRUE(says(score("s.npy", "strict").err, "was trained under protocol transductive"));
  EXPECT_TRUE(read_text(folder_ / "t.npy") == read_text(folder_ / "s.npy"));
  EXPECT_EQ(run({"predict", folder_ / "m", folder_ / "tiny.npz", "--out", folder_ / "all.npy"}).code, 0);
  std::vector<std::string> evaluate = {"evaluate",   folder_ / "t.npy", folder_ / "tiny.npz",
                                       "--protocol", "transductive",    "--json",
                                       "--report",   folder_ / "e.html"};
  evaluate.insert(evaluate.end(), part.begin(), part.end());
  const Ended ended = run(evaluate);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended.err, "compare such figures only with")) << ended.err;
  const json document = json::parse(ended.out);
  EXPECT_EQ(document.at("protocol"), "transductive");
  EXPECT_FALSE(document.contains("leaks"));
  EXPECT_TRUE(says(read_text(folder_ / "e.html"), "protocol transductive"));
}

TEST_F(TransductiveProgram, TablesAreOfOneProtocolAndNameIt) {
  const Ended strict = run(bench("strict"));
  ASSERT_EQ(strict.code, 0) << strict.err;
  const Ended ended = run(bench("transductive"));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended.err, "protocol transductive:")) << ended.err;
  EXPECT_TRUE(says(ended.out, "Protocol transductive (views of validation and test rows")) << ended.out;
  const json document = json::parse(run(bench("transductive", {"--resume", "--json"})).out);
  EXPECT_EQ(document.at("protocol"), "transductive");
  refused(bench("transductive", {"--resume", "--protocol", "strict"}), "another protocol");
  ASSERT_EQ(run({"report", folder_ / "r"}).code, 0);
  std::size_t named = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "r/tables")) {
    const std::string file = entry.path().filename().string(), text = read_text(entry.path().string());
    if (file.starts_with("data.") || file.starts_with("cells."))
      continue;  // of data; with a column of protocols
    EXPECT_NE(says(text, "transductive"), says(text, "strict")) << file << "\n" << text;
    if (file.starts_with("transductive")) {
      ++named;
      EXPECT_TRUE(says(text, "transductive")) << file;
    }
  }
  EXPECT_GE(named, 4u);
  const std::string page = read_text(folder_ / "r/report.html");
  EXPECT_TRUE(says(page, "Protocol &#39;transductive&#39;") && says(page, "Protocol &#39;strict&#39;"));
  EXPECT_TRUE(says(page, "Protocol transductive: the views of validation and test rows"));
}

TEST_F(TransductiveProgram, IsRefusedWhereItMakesNoSense) {
  const std::vector<std::string> how = {"--protocol", "transductive"};
  refused(train("m", how), "--protocol transductive needs --folds");
  refused({"tune", folder_ / "tiny.npz", "--method", "linear", "--protocol", "transductive"},
          "--protocol transductive needs --folds");
  for (const char* method : {"cdmm", "lvsl"}) {
    const std::string words = std::string("method ") + method + " treats unknown labels as negative";
    refused({"train", folder_ / "tiny.npz", "--out", folder_ / "m", "--method", method, "--folds",
             folder_ / "f.npz", "--protocol", "transductive"},
            words);
    refused({"bench", "table", "--data", folder_ / "tiny.npz", "--methods", std::string("linear,") + method,
             "--out", folder_ / "q", "--protocol", "transductive"},
            words);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "q/cells"));
  }
  refused({"complete", folder_ / "tiny.npz", "--method", "linear", "--folds", folder_ / "f.npz", "--out",
           folder_ / "c.csv", "--protocol", "transductive"},
          "--protocol transductive has no effect");
  refused({"train", folder_ / "tiny.npz", "--out", folder_ / "m", "--method", "linear", "--folds",
           folder_ / "f.npz", "--protocol", "transductive", "--set", "leaky-prepare=true"},
          "use --protocol authors");
  refused(train("m", {"--folds", folder_ / "f.npz", "--protocol", "transduktive"}),
          "did you mean 'transductive'");
}

// The first block of the section in docs/protocol.md, as it stands there.
TEST(Transductive, TheCommandsOfItsPageRun) {
  const std::string page = read_text(LACUNA_SOURCE_DIR "/docs/protocol.md");
  const std::size_t section = page.find("\n## Transductive");
  ASSERT_NE(section, std::string::npos);
  const std::size_t begin = page.find("```\n", section) + 4, end = page.find("```", begin);
  const std::string script = page.substr(begin, end - begin);
  EXPECT_TRUE(says(script, "--protocol transductive"));
  const TemporaryDirectory folder;
  ASSERT_EQ(run({"data", "simulate", folder / "photos.npz", "--rows", "150", "--labels", "5"}).code, 0);
  ASSERT_EQ(run({"data", "mask", folder / "photos.npz", folder / "folds.npz", "--repeats", "1"}).code, 0);
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::create_symlink(LACUNA_PROGRAM, folder / "bin/lacuna");
  std::ofstream(folder / "script") << "set -e\ncd " << folder / ""
                                   << "\nexport PATH=" << folder / "bin"
                                   << ":$PATH\n"
                                   << script;
  const int status = std::system(
      fmt::format("bash {} > {} 2> {}", folder / "script", folder / "out", folder / "err").c_str());
  ASSERT_EQ(status, 0) << read_text(folder / "out") << read_text(folder / "err");
  EXPECT_TRUE(says(read_text(folder / "out"), "Protocol transductive"));
}

}  // namespace
}  // namespace lacuna
