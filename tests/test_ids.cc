// Which rows of people's own tables belong together: row numbers that are no ids, ids that are no features, ids that are
// written in two ways. Joined wrongly, every one of these would give a wrong answer without a word.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "checks.h"
#include "data/id_columns.h"
#include "data/ids.h"
#include "data/readers.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class Ids : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
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
  static std::string notes(const Dataset& data) {
    std::string all;
    for (const auto& note : data.notes) all += note + "\n";
    return all;
  }
  static float value(const Dataset& data, const std::string& view, std::size_t i, std::size_t j) {
    const View& from = data.views[data.view_index(view)];
    std::vector<float> row(from.columns());
    from.copy_row(i, row);
    return row[j];
  }
  TemporaryDirectory folder_;
};

TEST_F(Ids, HeadersAreRead) {
  for (const char* name :
       {"id", "ID", "sample", "Sample_ID", "sampleID", "ID_REF", "bcr_patient_barcode", "geo_accession",
        "Proben-Nr", "patient no", "study_id", "tumor_sample_barcode", "sampleid", "Patienten-ID"})
    EXPECT_TRUE(is_sure_id_name(name) && is_id_name(name)) << name;
  for (const char* name : {"SKU", "EAN", "Artikel-Nr", "Kunden-Nr.", "product_id", "customer number"})
    EXPECT_TRUE(is_sure_id_name(name) && is_id_name(name)) << name;
  for (const char* name : {"", "Unnamed: 0", "index", "gene", "samples", "Image file", "sample name"})
    EXPECT_TRUE(is_id_name(name) && !is_sure_id_name(name)) << name;
  for (const char* name : {"age", "steroid", "amino acid", "fluid", "cell count", "number of cells",
                           "patient age", "x", "cell number", "avoid", "g1", "#"})
    EXPECT_FALSE(is_id_name(name)) << name;
  for (const char* name : {"customer age", "number of products", "skull", "product price"})
    EXPECT_FALSE(is_id_name(name)) << name;
  for (const char* name : {"", "index", "Unnamed: 0", "Unnamed: 0.1", "X", "...1", "row"})
    EXPECT_TRUE(is_row_number_name(name)) << name;
  for (const char* name : {"id", "sample", "x", "g1", "#"}) EXPECT_FALSE(is_row_number_name(name)) << name;
  EXPECT_EQ(meaning_of_id("bcr_patient_barcode"), "patient");
  EXPECT_EQ(meaning_of_id("patient"), "patient");
  EXPECT_EQ(meaning_of_id("geo_accession"), "");
  EXPECT_EQ(meaning_of_id("study_id"), "study");
}

// --- row numbers --------------------------------------------------------------------------------------------

TEST_F(Ids, RowNumbersBesideANamedColumnAreNeitherIdsNorFeatures) {
  for (const char* header : {"", "index", "Unnamed: 0", "row", "X"}) {
    // Other orders and lengths: joined by number, p3 would get the values of p1.
    put("f/rna.csv", fmt::format("{},sample,g\n0,p3,30\n1,p1,10\n2,p2,20\n", header));
    put("f/labels.csv", fmt::format("{},sample,sick\n0,p1,0\n1,p2,0\n2,p3,1\n3,p4,1\n", header));
    const Dataset data = read("f");
    ASSERT_EQ(data.rows, 4u) << header;
    ASSERT_EQ(data.views[0].column_names, (std::vector<std::string>{"g"})) << header;
    EXPECT_EQ(data.label_names, (std::vector<std::string>{"sick"})) << header;
    EXPECT_EQ(data.ids[0], "p3");
    EXPECT_EQ(value(data, "rna", 0, 0), 30.f);
    EXPECT_EQ(data.labels(0, 0), 1);
    EXPECT_TRUE(has(notes(data), "only numbers the rows and is left out")) << notes(data);
  }
  // R's short header, counting from 1.
  put("r/rna.csv", "sample,g\n1,p3,30\n2,p1,10\n");
  put("r/labels.csv", "sample,sick\np1,0\np3,1\n");
  const Dataset data = read("r");
  EXPECT_EQ(data.rows, 2u);
  EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"g"}));
  // What is left of them when rows were taken out.
  put("c/rna.csv", ",sample,g\n4,p3,30\n7,p1,10\n");
  EXPECT_EQ(read("c/rna.csv").ids, (std::vector<std::string>{"p3", "p1"}));
}

