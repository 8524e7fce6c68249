// What tables, pages, documents and messages say about gaps, splits and protocol is what was run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "experiments/gap_facts.h"
#include "experiments/paper.h"
#include "experiments/results.h"
#include "experiments/settings_file.h"
#include "program.h"

namespace lacuna {
namespace {

using nlohmann::json;

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// Half of the first view's instances, a quarter of the labels and every view of the first four rows are not there.
Dataset gappy_data() {
  Dataset data = simulate({.rows = 80, .views = 2, .labels = 4, .sizes = {6, 5}, .seed = 4}).data;
  Matrix<std::uint8_t> present(80, 2);
  Matrix<std::int8_t> labels(80, 4);
  for (std::size_t i = 0; i < 80; ++i) {
    present(i, 0) = i >= 4 && i % 2 == 1;
    present(i, 1) = i >= 4;
    for (std::size_t j = 0; j < 4; ++j) labels(i, j) = j == i % 4 ? kUnknown : data.labels(i, j);
  }
  data.present = std::move(present);
  data.labels = std::move(labels);
  return data;
}

class StatedProtocol : public testing::Test {
 protected:
  void SetUp() override {
    write_dataset(simulate({.rows = 80, .views = 2, .labels = 4, .sizes = {6, 5}, .seed = 4}).data,
                  folder_ / "tiny.npz");
    write_dataset(gappy_data(), folder_ / "gappy.npz");
  }
  std::vector<std::string> bench(const std::string& kind, const std::string& data, const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"bench",        kind,        "--data", folder_ / data, "--methods",
                                      "prior,linear", "--repeats", "1",      "--out",        folder_ / out};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Everything that a table experiment publishes: the page, and the table in its three forms.
  struct Published {
    std::string page, md, tex, stacked, csv;
  };
  Published publish(const std::string& kind, const std::string& data, const std::string& out,
                    const std::vector<std::string>& more = {}) const {
    const Ended ended = run(bench(kind, data, out, more));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(run({"report", folder_ / out}).code, 0);
    const std::string tables = folder_ / out + "/tables/",
                      name = kind + "-" + read_dataset(folder_ / data).name;
    return {read_text(folder_ / out + "/report.html"), read_text(tables + name + ".md"),
            read_text(tables + name + ".tex"), read_text(tables + kind + "-stacked.tex"),
            read_text(tables + name + ".csv")};
  }
  void refused(const std::vector<std::string>& command, const std::string& words) const {
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 2) << words << "\n" << ended.out;
    EXPECT_TRUE(says(ended.err, words)) << ended.err;
  }
  TemporaryDirectory folder_;
};

TEST_F(StatedProtocol, PageAndCaptionsFollowTheMask) {
  const std::string random = "are hidden at random", order = "put into random order",
                    too = "Test rows have missing views too";
  const Published plain = publish("table", "tiny.npz", "plain");
  EXPECT_TRUE(says(plain.page, random) && says(plain.page, order) && says(plain.page, too));
  EXPECT_TRUE(says(plain.page, "keeps at least one view"));
  EXPECT_TRUE(says(plain.md, "50 % of the views and")) << plain.md;

  const Published whole = publish("table", "tiny.npz", "whole", {"--test-views", "complete"});
  EXPECT_FALSE(says(whole.page, too));
  EXPECT_TRUE(says(whole.page, "Only training rows lose views"));
  const Published mnar = publish("table", "tiny.npz", "mnar", {"--mechanism", "mnar", "--strength", "3"});
  EXPECT_FALSE(says(mnar.page, random));
  const Published stratified = publish("table", "tiny.npz", "stratified", {"--stratify"});
  EXPECT_FALSE(says(stratified.page, order));
  EXPECT_TRUE(says(stratified.page, "iterative stratification"));
  for (const auto& [found, words] :
       {std::pair(whole, "validation and test rows with all the views that they have"),
        std::pair(mnar, "views hidden by their values (mnar, strength 3)"),
        std::pair(stratified, "rows split by stratification")})
    for (const auto& text : {found.page, found.md, found.tex, found.stacked})
      EXPECT_TRUE(says(text, words)) << words << "\n" << text.substr(0, 800);
}

TEST_F(StatedProtocol, RatesAreThoseThatWereReached) {
  const std::string a = read_dataset(folder_ / "tiny.npz").views[0].name,
                    b = read_dataset(folder_ / "tiny.npz").views[1].name;
  const std::string patterns = a + "+" + b + "=.75," + a + "=.25";
  const Published found =
      publish("table", "tiny.npz", "pattern",
              {"--mechanism", "pattern", "--patterns", patterns, "--missing-labels", "0"});
  EXPECT_TRUE(says(found.md, "12.5 % of the views and 0 % of the training labels missing")) << found.md;
  EXPECT_TRUE(says(found.stacked, "views hidden by pattern"));
  EXPECT_FALSE(says(found.page, "50 %"));
  refused(bench("table", "tiny.npz", "r",
                {"--mechanism", "pattern", "--patterns", patterns, "--missing-views", ".3"}),
          "--missing-views has no effect");
  refused(bench("complete", "tiny.npz", "r", {"--mechanism", "pattern", "--patterns", patterns}),
          "bench complete");
  refused(bench("missing", "tiny.npz", "r", {"--mechanism", "pattern", "--patterns", patterns}),
          "bench missing");
  for (const std::vector<std::string>& command :
       {bench("table", "tiny.npz", "r"),
        std::vector<std::string>{"data", "mask", folder_ / "tiny.npz", folder_ / "f.npz"}}) {
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), command.begin(), command.end());
      return more;
    };
    refused(with({"--patterns", patterns}), "--patterns has no effect");
    refused(with({"--strength", "2"}), "--strength has no effect");
    refused(with({"--mechanism", "pattern", "--patterns", patterns, "--strength", "2"}),
            "--strength has no effect");
    refused(with({"--test-views", "complete", "--scope", "part"}), "--scope has no effect");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "r"));
  ASSERT_EQ(run({"data", "mask", folder_ / "tiny.npz", folder_ / "f.npz"}).code, 0);
  refused(
      {"data", "mask", folder_ / "tiny.npz", folder_ / "g.npz", "--from", folder_ / "f.npz", "--seed", "3"},
      "--seed has no effect together with --from");
}

