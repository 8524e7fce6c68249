// People's own tables: found ids, wary joins, habits of CSV files, and outputs that never harm an input.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "checks.h"
#include "data/ids.h"
#include "data/inspect.h"
#include "data/labels.h"
#include "data/learnable.h"
#include "data/metrics.h"
#include "data/readers.h"
#include "data/text_file.h"
#include "metrics_reference.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class Tables : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
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
  std::string notes(const Dataset& data) const {
    std::string all;
    for (const auto& note : data.notes) all += note + "\n";
    return all;
  }
  // A folder with two views and two labels of which something can be learned; ids from `id`.
  void cohort(const std::string& name, const std::string& header = "id", std::size_t rows = 80) const {
    Random random(3, Purpose::test);
    std::string a = header + ",g1,g2,g3\n", b = header + ",s1,s2\n", y = header + ",sick,old\n";
    for (std::size_t i = 0; i < rows; ++i) {
      const bool sick = random.uniform() < .5, old = random.uniform() < .5;
      const std::string id = fmt::format("PAT_{:04}", i);
      a += fmt::format("{},{:.3f},{:.3f},{:.3f}\n", id, sick + .3 * random.uniform(), random.uniform(),
                       old + .2 * random.uniform());
      b += fmt::format("{},{:.3f},{:.3f}\n", id, random.uniform(), old + .3 * random.uniform());
      y += fmt::format("{},{},{}\n", id, sick ? 1 : 0, old ? 1 : 0);
    }
    put(name + "/rna.csv", a);
    put(name + "/img.csv", b);
    put(name + "/labels.csv", y);
  }
  TemporaryDirectory folder_;
};

// --- ids and joins -------------------------------------------------------------------------------------------

