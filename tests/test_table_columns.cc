// Columns of people's own tables: names that come twice, labels among the features, lists that are classes, files that
// nobody reads, and words that help where a cell or a name is not understood.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "checks.h"
#include "data/columns.h"
#include "data/labels.h"
#include "data/readers.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class TableColumns : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  Dataset read(const std::string& name, const ReadOptions& options = {}) const {
    return read_dataset(path(name), options);
  }
  std::string refused(const std::string& name, const ReadOptions& options = {},
                      Exit code = Exit::data) const {
    try {
      read_dataset(path(name), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "(no error)";
  }
  std::string said(const std::string& name, const ReadOptions& options = {}) const {
    std::string all;
    for (const auto& note : read(name, options).notes) all += note + "\n";
    return all;
  }
  TemporaryDirectory folder_;
};

// --- names that come twice ----------------------------------------------------------------------------------

TEST_F(TableColumns, OfOneNameAreRefused) {
  put("one.csv", "id,TP53,BRCA1,TP53\na,1,2,3\nb,4,5,6\n");
  std::string message = refused("one.csv");
  EXPECT_TRUE(has(message, "columns 0 and 2 (from 0) are both called 'TP53'")) << message;
  put("f/rna.csv", "id,TP53,BRCA1,TP53\na,1,2,3\nb,4,5,6\n");
  put("f/labels.csv", "id,sick\na,1\nb,0\n");
  message = refused("f");
  EXPECT_TRUE(has(message, "view 'rna'") && has(message, "'TP53'")) << message;
  ReadOptions options;
  options.ignore_columns = {"TP53"};  // all of that name
  EXPECT_EQ(read("f", options).views[0].column_names, Names{"BRCA1"});
  put("f/rna.csv", "gene,a,b\nTP53,1,2\nTP53,3,4\n");
  options = {};
  options.transpose = true;
  EXPECT_TRUE(has(refused("f", options), "both called 'TP53'"));
}

TEST_F(TableColumns, OfOneNameAreRefusedByModels) {
  Dataset data;
  data.name = "new";
  data.rows = 1;
  data.views.push_back({"rna", Table<float>(Matrix<float>(1, 3)), {"a", "b", "a"}, "float32"});
  const Columns model = Columns::fit(select_all(data));  // an old one: it learned from such columns
  try {
    model.match(data);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::mismatch);
    EXPECT_TRUE(has(error.what(), "columns 0 and 2 (from 0) are both called 'a'")) << error.what();
  }
}

// --- labels among the features ------------------------------------------------------------------------------

TEST_F(TableColumns, ThatAreLabelsAreNoFeatures) {
  put("x.csv", "id,g,sick,old\na,1.5,1,0\nb,2.5,0,1\nc,3,1,1\n");
  put("y.csv", "id,sick,old\na,1,0\nb,0,1\nc,1,1\n");
  ReadOptions options;
  options.label_file = path("y.csv");
  std::string message = refused("x.csv", options);
  for (const char* part : {"'sick', 'old'", "are labels also", "--ignore-columns 'sick,old'"})
    EXPECT_TRUE(has(message, part)) << message;
  options.ignore_columns = {"sick", "old"};
  Dataset data = read("x.csv", options);
  EXPECT_EQ(data.views[0].column_names, Names{"g"});
  EXPECT_EQ(data.label_names, (Names{"sick", "old"}));
  // In a folder the flag has to leave the labels themselves alone.
  put("f/rna.csv", "id,g,sick\na,1.5,1\nb,2.5,0\nc,3,1\n");
  put("f/labels.csv", "id,sick,old\na,1,0\nb,0,1\nc,1,1\n");
  message = refused("f");
  EXPECT_TRUE(has(message, "--ignore-columns 'rna:sick'")) << message;
  options = {};
  options.ignore_columns = {"rna:sick"};
  data = read("f", options);
  EXPECT_EQ(data.views[0].column_names, Names{"g"});
  EXPECT_EQ(data.label_names, (Names{"sick", "old"}));
  options.label_file = path("y.csv");
  EXPECT_TRUE(has(said("f", options), "labels.csv is ignored")) << said("f", options);
  EXPECT_EQ(read("f", options).views.size(), 1u);
  // Counts of a word that is a tag as well are features; it is said.
  put("f/rna.csv", "id,g,sick\na,1.5,3\nb,2.5,0\nc,3,1\n");
  EXPECT_TRUE(has(said("f"), "called like labels: 'sick'")) << said("f");
  // The column of classes itself.
  put("k/rna.csv", "id,g,kind\na,1.5,1\nb,2.5,2\nc,3,3\n");
  put("k/labels.csv", "id,kind\na,1\nb,2\nc,3\n");
  options = {};
  options.class_column = "kind";
  EXPECT_TRUE(has(refused("k", options), "--ignore-columns 'rna:kind'")) << refused("k", options);
  put("k/rna.csv", "id,g,Kind\na,1.5,1\nb,2.5,2\nc,3,3\n");
  EXPECT_TRUE(has(refused("k", options), "--ignore-columns 'rna:Kind'")) << refused("k", options);
}