// The facts, counted one by one.
TEST(GapFacts, AreCountedOverWhatTheDataLackAndWhatIsHidden) {
  const Dataset data = gappy_data();
  MaskOptions mask;
  mask.missing_views = .25, mask.repeats = 3, mask.seed = 5;
  const Folds folds = make_folds(data, mask);
  for (const Protocol protocol : {Protocol::strict, Protocol::authors}) {
    const GapFacts facts = measure_gaps(data, folds, 2, protocol);
    EXPECT_NEAR(facts.own_views, (40 + 2 + 4) / 160., 1e-12);
    EXPECT_NEAR(facts.own_labels, .25, 1e-12);
    double missing = 0, unknown = 0, test_unknown = 0, test_labels = 0, bare = 0, tested = 0;
    for (std::size_t r = 0; r < 2; ++r) {
      for (std::size_t i = 0; i < 80; ++i)
        for (std::size_t v = 0; v < 2; ++v) missing += !(data.has(i, v) && folds.folds[r].W(i, v));
      for (const auto i : folds.part_rows(r, Part::train))
        for (std::size_t j = 0; j < 4; ++j)
          unknown += data.labels(i, j) == kUnknown || folds.folds[r].G(i, j) == 0;
      for (const Part part : {Part::val, Part::test}) {
        if (part == Part::val && protocol == Protocol::strict) continue;
        for (const auto i : folds.part_rows(r, part)) {
          ++tested;
          if (i < 4) {
            ++bare;
            continue;
          }
          for (std::size_t j = 0; j < 4; ++j) ++test_labels, test_unknown += data.labels(i, j) == kUnknown;
        }
      }
    }
    EXPECT_NEAR(facts.views, missing / 320, 1e-12);
    EXPECT_NEAR(facts.train_labels, unknown / (2 * 56 * 4), 1e-12);
    EXPECT_NEAR(facts.test_labels, test_unknown / test_labels, 1e-12);
    EXPECT_NEAR(facts.bare_test_rows, bare / 2, 1e-12);
    EXPECT_NEAR(facts.test_rows, tested / 2, 1e-12);
    EXPECT_EQ(GapFacts::from_json(facts.json()).json(), facts.json());
    EXPECT_TRUE(facts.added() && !facts.none() && !facts.only_training());
  }
}

