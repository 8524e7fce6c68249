// Every reader on real files (the facts of their catalogue) and on small files written here, good and bad.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "data/mat.h"
#include "data/npy.h"
#include "data/readers.h"
#include "shared_data.h"
#include "temporary.h"

namespace lacuna {
namespace {

double cardinality(const Dataset& data) {
  std::size_t positives = 0;
  for (std::size_t i = 0; i < data.labels.rows(); ++i)
    positives += static_cast<std::size_t>(std::ranges::count(data.labels.row(i), 1));
  return static_cast<double>(positives) / static_cast<double>(data.rows);
}

struct Fact {
  const char* file;
  std::size_t rows;
  std::vector<std::size_t> columns;
  std::size_t labels;
  double cardinality;
};

class RealData : public testing::TestWithParam<Fact> {};

TEST_P(RealData, ShowsTheFactsOfItsCatalogue) {
  const Fact& fact = GetParam();
  LACUNA_NEEDS(path, fact.file);
  const Dataset data = read_dataset(path);
  EXPECT_EQ(data.rows, fact.rows);
  std::vector<std::size_t> columns;
  for (const auto& view : data.views) columns.push_back(view.columns());
  EXPECT_EQ(columns, fact.columns);
  EXPECT_EQ(data.label_count(), fact.labels);
  EXPECT_NEAR(data.labels.empty() ? 0 : cardinality(data), fact.cardinality, 5e-5);
}

const std::vector<std::size_t> kSix = {512, 4096, 100, 1000, 4096, 4096};
INSTANTIATE_TEST_SUITE_P(Files, RealData,
                         testing::Values(Fact{"corel5k/corel5k_six_view.mat", 4999, kSix, 260, 3.3965},
                                         Fact{"msrc_v2/msrc_v2_six_view.mat", 591, kSix, 22, 2.6024},
                                         Fact{"natural_scene/natural_scene_six_view.mat", 2000, kSix, 5,
                                              1.2360},
                                         Fact{"corel5k_mulan/Corel5k-sparse.arff", 5000, {499}, 374, 3.522},
                                         Fact{"emotions/emotions.arff", 593, {72}, 6, 1.8685},
                                         Fact{"emotions/emotions-train.arff", 391, {72}, 6, 1.8133},
                                         Fact{"emotions/emotions-test.arff", 202, {72}, 6, 1.9752},
                                         Fact{"emotions/emotions.mat", 593, {8, 64}, 6, 1.8685},
                                         Fact{"yeast/yeast.arff", 2417, {103}, 14, 4.2371},
                                         Fact{"yeast/yeast.mat", 2417, {79, 24}, 14, 4.2371},
                                         // 258 numbers, hasSegments, and location with its 12 values
                                         Fact{"birds/birds-train.arff", 322, {271}, 19, 1.0590},
                                         Fact{"birds/birds-test.arff", 323, {271}, 19, 0.9690},
                                         Fact{"cal500/cal500.arff", 502, {68}, 174, 26.0438},
                                         Fact{"scene/scene-train.arff", 1211, {294}, 6, 1.0619},
                                         Fact{"scene/scene-test.arff", 1196, {294}, 6, 1.0861},
                                         Fact{"3sources/3sources_bbc.mtx", 352, {3560}, 0, 0},
                                         Fact{"3sources/3sources_guardian.mtx", 302, {3631}, 0, 0},
                                         Fact{"3sources/3sources_reuters.mtx", 294, {3068}, 0, 0},
                                         Fact{"3sources/3sources.overlap.clist", 416, {}, 6, 1.1226},
                                         Fact{"3sources/3sources.disjoint.clist", 416, {}, 6, 1},
                                         Fact{"labels/pascal07.npz", 9963, {}, 20, 1.4372},
                                         Fact{"labels/espgame.npz", 20770, {}, 268, 4.6859},
                                         Fact{"labels/iaprtc12.npz", 19627, {}, 291, 5.7187},
                                         Fact{"labels/mirflickr.npz", 25000, {}, 38, 4.7162}));

TEST(RealDataDetails, MatAndArffOfEmotionsAndYeastAgree) {
  for (const auto& [name, views] :
       {std::pair<std::string, std::vector<std::string>>{"emotions", {"b=64-71", "a=0-63"}},
        {"yeast", {"a=0-78", "b=79-102"}}}) {
    LACUNA_NEEDS(mat_path, name + "/" + name + ".mat");
    LACUNA_NEEDS(arff_path, name + "/" + name + ".arff");
    ReadOptions options;
    options.views = views;
    const Dataset mat = read_dataset(mat_path), arff = read_dataset(arff_path, options);
    ASSERT_EQ(mat.views.size(), arff.views.size());
    for (std::size_t v = 0; v < 2; ++v) {
      std::vector<float> x(mat.views[v].columns()), y(arff.views[v].columns());
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < mat.rows; ++i) {
        mat.views[v].copy_row(i, x);
        arff.views[v].copy_row(i, y);
        ASSERT_EQ(x, y) << name << " view " << v << " row " << i;
      }
    }
    // The order of the arff's columns holds, not that of the xml.
    for (std::size_t i = 0; i < mat.rows; ++i)
      ASSERT_TRUE(std::ranges::equal(mat.labels.row(i), arff.labels.row(i)));
    if (name == "yeast") {
      EXPECT_EQ(arff.label_names[3], "Class4");
    }
  }
}

TEST(RealDataDetails, NamesAndWords) {
  LACUNA_NEEDS(birds_path, "birds/birds-train.arff");
  const Dataset birds = read_dataset(birds_path);
  EXPECT_NE(std::ranges::find(birds.label_names, "Swainson's Thrush"), birds.label_names.end());
  EXPECT_EQ(birds.views[0].column_names[259], "location=2");
  LACUNA_NEEDS(corel_path, "corel5k/corel5k_six_view.mat");
  const Dataset corel = read_dataset(corel_path);
  EXPECT_EQ(corel.label_names[0], "city");
  EXPECT_EQ(corel.views[1].source_type, "uint16");
  ASSERT_EQ(corel.notes.size(), 1u);
}

TEST(RealDataDetails, ExamplesJoinForeignFiles) {
  LACUNA_NEEDS(folder, "3sources");
  setenv("DATA", (folder + "/..").c_str(), 1);
  const Dataset news = read_dataset(LACUNA_SOURCE_DIR "/examples/3sources.toml");
  EXPECT_EQ(news.rows, 416u);
  EXPECT_EQ(news.label_count(), 6u);
  EXPECT_NEAR(cardinality(news), 1.1226, 5e-5);
  std::size_t count[4] = {}, per_view[3] = {};
  for (std::size_t i = 0; i < news.rows; ++i) {
    std::size_t k = 0;
    for (std::size_t v = 0; v < 3; ++v)
      if (news.has(i, v)) {
        ++k;
        ++per_view[v];
      }
    ++count[k];
  }
  EXPECT_EQ(count[1], 53u);
  EXPECT_EQ(count[2], 194u);
  EXPECT_EQ(count[3], 169u);
  EXPECT_EQ(per_view[0], 352u);
  EXPECT_EQ(per_view[1], 302u);
  EXPECT_EQ(per_view[2], 294u);
  const Dataset digits = read_dataset(LACUNA_SOURCE_DIR "/examples/mfeat.toml");
  EXPECT_EQ(digits.rows, 2000u);
  EXPECT_EQ(digits.label_names, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  EXPECT_EQ(cardinality(digits), 1);
  EXPECT_EQ(digits.views[5].columns(), 6u);
}

// ---- small files

class SmallFiles : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  // The message of the refusal.
  std::string refused(const std::string& path, const ReadOptions& options = {}) {
    try {
      read_dataset(path, options);
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), 3) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      return error.what();
    }
    ADD_FAILURE() << path << " was read";
    return "";
  }
  static void expect_part(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
  TemporaryDirectory folder_;
};