TEST_F(TableColumns, ThatAreLabelsUpToCaseAreNoFeatures) {
  put("f/rna.csv", "id,g,er\na,1.5,1\nb,2.5,0\nc,3,1\n");
  put("f/labels.csv", "id,ER,old\na,1,0\nb,0,1\nc,1,1\n");
  const std::string message = refused("f");
  EXPECT_TRUE(has(message, "'er' (as the label 'ER')") && has(message, "--ignore-columns 'rna:er'"))
      << message;
  ReadOptions options;
  options.ignore_columns = {"rna:er"};
  EXPECT_EQ(read("f", options).views[0].column_names, Names{"g"});
  // A measurement of that name is none of two values: a warning will do.
  put("f/rna.csv", "id,g,er\na,1.5,1.1\nb,2.5,0.2\nc,3,.7\n");
  EXPECT_TRUE(has(said("f"), "called like labels: 'er' (as the label 'ER')")) << said("f");
}

// A copy of the labels under another name, as Y often is.
TEST_F(TableColumns, ThatHaveTheValuesOfLabelsAreWarnedOf) {
  const auto said_of = [&](std::size_t rows, std::size_t wrong, bool sparse) {
    std::string text = sparse ? "%%MatrixMarket matrix coordinate real general\n" : "";
    std::string entries, labels = "sick,old\n", cells = "g,answer\n";
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const bool sick = i % 3 == 0, copy = sick != (i == wrong);
      labels += fmt::format("{},{}\n", i == 7 ? "?" : sick ? "1" : "0", i % 2);
      cells += fmt::format("{},{}\n", i % 5, copy ? 1 : -1);
      for (int j = 0; j < 2; ++j)
        if (j == 0 || copy) entries += fmt::format("{} {} 1\n", i + 1, j + 1), ++count;
    }
    put("labels.csv", labels);
    ReadOptions options;
    options.label_file = path("labels.csv");
    if (!sparse) return (put("x.csv", cells), said("x.csv", options));
    put("x.mtx", text + fmt::format("{} 2 {}\n", rows, count) + entries);
    return said("x.mtx", options);
  };
  EXPECT_TRUE(has(said_of(60, 60, false), "values of labels: 'answer' (label 'sick');")) << said_of(60, 60, false);
  EXPECT_TRUE(has(said_of(60, 60, true), "values of labels: 1 (label 'sick');")) << said_of(60, 60, true);
  EXPECT_TRUE(has(said_of(60, 7, false), "'answer'"));  // there the label is unknown
  for (const bool sparse : {false, true}) {
    EXPECT_FALSE(has(said_of(60, 50, sparse), "values of labels"));
    EXPECT_FALSE(has(said_of(30, 30, sparse), "values of labels"));  // could be chance
  }
}

TEST_F(TableColumns, OfArraysWithSingleGapsAreRefusedWithAdvice) {
  Dataset data;
  data.rows = 2;
  Matrix<float> values(2, 2);
  values(1, 1) = std::numeric_limits<float>::quiet_NaN();
  data.views.push_back({"rna", std::move(values), {}, ""});
  try {
    data.check("x.npz");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::data);
    EXPECT_TRUE(has(error.what(), "row 1, column 1") && has(error.what(), "fill single gaps"))
        << error.what();
  }
}

TEST_F(TableColumns, WhoseNamesAreNumbersAreHintedAt) {
  put("one.csv", "7157,672,675\n1.5,2.5,3\n2.5,.5,1\n");
  EXPECT_TRUE(has(said("one.csv"), "(7157, 672, ...) is taken for a row") &&
              has(said("one.csv"), "--header yes"))
      << said("one.csv");
  for (const char* header : {"yes", "no"}) {
    ReadOptions options;
    options.header = header;
    EXPECT_FALSE(has(said("one.csv", options), "taken for a row")) << header;
  }
  put("one.csv", "3,2,1\n4,5,6\n1.5,1,2\n");
  EXPECT_FALSE(has(said("one.csv"), "taken for a row")) << said("one.csv");
}