TEST_F(StatedProtocol, GapsOfTheDataAreNotHidden) {
  const Published found = publish("complete", "gappy.npz", "own");
  for (const auto& text : {found.page, found.md, found.stacked}) EXPECT_FALSE(says(text, "without gaps"));
  const std::string lacks = percent(46 / 160.) + " of the views and 25 % of the labels",
                    own = "no gaps except those of the data, which lack " + lacks;
  EXPECT_TRUE(says(found.md, own)) << found.md;
  EXPECT_FALSE(says(found.page, "complete labels"));
  EXPECT_TRUE(says(found.page, "take part in no metric"));
  EXPECT_FALSE(says(found.page, "keeps at least one view"));
  const std::string data = read_text(folder_ / "own/tables/data.md");
  EXPECT_TRUE(says(data, percent(46 / 160.)) && says(data, "25 %") && says(data, "test rows without view"))
      << data;

  const Published hidden = publish("table", "gappy.npz", "more", {"--missing-views", ".3"});
  EXPECT_TRUE(says(hidden.page, "every item that has a view keeps one"));
  EXPECT_TRUE(says(hidden.md, "(the data themselves lack " + lacks + ")")) << hidden.md;

  // A folds file on top of the data's own gaps: both count.
  ASSERT_EQ(run({"data", "mask", folder_ / "gappy.npz", folder_ / "f.npz", "--repeats", "1",
                 "--missing-views", ".3"})
                .code,
            0);
  const Published filed = publish("table", "gappy.npz", "filed", {"--folds", folder_ / "f.npz"});
  const GapFacts facts =
      measure_gaps(read_dataset(folder_ / "gappy.npz"), read_folds(folder_ / "f.npz"), 1, Protocol::strict);
  EXPECT_GT(facts.views, .45);  // .29 of their own, three tenths of the rest
  EXPECT_TRUE(says(filed.md, percent(facts.views) + " of the views and " + percent(facts.train_labels)))
      << filed.md;
}

TEST_F(StatedProtocol, ProtocolSeedAndVersionAccompanyFigures) {
  const std::string warning = "protocol authors leaks";
  const std::vector<std::string> flags = {"--protocol", "authors", "--seed", "7"};
  const Ended dry = run([&] {
    auto words = bench("table", "tiny.npz", "leaky", flags);
    words.push_back("--dry-run");
    return words;
  }());
  EXPECT_TRUE(says(dry.err, warning) && says(dry.out, "protocol authors, seed 7")) << dry.out << dry.err;
  const Ended ended = run(bench("table", "tiny.npz", "leaky", flags));
  EXPECT_TRUE(says(ended.err, warning)) << ended.err;
  EXPECT_TRUE(says(ended.out, "Protocol authors (it leaks")) << ended.out;
  auto resumed = bench("table", "tiny.npz", "leaky", flags);
  resumed.insert(resumed.end(), {"--resume", "--json"});
  const json document = json::parse(run(resumed).out);
  EXPECT_EQ(document.at("protocol"), "authors");
  EXPECT_EQ(document.at("seed"), 7);
  EXPECT_EQ(document.at("version"), document.at("version").get<std::string>());
  EXPECT_EQ(document.at("data").at(0).at("gaps").at("views"), .5);
  ASSERT_EQ(run({"report", folder_ / "leaky"}).code, 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "leaky/tables")) {
    const std::string name = entry.path().filename().string(), text = read_text(entry.path().string());
    if (name.starts_with("data.")) continue;  // it describes data
    ++files;
    EXPECT_TRUE(says(text, "authors")) << name << "\n" << text;
    if (name.starts_with("cells.")) continue;
    const std::string words = name.ends_with(".csv") ? "protocol,seed,version\n" : "seed 7, Lacuna ";
    EXPECT_TRUE(says(text, words)) << name << "\n" << text;
  }
  EXPECT_GE(files, 12u);
  const std::string labels =
      read_text(folder_ / ("leaky/tables/labels-" + read_dataset(folder_ / "tiny.npz").name + "-labels.md"));
  EXPECT_TRUE(says(labels, "first repetition") && says(labels, "linear")) << labels;
  const Published strict = publish("table", "tiny.npz", "strict");
  EXPECT_TRUE(says(strict.md, "Protocol strict, seed 1, Lacuna ")) << strict.md;
  EXPECT_TRUE(says(strict.page, "drawn with the seed 1"));
}

