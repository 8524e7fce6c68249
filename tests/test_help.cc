// What the program says about itself: help that fits the terminal, manual pages that lint, completion that offers what
// exists and nothing else, and messages that name the right thing.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/random.h"
#include "checks.h"
#include "data/readers.h"
#include "program.h"

namespace lacuna {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t points(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::size_t longest(const std::string& text) {
  std::size_t most = 0;
  for (const auto& line : lines_of(text)) most = std::max(most, points(line));
  return most;
}

// Every verb that `lacuna --help` lists, as words.
std::vector<std::vector<std::string>> verbs() {
  std::vector<std::vector<std::string>> found;
  bool listing = false;
  for (const auto& line : lines_of(run({"--help"}).out)) {
    if (line.starts_with("exit codes")) break;
    listing = listing || line == "data:";
    if (!listing || !line.starts_with("  ") || line[2] == ' ') continue;
    std::vector<std::string> words;
    std::istringstream stream(line.substr(2, line.find("  ", 2) - 2));
    for (std::string word; stream >> word;) words.push_back(word);
    found.push_back(words);
  }
  return found;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Columns {  // the width that the program believes in
  explicit Columns(const char* width) { setenv("COLUMNS", width, 1); }
  ~Columns() { unsetenv("COLUMNS"); }
};

TEST(Help, EveryVerbFitsEightyColumns) {
  unsetenv("COLUMNS");  // no terminal behind a file either: 80
  const auto all = verbs();
  ASSERT_GE(all.size(), 20u);
  EXPECT_LE(longest(run({"--help"}).out), 80u);
  for (const auto& verb : all)
    for (const auto& form : {std::vector<std::string>{"--help"}, std::vector<std::string>{"--help", "all"}}) {
      const Ended help = run(with(verb, form));
      EXPECT_EQ(help.code, 0) << verb.back();
      for (const auto& line : lines_of(help.out)) EXPECT_LE(points(line), 80u) << verb.back() << ": " << line;
    }
}

TEST(Help, FollowsTheWidthOfTheTerminal) {
  const Columns narrow("60");
  EXPECT_LE(longest(run({"train", "--help", "all"}).out), 60u);
  const Columns wide("120");
  EXPECT_GT(longest(run({"train", "--help", "all"}).out), 90u);
}

TEST(Help, ShowsWhatMattersFirstAndTheRestOnRequest) {
  const std::string plain = run({"train", "--help"}).out, all = run({"train", "--help", "all"}).out;
  std::size_t flags = 0;
  for (const auto& line : lines_of(plain)) flags += line.starts_with("  --");
  EXPECT_GE(flags, 8u);
  EXPECT_LE(flags, 14u) << plain;
  for (const char* flag :
       {"DATA", "--out", "--method", "--preset", "--epochs", "--seed", "--resume", "--report"})
    EXPECT_TRUE(has(plain, flag)) << flag;
  EXPECT_FALSE(has(plain, "--weight-decay"));
  EXPECT_TRUE(has(all, "--weight-decay"));
  for (const char* part : {"reading the data:", "preparation of the inputs:", "settings of ", "exit codes:",
                           "environment:", "LACUNA_ISA", "model and data do not match", "130, 143"})
    EXPECT_TRUE(has(all, part)) << part;
  for (const char* preset : {"best", "paired", "distilled", "repaired", "authors", "paper"})
    EXPECT_TRUE(has(plain, preset)) << preset;
  // The settings are those of the method that is named.
  EXPECT_TRUE(has(run({"train", "--method", "naim3l", "--help", "all"}).out, "settings of naim3l:"));
  // Other ways to ask.
  EXPECT_EQ(run({"help", "train", "all"}).out, all);
  EXPECT_EQ(run({"train", "--help=all"}).out, all);
}

TEST(Help, ThreadsHaveOneRangeInEveryVerb) {
  std::size_t found = 0;
  for (const auto& verb : verbs()) {
    const auto help = lines_of(run(with(verb, {"--help", "all"})).out);
    if (std::ranges::none_of(help, [](const auto& line) { return line.starts_with("  --threads "); })) continue;
    const Ended ended = run(with(verb, {"--threads", "1025"}));
    EXPECT_EQ(ended.code, 2) << verb.back();
    EXPECT_TRUE(has(ended.err, "--threads takes a number from 0 to 1024, not 1025")) << verb.back() << ended.err;
    ++found;
  }
  EXPECT_GE(found, 15u);
}

TEST(Help, VersionInThreeWays) {
  const std::string version = run({"--version"}).out;
  EXPECT_TRUE(version.starts_with("lacuna ")) << version;
  EXPECT_EQ(run({"-V"}).out, version);
  EXPECT_EQ(run({"version"}).out, version);
}

TEST(Help, VerbsOfOtherProgramsAndHalfOnesAreUnderstood) {
  for (const auto& [word, verb] :
       {std::pair("inspect", "data inspect"), std::pair("convert", "data convert"), std::pair("fit", "train"),
        std::pair("trian", "train"), std::pair("eval", "evaluate"), std::pair("simulat", "data simulate")}) {
    const Ended ended = run({word, "x.npz"});
    EXPECT_EQ(ended.code, 2) << word;
    EXPECT_TRUE(has(ended.err, std::string("did you mean '") + verb + "'?")) << word << ": " << ended.err;
  }
  EXPECT_FALSE(has(run({"zzzzzzzz"}).err, "did you mean"));
}

TEST(Messages, ASettingOfAnotherMethodIsNamed) {
  const Ended ended =
      run({"train", "x.npz", "--out", "m.safetensors", "--method", "naim3l", "--epochs", "3"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(has(ended.err, "method naim3l has no setting '--epochs'")) << ended.err;
  EXPECT_TRUE(has(ended.err, "mtd")) << ended.err;       // who has it
  EXPECT_TRUE(has(ended.err, "--lambda")) << ended.err;  // what naim3l has
}

TEST(Messages, AWrongValueNamesTheRange) {
  for (const auto& arguments :
       {std::vector<std::string>{"--hold-out", "2"}, std::vector<std::string>{"--hold-out", "x"}}) {
    const Ended ended = run(with({"train", "x.npz", "--out", "m.safetensors"}, arguments));
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(has(ended.err, "from 0 to 0.9")) << ended.err;
  }
}

TEST(ManualPages, OneForEveryVerbAndAllLint) {
  if (std::system("command -v mandoc > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs mandoc";
  TemporaryDirectory folder;
  ASSERT_EQ(run({"man", "--out", folder / "man"}).code, 0);
  std::size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "man")) {
    ++pages;
    EXPECT_EQ(
        std::system(("mandoc -Tlint -Wwarning " + entry.path().string() + " > " + (folder / "lint")).c_str()),
        0)
        << entry.path() << std::ifstream(folder / "lint").rdbuf();
  }
  EXPECT_EQ(pages, verbs().size() + 1);
  // The page says what the help says.
  ASSERT_EQ(std::system(("mandoc -Tutf8 -Owidth=500 " + (folder / "man/lacuna-train.1") +
                         " | sed 's/.\\x08//g' > " + (folder / "text"))
                            .c_str()),
            0);
  std::ostringstream text;
  text << std::ifstream(folder / "text").rdbuf();
  for (const char* part : {"--weight-decay", "--hold-out", "EXIT STATUS", "LACUNA_ISA", "EXAMPLES"})
    EXPECT_TRUE(has(text.str(), part)) << part;
  EXPECT_EQ(run({"man", "trane"}).code, 2);
}

// The words that the program offers at the end of a command line.
std::set<std::string> offered(const std::vector<std::string>& words) {
  std::set<std::string> found;
  for (const auto& line : lines_of(run(with({"__complete"}, words)).out))
    found.insert(line.substr(0, line.find('\t')));
  return found;
}

TEST(Completion, OffersWhatExistsAndNothingElse) {
  const auto first = offered({""});
  for (const char* verb : {"data", "train", "bench", "report"}) EXPECT_TRUE(first.contains(verb)) << verb;
  EXPECT_FALSE(first.contains("__complete"));
  EXPECT_EQ(offered({"data", "in"}), (std::set<std::string>{"inspect"}));
  // Methods are methods: words of prose are not among them.
  const auto methods = offered({"train", "x.npz", "--method", ""});
  EXPECT_TRUE(methods.contains("naim3l"));
  for (const auto& method : methods) EXPECT_EQ(run({"methods", method}).code, 0) << method;
  EXPECT_TRUE(offered({"train", "x.npz", "--method=na"}).contains("--method=naim3l"));
  EXPECT_TRUE(offered({"train", "x.npz", "--method", "=", "na"}).contains("naim3l"));  // as bash cuts it
  EXPECT_TRUE(offered({"bench", "table", "--methods", "prior,na"}).contains("prior,naim3l"));
  EXPECT_EQ(offered({"train", "x.npz", "--preset", "dist"}), (std::set<std::string>{"distilled"}));
  // The settings of the chosen method.
  EXPECT_TRUE(offered({"train", "x.npz", "--method", "naim3l", "--la"}).contains("--lambda"));
  EXPECT_FALSE(offered({"train", "x.npz", "--method", "naim3l", "--weight"}).contains("--weight-decay"));
  EXPECT_EQ(offered({"completion", "f"}), (std::set<std::string>{"fish"}));
  // Where a file belongs the shell is left to offer files.
  EXPECT_TRUE(offered({"train", ""}).empty());
  EXPECT_TRUE(offered({"train", "x.npz", "--out", ""}).empty());
}

TEST(Completion, EveryShellCanReadItsScript) {
  TemporaryDirectory folder;
  ASSERT_EQ(run({"completion", "--out", folder / "c"}).code, 0);
  const std::array<std::array<std::string, 3>, 3> shells = {
      {{"bash", "bash -n ", "lacuna"}, {"zsh", "zsh -n ", "_lacuna"}, {"fish", "fish -n ", "lacuna.fish"}}};
  for (const auto& [shell, check, file] : shells) {
    ASSERT_TRUE(std::filesystem::exists(folder / ("c/" + file))) << file;
    if (std::system(("command -v " + shell + " > /dev/null 2>&1").c_str()) != 0) continue;
    EXPECT_EQ(std::system((check + (folder / ("c/" + file))).c_str()), 0) << shell;
  }
}

// bench: what it prints for a person.
class BenchWords : public testing::Test {
 protected:
  BenchWords() {
    Dataset data;
    data.name = "small";
    data.rows = 60;
    Random random(1, Purpose::test);
    for (const char* name : {"audio", "image"}) {
      Matrix<float> X(data.rows, 3);
      for (float& x : X.values()) x = random.normal();
      View view;
      view.name = name;
      view.features = Table<float>(std::move(X));
      data.views.push_back(std::move(view));
    }
    Matrix<std::int8_t> Y(data.rows, 4);
    for (auto& y : Y.values()) y = random.uniform() < .4f ? 1 : 0;
    data.labels = std::move(Y);
    data.label_names = {"a", "b", "c", "d"};
    write_dataset(data, folder_ / "d.npz");
  }
  std::vector<std::string> bench(const std::string& kind, const std::vector<std::string>& more) {
    return with({"bench", kind, "--data", folder_ / "d.npz", "--out", folder_ / "out", "--methods", "prior"},
                more);
  }
  TemporaryDirectory folder_;
};

TEST_F(BenchWords, OneRepetitionHasNoDeviationAndPlacesHaveNames) {
  const Ended ended = run(bench("missing", {"--repeats", "1", "--rates", "0,.3"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_FALSE(has(ended.out, "±")) << ended.out;
  for (const char* row :
       {"views missing 0 ", "labels missing 0 ", "views missing 0.3", "without audio", "all views"})
    EXPECT_TRUE(has(ended.out, row)) << row << "\n" << ended.out;
  EXPECT_FALSE(has(ended.err, "0 running"));
}

TEST_F(BenchWords, DeviationsAreExplainedAndOtherPlansNamed) {
  const Ended first = run(bench("table", {"--repeats", "2"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(has(first.out, "± is the population standard deviation")) << first.out;
  const Ended other = run(bench("table", {"--repeats", "2", "--resume", "--methods", "naim3l"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(has(other.err, "was made with other methods (prior; now prior, naim3l)")) << other.err;
}

TEST_F(BenchWords, NoKnownLabelIsRefused) {
  const Ended ended = run(bench("table", {"--missing-labels", "1"}));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(has(ended.err, "no known label")) << ended.err;
}

}  // namespace
}  // namespace lacuna