TEST_F(Ids, RowNumbersAloneJoinTablesOfOneLengthOnly) {
  put("f/rna.csv", ",g\n0,30\n1,10\n2,20\n");
  put("f/labels.csv", ",sick\n0,0\n1,0\n2,1\n");
  EXPECT_TRUE(has(notes(read("f")), "no table has ids, only row numbers"));
  put("f/labels.csv", ",sick\n0,0\n1,0\n2,1\n3,1\n");
  std::string message = refused("f");
  for (const char* part :
       {"labels.csv", "rna.csv", "3 rows", "4 rows", "--id-column '0'", "write a column of ids"})
    EXPECT_TRUE(has(message, part)) << message;
  ReadOptions insist;
  insist.id_column = "0";
  EXPECT_EQ(read("f", insist).rows, 4u);
  // Ids here and numbers there are not the same thing, however well they fit.
  put("f/labels.csv", "id,sick\n2,0\n0,0\n1,1\n");
  message = refused("f");
  EXPECT_TRUE(has(message, "with ids ('id')") && has(message, "rna.csv (unnamed first column) only numbers"))
      << message;
  put("f/labels.csv", "sick\n0\n0\n1\n");
  EXPECT_TRUE(has(refused("f"), "labels.csv has none"));
}

TEST_F(Ids, RowNumbersOfTheHeaderOfATurnedTableAreRowNumbers) {
  put("f/rna.csv", ",0,1,2\ng1,1,2,3\ng2,4,5,6\n");
  put("f/labels.csv", "id,sick\n2,1\n1,0\n0,0\n");
  ReadOptions options;
  options.transpose = true;
  EXPECT_TRUE(has(refused("f", options), "only numbers its 3 rows")) << refused("f", options);
}

TEST_F(Ids, RowNumbersDoNotJoinLabelsInAFileOfTheirOwn) {
  put("x.csv", ",a\n0,5\n1,6\n2,7\n");
  put("y.csv", ",sick\n0,1\n1,0\n");
  ReadOptions options;
  options.label_file = path("y.csv");
  EXPECT_TRUE(has(refused("x.csv", options), "2 rows of labels")) << refused("x.csv", options);
  put("y.csv", "id,sick\n0,1\n1,0\n2,1\n");
  EXPECT_TRUE(has(refused("x.csv", options), "ids of the table only number the rows"));
  options.id_column = "0";
  EXPECT_EQ(read("x.csv", options).labels(2, 0), 1);
}