TEST_F(SmallFiles, LabelCodes) {
  const auto with = [&](const std::string& cells, const std::string& code) {
    ReadOptions options;
    options.label_columns = {"2"};
    options.label_code = code;
    options.header = "no";
    return read_dataset(put("d.csv", cells), options);
  };
  const Dataset plain = with("5,1,0\n6,0,\n", "auto");
  EXPECT_EQ(plain.labels(0, 0), 1);
  EXPECT_EQ(plain.labels(1, 0), 0);
  EXPECT_EQ(plain.labels(1, 1), kUnknown);
  EXPECT_EQ(with("5,1,-1\n6,-1,1\n", "auto").labels(0, 1), 0);
  EXPECT_EQ(with("5,1,-1\n6,0,1\n", "pm1-unknown").labels(1, 0), kUnknown);
  EXPECT_EQ(with("5,1,-1\n6,0,1\n", "01-unknown").labels(0, 1), kUnknown);
  EXPECT_THROW(with("5,1,-1\n6,0,1\n", "auto"), Error);
  EXPECT_THROW(with("5,1,-1\n6,0,1\n", "01"), Error);
  EXPECT_THROW(with("5,1,2\n6,0,1\n", "auto"), Error);
}

TEST_F(SmallFiles, CsvEmptyCells) {
  const std::string path = put("d.csv", "id,a,b,c\nx,1,2,3\ny,,,4\nz,5,,6\n");
  ReadOptions options;
  options.views = {"ab=0-1", "c=2"};
  expect_part(refused(path, options), "row 2: 'b' has no value");
  options.empty = "mean";
  const Dataset data = read_dataset(path, options);
  EXPECT_FALSE(data.has(1, 0));
  EXPECT_TRUE(data.has(1, 1));
  EXPECT_TRUE(data.has(2, 0));
  EXPECT_TRUE(data.empty_cells);  // a model fills them with the means of its training rows
  EXPECT_TRUE(std::isnan(std::get<Table<float>>(data.views[0].features)(2, 1)));
  options.empty = "zero";
  EXPECT_EQ(std::get<Table<float>>(read_dataset(path, options).views[0].features)(2, 1), 0.f);
  EXPECT_EQ(data.ids, (std::vector<std::string>{"x", "y", "z"}));
}

