// Mistakes that people make, one after another, with what they are told: the exit code and the words that help.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "base/files.h"
#include "base/random.h"
#include "data/npy.h"
#include "data/readers.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

struct Mistake {
  std::string what, command;  // {} in the command is the folder with everything in it
  int code;
  std::vector<std::string> says;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) { return out << mistake.command; }

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> list = {
      // the command line
      {"a verb misspelt", "trian {}/data.npz --out {}/m", 2, {"there is no verb 'trian", "train"}},
      {"a flag misspelt", "train {}/data.npz --ouut {}/m", 2, {"--ouut", "did you mean '--out'"}},
      {"no output", "train {}/data.npz", 2, {"needs --out"}},
      {"no data", "train --out {}/m", 2, {"DATA"}},
      {"an empty value", "train {}/data.npz --out {}/m --budget=", 2, {"lacuna train: --budget is empty"}},
      {"one argument too many", "predict {}/model {}/data.npz {}/data.npz --out {}/s.csv", 2, {"one argument too many"}},
      {"a word for a number", "train {}/data.npz --out {}/m --epochs many", 2, {"--epochs takes a whole number", "'many'"}},
      {"a number out of range", "train {}/data.npz --out {}/m --hold-out 2", 2, {"--hold-out", "0.9", "not 2"}},
      {"a choice misspelt", "train {}/data.npz --out {}/m --prepare zcore", 2, {"did you mean 'zscore'"}},
      {"a method misspelt", "train {}/data.npz --out {}/m --method naim3", 2, {"naim3l"}},
      {"a preset that is not there", "train {}/data.npz --out {}/m --preset bset", 2, {"preset 'bset'", "best"}},
      {"a preset of nobody", "train {}/data.npz --out {}/m --preset nope", 2, {"paper, default, original, semi)"}},
      {"a setting misspelt", "train {}/data.npz --out {}/m --set epoch=3", 2, {"has no setting 'epoch'", "epochs"}},
      {"--set without a value", "train {}/data.npz --out {}/m --set epochs", 2, {"KEY=VALUE"}},
      {"a flag of another method", "train {}/data.npz --out {}/m --method imvwl --embedding 3", 2, {"--embedding"}},
      // flags without effect
      {"--threshold without --labels", "predict {}/model {}/data.npz --out {}/s.csv --threshold .4", 2,
       {"--threshold has no effect without --labels"}},
      {"no best labels", "predict {}/model {}/data.npz --out {}/s.csv --top 0", 2, {"--top 0 has no effect"}},
      {"a threshold below all", "predict {}/model {}/data.npz --out {}/s.csv --labels --threshold -1", 2,
       {"--threshold -1 has no effect"}},
      {"a choice among epochs without rows for it", "train {}/data.npz --out {}/m --hold-out 0 --select AP", 2,
       {"--select has no effect with --hold-out 0"}},
      {"patience without rows to judge by", "train {}/data.npz --out {}/m --hold-out 0 --patience 3", 2,
       {"--patience has no effect with --hold-out 0"}},
      {"an aim of thresholds without rows to choose them on",
       "train {}/data.npz --out {}/m --hold-out 0 --aim top=3",
       2,
       {"--aim has no effect with --hold-out 0"}},
      {"patience for the last epoch", "train {}/data.npz --out {}/m --patience 3 --select last", 2,
       {"--patience has no effect with --select last"}},
      {"--fold without --folds", "train {}/data.npz --out {}/m --fold 3", 2, {"--fold has no effect without --folds"}},
      {"--part without --folds", "predict {}/model {}/data.npz --out {}/s.csv --part test", 2,
       {"--part has no effect without --folds"}},
      {"--hold-out with --folds", "train {}/data.npz --folds {}/folds.npz --hold-out .3 --out {}/m", 2,
       {"--hold-out has no effect together with --folds"}},
      {"--id-column for arrays", "train {}/data.npz --id-column id --out {}/m", 2, {"--id-column has no effect", "npz"}},
      {"--columns for CSV", "train {}/cohort --columns 9 --out {}/m", 2, {"--columns has no effect"}},
      {"ranges for a folder", "train {}/cohort --views rna=0-1 --out {}/m", 2, {"every file is a view"}},
      // files
      {"no such file", "train {}/nothing.npz --out {}/m", 3, {"there is no such file or folder"}},
      {"an unknown ending", "train {}/notes.doc --out {}/m", 3, {"the extension '.doc'", "--format"}},
      {"a folder without tables", "train {}/empty --out {}/m", 3, {"has neither a dataset.toml nor CSV"}},
      {"swapped arguments", "predict {}/data.npz {}/model --out {}/s.csv", 3, {"is not a model", "MODEL comes first"}},
      {"a table for a model", "predict {}/cohort/rna.csv {}/data.npz --out {}/s.csv", 3, {"is not a model"}},
      {"a cut archive", "train {}/cut.npz --out {}/m", 3, {"cut.npz"}},
      {"a missing folder for the output", "train {}/data.npz --out {}/no/where/m", 1, {"cannot be written"}},
      {"a table as output of a training", "train {}/data.npz --out {}/some.csv", 2, {"is not a model", "not replaced"}},
      {"a training that has not ended", "train {}/data.npz --method prior --out {}/begun", 2,
       {"begun.checkpoint", "--resume continues", "remove the file"}},
      {"an output inside another", "recover {}/model {}/data.npz --out {}/filled --deviations {}/filled/sd", 2,
       {"lies inside the output"}},
      {"known labels of rows to be tested", "predict {}/model {}/data.npz --folds {}/folds.npz --part test --known-labels --out {}/s.npz", 2,
       {"--known-labels --part test", "are to be predicted"}},
      {"a score that is missing", "evaluate {}/scored.csv {}/data.npz", 3,
       {"scored.csv: 'PAT_0001' has no score for 'old'", "left out"}},
      {"two rows, one held out", "train {}/two.csv --label-columns 1 --out {}/m", 3, {"1 training rows", "--hold-out 0"}},
      {"an infinite number", "train {}/infinite.csv --label-columns 1 --out {}/m", 3,
       {"item 'b', column 'x': inf is not a finite number", "as missing"}},
      {"a number beyond floats", "train {}/huge.csv --label-columns 1 --out {}/m", 3, {"line 2, column 'x': 1.0e300 is beyond the range"}},
      {"an unusual separator", "train {}/bars.csv --label-columns 1 --out {}/m", 3, {"is one cell", "commas, semicolons or tabs"}},
      {"a separator at the end of lines", "data convert {}/trailing.csv {}/turned", 3, {"--ignore-columns '' leaves it out"}},
      {"a folder as output", "train {}/data.npz --out {}/empty", 2, {"is a folder"}},
      {"a folder with a slash as output", "train {}/data.npz --out {}/empty/", 2, {"empty/: is a folder"}},
      {"a port by itself", "serve {}/model --port 1", 2, {"'--port'", "--listen HOST:PORT"}},
      {"an unknown shell", "completion tcsh", 2, {"SHELL takes one of bash, zsh, fish, not 'tcsh'"}},
      {"the input as output", "train {}/data.npz --out {}/data.npz", 2, {"is the input"}},
      {"output inside the input", "train {}/cohort --out {}/cohort/m", 2, {"lies inside the input"}},
      {"a model on standard output", "train {}/data.npz --out -", 2, {"a model cannot be written to standard output"}},
      {"a report over the history", "train {}/data.npz --out {}/m --report {}/m.history.json", 2,
       {"are the same file", "MODEL.history.json"}},
      {"a report over the checkpoint", "train {}/data.npz --out {}/m --report {}/m.checkpoint", 2, {"are the same file"}},
      {"a report over the model by another spelling", "train {}/data.npz --out new.html --report ./new.html", 2,
       {"are the same file"}},
      {"settings over which the history goes", "train {}/data.npz --out {}/m --config {}/m.history.json", 2,
       {"is the input"}},
      {"a device with checkpoints", "train {}/data.npz --out /dev/null --resume", 2, {"--resume has no effect"}},
      {"folds of other items", "train {}/strangers --folds {}/folds.npz --out {}/m", 4,
       {"folds.npz was made for other rows", "60 of its 60 ids, such as 'PAT_0000'"}},
      {"a fold that is not there", "train {}/data.npz --folds {}/folds.npz --fold 9 --out {}/m", 2,
       {"there is no fold 9", "it has 1"}},
      // tables
      {"ids without a usual header", "train {}/who --out {}/m", 3, {"'PAT_0000' is not a number", "--id-column"}},
      {"a text column", "train {}/text --out {}/m", 3, {"'fine' is not a number", "--ignore-columns 'comment'"}},
      {"an id twice", "train {}/twice --out {}/m", 3, {"rna.csv", "the id 'PAT_0003' occurs twice"}},
      {"a row too short", "train {}/short --out {}/m", 3, {"line 3 has 2 cells, the first line has 4"}},
      {"NA in some cells", "train {}/gaps --out {}/m", 3, {"'g2' has no value", "NA", "--empty mean"}},
      {"ids in one table only", "train {}/some --out {}/m", 3, {"has a column of ids", "has none"}},
      {"other ids in the labels", "train {}/others --out {}/m", 3, {"none of its", "ids occur in the other tables"}},
      {"genes as rows", "train {}/turned --out {}/m", 3, {"use --transpose"}},
      {"two things in a label", "train {}/codes --out {}/m", 3, {"--label-code pm1-unknown"}},
      {"a label of 7", "train {}/seven --out {}/m", 3, {"is 7"}},
      {"row numbers for ids", "train {}/numbered --out {}/m", 3, {"only numbers its", "60 rows", "2 rows", "--id-column '0'"}},
      {"a column twice", "train {}/columns --out {}/m", 3, {"columns 0 and 2 (from 0) are both called 'g1'"}},
      {"labels among the features", "train {}/leak --out {}/m", 3, {"'sick'", "--ignore-columns 'rna:sick'"}},
      {"ids under an unknown header", "train {}/hidden --out {}/m", 3, {"'nummer' looks like ids", "--id-column 'nummer'"}},
      {"neither yes nor no", "train {}/yess --out {}/m", 3, {"'yess' is neither yes nor no", "true, false"}},
      {"no labels", "train {}/cohort/rna.csv --out {}/m", 3, {"has no labels", "--label-columns", "--label-file"}},
      {"labels without ids", "train {}/cohort/rna.csv --label-file {}/order.csv --out {}/m", 3, {"order.csv: has no ids", "--ignore-columns 'id'"}},
      {"no line of names", "train {}/nameless --out {}/m", 3, {"'PAT_0001' is not a number", "--header no --id-column 0", "a line of names"}},
      {"a label in other letters", "train {}/letters --out {}/m", 3, {"'Sick' (as the label 'sick')", "'rna:Sick'"}},
      {"positives only", "train {}/yes --out {}/m", 3, {"nothing can be learned", "--blank-means no"}},
      {"no label known", "train {}/unknown --out {}/m", 3, {"nothing can be learned", "none has both"}},
      {"a column to ignore misspelt", "train {}/cohort --ignore-columns coment --out {}/m", 2, {"'coment'"}},
      {"a label column misspelt", "train {}/cohort/rna.csv --label-columns g9 --out {}/m", 2, {"there is no column 'g9'"}},
      {"a view of a folder misspelt", "train {}/cohort --views rma --out {}/m", 2, {"did you mean 'rna'"}},
      // model and data
      {"renamed columns", "predict {}/model {}/renamed --out {}/s.csv", 4, {"('g1')", "('gene1')", "1 of the model's 3"}},
      {"a column too few", "predict {}/model {}/fewer --out {}/s.csv", 4, {"missing: 1 of the model's 3 columns ('g3')"}},
      {"an unknown view", "predict {}/model {}/views --out {}/s.csv", 4, {"the model has no view 'dna'", "rna"}},
      {"a table of no known name", "predict {}/model {}/some.csv --out {}/s.csv", 4, {"--views NAME", "img, rna"}},
      {"tags for scores", "evaluate {}/tags.csv {}/data.npz", 3, {"contains the tags of each item", "without --top"}},
      {"scores of other items", "evaluate {}/few.csv {}/data.npz", 4, {"none of its 1 items ('nobody')"}},
  };
  return list;
}