TEST_F(TableColumns, OfThousandsWithPointsAreWarnedOf) {
  put("one.csv", "id;count;size\na;999;1,5\nb;1.002;2\nc;12.345;3\n");
  EXPECT_TRUE(has(refused("one.csv"), "decimal comma")) << refused("one.csv");
  put("one.csv", "id;count;size\na;999;1\nb;1.002;2\nc;NA;4\nd;12.345;3\n");
  ReadOptions options;
  options.empty = "zero";
  const std::string message = said("one.csv", options);
  for (const char* part : {"column 'count'", "'1.002' is read as 1.002", "(1002)"})
    EXPECT_TRUE(has(message, part)) << message;
  for (const char* plain : {"id;g;h\na;999;1\nb;1.002;2\nc;1.5;3\n",        // another length
                            "id;g;h\na;0.125;1\nb;1.002;2\nc;999;3\n",      // no thousands
                            "id;g;h\na;1.125;1\nb;1.002;2\nc;9.000;3\n",    // three digits everywhere
                            "id,g,h\na,999,1\nb,1.002,2\nc,12.345,3\n"}) {  // commas part cells
    put("one.csv", plain);
    EXPECT_FALSE(has(said("one.csv"), "thousands")) << plain << said("one.csv");
  }
}

TEST_F(TableColumns, OfThousandsWithCommasAreWarnedOf) {
  const std::string rows = "id\tcount\tsize\na\t999\t1\nb\t1,002\t2\nc\t-12,345\t3\n";
  std::string semicolons = rows;
  std::ranges::replace(semicolons, '\t', ';');
  put("one.tsv", rows);
  put("one.csv", semicolons);
  for (const char* name : {"one.tsv", "one.csv"})
    for (const char* part : {"column 'count'", "'1,002' is read as 1.002, with a decimal comma", "(1002)"})
      EXPECT_TRUE(has(said(name), part)) << said(name);
  for (const char* plain : {"id\tg\na\t999\nb\t1,002\nc\t1,5\n", "id\tg\na\t9,999\nb\t1,002\nc\t0,512\n",
                            "id\tg\na\t999\nb\t1.002\nc\t12.345\n"}) {  // points are usual there
    put("one.tsv", plain);
    EXPECT_FALSE(has(said("one.tsv"), "thousands")) << plain << said("one.tsv");
  }
}

TEST_F(TableColumns, OfMoreDigitsThanFloatsHoldAreWarnedOf) {
  put("one.csv", "id,g,time\na,1.5,1700000000.5\nb,2.5,1700000001.5\n");
  EXPECT_TRUE(has(said("one.csv"), "column 'time': '1700000000.5' is read as 1700000000, because")) << said("one.csv");
  put("one.csv", "id,g,time\na,1.5,20231101.0\nb,2.5,1\n");  // as pandas writes whole numbers beside gaps
  EXPECT_TRUE(has(said("one.csv"), "'20231101.0' is read as 20231100")) << said("one.csv");
  put("one.csv", "id,g,h,k\na,16777218.0,1.23456789e20,0.123456789\nb,2.5,1,2\n");
  EXPECT_FALSE(has(said("one.csv"), "is read as")) << said("one.csv");
}

TEST_F(TableColumns, LabelsThatDifferInCaseAreWarnedOf) {
  put("one.csv", "id,g,ER,er\na,1,1,0\nb,2,0,1\n");
  ReadOptions options;
  options.label_columns = {"ER", "er"};
  EXPECT_TRUE(has(said("one.csv", options), "'ER' and 'er' differ only in case")) << said("one.csv", options);
}

// --- lists and classes --------------------------------------------------------------------------------------

TEST_F(TableColumns, OfClassesAreNotSplit) {
  put("f/rna.csv", "id,g\na,1\nb,2\nc,3\n");
  put("f/labels.csv", "id,type\na,\"Ductal, NOS\"\nb,Lobular;mixed\nc,\"Ductal, NOS\"\n");
  ReadOptions options;
  options.class_column = "type";
  EXPECT_EQ(read("f", options).label_names, (Names{"Ductal, NOS", "Lobular;mixed"}));
  EXPECT_TRUE(has(said("f", options), "--tags-column")) << said("f", options);
  put("one.csv", "id,g,type\na,1,\"Ductal, NOS\"\nb,2,Lobular\n");
  EXPECT_EQ(read("one.csv", options).label_names, (Names{"Ductal, NOS", "Lobular"}));
  // Beside a table: --class-column speaks of the file of labels.
  put("x.csv", "id,g\na,1\nb,2\nc,3\n");
  options.label_file = path("f/labels.csv");
  EXPECT_EQ(read("x.csv", options).label_names, (Names{"Ductal, NOS", "Lobular;mixed"}));
}