TEST_F(SmallFiles, CsvFolderJoinsById) {
  std::filesystem::create_directories(folder_ / "set");
  put("set/hue.csv", "id,h1,h2\nb,1,2\na,3,4\n");
  put("set/sift.csv", "id,s\nc,9\nb,8\n");
  put("set/labels.csv", "id,cat,dog\na,1,0\nb,,1\n");
  const Dataset data = read_dataset(folder_ / "set");
  EXPECT_EQ(data.ids, (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_TRUE(data.has(0, 0) && data.has(0, 1) && data.has(1, 0) && data.has(2, 1));
  EXPECT_FALSE(data.has(1, 1) || data.has(2, 0));
  EXPECT_EQ(data.labels(0, 0), kUnknown);
  EXPECT_EQ(data.labels(0, 1), 1);
  EXPECT_EQ(data.labels(2, 0), kUnknown) << "an item without a row in labels.csv";
  put("set/sift.csv", "id,s\nc,9\nc,8\n");
  EXPECT_THROW(read_dataset(folder_ / "set"), Error);
}

TEST_F(SmallFiles, IntegersThatFloatCannotHold) {
  expect_part(refused(put("d.csv", "a,b\n1,16777217\n")), "16777217");
  Matrix<std::uint32_t> big(1, 2);
  big(0, 1) = 16777217;
  const Array array = borrow("counts", std::as_const(big).view());
  write_npz(folder_ / "d.npz", {&array, 1});
  const std::string message = refused(folder_ / "d.npz");
  expect_part(message, "16777217");
  expect_part(message, "row 0, column 1");
  big(0, 1) = 16777218;
  write_npz(folder_ / "d.npz", {&array, 1});
  EXPECT_EQ(std::get<Table<float>>(read_dataset(folder_ / "d.npz").views[0].features)(0, 1), 16777218.f);
}

TEST_F(SmallFiles, ArffNominalAndSparse) {
  const Dataset dense = read_dataset(put("d.arff",
                                         "@RELATION 'x: -C -1'\n@ATTRIBUTE c {red,green,blue}\n@ATTRIBUTE f "
                                         "{no,yes}\n@ATTRIBUTE l {0,1}\n@DATA\nblue,yes,1\nred,no,0\n"));
  const auto& table = std::get<Table<float>>(dense.views[0].features);
  EXPECT_EQ(dense.views[0].column_names, (std::vector<std::string>{"c=red", "c=green", "c=blue", "f"}));
  EXPECT_TRUE(std::ranges::equal(table.row(0), std::vector<float>{0, 0, 1, 1}));
  EXPECT_EQ(dense.label_names, std::vector<std::string>{"l"});
  EXPECT_EQ(dense.labels(0, 0), 1);
  // In a sparse row an attribute that is not named has its first value.
  const Dataset sparse = read_dataset(put("s.arff",
                                          "@relation x\n@attribute a numeric\n@attribute b {1,0}\n@attribute "
                                          "c {x,y,z}\n@data\n{0 3}\n{1 0,2 z}\n"));
  std::vector<float> row(5);
  sparse.views[0].copy_row(0, row);
  EXPECT_EQ(row, (std::vector<float>{3, 1, 1, 0, 0}));
  sparse.views[0].copy_row(1, row);
  EXPECT_EQ(row, (std::vector<float>{0, 0, 0, 0, 1}));
}

// Whatever the order in which its values are declared, yes is 1, as it is in a CSV.
TEST_F(SmallFiles, ArffYesIsOne) {
  const std::string head =
      "@relation 'x: -C -4'\n@attribute f {true,false}\n@attribute a {yes,no}\n@attribute b {1,-1}\n@attribute c "
      "{late,early}\n@attribute d {1}\n@data\n";
  const Dataset dense = read_dataset(put("d.arff", head + "true,yes,-1,late,1\nfalse,no,1,early,1\n"));
  EXPECT_EQ(std::get<Table<float>>(dense.views[0].features)(0, 0), 1.f);
  EXPECT_TRUE(std::ranges::equal(dense.labels.row(0), std::vector<std::int8_t>{1, 0, 0, 1}));
  EXPECT_TRUE(std::ranges::equal(dense.labels.row(1), std::vector<std::int8_t>{0, 1, 1, 1}));
  // Without a word a sparse row has the first value.
  const Dataset sparse = read_dataset(put("s.arff", head + "{2 -1}\n{0 false,1 no,3 early}\n"));
  EXPECT_TRUE(std::ranges::equal(sparse.labels.row(0), dense.labels.row(0)));
  EXPECT_TRUE(std::ranges::equal(sparse.labels.row(1), dense.labels.row(1)));
}

TEST_F(SmallFiles, LibsvmAndLear) {
  const Dataset svm = read_dataset(put("d.libsvm", "3,1 1:0.5 4:2\n 2:1\n"));
  EXPECT_EQ(svm.views[0].columns(), 4u);
  EXPECT_EQ(svm.label_names, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(svm.labels(1, 0), 0);
  expect_part(refused(put("twice.libsvm", "1 1:1 1:2\n")), "column 1 occurs twice");
  std::string bytes;
  for (std::uint16_t x : std::initializer_list<std::uint16_t>{2, 7, 65535, 2, 0, 1})
    bytes.append(reinterpret_cast<const char*>(&x), 2);
  const Dataset lear = read_dataset(put("d.hvecs", bytes));
  EXPECT_EQ(lear.rows, 2u);
  EXPECT_EQ(std::get<Table<float>>(lear.views[0].features)(0, 1), 65535.f);
  expect_part(refused(put("cut.hvecs", bytes.substr(0, 11))), "11 bytes");
}

TEST_F(SmallFiles, EitherOrientationOfMat) {
  Matrix<float> a(2, 4), b(3, 4), labels(2, 4);
  a(1, 2) = 5;
  b(2, 3) = 6;
  labels(0, 1) = labels(1, 3) = 1;
  write_mat(folder_ / "d.mat",
            std::vector<MatValue>{mat_cell("X", {mat_matrix("", std::move(a)), mat_matrix("", std::move(b))}),
                                  mat_matrix("label", std::move(labels), "uint8")});
  const Dataset data = read_dataset(folder_ / "d.mat");
  EXPECT_EQ(data.rows, 4u);
  EXPECT_EQ(std::get<Table<float>>(data.views[0].features)(2, 1), 5.f);
  EXPECT_EQ(std::get<Table<float>>(data.views[1].features)(3, 2), 6.f);
  EXPECT_EQ(data.labels(3, 1), 1);
  EXPECT_TRUE(data.notes.empty());
  // A square view could lie either way.
  for (const bool turned : {false, true}) {
    Matrix<float> kernel(4, 4), of_two(turned ? 2 : 4, turned ? 4 : 2);
    kernel(0, 3) = 7;
    write_mat(folder_ / "d.mat", std::vector<MatValue>{mat_matrix("X", std::move(kernel)),
                                                       mat_matrix("label", std::move(of_two), "uint8")});
    const Dataset square = read_dataset(folder_ / "d.mat");
    EXPECT_EQ(std::get<Table<float>>(square.views[0].features)(turned ? 3 : 0, turned ? 0 : 3), 7.f);
    ASSERT_EQ(square.notes.size(), 1u);
    expect_part(square.notes[0], turned ? "taken for their columns" : "taken for their rows");
  }
}

// Numbers of a .mat are float32 once they are read, which does not hold every digit of long ids.
TEST_F(SmallFiles, IdsOfMatAreExactOrRefused) {
  const auto with_ids = [&](float second, const std::string& type) {
    Matrix<float> ids(2, 1);
    ids(0, 0) = 9999999;
    ids(1, 0) = second;
    write_mat(folder_ / "d.mat", std::vector<MatValue>{mat_cell("X", {mat_matrix("", Matrix<float>(2, 3))}),
                                                       mat_matrix("ids", std::move(ids), type)});
    return folder_ / "d.mat";
  };
  EXPECT_EQ(read_dataset(with_ids(12, "float64")).ids, (std::vector<std::string>{"9999999", "12"}));
  EXPECT_EQ(read_dataset(with_ids(20231102, "int32")).ids[1], "20231102");
  expect_part(refused(with_ids(20231102, "float64")), "'ids' contains a number of about 20231102");
}

TEST_F(SmallFiles, ArraysOfNpzAreUsedOrNamed) {
  const Matrix<float> x(3, 2), time(3, 1);
  Matrix<std::uint32_t> names(2, 1);
  names(0, 0) = 7;
  names(1, 0) = 90210;
  std::vector<Array> arrays = {borrow("v", x.view()), borrow("v.columns", std::as_const(names).view()),
                               text_array("id", {"a", "b", "c"}), borrow("time", time.view())};
  arrays[1].shape = {2};
  arrays[3].shape = {3};
  write_npz(folder_ / "d.npz", arrays);
  const Dataset data = read_dataset(folder_ / "d.npz");
  EXPECT_EQ(data.views.size(), 1u);
  EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"7", "90210"}));
  ASSERT_EQ(data.notes.size(), 1u);
  expect_part(data.notes[0], "not read: 'id' (3 values of text), 'time' (3 values of float32)");
  write_npz(folder_ / "d.npz", {&arrays[3], 1});
  expect_part(refused(folder_ / "d.npz"), "neither a view");
}