TEST_F(Tables, IdsAreFoundByAnyUsualHeader) {
  for (const char* header : {"id", "ID", "sample", "Sample_ID", "sampleID", "Unnamed: 0", "", "patient",
                             "Patient ID", "barcode", "rownames", "\"sample name\""}) {
    put("one.csv", std::string(header) + ",x\na,1\nb,2\n");
    EXPECT_EQ(read("one.csv").ids, (std::vector<std::string>{"a", "b"})) << header;
  }
  put("r.tsv", "x\ty\na\t1\t2\nb\t3\t4\n");  // R: one header cell fewer
  const Dataset data = read("r.tsv");
  EXPECT_EQ(data.ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(has(notes(data), "unnamed first column contains ids"));
}

TEST_F(Tables, AFolderIsJoinedByIdWhateverItsHeadersAreCalled) {
  put("f/mrna.csv", ",g1\np2,2\np1,1\n");
  put("f/meth.tsv", "c1\tc2\np1\t5\t6\n");
  put("f/protein.csv", "\xEF\xBB\xBFSample_ID;a\r\np1;0,5\r\np2;1,5\r\n");
  put("f/Labels.CSV", "sample,sick\np1,yes\np2,no\n");
  const Dataset data = read("f");
  ASSERT_EQ(data.views.size(), 3u);
  EXPECT_EQ(data.ids, (std::vector<std::string>{"p1", "p2"}));
  std::vector<float> row(1);
  data.views[data.view_index("mrna")].copy_row(1, row);
  EXPECT_EQ(row[0], 2.f);
  data.views[data.view_index("protein")].copy_row(0, row);
  EXPECT_EQ(row[0], .5f);
  EXPECT_FALSE(data.has(1, data.view_index("meth")));
  EXPECT_EQ(data.labels(0, 0), 1);
  EXPECT_EQ(data.labels(1, 0), 0);
  EXPECT_TRUE(has(notes(data), "rows are joined by id: meth.tsv (unnamed first column)")) << notes(data);
  EXPECT_TRUE(has(notes(data), "labels 'sample'") || has(notes(data), "Labels.CSV 'sample'")) << notes(data);
}

TEST_F(Tables, IdsInSomeTablesOnlyAreRefused) {
  put("f/rna.csv", "weight,g1\n1,2\n2,3\n");
  put("f/labels.csv", "id,sick\n1,1\n2,0\n");
  const std::string message = refused("f");
  for (const char* part :
       {"labels.csv has a column of ids ('id')", "rna.csv has none", "1 of 2 tables", "--id-column"})
    EXPECT_TRUE(has(message, part)) << message;
}

TEST_F(Tables, MixedIdHeadersDoNotMisjoin) {
  // Numeric patients in another order than the labels: joined by order this is wrong without a word.
  put("f/rna.csv", "patient,g1\n3,30\n1,10\n2,20\n");
  put("f/labels.csv", "id,sick\n1,0\n2,0\n3,1\n");
  const Dataset data = read("f");
  ASSERT_EQ(data.views[0].columns(), 1u);
  std::vector<float> row(1);
  for (std::size_t i = 0; i < 3; ++i) {
    data.views[0].copy_row(i, row);
    EXPECT_EQ(fmt::format("{}0", data.ids[i]), fmt::format("{}", row[0]));
    EXPECT_EQ(data.labels(i, 0), data.ids[i] == "3" ? 1 : 0);
  }
  put("g/rna.csv", "patient_id,g1\n3,30\n1,10\n2,20\n");
  put("g/labels.csv", "sample_id,sick\n1,0\n2,0\n3,1\n");
  const std::string message = refused("g");
  EXPECT_TRUE(has(message, "'sample_id'") && has(message, "'patient_id'") && has(message, "--id-column 0"))
      << message;
  ReadOptions options;
  options.id_column = "0";
  EXPECT_EQ(read("g", options).rows, 3u);
}

TEST_F(Tables, FewCommonIdsAreRefusedWithCountsAndTheNearest) {
  std::string rna = "id,g\n", labels = "id,sick\n";
  for (int i = 0; i < 30; ++i) {
    rna += fmt::format("PAT_{:03},1\n", i);
    labels += fmt::format("PAT-{:03},{}\n", i == 0 ? 999 : i, i % 2);
  }
  put("f/rna.csv", rna);
  put("f/labels.csv", labels);
  const std::string message = refused("f");
  for (const char* part : {"rna.csv: none of its 30 ids occur in the other tables (30 ids)", "'PAT_000'",
                           "'PAT-999'", "is 'PAT_000' the same as 'PAT-"})
    EXPECT_TRUE(has(message, part)) << message;
}

TEST_F(Tables, GenesAsRowsAreRecognisedAndTransposed) {
  put("f/rna.csv", "gene,p1,p2,p3\nTP53,1,2,3\nBRCA1,4,5,6\n");
  put("f/labels.csv", "id,sick\np1,1\np2,0\np3,1\n");
  for (const char* header : {"gene", "", "Gene ID"}) {
    put("f/rna.csv", std::string(header) + ",p1,p2,p3\nTP53,1,2,3\nBRCA1,4,5,6\n");
    const std::string message = refused("f");
    EXPECT_TRUE(has(message, "the items are its columns") && has(message, "use --transpose")) << message;
  }
  for (const char* header : {"", "gene", "id"}) {
    put("f/rna.csv", std::string(header) + ",p1,p2,p3\nTP53,1,2,3\nBRCA1,4,5,6\n");
    ReadOptions options;
    options.transpose = true;
    const Dataset data = read("f", options);
    EXPECT_EQ(data.ids, (std::vector<std::string>{"p1", "p2", "p3"}));
    EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"TP53", "BRCA1"}));
    std::vector<float> row(2);
    data.views[0].copy_row(2, row);
    EXPECT_EQ(row, (std::vector<float>{3, 6}));
  }
}

TEST_F(Tables, LabelsInAFileOfTheirOwnAreJoinedById) {
  put("x.csv", "id,a\np1,1\np2,2\np3,3\n");
  put("y.csv", "sample,sick\np3,1\np1,0\n");
  ReadOptions options;
  options.label_file = path("y.csv");
  const Dataset data = read("x.csv", options);
  EXPECT_EQ(data.labels(0, 0), 0);
  EXPECT_EQ(data.labels(1, 0), kUnknown);
  EXPECT_EQ(data.labels(2, 0), 1);
  EXPECT_TRUE(has(notes(data), "2 of 3 rows have labels")) << notes(data);
}