TEST_F(TableColumns, OfClassesMayBeUnknown) {
  put("one.csv", "id,g,type\na,1,x\nb,2,NA\nc,3,y\nd,4,\ne,5,?\n");
  ReadOptions options;
  options.class_column = "type";
  const Dataset data = read("one.csv", options);
  EXPECT_EQ(data.label_names, (Names{"x", "y"}));
  for (const std::size_t i : {1, 3, 4}) EXPECT_EQ(data.labels(i, 0), kUnknown) << i;
  EXPECT_TRUE(has(said("one.csv", options), "2 of the 5 classes are 'NA' or the like and count as unknown"))
      << said("one.csv", options);
  put("tags.csv", "id,g,tags\na,1,sun;sea\nb,2,None\n");
  options = {};
  options.tags_column = "tags";
  EXPECT_TRUE(has(said("tags.csv", options), "1 of the 2 lists are 'None'")) << said("tags.csv", options);
}

TEST_F(TableColumns, OfListsSayHowManyAreBlank) {
  put("f/rna.csv", "id,g\na,1\nb,2\nc,3\nd,4\n");
  put("f/labels.csv", "id,tags\na,sun;sea\nb,\nc,sea\nd,\n");
  EXPECT_TRUE(has(said("f"), "2 of the 4 lists in the column 'tags' are blank and count as unknown") &&
              has(said("f"), "--blank-means no"))
      << said("f");
  EXPECT_EQ(read("f").labels(1, 0), kUnknown);
  ReadOptions options;
  for (const char* blanks : {"no", "unknown"}) {
    options.blank_means = blanks;
    EXPECT_FALSE(has(said("f", options), "are blank")) << said("f", options);
  }
  put("f/labels.csv", "id,tags\na,sun;sea\nb,NA\nc,sea\nd,sun\n");
  EXPECT_FALSE(has(said("f"), "blank")) << said("f");
}

TEST_F(TableColumns, OfListsWithTwoSeparatorsAreWarnedOf) {
  put("f/rna.csv", "id,g\na,1\nb,2\nc,3\n");
  put("f/labels.csv", "id,tags\na,ER;Grade III\nb,ER|Grade III\nc,ER\n");
  EXPECT_TRUE(has(said("f"), "3 labels, among them 'ER|Grade III': is '|' a separator too?")) << said("f");
  put("f/labels.csv", "id,tags\na,ER;Grade III\nb,\"ER, Grade III\"\nc,ER\n");
  EXPECT_TRUE(has(said("f"), "is ',' a separator too?")) << said("f");
  put("f/labels.csv", "id,tags\na,ER;Grade III\nb,\"Ductal, NOS\"\nc,ER\n");
  EXPECT_FALSE(has(said("f"), "a separator too")) << said("f");
}

TEST_F(TableColumns, OfListsHaveOneSeparatorWhichIsSaid) {
  put("f/rna.csv", "id,g\na,1\nb,2\nc,3\n");
  put("f/labels.csv", "id,tags\na,\"beach, sandy;sun\"\nb,\"dune, grey\"\nc,sun\n");
  EXPECT_EQ(read("f").label_names, (Names{"beach, sandy", "sun", "dune, grey"}));
  EXPECT_TRUE(has(said("f"), "the column 'tags' contains lists of tags, separated by ';': 3 labels"))
      << said("f");
  EXPECT_TRUE(has(said("f"), "--class-column")) << said("f");
  put("f/labels.csv", "id,tags\na,\"Ductal, NOS\"\nb,Lobular\nc,\n");
  EXPECT_TRUE(has(said("f"), "separated by ','")) << said("f");
  put("f/labels.csv", "id,tags\na,\"['sun', 'sea']\"\nb,[]\nc,\"['sea']\"\n");
  EXPECT_EQ(read("f").label_names, (Names{"sun", "sea"}));
  EXPECT_TRUE(has(said("f"), "in brackets")) << said("f");
  put("f/labels.csv", "id,tags\na,(unknown)\nb,sun\nc,sea\n");
  EXPECT_EQ(read("f").label_names, (Names{"(unknown)", "sun", "sea"}));
  EXPECT_TRUE(has(said("f"), "one tag per row: 3 labels")) << said("f");
  EXPECT_EQ(tag_separator({"a,b", "c|d", "e"}), '|');
  EXPECT_EQ(tag_separator({"a", "NA", ""}), 0);
}