TEST_F(SmallFiles, ThousandsSeparatorsAreNamed) {
  for (const auto& [cell, plain] : {std::pair("1.234,5", "1234,5"),
                                    {"-12.345.678", "-12345678"},
                                    {"\"4,305.04\"", "4305.04"},
                                    {"1 234", "1234"},
                                    {"1'234.5", "1234.5"}}) {
    const std::string message = refused(put("t.csv", fmt::format("a;b\n1;2\n1;{}\n", cell)));
    expect_part(message, fmt::format("has thousands separators; write {}, and", plain));
  }
  for (const char* cell : {"2024-01-05", "01.05.2024", "10.0.0.1", "1,2,3", "12 Monkeys", "1.234,5 EUR", "-"})
    expect_part(refused(put("t.csv", fmt::format("a;b\n1;2\n1;{}\n", cell))), "is not a number; if");
}

// As np.save writes the index of a data frame.
TEST_F(SmallFiles, ArraysOfObjectsAreRefusedWithTheRemedy) {
  put("o.npy", std::string("\x93NUMPY\1\0\x46\0", 10) +
                   "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }             \n" +
                   std::string(8, 'x'));
  expect_part(refused(folder_ / "o.npy"), "Python objects, which are never read; save plain arrays, with .astype(str)");
}