TEST_F(Tables, MisspeltIdsAreReportedWithTheirLikelyPartner) {
  std::string rna = "id,g\n", labels = "id,sick\n";
  for (int i = 0; i < 40; ++i) {
    std::string id = fmt::format("PAT_{:03}", i);
    rna += fmt::format("{},{}\n", id, i % 7);
    if (i == 5) id = "PTA_005";
    if (i == 6) id = "PAT_006 ";
    if (i == 7) id = "pat_007";
    labels += fmt::format("{},{}\n", id, i % 2);
  }
  put("f/rna.csv", rna);
  put("f/labels.csv", labels);
  const Report report = inspect(read("f"));
  EXPECT_EQ(report.rows, 43u);
  ASSERT_EQ(report.misspelt.size(), 3u);
  std::vector<std::pair<std::string, std::string>> found = report.misspelt;
  for (auto& [a, b] : found)
    if (a > b) std::swap(a, b);
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::string>>{
                       {"PAT_005", "PTA_005"}, {"PAT_006", "PAT_006 "}, {"PAT_007", "pat_007"}}));
  EXPECT_TRUE(has(report.advice[0], "3 pairs of ids may be one item")) << report.advice[0];
}

// Excel writes 7 of 0007. Where most ids have no such zeros, nothing else gives it away.
TEST_F(Tables, IdsThatLostTheirZerosAreReported) {
  std::string rna = "id,g\n", labels = "id,sick\n";
  for (int i = 7; i < 7000; i += 170) {
    rna += fmt::format("{:04},{}\n", i, i % 7);
    labels += fmt::format("{},{}\n", i, i % 2);
  }
  put("f/rna.csv", rna);
  put("f/labels.csv", labels);
  const Dataset data = read("f");
  EXPECT_TRUE(has(notes(data), "6 pairs of ids may be one item spelt in two ways")) << notes(data);
  EXPECT_TRUE(has(notes(data), "'7' and '0007'")) << notes(data);
}

TEST_F(Tables, NumbersThatCountOnAreNotMisspelt) {
  Dataset data;
  data.rows = 60;
  for (std::size_t i = 0; i < 60; ++i) data.ids.push_back(fmt::format("P{:02}", i));
  Matrix<std::uint8_t> present(60, 2);
  for (std::size_t i = 0; i < 60; ++i) present(i, i % 2) = 1;
  data.present = std::move(present);
  data.views.push_back({"a", Table<float>(Matrix<float>(60, 1)), {}, "float32"});
  data.views.push_back({"b", Table<float>(Matrix<float>(60, 1)), {}, "float32"});
  EXPECT_TRUE(misspelt_ids(data, 100).empty());
}

TEST_F(Tables, LabelsThatNeverOccurAreNamed) {
  put("f/rna.csv", "id,g\na,1\nb,2\n");
  put("f/labels.csv", "id,sick,unicorn\na,1,0\nb,0,0\n");
  const Report report = inspect(read("f"));
  EXPECT_TRUE(std::ranges::any_of(report.advice, [](const auto& line) {
    return has(line, "1 of 2 labels without a known positive") && has(line, "unicorn");
  }));
}

// --- habits of CSV files ------------------------------------------------------------------------------------

TEST_F(Tables, TagListsBecomeLabels) {
  EXPECT_EQ(split_tags("beach;sun", ';'), (std::vector<std::string>{"beach", "sun"}));
  EXPECT_EQ(split_tags(" beach | sun|beach ", '|'), (std::vector<std::string>{"beach", "sun"}));
  EXPECT_EQ(split_tags("[\"a, b\", 'c', d]", '['), (std::vector<std::string>{"a, b", "c", "d"}));
  EXPECT_TRUE(split_tags("[]", ';').empty());
  put("f/rna.csv", "id,g\na,1\nb,2\nc,3\nd,4\n");
  put("f/labels.csv", "id,tags\na,beach;sun\nb,\nc,sun\nd,[]\n");
  Dataset data = read("f");
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"beach", "sun"}));
  const auto labels = [&] {
    std::string all;
    for (std::size_t i = 0; i < data.rows; ++i)
      for (const auto y : data.labels.row(i)) all += y == kUnknown ? '?' : static_cast<char>('0' + y);
    return all;
  };
  EXPECT_EQ(labels(), "11??0100");
  ReadOptions options;
  options.blank_means = "no";
  data = read("f", options);
  EXPECT_EQ(labels(), "11000100");
  options.blank_means = "unknown";
  data = read("f", options);
  EXPECT_EQ(labels(), "11???1??");
  put("one.csv", "id,g,what\na,1,sun;sea\nb,2,sea\n");
  ReadOptions single;
  single.tags_column = "what";
  data = read("one.csv", single);
  EXPECT_EQ(labels(), "1101");
  EXPECT_EQ(data.views[0].columns(), 1u);
}