TEST_F(StatedProtocol, ModelsAndScoresSayThatTheyLeak) {
  const std::string data = folder_ / "tiny.npz", folds = folder_ / "f.npz", model = folder_ / "m",
                    scores = folder_ / "s.csv";
  ASSERT_EQ(run({"data", "mask", data, folds, "--repeats", "1"}).code, 0);
  ASSERT_EQ(
      run({"train", data, "--folds", folds, "--method", "linear", "--protocol", "authors", "--out", model})
          .code,
      0);
  const std::vector<std::string> part = {"--folds", folds, "--part", "test", "--protocol", "authors"};
  std::vector<std::string> predict = {"predict", model, data, "--out", scores},
                           evaluate = {"evaluate", scores, data};
  predict.insert(predict.end(), part.begin(), part.end());
  evaluate.insert(evaluate.end(), part.begin(), part.end());
  EXPECT_TRUE(says(run(predict).err, "protocol authors leaks"));
  const Ended ended = run(evaluate);
  EXPECT_TRUE(says(ended.err, "protocol authors leaks")) << ended.err;
  evaluate.insert(evaluate.end(), {"--json", "--report", folder_ / "page.html"});
  EXPECT_TRUE(json::parse(run(evaluate).out).contains("leaks"));
  EXPECT_TRUE(says(read_text(folder_ / "page.html"), "protocol authors leaks"));
}

TEST_F(StatedProtocol, TestsNameTheirMetricAndBeginWithARankedMethod) {
  ASSERT_EQ(run({"bench", "table", "--data", folder_ / "tiny.npz", "--methods", "prior,linear,mlknn",
                 "--repeats", "2", "--metric", "1-RL", "--out", folder_ / "t"})
                .code,
            0);
  ASSERT_EQ(run({"report", folder_ / "t"}).code, 0);
  const std::string table =
      read_text(folder_ / ("t/tables/table-resampled-t-" + read_dataset(folder_ / "tiny.npz").name + ".md"));
  EXPECT_TRUE(says(table, "1-RL of linear")) << table;
  EXPECT_FALSE(says(table, "prior")) << table;
}

TEST_F(StatedProtocol, ACellThatHasMovedNamesTheFlagThatFindsIt) {
  ASSERT_EQ(run({"data", "mask", folder_ / "tiny.npz", folder_ / "f.npz", "--repeats", "1"}).code, 0);
  ASSERT_EQ(run({"bench", "table", "--data", folder_ / "tiny.npz", "--folds", folder_ / "f.npz", "--methods",
                 "prior", "--out", folder_ / "r"})
                .code,
            0);
  const std::string cell = std::filesystem::directory_iterator(folder_ / "r/cells")->path().string();
  std::filesystem::rename(folder_ / "tiny.npz", folder_ / "moved.npz");
  std::filesystem::rename(folder_ / "f.npz", folder_ / "moved-folds.npz");
  const Ended lost = run({"bench", "rerun", cell});
  EXPECT_EQ(lost.code, 3) << lost.err;
  EXPECT_TRUE(says(lost.err, "--data PATH")) << lost.err;
  EXPECT_TRUE(says(run({"bench", "rerun", cell, "--data", folder_ / "moved.npz"}).err, "--folds PATH"));
  const Ended found =
      run({"bench", "rerun", cell, "--data", folder_ / "moved.npz", "--folds", folder_ / "moved-folds.npz"});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_TRUE(says(found.out, "the same result"));
}