// --- files and cells ----------------------------------------------------------------------------------------

TEST_F(TableColumns, FilesThatAreNotReadAreNamed) {
  put("f/rna.csv", "id,g\na,1\nb,2\n");
  put("f/labels.csv", "id,sick\na,1\nb,0\n");
  EXPECT_FALSE(has(said("f"), "not read"));
  put("f/protein.xlsx", "PK");
  put("f/methylation.txt", "id\tc\na\t1\n");
  put("f/old/rna.csv", "id,g\na,1\n");
  put("f/.hidden", "");
  EXPECT_TRUE(has(said("f"), "not read: methylation.txt, old/, protein.xlsx;")) << said("f");
  put("g/protein.xlsx", "PK");
  EXPECT_TRUE(has(refused("g"), "it has protein.xlsx")) << refused("g");
}

TEST_F(TableColumns, OfYesAndNoSayWhatTheyUnderstand) {
  put("one.csv", "id,g,sick\na,1,yes\nb,2,no\nc,3,yess\n");
  const std::string message = refused("one.csv");
  for (const char* part : {"line 4, column 'sick': 'yess' is neither yes nor no", "true, false", "NA"})
    EXPECT_TRUE(has(message, part)) << message;
}

TEST_F(TableColumns, ExcelsFirstLineNamesTheSeparator) {
  for (const char* first : {"sep=,\n", "sep=,\r\n", "\"sep=,\"\n", "\xEF\xBB\xBFsep=,\r\n"}) {
    put("one.csv", std::string(first) + "id,a;b,c\nx,1,2\ny,3,4\n");
    const Dataset data = read("one.csv");
    EXPECT_EQ(data.ids, (Names{"x", "y"})) << first;
    EXPECT_EQ(data.views[0].column_names, (Names{"a;b", "c"})) << first;
  }
  put("one.csv", "sep=\t\nid\ta\nx\t1\n");
  EXPECT_EQ(read("one.csv").ids, Names{"x"});
  put("one.csv", "sep=;\nid;a\nx;1\ny;what\n");
  EXPECT_TRUE(has(refused("one.csv"), "line 4")) << refused("one.csv");  // as an editor counts
}

TEST_F(TableColumns, OfTurnedAndUprightTablesGetAdviceThatWorks) {
  put("f/rna.csv", "gene,p1,p2,p3\nTP53,1,2,3\nBRCA1,4,5,6\n");
  put("f/img.csv", "id,s\np1,1\np2,2\np3,3\n");
  put("f/labels.csv", "id,sick\np1,1\np2,0\np3,1\n");
  std::string message = refused("f");
  EXPECT_TRUE(has(message, "rna.csv: the items are its columns") &&
              has(message, "--transpose, which transposes every view, does not help") &&
              has(message, "dataset.toml"))
      << message;
  ReadOptions options;
  options.transpose = true;
  message = refused("f", options);
  EXPECT_TRUE(
      has(message, "img.csv: --transpose transposes every view, but in this one the items are already rows"))
      << message;
  // The advice, taken.
  put("f/dataset.toml",
      "[[views]]\nname = \"rna\"\nfile = \"rna.csv\"\ntranspose = true\n[[views]]\nname = \"img\"\nfile = "
      "\"img.csv\"\n"
      "[labels]\nfile = \"labels.csv\"\n");
  EXPECT_EQ(read("f").rows, 3u);
}

TEST_F(TableColumns, ViewsThatDifferInCaseGetAHint) {
  Dataset data;
  data.name = "new";
  data.rows = 1;
  data.views.push_back({"rna", Table<float>(Matrix<float>(1, 1)), {"a"}, "float32"});
  const Columns model = Columns::fit(select_all(data));
  data.views[0].name = "RNA";
  try {
    model.match(data);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "did you mean 'rna'? Names are case-sensitive"))
        << error.what();
  }
}

TEST_F(TableColumns, NoLabelsSayHowToNameThem) {
  std::string text = "id,g\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("p{},{}\n", i, i % 7);
  put("f/rna.csv", text);
  const Ended ended = run({"train", path("f"), "--method", "prior", "--out", path("m")});
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(has(ended.err, "--label-columns") && has(ended.err, "--label-file")) << ended.err;
}

}  // namespace
}  // namespace lacuna