TEST_F(Tables, BlankLabelCells) {
  put("f/rna.csv", "id,g\na,1\nb,2\nc,3\n");
  put("f/labels.csv", "id,sick,old\na,1,\nb,,1\nc,NA,?\n");
  Dataset data = read("f");
  EXPECT_EQ(data.labels(0, 1), kUnknown);
  ReadOptions options;
  options.blank_means = "no";
  data = read("f", options);
  EXPECT_EQ(data.labels(0, 1), 0);
  EXPECT_EQ(data.labels(1, 0), 0);
  EXPECT_EQ(data.labels(2, 0), kUnknown);  // NA is not blank
}

TEST_F(Tables, YesNoTrueFalseAndDecimalCommas) {
  put("one.csv", "id;x;y;sick\na;0,5;-1,25e2;yes\nb;2;3;No\nc;4;5;\n");
  ReadOptions options;
  options.label_columns = {"sick"};
  const Dataset data = read("one.csv", options);
  EXPECT_EQ(std::get<Table<float>>(data.views[0].features)(0, 1), -125.f);
  EXPECT_EQ(data.labels(0, 0), 1);
  EXPECT_EQ(data.labels(1, 0), 0);
  EXPECT_EQ(data.labels(2, 0), kUnknown);
  EXPECT_TRUE(has(notes(data), "decimal commas")) << notes(data);
  put("true.csv", "x,sick\n1,TRUE\n2,false\n");
  EXPECT_EQ(read("true.csv", options).labels(0, 0), 1);
  put("both.csv", "x;y\n0,5;1.5\n");
  EXPECT_TRUE(has(refused("both.csv"), "decimal comma ('0,5')"));
}

TEST_F(Tables, BlankLinesInFrontSayNothingAboutTheSeparator) {
  put("one.csv", "\r\n\n" "id;a;b\nx;1;2\ny;3;4\n");
  EXPECT_EQ(read("one.csv").views[0].columns(), 2u);
}

TEST_F(Tables, GzipAndUtf16) {
  const std::string text = "id,größe,b\na,1,2\nb,3,4\n";
  gzFile packed = gzopen(path("x.csv.gz").c_str(), "wb");
  gzwrite(packed, text.data(), static_cast<unsigned>(text.size()));
  gzclose(packed);
  put("plain/x.csv", text);
  const Dataset plain = read("plain/x.csv");
  const auto expect_same = [&](const Dataset& data) {
    EXPECT_EQ(content_hash(data), content_hash(plain));
    EXPECT_EQ(data.ids, plain.ids);
    EXPECT_EQ(data.views[0].column_names, plain.views[0].column_names);
    EXPECT_EQ(data.name, "x");
  };
  expect_same(read("x.csv.gz"));
  const std::string whole = read_text(path("x.csv.gz"));
  put("tape/x.csv.gz", whole + std::string(512, '\0'));
  expect_same(read("tape/x.csv.gz"));
  put("joined/x.csv.gz", whole + "c,5,6\n");
  EXPECT_TRUE(has(refused("joined/x.csv.gz"),
                  fmt::format("6 bytes follow the end of the compressed data at byte {}", whole.size())));
  for (const bool big : {false, true}) {
    std::string bytes = big ? "\xFE\xFF" : "\xFF\xFE";
    for (const char32_t point : U"id,größe,b\na,1,2\nb,3,4\n")
      if (point != 0) {
        const char low = static_cast<char>(point & 0xFF), high = static_cast<char>(point >> 8);
        bytes += big ? high : low;
        bytes += big ? low : high;
      }
    put("wide/x.csv", bytes);
    expect_same(read("wide/x.csv"));
  }
  put("wide/x.csv", std::string("i\0d\0", 4));
  EXPECT_TRUE(has(refused("wide/x.csv"), "NUL"));
}