TEST_F(StatedProtocol, ADamagedCellIsRunAgainOnceItIsRemoved) {
  ASSERT_EQ(run(bench("table", "tiny.npz", "r")).code, 0);
  const std::string cell = std::filesystem::directory_iterator(folder_ / "r/cells")->path().string();
  write_text(cell + "/result.json", "{");
  const Ended damaged = run({"report", folder_ / "r"});
  EXPECT_EQ(damaged.code, 3) << damaged.err;
  EXPECT_TRUE(says(damaged.err, "if " + cell + " is removed, --resume runs the cell again")) << damaged.err;
  std::filesystem::remove_all(cell);
  EXPECT_EQ(run(bench("table", "tiny.npz", "r", {"--resume"})).code, 0);
  EXPECT_EQ(run({"report", folder_ / "r"}).code, 0);
}

TEST_F(StatedProtocol, ATableForNoDataSetOfTheRunIsReported) {
  write_text(folder_ / "s.toml",
             "[linear]\nlambda = 3\n[linear.tinny]\nlambda = 4\n[linear.tiny]\nlambda = 5\n");
  const SettingsFile file = SettingsFile::read(folder_ / "s.toml");
  const auto idle = file.idle_tables({"tiny"});
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_TRUE(says(idle[0], "s.toml:4: [linear.tinny]") && says(idle[0], "did you mean 'tiny'")) << idle[0];
  EXPECT_TRUE(SettingsFile::read("paper").idle_tables({"tiny"}).empty());
  const Ended ended = run(bench("table", "tiny.npz", "r", {"--settings", folder_ / "s.toml"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended.err, "[linear.tinny]")) << ended.err;
}

TEST_F(StatedProtocol, MethodsThatLearnedFromTheValidationRowsAreNamed) {
  const std::string words = "from the validation rows as well (all-rows): ";
  const Published plain = publish("table", "tiny.npz", "plain"),
                  all = publish("table", "tiny.npz", "all", {"--set", "all-rows=true"});
  write_text(folder_ / "s.toml", "[linear]\nall-rows = true\n");
  const Published one = publish("table", "tiny.npz", "one", {"--settings", folder_ / "s.toml"});
  for (const auto form : {&Published::page, &Published::md, &Published::tex, &Published::stacked}) {
    EXPECT_FALSE(says(plain.*form, "all-rows")) << plain.*form;
    EXPECT_TRUE(says(all.*form, words + "all methods.")) << all.*form;
    EXPECT_TRUE(says(one.*form, words + "linear.")) << one.*form;
  }
  EXPECT_TRUE(says(one.csv, "all_rows")) << one.csv;
  const Ended ended = run(bench("table", "tiny.npz", "one", {"--settings", folder_ / "s.toml", "--json", "--resume"}));
  EXPECT_EQ(json::parse(ended.out).at("all_rows"), "linear");
}

TEST_F(StatedProtocol, MethodsWhoseSettingsWereSearchedAreNamed) {
  const std::string words = "among at most 2 in each cell (--tune): ";
  const Published plain = publish("table", "tiny.npz", "plain"),
                  tuned = publish("table", "tiny.npz", "tuned", {"--tune", "2", "--tune-methods", "linear"});
  for (const auto form : {&Published::page, &Published::md, &Published::tex, &Published::stacked}) {
    EXPECT_FALSE(says(plain.*form, "in each cell")) << plain.*form;
    EXPECT_TRUE(says(tuned.*form, words + "linear.")) << tuned.*form;
  }
  EXPECT_TRUE(says(tuned.csv, "tuned")) << tuned.csv;
  const Ended ended = run(
      bench("table", "tiny.npz", "tuned", {"--tune", "2", "--tune-methods", "linear", "--json", "--resume"}));
  EXPECT_EQ(json::parse(ended.out).at("tuned"), "linear");
}

TEST_F(StatedProtocol, ASearchForSettingsWithoutEffectIsRefused) {
  refused(bench("table", "tiny.npz", "r", {"--tune", "3"}),
          "--tune 3 has no effect");  // linear needs --tune-methods
  refused(bench("table", "tiny.npz", "r", {"--tune", "3", "--tune-methods", "prior"}),
          "--tune 3 has no effect");
  refused(bench("table", "tiny.npz", "r", {"--tune-methods", "linear"}), "--tune-methods has no effect");
}

TEST_F(StatedProtocol, AnAblationHasThePartsThatItsRowsName) {
  const std::vector<std::string> small = {"--set", "epochs=1", "--set", "width=0.05", "--dry-run"};
  const auto ablation = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"bench", "ablation", "--data", folder_ / "tiny.npz", "--repeats", "1",
                                 "--out", folder_ / "a"});
    flags.insert(flags.end(), small.begin(), small.end());
    return run(flags);
  };
  EXPECT_EQ(ablation({}).code, 0);
  const Ended plain = ablation({"--methods", "lacuna"});
  EXPECT_EQ(plain.code, 2) << plain.err;
  EXPECT_TRUE(says(plain.err, "lacuna has alpha = 0, beta = 0")) << plain.err;
  EXPECT_EQ(ablation({"--methods", "lacuna", "--set", "alpha=.01", "--set", "beta=1e-4"}).code, 0);
  EXPECT_TRUE(says(ablation({"--set", "mask-rate=0"}).err, "mtd:authors has mask-rate = 0"));
}