TEST_F(Ids, ColumnsWithoutANameAreIgnoredByNameOrNumber) {
  put("f/rna.csv", ",g,note\n0,30,a\n1,10,b\n2,20,c\n");
  put("f/labels.csv", "sick\n0\n0\n1\n");
  for (const char* column : {"", "0"}) {
    const Ended ended =
        run({"data", "inspect", path("f/rna.csv"), "--ignore-columns", column, "--ignore-columns", "note"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_FALSE(has(ended.err, "contains ids")) << ended.err;
  }
  const Ended ended = run({"data", "inspect", path("f"), "--ignore-columns", "", "--ignore-columns", "note"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "joined by position")) << ended.err;
}

TEST_F(Ids, RowNumbersFromZeroAndFromOneAreTheSameRows) {
  put("f/rna.csv", ",g\n0,30\n1,10\n2,20\n");    // pandas
  put("f/labels.csv", "sick\n1,1\n2,0\n3,0\n");  // R
  const Dataset data = read("f");
  ASSERT_EQ(data.rows, 3u);
  EXPECT_EQ(data.labels(0, 0), 1);
  EXPECT_EQ(value(data, "rna", 0, 0), 30.f);
  ReadOptions options;
  options.label_file = path("f/labels.csv");
  EXPECT_EQ(read("f/rna.csv", options).labels(0, 0), 1);
}

TEST_F(Ids, RowNumbersDoNotJoinTheFilesOfADatasetToml) {
  put("f/a.csv", ",g\n0,30\n1,10\n2,20\n");
  put("f/b.csv", ",sick\n0,1\n1,0\n");
  const auto describe = [&](const std::string& more) {
    put("f/dataset.toml",
        "[[views]]\nname = \"rna\"\nfile = \"a.csv\"\n" + more + "[labels]\nfile = \"b.csv\"\n" + more);
  };
  describe("");
  EXPECT_TRUE(has(refused("f"), "only numbers its 3 rows")) << refused("f");
  describe("id_column = \"0\"\n");
  EXPECT_EQ(read("f").rows, 3u);
}

TEST_F(Ids, RowNumbersOfScoresAreWarnedOf) {
  put("s.csv", "id,sick\n0,.5\n1,.2\n");
  put("t.csv", ",g,sick\n0,1,1\n1,2,0\n2,3,0\n");
  const Ended ended = run({"evaluate", path("s.csv"), path("t.csv"), "--label-columns", "1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "only row numbers as ids (2 scored, 3 in the data)")) << ended.err;
}

// --- ids among the features ---------------------------------------------------------------------------------

TEST_F(Ids, AreFoundAtAnyPosition) {
  for (const char* header : {"sample", "bcr_patient_barcode", "ID_REF", "Proben-Nr", "geo_accession"}) {
    put("f/rna.csv", fmt::format("g,h,{}\n30,1,3\n10,2,1\n20,2,2\n", header));
    put("f/labels.csv", fmt::format("sick,{}\n0,1\n0,2\n1,3\n", header));
    const Dataset data = read("f");
    EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"g", "h"})) << header;
    EXPECT_EQ(data.label_names, (std::vector<std::string>{"sick"})) << header;
    EXPECT_EQ(data.ids[0], "3") << header;
    EXPECT_EQ(value(data, "rna", 0, 0), 30.f) << header;
    EXPECT_EQ(data.labels(0, 0), 1) << header;
    EXPECT_TRUE(has(notes(data), fmt::format("rna.csv '{}' 3 of 3", header))) << notes(data);
  }
  // A text column that is called like a gene holds names only if it holds texts.
  put("one.csv", "g,protein\n1,5\n2,6\n3,7\n");
  EXPECT_EQ(read("one.csv").views[0].columns(), 2u);
}

TEST_F(Ids, TwoColumnsThatCouldHoldThemAreRefused) {
  put("one.csv", "sample,patient,g\ns1,p1,1\ns2,p2,2\n");
  const std::string message = refused("one.csv");
  for (const char* part : {"'sample'", "'patient'", "--id-column", "--ignore-columns"})
    EXPECT_TRUE(has(message, part)) << message;
  ReadOptions options;
  options.id_column = "patient";
  EXPECT_TRUE(has(refused("one.csv", options), "--ignore-columns 'sample'")) << refused("one.csv", options);
  options.ignore_columns = {"sample"};
  EXPECT_EQ(read("one.csv", options).ids[1], "p2");
  // Numbers that repeat are no ids: a feature, but said.
  std::string text = "sample,patient,g\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("s{},{},{}\n", i, i / 2, i % 7);
  put("one.csv", text);
  const Dataset data = read("one.csv");
  EXPECT_EQ(data.views[0].columns(), 2u);
  EXPECT_TRUE(has(notes(data), "'patient' has a name for ids")) << notes(data);
}

TEST_F(Ids, UnderAnUnknownHeaderAreRefusedWhereAnotherTableHasThem) {
  put("f/rna.csv", "Kennung,g\n103,30\n101,10\n102,20\n");
  put("f/labels.csv", "id,sick\n101,0\n102,0\n103,1\n");
  const std::string message = refused("f");
  for (const char* part :
       {"'Kennung'", "3 of them are ids of labels.csv", "--id-column 'Kennung'", "--ignore-columns"})
    EXPECT_TRUE(has(message, part)) << message;
  ReadOptions options;
  options.id_column = "Kennung";  // labels.csv has an id as usual
  const Dataset data = read("f", options);
  EXPECT_EQ(data.ids[0], "103");
  EXPECT_EQ(data.labels(0, 0), 1);
  options.id_column = "Kenung";
  EXPECT_TRUE(has(refused("f", options, Exit::usage), "no table has a column 'Kenung'"));
  // In no table a header that is known: joined by order, rows of one person would meet those of another.
  put("g/rna.csv", "Kennung,g\n103,30\n101,10\n102,20\n");
  put("g/img.csv", "Kennung,s\n101,1\n102,2\n103,3\n");
  EXPECT_TRUE(has(refused("g"), "in the column of that name of")) << refused("g");
}

TEST_F(Ids, AmongTheLabelsAreNamed) {
  put("f/rna.csv", "Kennung,g\n103,30\n101,10\n");
  put("f/labels.csv", "Kennung,sick\n101,0\n102,0\n");
  EXPECT_TRUE(has(refused("f"), "label 'Kennung' of row 0 is 101") &&
              has(refused("f"), "--id-column 'Kennung'"))
      << refused("f");
}

TEST_F(Ids, RunningNumbersAreWarnedOf) {
  std::string text = "weight,visit,nr\n", plain = "weight,count\n";
  for (int i = 0; i < 30; ++i) {
    text += fmt::format("{},{},{}\n", i % 7, i % 3, 500 + (i * 7) % 30);
    plain += fmt::format("{},{}\n", i * 2, i % 29);
  }
  put("one.csv", text);
  const std::string said = notes(read("one.csv"));
  EXPECT_TRUE(has(said, "'nr' looks like a running number") && has(said, "--ignore-columns 'nr'")) << said;
  put("plain.csv", plain);
  EXPECT_FALSE(has(notes(read("plain.csv")), "running number")) << notes(read("plain.csv"));
}

TEST_F(Ids, ThatFloatsCannotHoldAreToldFromNumbers) {
  put("one.csv", "Kennung,g\n123456789,1\n123456790,2\n");
  EXPECT_TRUE(has(refused("one.csv"), "--id-column 'Kennung'")) << refused("one.csv");
}

// --- ids that are written in two ways -----------------------------------------------------------------------

// `matching` of 100 ids of the labels are those of the view.
class Overlap : public Ids {
 protected:
  void cohort(const std::string& name, int matching, const char* otherwise) const {
    Random random(5, Purpose::test);
    std::string rna = "id,g,h\n", labels = "id,sick,old\n";
    for (int i = 0; i < 100; ++i) {
      const bool sick = random.uniform() < .5;
      rna += fmt::format("PAT_{:03},{:.3f},{:.3f}\n", i, sick + random.uniform(), random.uniform());
      const std::string id =
          i < matching ? fmt::format("PAT_{:03}", i) : fmt::format(fmt::runtime(otherwise), i);
      labels += fmt::format("{},{},{}\n", id, sick ? 1 : 0, i % 2);
    }
    put(name + "/rna.csv", rna);
    put(name + "/labels.csv", labels);
  }
};

TEST_F(Overlap, IsReportedByEveryVerb) {
  cohort("good", 100, "");
  cohort("bad", 12, "PAT-{:03}");
  const std::vector<std::string> train = {"--method", "prior", "--out", path("m")};
  Ended ended = run({"train", path("good"), "--method", "prior", "--out", path("m")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "joined by id: rna.csv 'id' 100 of 100, labels.csv 'id' 100 of 100"))
      << ended.err;
  EXPECT_FALSE(has(ended.err, "warning: 88")) << ended.err;
  for (const auto& command :
       {std::vector<std::string>{"train", path("bad"), "--method", "prior", "--out", path("m2")},
        {"predict", path("m"), path("bad"), "--out", path("s.csv")},
        {"data", "inspect", path("bad")}}) {
    ended = run(command);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(has(ended.err, "rna.csv 'id' 12 of 100")) << ended.err;
    EXPECT_TRUE(has(ended.err, "warning: 88 of the 100 ids of labels.csv occur in no other table"))
        << ended.err;
    EXPECT_TRUE(has(ended.err, "is 'PAT-012' the same as 'PAT_012'?")) << ended.err;
    EXPECT_TRUE(has(ended.err, "88 pairs of ids may be one item")) << ended.err;
  }
  ended = run({"predict", path("m"), path("good"), "--out", path("s.csv")});
  ended = run({"evaluate", path("s.csv"), path("bad")});
  EXPECT_TRUE(has(ended.err, "88 of the 100 ids of labels.csv")) << ended.err;
}

TEST_F(Overlap, OfScoresAndTruthIsTold) {
  cohort("good", 100, "");
  ASSERT_EQ(run({"train", path("good"), "--method", "prior", "--out", path("m")}).code, 0);
  ASSERT_EQ(run({"predict", path("m"), path("good"), "--out", path("s.csv")}).code, 0);
  std::string truth = "id,sick,old\n";
  for (int i = 0; i < 100; ++i)
    truth += fmt::format("{}{:03},{},{}\n", i < 20 ? "PAT_" : "pat ", i, i % 3 == 0, i % 2);
  put("truth.csv", truth);
  const Ended ended = run({"evaluate", path("s.csv"), path("truth.csv"), "--label-columns", "2"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(
      has(ended.err, "warning: few items are joined by id: 20 of 100 scored items, of 100 in the data"))
      << ended.err;
  EXPECT_TRUE(has(ended.err, "is 'PAT_020' the same as 'pat 020'?")) << ended.err;
}

TEST_F(Overlap, OfNumbersThatAreWrittenInTwoWaysIsExplained) {
  std::string rna = "id,g\n", labels = "id,sick\n";
  for (int i = 1; i < 31; ++i) {
    rna += fmt::format("{}.0,{}\n", i, i % 5);
    labels += fmt::format("{},{}\n", i, i % 2);
  }
  put("f/rna.csv", rna);
  put("f/labels.csv", labels);
  const std::string message = refused("f");
  EXPECT_TRUE(has(message, "'1.0' and '1' are the same number")) << message;
}

TEST_F(Overlap, APartnerIsAnIdThatHasNone) {
  std::string rna = "id,g\n", labels = "id,sick\n";
  for (int i = 0; i < 100; ++i) {
    rna += fmt::format("S{},{}\n", i, i % 5);
    labels += fmt::format("{}{},{}\n", i < 4 ? "S" : "T", i, i % 2);
  }
  put("f/rna.csv", rna);
  put("f/labels.csv", labels);
  const std::string message = refused("f");
  EXPECT_TRUE(has(message, "only 4 of its 100 ids")) << message;
  EXPECT_FALSE(has(message, "the same as 'S")) << message;
}

TEST_F(Overlap, OfLabelsInAFileOfTheirOwnIsTold) {
  cohort("bad", 12, "PAT-{:03}");
  ReadOptions options;
  options.label_file = path("bad/labels.csv");
  const std::string said = notes(read("bad/rna.csv", options));
  EXPECT_TRUE(has(said, "warning: only 12 of 100 rows have labels") &&
              has(said, "is 'PAT_012' the same as 'PAT-012'?"))
      << said;
}

TEST_F(Overlap, OfATenthOfTheLabelsInAFileOfTheirOwnIsRefused) {
  cohort("bad", 9, "PAT-{:03}");
  ReadOptions options;
  options.label_file = path("bad/labels.csv");
  const std::string message = refused("bad/rna.csv", options);
  EXPECT_TRUE(has(message, "only 9 of its 100 ids") && has(message, "is 'PAT_009' the same as 'PAT-009'?"))
      << message;
}

TEST_F(Ids, OfTheTableAloneDoNotJoinLabelsInAFileOfTheirOwn) {
  put("x.csv", "patient,g\np1,1\np2,2\np3,3\n");
  put("y.csv", "sick\n1\n0\n1\n");  // of p3, p2, p1?
  ReadOptions options;
  options.label_file = path("y.csv");
  const std::string message = refused("x.csv", options);
  EXPECT_TRUE(has(message, "has no ids and the table has ('p1', ...)") &&
              has(message, "--ignore-columns 'patient'"))
      << message;
  options.ignore_columns = {"patient"};  // as advised
  const Dataset data = read("x.csv", options);
  EXPECT_EQ(data.labels(1, 0), 0);
  EXPECT_TRUE(has(notes(data), "joined by position")) << notes(data);
  // Neither has ids.
  put("x.csv", "g,h\n1,7\n2,7\n3,7\n");
  options.ignore_columns.clear();
  EXPECT_EQ(read("x.csv", options).labels(2, 0), 1);
  put("y.csv", "sick\n1\n0\n");
  EXPECT_TRUE(has(refused("x.csv", options), "2 rows of labels, the views have 3") &&
              has(refused("x.csv", options), "write a column of ids into both"))
      << refused("x.csv", options);
}

TEST_F(Ids, OfTwoNamesAreJoinedByTheirValuesWhichIsSaid) {
  put("x.csv", "patient,g\np1,1\np2,2\n");
  put("y.csv", "sample,sick\np2,1\np1,0\n");
  ReadOptions options;
  options.label_file = path("y.csv");
  const Dataset data = read("x.csv", options);
  EXPECT_EQ(data.labels(1, 0), 1);
  EXPECT_TRUE(has(notes(data), "its ids 'patient' and 'sample' of " + path("y.csv"))) << notes(data);
  put("y.csv", "patient,sick\np2,1\np1,0\n");
  EXPECT_FALSE(has(notes(read("x.csv", options)), "compared by their values"));
}

TEST_F(Ids, OfSamplesFindThePatientTheyOpenWith) {
  const std::vector<std::string> patients = {"TCGA-AA-0001", "TCGA-AA-0061", "TCGA-AA", "TCGA-AA-0062"};
  EXPECT_EQ(likely_partner("TCGA-AA-0061-01A", patients),
            " (is 'TCGA-AA-0061-01A' the same as 'TCGA-AA-0061'?)");
  EXPECT_EQ(likely_partner("TCGA-AA-0062", {"TCGA-AA-0063-01A", "TCGA-AA-0062-01A"}),
            " (is 'TCGA-AA-0062' the same as 'TCGA-AA-0062-01A'?)");
  // patient1 does not open patient12x: no separator stands behind it.
  EXPECT_EQ(likely_partner("patient12x", {"patient1", "patient12y"}),
            " (is 'patient12x' the same as 'patient12y'?)");
}

TEST_F(Ids, ThatSayNothingAreWarnedOf) {
  put("one.csv", "id,g\na,1\nNA,2\nb,3\n");
  EXPECT_TRUE(has(notes(read("one.csv")), "row 1 (from 0) has the id 'NA'")) << notes(read("one.csv"));
  put("one.csv", "id,g\na,1\nNAT,2\nb,3\n");
  EXPECT_FALSE(has(notes(read("one.csv")), "has the id")) << notes(read("one.csv"));
}

TEST_F(Ids, WithoutALineOfNamesAreNotTakenForOne) {
  put("one.csv", "PAT_0000,0.5,1.25\nPAT_0001,0.75,2\nPAT_0002,1,3.5\n");
  const std::string message = refused("one.csv");
  EXPECT_TRUE(has(message, "--header no --id-column 0") && has(message, "write a line of names")) << message;
  ReadOptions options;
  options.id_column = "PAT_0000";  // the first patient would be lost
  EXPECT_TRUE(has(notes(read("one.csv", options)), "use --header no --id-column 0"));
  options.id_column = "0";
  EXPECT_TRUE(has(notes(read("one.csv", options)), "use --header no --id-column 0"));
  options.header = "no";  // as advised
  EXPECT_EQ(read("one.csv", options).ids, (std::vector<std::string>{"PAT_0000", "PAT_0001", "PAT_0002"}));
  // Names that are numbers under a usual header are nothing to wonder at.
  put("one.csv", "id,400.5,401.5\na,1,2\nb,3,4\n");
  EXPECT_FALSE(has(notes(read("one.csv")), "--header")) << notes(read("one.csv"));
  put("one.csv", "Kennung,height,weight\na,1,2\nb,3,4\n");
  EXPECT_FALSE(has(refused("one.csv"), "--header")) << refused("one.csv");
}

TEST_F(Ids, InNoTableOfAFolderNeedEqualRows) {
  put("f/rna.csv", "g,h\n30,1.5\n10,2.5\n20,1.5\n");
  put("f/labels.csv", "sick\n0\n1\n");
  EXPECT_TRUE(has(refused("f"), "write a column of ids into both")) << refused("f");
}

TEST_F(Ids, EmptyOnesAreNamedByTheirRow) {
  put("one.csv", "id,g\na,1\nb,2\n,3\n");
  EXPECT_TRUE(has(refused("one.csv"), "row 2 (from 0) has no id")) << refused("one.csv");
  put("one.csv", "id,g\na,1\nb,2\na,3\n");
  EXPECT_TRUE(has(refused("one.csv"), "rows 0 and 2 (from 0) are both called 'a'")) << refused("one.csv");
}

}  // namespace
}  // namespace lacuna