TEST_F(Tables, ABombIsRefusedInBoundedMemory) {
  gzFile packed = gzopen(path("bomb.csv.gz").c_str(), "wb9");
  const std::string zeros(std::size_t{1} << 20, '0');
  for (int i = 0; i < 300; ++i) gzwrite(packed, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(packed);
  const Ended ended = run({"data", "inspect", path("bomb.csv.gz")});
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_TRUE(has(ended.err, "unpack")) << ended.err;
  EXPECT_LT(ended.peak_bytes, std::size_t{400} << 20);
}

TEST_F(Tables, EndlessLinesAreRefusedInBoundedMemory) {
  std::ofstream file(path("long.csv"), std::ios::binary);
  const std::string piece(std::size_t{1} << 20, '1');
  for (int i = 0; i < 100; ++i) file << piece;
  file.close();
  Ended ended = run({"data", "inspect", path("long.csv")});
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(has(ended.err, "a cell of")) << ended.err;
  EXPECT_LT(ended.peak_bytes, std::size_t{300} << 20);
  std::ofstream wide(path("wide.csv"), std::ios::binary);
  const std::string commas(std::size_t{1} << 20, ',');
  for (int i = 0; i < 16; ++i) wide << commas;
  wide.close();
  ended = run({"data", "inspect", path("wide.csv")});
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(has(ended.err, "cells")) << ended.err;
  EXPECT_LT(ended.peak_bytes, std::size_t{500} << 20);
}

TEST_F(Tables, ColumnsByNameAndColumnsToIgnore) {
  put("one.csv", "id,a,comment,sick,old\nx,1,fine,1,0\ny,2,bad,0,1\n");
  EXPECT_TRUE(has(refused("one.csv"), "--ignore-columns 'comment'"));
  ReadOptions options;
  options.ignore_columns = {"comment"};
  options.label_columns = {"old", "sick"};
  Dataset data = read("one.csv", options);
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"sick", "old"}));
  EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"a"}));
  options.label_columns = {"2"};
  EXPECT_EQ(read("one.csv", options).label_names, data.label_names);
  put("f/rna.csv", "id,a,comment\nx,1,fine\ny,2,bad\n");
  put("f/labels.csv", "id,sick,doctor\nx,1,3\ny,0,4\n");
  options.label_columns = {"sick"};
  data = read("f", options);
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"sick"}));
  options.ignore_columns = {"comment", "commment"};
  EXPECT_TRUE(has(refused("f", options, Exit::usage), "no table has a column 'commment'"));
}

TEST_F(Tables, ViewsOfAFolderAreChosenByName) {
  put("f/rna.csv", "id,a\nx,1\n");
  put("f/p38, MAPK.csv", "id,b\nx,2\n");
  ReadOptions options;
  Options parser;
  options.declare(parser);
  parser.parse({"--views", "p38\\, MAPK"}, "test");
  const Dataset data = read("f", options);
  ASSERT_EQ(data.views.size(), 1u);
  EXPECT_EQ(data.views[0].name, "p38, MAPK");
  options.views = {"rma"};
  EXPECT_TRUE(has(refused("f", options, Exit::usage), "did you mean 'rna'"));
}

TEST_F(Tables, FlagsThatMeanNothingToAFormAreRefused) {
  put("one.csv", "id,a\nx,1\n");
  write_dataset(read("one.csv"), path("one.npz"));
  ReadOptions options;
  options.id_column = "id";
  EXPECT_TRUE(
      has(refused("one.npz", options, Exit::usage), "--id-column has no effect on the format npz"));
  options = {};
  options.columns = 7;
  EXPECT_TRUE(has(refused("one.csv", options, Exit::usage), "--columns has no effect"));
}

// --- outputs ------------------------------------------------------------------------------------------------