TEST_F(SmallFiles, RowsOfNothingButNanAreMissing) {
  Matrix<float> x(2, 2);
  x(0, 0) = x(0, 1) = NAN;
  Array array = borrow("v", std::as_const(x).view());
  write_npz(folder_ / "d.npz", {&array, 1});
  const Dataset data = read_dataset(folder_ / "d.npz");
  EXPECT_FALSE(data.has(0, 0));
  EXPECT_TRUE(data.has(1, 0));
  write_npy(folder_ / "v.npy", array);
  put("dataset.toml", "[[views]]\nname = 'v'\nfile = 'v.npy'\n");
  EXPECT_FALSE(read_dataset(folder_ / "dataset.toml").has(0, 0));
  x(0, 0) = 1;
  write_npz(folder_ / "d.npz", {&array, 1});
  expect_part(refused(folder_ / "d.npz"), "row 0, column 1");
  write_npy(folder_ / "v.npy", array);
  expect_part(refused(folder_ / "dataset.toml"), "row 0, column 1");
}

// ---- promises that a file cannot keep are refused before memory is taken (a sanitizer would stop the
// allocation)

TEST_F(SmallFiles, HugeHeaders) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000, 10000000), }";
  header.resize(117, ' ');
  header += '\n';
  const std::string npy = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
  expect_part(refused(put("d.npy", npy)), "100000000 x 10000000");
  expect_part(refused(put("d.mtx",
                          "%%MatrixMarket matrix coordinate real general\n4000000000 4000000000 1\n1 1 1\n")),
              "4000000000");
  expect_part(
      refused(put("e.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1000000000000\n1 1 1\n")),
      "1000000000000");
  expect_part(refused(put("f.mtx", "%%MatrixMarket matrix array real general\n1000000 1000000\n1\n")),
              "1000000");
  expect_part(refused(put("d.libsvm", "1 4000000000:1\n")), "4000000000");
  expect_part(refused(put("d.fvec", std::string("\xFF\xFF\xFF\x7F\0\0\0\0", 8))), "2147483647");
}