class Mistakes : public testing::TestWithParam<Mistake> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    Random random(3, Purpose::test);
    std::string rna, img, labels, turned = "gene";
    constexpr int kRows = 60;
    for (int i = 0; i < kRows; ++i) {
      const bool sick = random.uniform() < .5, old = random.uniform() < .5;
      rna += fmt::format("PAT_{:04},{:.3f},{:.3f},{:.3f}\n", i, sick + .3 * random.uniform(), random.uniform(),
                         old + .2 * random.uniform());
      img += fmt::format("PAT_{:04},{:.3f},{:.3f}\n", i, random.uniform(), old + .3 * random.uniform());
      labels += fmt::format("PAT_{:04},{},{}\n", i, sick ? 1 : 0, old ? 1 : 0);
      turned += fmt::format(",PAT_{:04}", i);
    }
    const auto folder = [&](const std::string& name, const std::string& views, const std::string& truth) {
      put(name + "/rna.csv", views);
      put(name + "/labels.csv", truth);
    };
    const std::string header = "id,g1,g2,g3\n", plain = header + rna, good = "id,sick,old\n" + labels;
    folder("cohort", plain, good);
    put("cohort/img.csv", "id,s1,s2\n" + img);
    folder("who", "what,g1,g2,g3\n" + rna, "what,sick,old\n" + labels);
    folder("text", "id,g1,comment\nPAT_0000,1,fine\nPAT_0001,2,bad\n", good);
    folder("twice", plain + "PAT_0003,1,2,3\n", good);
    folder("short", header + "PAT_0000,1,2,3\nPAT_0001,4\n", good);
    folder("gaps", header + "PAT_0000,1,NA,3\nPAT_0001,4,5,6\n", good);
    folder("some", "weight,g1\n1,2\n3,4\n", "id,sick\nPAT_0000,1\nPAT_0001,0\n");
    folder("others", plain, replaced(good, "PAT_", "person "));
    std::string first = "g1", second = "g2";
    for (int i = 0; i < kRows; ++i) first += fmt::format(",{}", i), second += fmt::format(",{}", 2 * i);
    folder("turned", replaced(turned, "gene", "") + "\n" + first + "\n" + second + "\n", good);
    folder("codes", plain, "id,sick\nPAT_0000,-1\nPAT_0001,0\nPAT_0002,1\n");
    folder("seven", plain, "id,sick,old\nPAT_0000,7,1\nPAT_0001,0,1\n");
    folder("yes", plain, replaced(replaced(good, ",0", ","), "PAT_,", "PAT_0"));
    folder("unknown", plain, "id,sick\nPAT_0000,\nPAT_0001,\n");
    std::string numbered = ",g1\n";
    for (int i = 0; i < kRows; ++i) numbered += fmt::format("{},{}\n", i, i % 7);
    folder("numbered", numbered, ",sick\n0,1\n1,0\n");
    folder("columns", "id,g1,g2,g1\nPAT_0000,1,2,3\nPAT_0001,1,2,3\n", good);
    folder("leak", "id,g1,sick\nPAT_0000,1,1\nPAT_0001,2,0\n", good);
    folder("nameless", rna, good);
    folder("letters", "id,g1,Sick\nPAT_0000,1,1\nPAT_0001,2,0\n", good);
    put("order.csv", "sick\n1\n0\n");
    folder("hidden", "nummer,g1\n12,1\n10,2\n11,3\n", "id,sick\n10,1\n11,0\n12,1\n");
    folder("yess", plain, "id,sick\nPAT_0000,yes\nPAT_0001,no\nPAT_0002,yess\n");
    folder("strangers", replaced(plain, "PAT_", "person "), replaced(good, "PAT_", "person "));
    put("strangers/img.csv", "id,s1,s2\n" + replaced(img, "PAT_", "person "));
    put("m.history.json", "epochs = 3\n");
    put("empty/readme", "nothing");
    put("notes.doc", "nothing");
    put("some.csv", plain);
    put("few.csv", "id,sick,old\nnobody,.5,.5\n");
    put("tags.csv", "id,labels,scores\nPAT_0001,\"sick;old\",.9;.5\n");
    put("renamed/rna.csv", replaced(plain, "g1", "gene1"));
    put("fewer/rna.csv", "id,g1,g2\nPAT_0000,1,2\n");
    put("views/dna.csv", plain);
    write_dataset(read_dataset(path("cohort")), path("data.npz"));
    put("begun.checkpoint", "of a training");
    put("scored.csv", "id,sick,old\nPAT_0000,.5,.5\nPAT_0001,.5,nan\n");
    put("two.csv", "id,x,sick\na,1,1\nb,2,0\n");
    put("infinite.csv", "id,x,sick\na,1,1\nb,inf,0\n");
    put("huge.csv", "id,x,sick\na,1.0e300,1\nb,2,0\n");
    put("bars.csv", "id|x|sick\na|1|1\nb|2|0\n");
    put("trailing.csv", "id,x,y,\na,1,2,\nb,2,3,\n");
    put("cut.npz", read_text(path("data.npz")).substr(0, 600));
    ASSERT_EQ(run({"data", "mask", path("data.npz"), path("folds.npz"), "--repeats", "1"}).code, 0);
    const Ended ended = run({"train", path("cohort"), "--method", "prior", "--out", path("model")});
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static void put(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Mistakes::folder_ = nullptr;

TEST_P(Mistakes, GetHelpfulMessages) {
  std::vector<std::string> arguments(1);
  for (const char c : replaced(GetParam().command, "{}", path("."))) {
    if (c == ' ') {
      arguments.emplace_back();
    } else {
      arguments.back() += c;
    }
  }
  const Ended ended = run(arguments);
  EXPECT_EQ(ended.code, GetParam().code) << ended.err;
  for (const auto& words : GetParam().says)
    EXPECT_NE(ended.err.find(words), std::string::npos) << "expected: " << words << "\nsaid: " << ended.err;
  EXPECT_NE(ended.err.find("lacuna"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("lacuna: lacuna"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out, "");
}

// What is printed is part of the result.
TEST_F(Mistakes, AFullDiskBehindStandardOutputIsAFailure) {
  for (const std::string verb : {"methods", "--help", "--version", "metrics"}) {
    const std::string command = fmt::format("{} {} > /dev/full 2> {}", LACUNA_PROGRAM, verb, path("said"));
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << verb;
    EXPECT_NE(read_text(path("said")).find("standard output: writing failed: No space left"), std::string::npos) << verb;
  }
}

// Arrays that could be meant as well are named.
TEST_F(Mistakes, OneOfTwoLabelArraysIsNotTakenSilently) {
  std::vector<Array> arrays = read_npz(path("data.npz"));
  for (Array& array : arrays)
    if (array.name == "label") {
      Array other = array;
      other.name = "labels";
      arrays.push_back(std::move(other));
      break;
    }
  write_npz(path("both.npz"), arrays);
  const Ended ended = run({"data", "inspect", path("both.npz")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE((ended.out + ended.err).find("labels are taken from the array 'label'; 'labels' is ignored"), std::string::npos)
      << ended.out << ended.err;
}

std::string test_name(const testing::TestParamInfo<Mistake>& info) {
  std::string name;
  for (const char c : info.param.what) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Mistakes, testing::ValuesIn(mistakes()), test_name);

}  // namespace
}  // namespace lacuna