TEST_F(Tables, OutputsNeverReplaceInputs) {
  cohort("f");
  write_dataset(read("f"), path("data.npz"));
  const std::string before = read_text(path("data.npz"));
  fs::create_symlink(path("data.npz"), path("link.npz"));
  fs::create_hard_link(path("data.npz"), path("hard.npz"));
  const auto expect_refused = [&](std::vector<std::string> command, const char* why) {
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 2) << command[0] << ": " << ended.err;
    EXPECT_TRUE(has(ended.err, why)) << ended.err;
    EXPECT_TRUE(read_text(path("data.npz")) == before);
  };
  for (const char* out : {"data.npz", "link.npz", "hard.npz"}) {
    expect_refused({"train", path("data.npz"), "--method", "prior", "--out", path(out)}, "not replaced");
    expect_refused({"data", "convert", path("data.npz"), path(out)}, "not replaced");
    expect_refused({"data", "mask", path("data.npz"), path(out)}, "not replaced");
    expect_refused({"tune", path("data.npz"), "--method", "prior", "--out", path(out)}, "not replaced");
  }
  ASSERT_EQ(run({"train", path("data.npz"), "--method", "prior", "--out", path("model")}).code, 0);
  expect_refused({"predict", path("model"), path("data.npz"), "--out", path("data.npz")}, "not replaced");
  expect_refused({"predict", path("model"), path("data.npz"), "--out", path("model")}, "not replaced");
  expect_refused({"train", path("f"), "--method", "prior", "--out", path("f/model")},
                 "lies inside the input");
  expect_refused({"train", path("f"), "--method", "prior", "--out", path("f/rna.csv")},
                 "lies inside the input");
  fs::create_directory_symlink(path("f"), path("g"));
  expect_refused({"train", path("f"), "--method", "prior", "--out", path("g/rna.csv")},
                 "lies inside the input");
  fs::create_hard_link(path("f/rna.csv"), path("elsewhere.csv"));
  expect_refused({"train", path("f"), "--method", "prior", "--out", path("elsewhere.csv")}, "not replaced");
  // A dataset.toml names files that lie anywhere.
  put("d/dataset.toml", fmt::format("[[views]]\nname = \"rna\"\nfile = \"{}\"\n[labels]\nfile = \"{}\"\n",
                                    path("f/rna.csv"), path("f/labels.csv")));
  expect_refused({"train", path("d"), "--method", "prior", "--out", path("f/rna.csv")}, "not replaced");
  expect_refused({"data", "convert", path("d"), path("d")}, "not replaced");
}

