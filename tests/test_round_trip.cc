// What is written in any form is read back as it was.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "data/mat.h"
#include "data/mat5.h"
#include "data/npy.h"
#include "data/readers.h"
#include "random_dataset.h"
#include "temporary.h"

namespace lacuna {
namespace {

void expect_same(const Dataset& a, const Dataset& b) {
  RC_ASSERT(content_hash(a) == content_hash(b));
  RC_ASSERT(a.rows == b.rows);
  RC_ASSERT(a.name == b.name);
  RC_ASSERT(a.source == b.source);
  RC_ASSERT(a.ids == b.ids);
  RC_ASSERT(a.label_names == b.label_names);
  RC_ASSERT(a.views.size() == b.views.size());
  for (std::size_t v = 0; v < a.views.size(); ++v) {
    RC_ASSERT(a.views[v].name == b.views[v].name);
    RC_ASSERT(a.views[v].column_names == b.views[v].column_names);
    RC_ASSERT(a.views[v].sparse() == b.views[v].sparse());
    std::vector<float> x(a.views[v].columns()), y(b.views[v].columns());
    for (std::size_t i = 0; i < a.rows; ++i) {
      RC_ASSERT(a.has(i, v) == b.has(i, v));
      if (!a.has(i, v)) continue;
      a.views[v].copy_row(i, x);
      b.views[v].copy_row(i, y);
      RC_ASSERT(x == y);
    }
  }
  for (std::size_t i = 0; i < a.labels.rows(); ++i)
    RC_ASSERT(std::ranges::equal(a.labels.row(i), b.labels.row(i)));
}

void round_trip(const std::string& name) {
  const Dataset data = random_dataset();
  const TemporaryDirectory folder;
  write_dataset(data, folder / name);
  expect_same(data, read_dataset(folder / name));
}

RC_GTEST_PROP(RoundTrip, Npz, ()) {
  round_trip("d.npz");
}
RC_GTEST_PROP(RoundTrip, Mat, ()) {
  // MATLAB has no way to tell 'no names' from 'no variable' for a single text of blanks; names here have
  // none.
  round_trip("d.mat");
}
RC_GTEST_PROP(RoundTrip, H5mu, ()) {
  round_trip("d.h5mu");
}
RC_GTEST_PROP(RoundTrip, Native, ()) {
  round_trip("d");
}
RC_GTEST_PROP(RoundTrip, Csv, ()) {
  round_trip("d.csv");
}

// A quoted name may hold more separators than the row has.
TEST(RoundTrip, CsvNamesFullOfSeparators) {
  Dataset data;
  data.name = "d";
  data.rows = 2;
  Matrix<float> x(2, 1);
  x(1, 0) = 3;
  data.views.push_back(
      {.name = "v", .features = Table<float>(std::move(x)), .column_names = {"a\tb\tc;d;e;f"}});
  Matrix<std::int8_t> y(2, 2);
  y(0, 1) = 1;
  data.labels = std::move(y);
  data.label_names = {"tab\tand\ttab", "a;b;c;d"};
  const TemporaryDirectory folder;
  write_dataset(data, folder / "d.csv");
  const Dataset back = read_dataset(folder / "d.csv");
  EXPECT_EQ(back.label_names, data.label_names);
  EXPECT_EQ(back.views.at(0).column_names, data.views[0].column_names);
  EXPECT_EQ(content_hash(back), content_hash(data));
}

// The column of ids is the first of each table, also where another is called "0".
TEST(RoundTrip, CsvNamesThatAreNumbers) {
  for (const char* name : {"0", "1", "-1"}) {
    SCOPED_TRACE(name);
    Dataset data;
    data.name = "d";
    data.rows = 2;
    data.ids = {"p", "q"};
    Matrix<float> x(2, 2);
    x(1, 0) = 3;
    x(0, 1) = 5;
    data.views.push_back({.name = "v", .features = Table<float>(std::move(x)), .column_names = {"a", name}});
    Matrix<std::int8_t> y(2, 2);
    y(0, 1) = 1;
    data.labels = std::move(y);
    data.label_names = {"sun", name};
    const TemporaryDirectory folder;
    write_dataset(data, folder / "d.csv");
    const Dataset back = read_dataset(folder / "d.csv");
    EXPECT_EQ(back.ids, data.ids);
    EXPECT_EQ(back.label_names, data.label_names);
    EXPECT_EQ(content_hash(back), content_hash(data));
  }
}

// Features and labels may be called like ids, and hold different whole numbers, or the very ids, or the numbers of rows.
TEST(RoundTrip, CsvNamesThatSoundLikeIds) {
  for (const char* name : {"id", "patient_id", "sample", "index", "Unnamed: 0", "X", "name"})
    for (const bool with_ids : {true, false}) {
      SCOPED_TRACE(std::string(name) + (with_ids ? " beside ids" : ""));
      Dataset data;
      data.name = "d";
      data.rows = 3;
      if (with_ids) data.ids = {"7", "8", "11"};
      for (const bool first : {true, false}) {
        Matrix<float> x(3, 3);
        for (std::size_t i = 0; i < 3; ++i) {
          x(i, first ? 0 : 1) = static_cast<float>(i + 1);
          x(i, first ? 1 : 0) = .5f;
          x(i, 2) = i == 2 ? 11.f : static_cast<float>(i + 7);
        }
        std::vector<std::string> names = {first ? name : "a", first ? "a" : name, "b"};
        data.views.push_back({.name = first ? "v" : "w",
                              .features = Table<float>(std::move(x)),
                              .column_names = std::move(names)});
      }
      Matrix<std::int8_t> y(3, 2);
      y(1, 0) = y(0, 1) = 1;
      y(2, 0) = kUnknown;
      data.labels = std::move(y);
      data.label_names = {name, "sun"};
      const TemporaryDirectory folder;
      for (int times = 0; times < 2; ++times) {  // the second replaces what the first has written
        write_dataset(data, folder / "d.csv");
        const Dataset back = read_dataset(folder / "d.csv");
        EXPECT_EQ(back.ids, data.ids);
        EXPECT_EQ(back.label_names, data.label_names);
        for (std::size_t v = 0; v < 2; ++v)
          EXPECT_EQ(back.views.at(v).column_names, data.views[v].column_names);
        EXPECT_EQ(content_hash(back), content_hash(data));
      }
    }
}

TEST(RoundTrip, MatlabLevel73) {
  Matrix<float> a(3, 2), w(3, 2);
  for (std::size_t k = 0; k < 6; ++k) a.data()[k] = static_cast<float>(k) + .5f;
  for (auto& x : w.values()) x = 1;
  Matrix<std::uint64_t> start(1, 4);
  Matrix<std::uint32_t> index(1, 2);
  Matrix<float> value(1, 2);
  start(0, 1) = start(0, 2) = 1;
  start(0, 3) = 2;
  index(0, 1) = 3;
  value(0, 0) = 7;
  value(0, 1) = -2;
  MatValue sparse{.name = "", .type = "sparse", .shape = {3, 4}};
  sparse.sparse = Csr{std::move(start), std::move(index), std::move(value), 4};
  Matrix<float> labels(3, 2);
  labels(0, 0) = labels(1, 1) = labels(2, 0) = 1;
  const std::vector<MatValue> values = {
      mat_cell("X", {mat_matrix("", std::move(a)), sparse}), mat_texts("view_name", {"dense", "spärlich"}),
      mat_matrix("label", std::move(labels), "uint8"), mat_matrix("W", std::move(w), "uint8")};
  const TemporaryDirectory folder;
  write_mat(folder / "five.mat", values);
  write_mat73(folder / "seven.mat", values);
  const Dataset five = read_dataset(folder / "five.mat"), seven = read_dataset(folder / "seven.mat");
  EXPECT_EQ(content_hash(five), content_hash(seven));
  ASSERT_EQ(seven.views.size(), 2u);
  EXPECT_EQ(seven.views[1].name, "spärlich");
  EXPECT_TRUE(seven.views[1].sparse());
  std::vector<float> row(4);
  seven.views[1].copy_row(2, row);
  EXPECT_EQ(row, (std::vector<float>{0, 0, 0, -2}));
}

TEST(RoundTrip, AFailedWriteLeavesTheOldFolderWhole) {
  const TemporaryDirectory folder;
  Dataset data;
  data.rows = 1;
  Matrix<float> x(1, 1);
  x(0, 0) = 3;
  data.views.push_back({"v", Table<float>(std::move(x)), {}, "float32"});
  write_dataset(data, folder / "d");
  const std::string before = content_hash(read_dataset(folder / "d"));
  write_dataset(data, folder / "d");  // over what is there
  EXPECT_EQ(content_hash(read_dataset(folder / "d")), before);
  Dataset bad = data;
  bad.ids = {"a", "b"};
  EXPECT_THROW(write_dataset(bad, folder / "d"), Error);
  EXPECT_EQ(content_hash(read_dataset(folder / "d")), before);
  std::filesystem::create_directories(folder / "other");
  std::ofstream(folder / "other/precious.txt") << "keep me";
  EXPECT_THROW(write_dataset(data, folder / "other"), Error);
  EXPECT_TRUE(std::filesystem::exists(folder / "other/precious.txt"));
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "")) ++entries;
  EXPECT_EQ(entries, 2u) << "a temporary folder was left behind";
}

}  // namespace
}  // namespace lacuna