TEST_F(SmallFiles, CompressedPromises) {
  // A level 5 variable of a few bytes that promises 2 GB of zeros.
  const std::uint32_t body[] = {14, 0x7FFFFF00, 6,     8,          6,   0, 5,
                                8,  46000,      46000, 0x00010001, 'X', 9, 0x7FFFFF00 - 64};
  std::string packed(256, '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(body),
                     sizeof(body)),
            Z_OK);
  packed.resize(size);
  std::string file(124, ' ');
  file += std::string("\x00\x01IM", 4);
  const std::uint32_t tag[2] = {15, static_cast<std::uint32_t>(size)};
  file.append(reinterpret_cast<const char*>(tag), 8);
  expect_part(refused(put("d.mat", file + packed)), "cannot hold");
}

TEST_F(SmallFiles, DamageIsReportedWithItsPlace) {
  expect_part(refused(put("a.csv", "a,b\n1,2\n3\n")), "line 3 has 1 cells");
  expect_part(refused(put("b.csv", "a,b\n1,x\n")), "line 2, column 'b': 'x' is not a number");
  expect_part(refused(put("c.csv", "")), "is empty");
  expect_part(refused(put("d.csv", "id,a\nx,1\nx,2\n")), "both called 'x'");
  expect_part(refused(put("a.arff", "@relation r\n@attribute a numeric\n@data\n1,2\n")), "line 4");
  expect_part(refused(put("b.arff", "@relation r\n@attribute a numeric\n")), "has no @data");
  expect_part(refused(put("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n")),
              "ends after 1 entries, 2");
  expect_part(refused(put("b.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n")),
              "line 3: '3' is not a row (1 to 2)");
  expect_part(refused(put("a.npz", "PK")), "no end record");
  expect_part(refused(put("a.mat", "short")), "5 bytes");
  expect_part(refused(put("inf.csv", "a,b\n1,inf\n")), "row 0, column 'b'");
  std::filesystem::create_directories(folder_ / "set");
  const std::string toml =
      put("set/dataset.toml", "[[views]]\nname = \"v\"\nfile = \"v.csv\"\nheder = true\n");
  expect_part(refused(toml), "line 4: there is no key 'heder'; did you mean 'header'?");
}