TEST_F(Tables, AFolderAsOutputIsRefusedBeforeTheWork) {
  cohort("f");
  fs::create_directory(path("out"));
  const Ended ended = run({"train", path("f"), "--out", path("out"), "--epochs", "100000"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(has(ended.err, "is a folder")) << ended.err;
}

TEST_F(Tables, PipesAndDevicesAreWrittenTo) {
  cohort("f");
  ASSERT_EQ(run({"train", path("f"), "--method", "prior", "--out", path("model")}).code, 0);
  ASSERT_EQ(run({"predict", path("model"), path("f"), "--out", path("scores.csv")}).code, 0);
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream file(path("pipe.csv"));
    got.assign(std::istreambuf_iterator<char>(file), {});
  });
  const Ended ended = run({"predict", path("model"), path("f"), "--out", path("pipe.csv")});
  reader.join();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(fs::is_fifo(path("pipe.csv")));
  EXPECT_EQ(got, read_text(path("scores.csv")));
  EXPECT_EQ(
      run({"train", path("f"), "--method", "prior", "--out", path("model"), "--report", "/dev/null"}).code,
      0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  // A link keeps pointing where it did.
  put("real.csv", "old");
  fs::create_symlink(path("real.csv"), path("alias.csv"));
  EXPECT_EQ(run({"predict", path("model"), path("f"), "--out", path("alias.csv")}).code, 0);
  EXPECT_TRUE(fs::is_symlink(path("alias.csv")));
  EXPECT_EQ(read_text(path("real.csv")), got);
}

// --- what can be learned ------------------------------------------------------------------------------------

TEST_F(Tables, NothingToLearnIsRefusedBeforeTraining) {
  const auto expect_refused = [&](const std::string& labels, std::vector<std::string> more, const char* why) {
    put("n/labels.csv", labels);
    std::vector<std::string> command = {"train", path("n"), "--out", path("no")};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 3) << ended.err;
    EXPECT_TRUE(has(ended.err, why)) << ended.err;
    EXPECT_FALSE(fs::exists(path("no")));
  };
  std::string rna = "id,g\n", yes = "id,sick\n", never = "id,sick\n", unknown = "id,sick\n",
              tags = "id,tags\n";
  for (int i = 0; i < 40; ++i) {
    rna += fmt::format("p{},{}\n", i, i % 5);
    yes += fmt::format("p{},{}\n", i, i % 2 ? "1" : "");
    never += fmt::format("p{},0\n", i);
    unknown += fmt::format("p{},\n", i);
    tags += fmt::format("p{},{}\n", i, i % 2 ? "sun;sea" : "");
  }
  put("n/rna.csv", rna);
  expect_refused(yes, {}, "--blank-means no");
  expect_refused(never, {}, "no row with a view has a known positive");
  expect_refused(unknown, {}, "none has both");
  expect_refused(tags, {}, "--blank-means no");
  put("n/labels.csv", tags);
  const Ended ended =
      run({"train", path("n"), "--out", path("yes"), "--method", "prior", "--blank-means", "no"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(Tables, FewRowsAreWarnedAbout) {
  cohort("few", "id", 24);
  const Ended ended = run({"train", path("few"), "--out", path("m"), "--method", "prior"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "known label: expect poor results")) << ended.err;
  EXPECT_TRUE(has(ended.err, "validation rows")) << ended.err;
}

TEST_F(Tables, OneLabelHasMetricsWithinTheirRange) {
  Random random(1, Purpose::test);
  Matrix<float> scores(200, 1);
  Matrix<std::int8_t> truth(200, 1);
  for (std::size_t i = 0; i < 200; ++i) {
    truth(i, 0) = random.uniform() < .1 ? kUnknown : random.uniform() < .4 ? 1 : 0;
    scores(i, 0) = static_cast<float>(std::floor(8 * (random.uniform() + .3 * (truth(i, 0) == 1)))) / 10;
  }
  const Metrics fast = evaluate(scores, truth), plain = evaluate_reference(scores, truth);
  for (std::size_t k = 0; k < metric_names().size(); ++k) {
    EXPECT_GE(fast.values()[k], 0) << metric_names()[k];
    EXPECT_LE(fast.values()[k], 1) << metric_names()[k];
    EXPECT_NEAR(fast.values()[k], plain.values()[k], 1e-12) << metric_names()[k];
  }
  const auto labels = evaluate_labels(scores, truth);
  EXPECT_NEAR(fast.ap, labels[0].ap, 1e-12);
  EXPECT_NEAR(fast.auc, labels[0].auc, 1e-12);
}

TEST_F(Tables, TwoLabelsHaveMetricsWithinTheirRange) {
  for (const double rate : {.02, .3, .9}) {
    Random random(1, Purpose::test);
    Matrix<float> scores(300, 2);
    Matrix<std::int8_t> truth(300, 2);
    for (std::size_t i = 0; i < 300; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        truth(i, j) = random.uniform() < .1 ? kUnknown : random.uniform() < rate ? 1 : 0;
        scores(i, j) = static_cast<float>(random.uniform());
      }
    const Metrics fast = evaluate(scores, truth), plain = evaluate_reference(scores, truth);
    for (std::size_t k = 0; k < metric_names().size(); ++k) {
      const double value = fast.values()[k];
      if (metric_names()[k] == "1-Cov" && rate < .5) {  // most rows have no positive
        EXPECT_TRUE(std::isnan(value) && std::isnan(plain.values()[k])) << value;
        continue;
      }
      EXPECT_GE(value, 0) << metric_names()[k] << " " << rate;
      EXPECT_LE(value, 1) << metric_names()[k] << " " << rate;
      EXPECT_NEAR(value, plain.values()[k], 1e-12) << metric_names()[k];
    }
  }
}

TEST_F(Tables, RowsWithoutPositivesBoundWhatCanBeReached) {
  std::string rna = "id,g\n", labels = "id,sick,old\n";
  for (int i = 0; i < 200; ++i) {
    rna += fmt::format("p{},{}\n", i, i % 7);
    labels += fmt::format("p{},{},{}\n", i, i % 10 == 0, i % 10 == 5);
  }
  put("b/rna.csv", rna);
  put("b/labels.csv", labels);
  const Ended ended = run({"train", path("b"), "--out", path("m"), "--method", "prior", "--report",
                           path("b.html")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "of them have no positive label") && has(ended.out, "1-Cov -")) << ended.out;
  const std::size_t at = ended.out.find("they can reach");
  const std::string reach = ended.out.substr(at, ended.out.find(';', at) - at);
  EXPECT_TRUE(has(read_text(path("b.html")), reach.c_str())) << reach;
}

TEST_F(Tables, CandidatesThatNothingJudges) {
  put("t/rna.csv", "id,g\na,1\nb,2\nc,3\n");
  put("t/labels.csv", "id,sick,old\na,1,0\nb,0,1\nc,1,1\n");
  const Ended ended = run({"train", path("t"), "--out", path("t.m"), "--preset", "auto", "--hold-out", "0",
                           "--epochs", "1", "--budget", "1s"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "nothing to judge candidates by") && !has(ended.err, "chosen on 0")) << ended.err;
  EXPECT_TRUE(has(run({"show", path("t.m")}).out, "nothing to judge them by"));
}

// Resamples of rows may define a metric that the rows themselves do not.
TEST_F(Tables, AMetricThatIsUndefinedHasNoInterval) {
  std::string rna = "id,g\n", labels = "id,sick,old\n";
  for (int i = 0; i < 60; ++i) {
    rna += fmt::format("p{},{}\n", i, i % 7);
    labels += fmt::format("p{},{},{}\n", i, i % 2 == 0, i % 6 == 0);
  }
  put("u/rna.csv", rna);
  put("u/labels.csv", labels);
  std::size_t undefined = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    const Ended ended = run({"train", path("u"), "--out", path("u.m"), "--method", "prior", "--report",
                             path("u.html"), "--seed", std::to_string(seed)});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const auto validation = nlohmann::json::parse(run({"show", path("u.m"), "--json"}).out)["validation"];
    const std::string page = read_text(path("u.html"));
    bool any = false;
    for (const auto& [name, value] : validation["metrics"].items()) {
      EXPECT_EQ(validation["intervals"][name].is_null(), value.is_null()) << name;
      any = any || value.is_null();
    }
    EXPECT_EQ(has(page, "A dash: the metric is undefined"), any);
    if (!any) continue;
    ++undefined;
    EXPECT_TRUE(has(page, R"(<td class="n">-</td><td></td>)")) << page.substr(page.find("1-Cov</"), 200);
  }
  EXPECT_GT(undefined, 0u);
}

TEST_F(Tables, BenchesShowADashWhereAMetricIsUndefined) {
  std::string rna = "id,g\n", labels = "id,rare\n";
  for (int i = 0; i < 30; ++i) {
    rna += fmt::format("p{},{}\n", i, i % 7);
    labels += fmt::format("p{},{}\n", i, i == 4 || i == 9);
  }
  put("r/rna.csv", rna);
  put("r/labels.csv", labels);
  const Ended ended =
      run({"bench", "table", "--data", path("r"), "--methods", "prior", "--repeats", "2", "--missing-views", "0",
           "--missing-labels", "0", "--out", path("bench")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, ": AP -") && !has(ended.err, "nan") && !has(ended.out, "nan")) << ended.err;
}

TEST_F(Tables, OneLabelIsLearnedAndItsEpochsDiffer) {
  std::string rna = "id,g,h\n", labels = "id,sick\n";
  Random random(2, Purpose::test);
  for (int i = 0; i < 200; ++i) {
    const bool sick = random.uniform() < .4;
    rna += fmt::format("p{},{:.3f},{:.3f}\n", i, sick + .6 * random.uniform(), random.uniform());
    labels += fmt::format("p{},{}\n", i, sick ? "yes" : "no");
  }
  put("o/rna.csv", rna);
  put("o/labels.csv", labels);
  const Ended ended =
      run({"train", path("o"), "--out", path("m"), "--json", "--epochs", "12", "--members", "1"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto document = nlohmann::json::parse(ended.out);
  for (const auto& [name, value] : document["metrics"].items()) {
    ASSERT_TRUE(value.is_number()) << name;
    EXPECT_GE(value.get<double>(), 0) << name;
    EXPECT_LE(value.get<double>(), 1) << name;
  }
  EXPECT_GT(document["metrics"]["AUC"].get<double>(), .8);
}

}  // namespace
}  // namespace lacuna
