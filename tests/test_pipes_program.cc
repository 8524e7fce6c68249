// lacuna predict MODEL - --out -: between real pipes, line by line and in bulk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/files.h"
#include "base/text.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "pipe_process.h"

namespace lacuna {
namespace {

using nlohmann::json;

// Whether two texts say the same: numbers to rounding, all else exactly. Which rows share a batch depends on when they
// arrive, and the last bits of a product on a row's place in it.
bool alike(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view& text) -> std::optional<double> {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  };
  while (!a.empty() && !b.empty()) {
    const auto x = number(a), y = number(b);
    if (x.has_value() != y.has_value()) return false;
    if (x && std::abs(*x - *y) > 1e-5 * (1 + std::abs(*x))) return false;
    if (x) continue;
    if (a.front() != b.front()) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && b.empty();
}

class Pipes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    SimulateOptions options;
    options.rows = 400;
    options.views = 3;
    options.labels = 6;
    options.sizes = {12, 9, 7};
    data_ = new Dataset(simulate(options).data);
    data_->ids.clear();
    for (std::size_t i = 0; i < data_->rows; ++i) data_->ids.push_back(fmt::format("item {}", i));
    data_->label_names = {"plain", "semi;colon", "a \"quoted\" name", "back\\slash", "ünï", "comma, too"};
    Matrix<std::uint8_t> present(data_->rows, 3);
    for (std::size_t i = 0; i < data_->rows; ++i)
      for (std::size_t v = 0; v < 3; ++v) present(i, v) = i == 2 ? 0 : (i + v) % 4 != 0;
    data_->present = Table<std::uint8_t>(std::move(present));
    write_dataset(*data_, path("data.npz"));
    const Ended ended =
        run({"train", path("data.npz"), "--out", path("model"), "--embedding", "24", "--encoder-widths", "32",
             "--decoder-widths", "16", "--epochs", "10", "--quiet"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    model_ = new Model(Model::load(path("model")));
    scores_ = new Matrix<float>(model_->predict(*data_));
  }
  static void TearDownTestSuite() {
    delete scores_;
    delete model_;
    delete data_;
    delete folder_;
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static std::vector<std::string> command(std::vector<std::string> more = {}, const std::string& data = "-",
                                          const std::string& out = "-") {
    std::vector<std::string> all = {"predict", path("model"), data, "--out", out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Ended talk(std::string_view text, std::vector<std::string> more = {}) {
    return PipeProcess(command(std::move(more))).talk(text);
  }
  static std::string json_line(std::size_t i) {
    std::string line = fmt::format("{{\"id\": \"{}\", \"views\": {{", data_->ids[i]);
    bool first = true;
    for (std::size_t v = 0; v < 3; ++v) {
      if (!data_->has(i, v) && i % 2 == 0) continue;  // left out, or null
      line += fmt::format("{}\"{}\": ", first ? "" : ", ", data_->views[v].name);
      first = false;
      if (!data_->has(i, v)) {
        line += "null";
        continue;
      }
      std::vector<float> row(data_->views[v].columns());
      data_->views[v].copy_row(i, row);
      line += fmt::format("[{}]", fmt::join(row, ", "));
    }
    return line + "}}\n";
  }
  static std::string json_lines() {
    std::string all;
    for (std::size_t i = 0; i < data_->rows; ++i) all += json_line(i);
    return all;
  }
  static std::string csv_lines(char separator) {
    std::string all = "Sample_ID";
    for (const auto& view : data_->views)
      for (std::size_t k = 0; k < view.columns(); ++k) all += separator + fmt::format("{}:{}", view.name, k);
    all += '\n';
    for (std::size_t i = 0; i < data_->rows; ++i) {
      all += data_->ids[i];
      for (std::size_t v = 0; v < 3; ++v) {
        std::vector<float> row(data_->views[v].columns());
        data_->views[v].copy_row(i, row);
        for (const float x : row) all += separator + (data_->has(i, v) ? fmt::format("{}", x) : "");
      }
      all += '\n';
    }
    return all;
  }
  static void expect_scores(const json& answer, std::size_t i) {
    ASSERT_EQ(answer["id"], data_->ids[i]);
    if (i == 2) {
      ASSERT_TRUE(answer["scores"].is_null()) << answer.dump();
      return;
    }
    ASSERT_EQ(answer["scores"].size(), 6u);
    for (std::size_t j = 0; j < 6; ++j)
      ASSERT_NEAR(answer["scores"][data_->label_names[j]].get<float>(), (*scores_)(i, j), 1e-6)
          << i << ", " << j;
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }

  static TemporaryDirectory* folder_;
  static Dataset* data_;
  static Model* model_;
  static Matrix<float>* scores_;
};
TemporaryDirectory* Pipes::folder_ = nullptr;
Dataset* Pipes::data_ = nullptr;
Model* Pipes::model_ = nullptr;
Matrix<float>* Pipes::scores_ = nullptr;

// A line gets its answer before the next one is sent.
TEST_F(Pipes, AnswersLineByLine) {
  for (const bool jsonl : {true, false}) {
    PipeProcess program(command({"--format", "jsonl"}));
    if (!jsonl) program.send(csv_lines(',').substr(0, csv_lines(',').find('\n') + 1));
    const auto rows = lines_of(csv_lines(','));
    for (std::size_t i = 0; i < 5; ++i) {
      program.send(jsonl ? json_line(i) : rows[i + 1] + "\n");
      const std::string answer = program.line();
      ASSERT_NE(answer, "") << "no answer to line " << i;
      expect_scores(json::parse(answer), i);
    }
    const Ended ended = program.talk("");
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
}

// Beyond what a 32-bit number can square, more is no other answer, and none is no answer either.
TEST_F(Pipes, HugeValuesSaturate) {
  const Ended trained = run({"train", path("data.npz"), "--out", path("linear"), "--prepare", "zscore", "--epochs", "3",
                             "--embedding", "24", "--encoder-widths", "32", "--decoder-widths", "16", "--quiet"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto scores = [&](const std::string& first) {
    PipeProcess program({"predict", path("linear"), "-", "--out", "-"});
    const Ended ended = program.talk(fmt::format("{{\"views\": {{\"{}\": [{}, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]}}}}\n",
                                         data_->views[0].name, first));
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::vector<double> all;
    const json answer = json::parse(ended.out);
    for (const auto& [name, score] : answer.at("scores").items())
      all.push_back(score.is_null() ? std::nan("") : score.get<double>());
    return all;
  };
  const auto large = scores("1e18"), other = scores("-1e18");
  ASSERT_EQ(large.size(), 6u);
  double difference = 0;
  for (std::size_t k = 0; k < 6; ++k) difference = std::max(difference, std::abs(large[k] - other[k]));
  EXPECT_GT(difference, 1e-3);  // what the value says is heard
  for (const char* huge : {"1e20", "3e38"}) {
    const auto found = scores(huge);
    for (std::size_t k = 0; k < 6; ++k) EXPECT_NEAR(found[k], large[k], 1e-6) << huge << " " << k;
  }
}

TEST_F(Pipes, BulkGivesTheScoresOfTheFile) {
  const Ended ended = talk(json_lines());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto answers = lines_of(ended.out);
  ASSERT_EQ(answers.size(), data_->rows);
  for (std::size_t i = 0; i < answers.size(); ++i) expect_scores(json::parse(answers[i]), i);
  EXPECT_NE(ended.err.find("items without any view, which get no scores: 1 of 400"), std::string::npos)
      << ended.err;
  EXPECT_EQ(talk(json_lines(), {"--quiet"}).err, "");

  // The same from a file of lines, and with one thread.
  write_text(path("items.jsonl"), json_lines());
  EXPECT_TRUE(alike(run(command({}, path("items.jsonl"))).out, ended.out));
  EXPECT_TRUE(alike(talk(json_lines(), {"--threads", "1"}).out, ended.out));
}

TEST_F(Pipes, TablesInAndOut) {
  const Ended csv = talk(csv_lines(','));
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_NE(csv.err.find("ids in column 'Sample_ID', columns matched by position"), std::string::npos)
      << csv.err;
  ASSERT_EQ(run(command({}, path("data.npz"), path("from-file.csv"))).code, 0);
  EXPECT_TRUE(alike(csv.out, read_text(path("from-file.csv"))));
  const auto wide = lines_of(csv.out);
  EXPECT_EQ(wide[0], "id,plain,\"semi;colon\",\"a \"\"quoted\"\" name\",back\\slash,ünï,\"comma, too\"");
  EXPECT_EQ(wide[3], "item 2,,,,,,");  // no view, no scores

  const Ended tsv = talk(csv_lines('\t'));  // told by its first line, and answered alike
  ASSERT_EQ(tsv.code, 0) << tsv.err;
  EXPECT_EQ(lines_of(tsv.out)[0],
            "id\tplain\tsemi;colon\t\"a \"\"quoted\"\" name\"\tback\\slash\tünï\tcomma, too");
  const Ended semicolons = talk(csv_lines(';'), {"--format", "csv"});
  EXPECT_TRUE(alike(semicolons.out, csv.out)) << semicolons.err;
}

TEST_F(Pipes, LongAndTags) {
  const Ended ended = talk(json_lines(), {"--format", "long", "--top", "2"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto table = lines_of(ended.out);
  EXPECT_EQ(table[0], "id,rank,label,score,decided");
  ASSERT_EQ(table.size(), 1 + 2 * (data_->rows - 1) + 1);
  EXPECT_TRUE(table[1].starts_with("item 0,1,")) << table[1];
  EXPECT_TRUE(table[2].starts_with("item 0,2,")) << table[2];
  EXPECT_EQ(table[5], "item 2,,,,");

  const Matrix<std::uint8_t> decided = model_->decide(*scores_);
  for (const bool labels : {false, true}) {
    std::vector<std::string> flags = {"--calibrated", "--top", "3"};
    if (labels) flags.push_back("--labels");
    const Ended tags = talk(json_lines(), flags);
    ASSERT_EQ(tags.code, 0) << tags.err;
    const auto answers = lines_of(tags.out);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const json answer = json::parse(answers[i]);
      if (i == 2) {
        EXPECT_TRUE(answer["tags"].is_null() && answer["scores"].is_null());
        continue;
      }
      if (!labels) {
        ASSERT_EQ(answer["tags"].size(), 3u);
      }
      double before = 1;
      for (const auto& tag : answer["tags"]) {
        EXPECT_LE(tag["probability"].get<double>(), before);  // ranked by what is printed
        before = tag["probability"];
        const auto j =
            static_cast<std::size_t>(std::ranges::find(data_->label_names, tag["label"].get<std::string>()) -
                                     data_->label_names.begin());
        ASSERT_LT(j, 6u);
        EXPECT_EQ(tag["decided"].get<bool>(), decided(i, j) != 0);
        if (labels) {
          EXPECT_TRUE(tag["decided"].get<bool>());
        }
      }
    }
  }
}

// Several names in one field can be taken apart again.
TEST_F(Pipes, JoinedLabelsAreEscaped) {
  const Ended ended = talk(json_lines(), {"--format", "csv", "--top", "6"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string field = lines_of(ended.out)[1];
  EXPECT_NE(field.find("semi\\;colon"), std::string::npos) << field;
  EXPECT_NE(field.find("back\\\\slash"), std::string::npos) << field;
}

TEST_F(Pipes, ABadLineIsAnsweredAndTheStreamGoesOn) {
  const std::string text = json_line(0) + "{\"id\": \"bad\", \"views\": {\"view0\": [1, NaN]}}\n" + "\n" +
                           "not json\n" + "{\"views\": {\"viev0\": []}}\n" + json_line(1) +
                           std::string(3, '[') + "\n" + json_line(3);
  const Ended ended = talk(text);
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto answers = lines_of(ended.out);
  ASSERT_EQ(answers.size(), 7u) << ended.out;
  expect_scores(json::parse(answers[0]), 0);
  const json bad = json::parse(answers[1]);
  EXPECT_EQ(bad["line"], 2);
  EXPECT_NE(bad["error"].get<std::string>().find("NaN"), std::string::npos) << bad.dump();
  EXPECT_EQ(json::parse(answers[2])["line"], 4);
  EXPECT_NE(json::parse(answers[3])["error"].get<std::string>().find("did you mean 'view0'?"),
            std::string::npos);
  expect_scores(json::parse(answers[4]), 1);
  expect_scores(json::parse(answers[6]), 3);
  EXPECT_NE(ended.err.find("lines that could not be read: 4 of 7"), std::string::npos) << ended.err;

  const Ended strict = talk(text, {"--strict"});
  EXPECT_EQ(strict.code, 3);
  EXPECT_EQ(lines_of(strict.out).size(), 1u) << strict.out;
  EXPECT_NE(strict.err.find("line 2"), std::string::npos) << strict.err;

  // A table has no place for errors: they go to stderr, as the same objects.
  const Ended csv = talk(text, {"--format", "csv"});
  EXPECT_EQ(csv.code, 0);
  EXPECT_EQ(lines_of(csv.out).size(), 4u) << csv.out;
  EXPECT_NE(csv.err.find("{\"line\": 2, \"error\": "), std::string::npos) << csv.err;
}

TEST_F(Pipes, AHugeLineNeedsNoMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory would be counted; the build without it runs this test";
#endif
  const std::size_t before = talk(json_lines()).peak_bytes;
  PipeProcess program(command());  // before there is anything large here that a fork would inherit
  program.send(json_line(0) + "{\"views\": {\"view0\": [");
  const std::string piece(std::size_t{1} << 20, '1');
  for (int k = 0; k < 300; ++k) program.send(piece);
  const Ended ended = program.talk("\n" + json_line(1));
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto answers = lines_of(ended.out);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_NE(json::parse(answers[1])["error"].get<std::string>().find("longer than"), std::string::npos);
  expect_scores(json::parse(answers[2]), 1);
  EXPECT_LT(ended.peak_bytes, before + (std::size_t{64} << 20)) << before;
}

TEST_F(Pipes, FifosAndDevicesAreWrittenTo) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    std::ostringstream all;
    all << std::ifstream(fifo).rdbuf();
    read = all.str();
  });
  const Ended ended = run(command({"--format", "csv"}, path("data.npz"), fifo));
  reader.join();
  EXPECT_EQ(ended.code, 0) << ended.err;
  ASSERT_EQ(run(command({}, path("data.npz"), path("plain.csv"))).code, 0);
  EXPECT_EQ(read, read_text(path("plain.csv")));
  struct stat status {};
  ASSERT_EQ(stat(fifo.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));  // still one
  EXPECT_EQ(PipeProcess(command({"--format", "csv"}, path("data.npz"), "/dev/stdout")).talk("").out, read);
  EXPECT_TRUE(alike(
      PipeProcess(command({"--format", "csv"}, "/dev/stdin", "/dev/stdout")).talk(json_lines()).out, read));
  EXPECT_EQ(run(command({}, path("data.npz"), "/dev/null")).code, 0);
}

// A file that the shell puts on standard input is an input like any other.
TEST_F(Pipes, TheFileOnStandardInputIsNotReplaced) {
  const auto shell = [](const std::string& command) {
    return WEXITSTATUS(std::system(fmt::format("{} {}", LACUNA_PROGRAM, command).c_str()));
  };
  std::filesystem::create_symlink("kept.jsonl", path("link.jsonl"));
  for (const auto& [name, text] : {std::pair{"kept.jsonl", json_lines()}, {"kept.csv", csv_lines(',')}}) {
    write_text(path(name), text);
    for (const char* verb : {"predict", "explain"})
      for (const std::string& out : {path(name), path("link.jsonl"), path(".") + "/" + name}) {
        if (out == path("link.jsonl") && std::string(name) != "kept.jsonl") continue;
        EXPECT_EQ(shell(fmt::format("{} {} - --out {} < {}", verb, path("model"), out, path(name))), 2)
            << verb << out;
        EXPECT_EQ(read_text(path(name)), text) << verb << out;
      }
    // It would be read for ever.
    EXPECT_EQ(shell(fmt::format("predict {} - --out - < {} >> {}", path("model"), path(name), path(name))),
              2);
    EXPECT_EQ(read_text(path(name)), text);
    EXPECT_EQ(
        shell(fmt::format("predict {} - --out {} < {}", path("model"), path("elsewhere.csv"), path(name))),
        0);
  }
}

TEST_F(Pipes, IdsComeBackAsTheyWere) {
  std::string line = json_line(1);
  line = line.substr(line.find("\"views\""));
  const Ended ended = talk("{\"id\": 17, " + line + "{" + line + "{\"id\": \"17\", " + line);
  const auto answers = lines_of(ended.out);
  ASSERT_EQ(answers.size(), 3u) << ended.out << ended.err;
  EXPECT_EQ(json::parse(answers[0])["id"], 17);
  EXPECT_EQ(json::parse(answers[1])["id"], 1);  // its place, from 0
  EXPECT_EQ(json::parse(answers[2])["id"], "17");
}

// What files may have, pipes may have: decimal commas, a header as R writes it, gzip.
TEST_F(Pipes, TablesAreReadAsFilesAre) {
  const std::string plain = talk(csv_lines(','), {"--format", "jsonl"}).out;
  std::string commas = csv_lines(';');
  std::replace(commas.begin() + static_cast<std::ptrdiff_t>(commas.find('\n')), commas.end(), '.', ',');
  EXPECT_TRUE(alike(talk(commas, {"--format", "jsonl"}).out, plain));
  EXPECT_TRUE(
      alike(talk(csv_lines(',').substr(std::string("Sample_ID,").size()), {"--format", "jsonl"}).out, plain));
  // Points where commas are: neither is sure.
  const auto rows = lines_of(csv_lines(';')), other = lines_of(commas);
  const Ended mixed =
      talk(other[0] + "\n" + other[1] + "\n" + rows[2] + "\n" + other[4] + "\n", {"--format", "jsonl"});
  const auto answers = lines_of(mixed.out);
  ASSERT_EQ(answers.size(), 3u) << mixed.out << mixed.err;
  EXPECT_EQ(json::parse(answers[1])["line"], 3);
  EXPECT_NE(answers[1].find("has a decimal point, and line 2 a decimal comma"), std::string::npos)
      << answers[1];
  expect_scores(json::parse(answers[2]), 3);

  write_text(path("items.csv"), csv_lines(','));
  write_text(path("items.jsonl"), json_lines());
  for (const char* name : {"items.csv", "items.jsonl"}) {
    ASSERT_EQ(std::system(("gzip -kf " + path(name)).c_str()), 0);
    const Ended packed = talk(read_text(path(std::string(name) + ".gz")), {"--format", "jsonl"});
    EXPECT_TRUE(alike(packed.out, plain)) << name << packed.err;
  }
  EXPECT_TRUE(alike(run(command({}, path("items.jsonl.gz"))).out, plain));
}

TEST_F(Pipes, AStreamOfBadLinesFails) {
  const Ended ended = talk("{\"id\": 1}\nnot json\n");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(lines_of(ended.out).size(), 2u) << ended.out;
  EXPECT_NE(ended.err.find("none of its 2 lines could be read; the first: line 1: "), std::string::npos)
      << ended.err;
  EXPECT_EQ(talk("{\"id\": 1}\n" + json_line(0)).code, 0);
}

// Each would change nothing.
TEST_F(Pipes, FlagsWithoutEffectAreRefused) {
  const std::string csv = csv_lines(','), lines = json_lines();
  using Flags = std::vector<std::string>;
  for (const Flags& flags :
       {Flags{"--transpose"}, Flags{"--ignore-columns", "a"}, Flags{"--class-column", "a"},
        Flags{"--tags-column", "a"}, Flags{"--label-file", "a.xml"}, Flags{"--columns", "3"},
        Flags{"--views", "a"}, Flags{"--label-columns", "1"}})
    for (const auto& text : {csv, lines}) {
      const Ended ended = talk(text, flags);
      EXPECT_EQ(ended.code, 2) << flags[0];
      EXPECT_NE(ended.err.find(flags[0] + " has no effect"), std::string::npos) << ended.err;
    }
  for (const Flags& flags : {Flags{"--label-code", "01"}, Flags{"--blank-means", "no"}}) {
    EXPECT_EQ(talk(csv, flags).code, 2) << flags[0];
    EXPECT_EQ(run(command(flags, path("data.npz"))).code, 2) << flags[0];
  }
  for (const Flags& flags : {Flags{"--id-column", "0"}, Flags{"--header", "no"}}) {
    EXPECT_EQ(talk(lines, flags).code, 2);
    EXPECT_EQ(talk(csv_lines(',').substr(csv.find('\n') + 1), flags).code, 0);
  }
  write_text(path("some.tsv"), csv_lines('\t'));
  write_text(path("some.dat"), csv_lines('\t'));
  write_text(path("items.jsonl"), json_lines());
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {command({"--from", "csv"}, path("some.tsv")), "its name says tsv, --from says csv"},
      {command({"--from", "csv"}, path("data.npz")), "its name says npz, --from says csv"},
      {command({"--from", "csv"}, path("items.jsonl")), "its name says jsonl, --from says csv"},
      {command({"--top", "2", "--threshold", ".5"}, path("data.npz"), path("x.csv")),
       "--threshold has no effect"},
      {command({"--top", "2", "--labels-by", "method"}, path("data.npz"), path("x.csv")),
       "--labels-by has no effect"},
      {command({"--labels", "--threshold", ".5", "--labels-by", "method"}, path("data.npz")),
       "together with"},
      {command({"--labels", "--calibrated"}, path("data.npz"), path("x.npy")), "--calibrated has no effect"},
      {command({"--threshold", ".5"}, path("data.npz"), path("x.npy")), "--threshold has no effect"},
      {command({"--label-file", path("names.txt")}, path("data.npz")), "--label-file"},
      {command({"--protocol", "authors"}, path("data.npz")), "--protocol has no effect without --folds"}};
  for (const auto& [arguments, expected] : cases) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find(expected), std::string::npos) << ended.err;
  }
  const Ended decided = talk(csv, {"--top", "2", "--threshold", ".5"});
  EXPECT_EQ(decided.code, 2);
  EXPECT_EQ(talk(csv, {"--top", "2", "--threshold", ".5", "--format", "jsonl"}).code, 0);
  EXPECT_EQ(run(command({"--from", "tsv"}, path("some.dat"))).code, 0);
}

// The same reader for both verbs.
TEST_F(Pipes, LinesAreExplained) {
  const auto explain = [&](const std::string& text, std::vector<std::string> more) {
    std::vector<std::string> all = {"explain", path("model"), "-"};
    all.insert(all.end(), more.begin(), more.end());
    return PipeProcess(all).talk(text);
  };
  const Ended file = run({"explain", path("model"), path("data.npz"), "--json"});
  ASSERT_EQ(file.code, 0) << file.err;
  EXPECT_EQ(json::parse(file.out)["base"], "prior");
  for (const auto& text : {json_lines(), csv_lines(',')})
    EXPECT_TRUE(alike(explain(text, {"--json"}).out, file.out));
  write_text(path("why.jsonl"), json_lines());
  EXPECT_TRUE(alike(run({"explain", path("model"), path("why.jsonl"), "--json"}).out, file.out));

  const Ended lines = explain("{broken\n" + json_line(0) + json_line(1), {"--out", "-"});
  EXPECT_EQ(lines.code, 0) << lines.err;
  const auto answers = lines_of(lines.out);
  ASSERT_EQ(answers.size(), 3u) << lines.out;
  EXPECT_EQ(json::parse(answers[0])["line"], 1);
  EXPECT_EQ(json::parse(answers[1])["base"], "prior");
  EXPECT_TRUE(
      alike(json::parse(answers[2])["tags"].dump(), json::parse(file.out)["items"][1]["tags"].dump()));
  const Ended document = explain("{broken\n" + json_line(0) + json_line(1), {"--json"});
  EXPECT_EQ(json::parse(document.out)["items"].size(), 2u) << document.out;
  EXPECT_NE(document.err.find("{\"line\": 1, \"error\": "), std::string::npos) << document.err;
  // A table has no lines for an item that nothing explains.
  const Ended table = explain(json_line(1) + json_line(2), {"--out", path("why.csv"), "--top", "2"});
  EXPECT_EQ(lines_of(read_text(path("why.csv"))).size(), 1u + 2u);
  EXPECT_NE(table.err.find("items without any view, which get no lines: 1 of 2"), std::string::npos)
      << table.err;
  EXPECT_EQ(explain("{broken\n", {"--json"}).code, 3);
  EXPECT_EQ(explain(json_line(0), {"--summary"}).code, 2);
  EXPECT_EQ(explain(json_line(0), {"--transpose"}).code, 2);
}

TEST_F(Pipes, Mistakes) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {command({"--json"}), "both go to standard output"},
      {command({"--strict"}, path("data.npz")), "--strict has no effect"},
      {command({"--threshold", ".5"}, path("data.npz")), "--threshold has no effect"},
      {command({"--folds", "x"}), "no folds"},
      {command({}, "-", path("x.npy")), "written as lines"},
      {command({"--format", "long"}, path("data.npz"), path("x.npy")), "is an array"},
      {command({}, path("data.npz"), path("x.txt")), "scores are written as"},
      {{"predict", path("data.npz"), path("model"), "--out", "-"}, "not a model file"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Ended ended = run(arguments);
    EXPECT_TRUE(ended.code == 2 || ended.code == 3) << ended.code << ended.err;
    EXPECT_NE(ended.err.find(expected), std::string::npos) << ended.err;
  }
  EXPECT_EQ(talk("[{\"views\": {}}]").code, 3);
  EXPECT_EQ(talk("id,a,b\n1,2,3\n").code, 4);
  const Ended told = run(command({"--json"}, path("data.npz"), path("told.csv")));
  EXPECT_EQ(json::parse(told.out)["without_view"], 1);
}

// A header would be no JSON line, and there is nothing to tell a table by.
TEST_F(Pipes, OfNothingNothingIsWritten) {
  for (const char* nothing : {"", "\n", " \r\n\n"}) {
    const Ended ended = talk(nothing);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
  for (const std::vector<std::string>& table : {std::vector<std::string>{"--format", "csv"}, {"--from", "csv"}, {"--header", "no"}}) {
    const Ended ended = talk("", table);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(ended.out.starts_with("id,")) << ended.out;
  }
}

// A hundred times the same rows: each gets its answer, always the same, in whatever batch it was.
TEST_F(Pipes, ManyRowsAreAnsweredAlike) {
  constexpr std::size_t kTimes = 100;
  const std::string once_csv = csv_lines(',');
  std::string jsonl, csv = once_csv.substr(0, once_csv.find('\n') + 1);
  for (std::size_t k = 0; k < kTimes; ++k) {
    jsonl += json_lines();
    csv += once_csv.substr(once_csv.find('\n') + 1);
  }
  for (const std::string& text : {jsonl, csv}) {
    const Ended ended = talk(text, {"--format", "jsonl"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const auto answers = lines_of(ended.out);
    ASSERT_EQ(answers.size(), kTimes * data_->rows);
    for (std::size_t i = 0; i < data_->rows; ++i) expect_scores(json::parse(answers[i]), i);
    for (std::size_t i = 0; i < answers.size(); ++i)
      ASSERT_TRUE(alike(answers[i], answers[i % data_->rows])) << i;
  }
}

}  // namespace
}  // namespace lacuna