TEST_F(SmallFiles, LabelsAloneAndViewsAloneAreRead) {
  const Array labels = [&] {
    static Matrix<std::uint8_t> y(2, 3);
    return borrow("label", std::as_const(y).view());
  }();
  write_npz(folder_ / "labels.npz", {&labels, 1});
  EXPECT_TRUE(read_dataset(folder_ / "labels.npz").views.empty());
  EXPECT_TRUE(read_dataset(put("views.csv", "a,b\n1,2\n")).labels.empty());
}

TEST_F(SmallFiles, StackedLearFilesThroughToml) {
  const auto hvecs = [](std::initializer_list<std::uint16_t> values) {
    std::string bytes;
    for (std::uint16_t x : values) bytes.append(reinterpret_cast<const char*>(&x), 2);
    return bytes;
  };
  std::filesystem::create_directories(folder_ / "set");
  put("set/train_hue.hvecs", hvecs({2, 1, 2}));
  put("set/test_hue.hvecs", hvecs({2, 3, 4}));
  put("set/train_annot.hvecs", hvecs({1, 1}));
  put("set/test_annot.hvecs", hvecs({1, 0}));
  put("set/dictionary.txt", "sky\n");
  put("set/dataset.toml",
      "[[views]]\nname = \"hue\"\nfile = [\"train_hue.hvecs\", \"test_hue.hvecs\"]\n[labels]\nfile = "
      "[\"train_annot.hvecs\", "
      "\"test_annot.hvecs\"]\nnames = \"dictionary.txt\"\n");
  const Dataset data = read_dataset(folder_ / "set");
  EXPECT_EQ(data.rows, 2u);
  EXPECT_EQ(std::get<Table<float>>(data.views[0].features)(1, 0), 3.f);
  EXPECT_EQ(data.label_names, std::vector<std::string>{"sky"});
  EXPECT_EQ(data.labels(1, 0), 0);
}

}  // namespace
}  // namespace lacuna