TEST_F(StatedProtocol, AStudyOfSharesSaysThatTheyVary) {
  const Ended ended = run(bench("missing", "tiny.npz", "m", {"--rates", "0,.3"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended.out, "labels missing where the shares do not vary.")) << ended.out;
  EXPECT_TRUE(says(ended.out, "† is not ranked")) << ended.out;
  ASSERT_EQ(run({"report", folder_ / "m"}).code, 0);
  EXPECT_TRUE(says(read_text(folder_ / "m/report.html"), "One of these shares varies"));
}

TEST_F(StatedProtocol, AQuickRunSaysWhatItChanged) {
  PaperOptions options;
  options.bench.data = {folder_ / "tiny.npz"};
  options.bench.set = {"mtd.epochs=2"};
  options.quick = true;
  Shelf shelf;
  const auto plans = paper_plans(options, "lacuna", shelf);
  for (const auto& cell : plans.front().cells) {
    const json used = resolved_options(cell.spec);
    if (!is_network(cell.spec.method)) continue;
    EXPECT_EQ(used.value("width", .05), .05) << cell.spec.method.text();
    EXPECT_LE(used.at("epochs"), 10) << cell.spec.method.text();
  }
  for (const auto& plan : plans) {
    const std::string caution = plan.header.at("caution");
    for (const char* words :
         {"epochs=10 for c2ae, dicnet, lacuna", "width=0.05 for dicnet, mtd, lacuna", "hidden=26 for c2ae"})
      EXPECT_TRUE(says(caution, words)) << caution;
  }
  const Ended dry =
      run({"bench", "paper", "--data", folder_ / "tiny.npz", "--out", folder_ / "q", "--quick", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_TRUE(says(dry.out, "width=0.05 for dicnet, mtd, lacuna")) << dry.out;
}

TEST_F(StatedProtocol, SimilarityIsPrintedInNumbers) {
  const Ended ended =
      run({"bench", "similarity", "--data", folder_ / "tiny.npz", "--set", "epochs=2", "--set", "width=.02",
           "--set", "embedding=4", "--epochs", "0,2", "--out", folder_ / "s"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(says(ended.out, "shared with shared")) << ended.out;
  EXPECT_FALSE(says(ended.out, "1-HL")) << ended.out;
}

}  // namespace
}  // namespace lacuna
