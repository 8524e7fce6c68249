// .h5ad and .h5mu, against anndata: what it writes is read, what we write it reads, and hostile files are
// refused. Skipped where no python3 has anndata and h5py; lacuna's own round trips need neither.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/hdf5_write.h"
#include "data/lzf.h"
#include "data/readers.h"
#include "program.h"
#include "temporary.h"

namespace lacuna {
namespace {

#ifdef __SANITIZE_ADDRESS__  // the sanitizer keeps what was freed, and shadows of it
constexpr std::size_t kMostMemory = std::size_t{2} << 30;
#else
constexpr std::size_t kMostMemory = std::size_t{300} << 20;
#endif

using Json = nlohmann::json;

const char* python() {
  static const char* const found = []() -> const char* {
    for (const char* name : {"/usr/bin/python3", "python3"})
      if (std::system(fmt::format("{} -c 'import anndata, h5py' >/dev/null 2>&1", name).c_str()) == 0)
        return name;
    return nullptr;
  }();
  return found;
}

bool run_script(const std::string& arguments) {
  return std::system(fmt::format("{} {}/tests/anndata_files.py {}", python(), LACUNA_SOURCE_DIR, arguments)
                         .c_str()) == 0;
}

#define NEEDS_ANNDATA      \
  if (python() == nullptr) \
  GTEST_SKIP() << "no python3 has anndata and h5py (Debian: python3-anndata, python3-h5py)"

// The files are written once for all tests.
const TemporaryDirectory& files(const char* what) {
  static const TemporaryDirectory good, hostile;
  static const bool written = run_script("write " + good / "") && run_script("hostile " + hostile / "");
  if (!written) throw std::runtime_error("tests/anndata_files.py failed");
  return what == std::string("good") ? good : hostile;
}

float value(std::size_t i, std::size_t j) {
  return (i + j) % 3 == 0 ? 0.f : static_cast<float>(10 * i + j);
}

void expect_values(const View& view, std::size_t columns, const std::vector<std::size_t>& rows) {
  ASSERT_EQ(view.columns(), columns);
  std::vector<float> row(columns);
  for (const std::size_t i : rows) {
    view.copy_row(i, row);
    for (std::size_t j = 0; j < columns; ++j) EXPECT_EQ(row[j], value(i, j)) << i << ", " << j;
  }
}

std::vector<int> label(const Dataset& data, const std::string& name) {
  const auto at = std::ranges::find(data.label_names, name);
  if (at == data.label_names.end()) return {};
  std::vector<int> out;
  for (std::size_t i = 0; i < data.rows; ++i)
    out.push_back(data.labels(i, static_cast<std::size_t>(at - data.label_names.begin())));
  return out;
}

Dataset read_with(const std::string& path, std::vector<std::string> labels,
                  std::vector<std::string> views = {}) {
  ReadOptions options;
  options.labels = std::move(labels);
  options.views = std::move(views);
  return read_dataset(path, options);
}

std::string refusal(const std::string& path, std::vector<std::string> labels = {},
                    std::vector<std::string> views = {}) {
  try {
    read_with(path, std::move(labels), std::move(views));
  } catch (const Error& error) {
    return error.what();
  }
  return "was read";
}

const std::vector<std::string> kIds = {"c0", "c1", "c2", "c3", "c4", "c5"};
const std::vector<int> kCelltype[3] = {
    {0, 1, -1, 0, 0, 1}, {1, 0, -1, 1, 0, 0}, {0, 0, -1, 0, 1, 0}};  // T, B, NK

class Layout : public testing::TestWithParam<const char*> {};

TEST_P(Layout, ValuesNamesAndLabelsAreRead) {
  NEEDS_ANNDATA;
  const Dataset data = read_with(files("good") / GetParam(), {"obs:celltype"});
  ASSERT_EQ(data.views.size(), 1u);
  EXPECT_EQ(data.views[0].name, "X");
  EXPECT_EQ(data.views[0].column_names, (std::vector<std::string>{"g0", "g1", "g2", "g3"}));
  EXPECT_EQ(data.ids, kIds);
  EXPECT_TRUE(data.present.empty());
  expect_values(data.views[0], 4, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"T", "B", "NK"}));
  for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(label(data, data.label_names[j]), kCelltype[j]);
}
INSTANTIATE_TEST_SUITE_P(H5ad, Layout,
                         testing::Values("dense.h5ad", "csr.h5ad", "csc.h5ad", "gzip.h5ad", "lzf.h5ad",
                                         "half.h5ad", "uint8.h5ad", "big_endian.h5ad", "chunked.h5ad",
                                         "unsorted.h5ad", "old.h5ad", "v0_7.h5ad"),
                         [](const auto& one) {
                           const std::string name = one.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(H5ad, SparseStaysSparseAndTypesAreTold) {
  NEEDS_ANNDATA;
  for (const auto& [name, sparse, type] : {std::tuple("dense.h5ad", false, "float64"),
                                           {"csr.h5ad", true, "float32"},
                                           {"csc.h5ad", true, "float32"},
                                           {"uint8.h5ad", false, "uint8"},
                                           {"half.h5ad", false, "float16"}}) {
    const Dataset data = read_dataset(files("good") / name);
    EXPECT_EQ(data.views[0].sparse(), sparse) << name;
    EXPECT_EQ(data.views[0].source_type, type) << name;
  }
}

TEST(H5ad, ColumnsOfEveryKindBecomeLabels) {
  NEEDS_ANNDATA;
  const std::string path = files("good") / "dense.h5ad";
  const Dataset data =
      read_with(path, {"celltype", "treated", "obs:maybe", "obs/cluster", "binary", "answer"});
  EXPECT_EQ(data.label_names,
            (std::vector<std::string>{"celltype=T", "celltype=B", "celltype=NK", "treated", "maybe",
                                      "cluster=1", "cluster=2", "cluster=3", "binary", "answer"}));
  EXPECT_EQ(label(data, "celltype=B"), kCelltype[1]);
  EXPECT_EQ(label(data, "treated"), (std::vector<int>{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(label(data, "maybe"), (std::vector<int>{1, -1, 0, 1, -1, 0}));
  EXPECT_EQ(label(data, "cluster=3"), (std::vector<int>{1, 0, -1, 1, 0, 0}));
  EXPECT_EQ(label(data, "binary"), (std::vector<int>{1, 0, -1, 1, 0, 1}));
  EXPECT_EQ(label(data, "answer"), (std::vector<int>{1, 0, -1, 1, -1, 0}));
}

TEST(H5ad, MatricesBecomeLabelsAndViews) {
  NEEDS_ANNDATA;
  const std::string path = files("good") / "dense.h5ad";
  const Dataset data =
      read_with(path, {"obsm:tags", "obsm/frame"}, {"rna=X", "obsm/X_pca", "c=layers/counts"});
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"tags0", "tags1", "tags2", "p", "q"}));
  EXPECT_EQ(label(data, "tags0"), (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(label(data, "q"), (std::vector<int>{1, -1, 0, 1, -1, 0}));
  ASSERT_EQ(data.views.size(), 3u);
  EXPECT_EQ(data.views[0].name, "rna");
  EXPECT_EQ(data.views[1].name, "X_pca");
  EXPECT_TRUE(data.views[1].column_names.empty());
  std::vector<float> row(2);
  data.views[1].copy_row(4, row);
  EXPECT_EQ(row, (std::vector<float>{8, 9}));
  row.resize(4);
  data.views[2].copy_row(5, row);
  EXPECT_EQ(row[0], value(5, 0) + 1);
  EXPECT_EQ(data.views[2].column_names[3], "g3");
}

TEST(H5ad, WhatIsLeftAsideIsSaid) {
  NEEDS_ANNDATA;
  ReadOptions read;
  EXPECT_EQ(read_dataset(files("good") / "dense.h5ad", read).notes.size(), 1u);  // predict reads no labels
  Options options;
  read.declare(options);
  const Dataset data = read_dataset(files("good") / "dense.h5ad", read);
  ASSERT_EQ(data.notes.size(), 2u);
  EXPECT_EQ(
      data.notes[0],
      "ignored: raw, layers/counts, obsm/X_pca, obsm/frame, obsm/tags; --views can add matrices");
  EXPECT_EQ(data.notes[1],
            "no labels were chosen; --labels takes columns, here obs:celltype, obs:treated, obs:maybe, "
            "obs:cluster, obs:binary, obs:answer, obs:score");
  EXPECT_TRUE(data.labels.empty());
}

TEST(H5ad, NamesThatAreNone) {
  NEEDS_ANNDATA;
  const Dataset plain = read_dataset(files("good") / "plain.h5ad");
  EXPECT_TRUE(plain.ids.empty());
  EXPECT_TRUE(plain.views[0].column_names.empty());
  const Dataset twins = read_dataset(files("good") / "twins.h5ad");
  EXPECT_EQ(twins.views[0].column_names, (std::vector<std::string>{"A", "A-2", "A-1", "A-3"}));
  EXPECT_EQ(twins.notes[0], "2 of the variable names of 'X' are duplicates; the second 'A' is called 'A-2'");
}

// float32 would make 20231100 of 20231101.
TEST(H5ad, NamesThatAreLongNumbers) {
  const TemporaryDirectory folder;
  const std::string path = folder / "numbers.h5ad";
  const double ids[] = {20231101, 20231105};
  Array names;
  names.type = Element::f64;
  names.shape = {2};
  names.bytes = std::as_bytes(std::span(ids));
  Hdf5Writer file(path, path, 0);
  for (const char* frame : {"obs", "var"}) {
    file.group(frame);
    file.attribute(frame, "encoding-type", text_value("", "dataframe"));
    file.attribute(frame, "_index", text_value("", "names"));
    file.dataset(std::string(frame) + "/names", names);
  }
  const Matrix<float> x(2, 2);
  file.dataset("X", borrow("", x.view()));
  file.close();
  const Dataset data = read_dataset(path);
  EXPECT_EQ(data.ids, (std::vector<std::string>{"20231101", "20231105"}));
  EXPECT_EQ(data.views[0].column_names, data.ids);
}

TEST(H5mu, ModalitiesAreJoinedByName) {
  NEEDS_ANNDATA;
  const Dataset data =
      read_with(files("good") / "multi.h5mu", {"rna/obs:celltype", "prot:treated", "all:answer"});
  EXPECT_EQ(data.ids, kIds);
  ASSERT_EQ(data.views.size(), 2u);
  EXPECT_EQ(data.views[0].name, "rna");
  EXPECT_EQ(data.views[1].name, "prot");
  EXPECT_TRUE(data.views[0].sparse());
  expect_values(data.views[0], 4, {0, 1, 2, 3, 4});
  expect_values(data.views[1], 3, {1, 3, 5});
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(data.has(i, 0), i < 5) << i;
    EXPECT_EQ(data.has(i, 1), i % 2 == 1) << i;
  }
  EXPECT_EQ(data.views[1].column_names, (std::vector<std::string>{"p0", "p1", "p2"}));
  EXPECT_EQ(label(data, "celltype=B"), (std::vector<int>{1, 0, -1, 1, 0, -1}));
  EXPECT_EQ(label(data, "treated"), (std::vector<int>{-1, 0, -1, 0, -1, 0}));
  EXPECT_EQ(label(data, "all:answer"), (std::vector<int>{1, 0, -1, 1, -1, 0}));
  EXPECT_EQ(data.notes[0], "ignored: rna/layers/counts, rna/obsm/X_pca; --views can add matrices");
  const Dataset chosen = read_with(files("good") / "multi.h5mu", {"celltype"}, {"prot", "rna/obsm/X_pca"});
  EXPECT_EQ(chosen.views[1].name, "rna/X_pca");
  EXPECT_FALSE(chosen.has(5, 1));
  EXPECT_TRUE(chosen.has(4, 1));
}

TEST(H5ad, MistakesGetTheRightName) {
  NEEDS_ANNDATA;
  const std::string dense = files("good") / "dense.h5ad", multi = files("good") / "multi.h5mu";
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal(dense, {"celtype"}),
      "no obs has a column 'celtype'; did you mean 'celltype'?; there are obs:celltype, obs:treated");
  has(refusal(dense, {"obs:celtype"}), "did you mean 'celltype'?");
  has(refusal(dense, {"obsm:tag"}),
      "there is no such matrix; did you mean 'tags'?; obsm has X_pca, frame, tags");
  has(refusal(dense, {"score"}), "so it is a measurement");
  has(refusal(dense, {"celltype", "celltype"}), "are both called 'celltype=T'");
  has(refusal(dense, {}, {"obsm/X_umap"}), "has no matrix 'obsm/X_umap'; did you mean 'obsm/X_pca'?");
  has(refusal(multi, {}, {"rnaa"}), "has no matrix 'rnaa'; did you mean 'rna'?");
  has(refusal(multi, {"rna/obs:cell"}), "has no column 'cell'");
}

class Hostile : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Hostile, IsRefusedWithoutHarm) {
  NEEDS_ANNDATA;
  const auto [name, message] = GetParam();
  const std::string path = files("hostile") / (std::string(name) + ".h5ad");
  const bool labels = std::string(name) == "far_code" || std::string(name) == "short_mask";
  const std::string text =
      refusal(path, labels ? std::vector<std::string>{"celltype", "maybe"} : std::vector<std::string>{});
  EXPECT_NE(text.find(message), std::string::npos) << text;
  if (std::string(name).starts_with("huge") || std::string(name) == "many_links") {
    const Ended ended = run({"data", "inspect", path});
    EXPECT_EQ(ended.code, 3) << ended.err;
    EXPECT_LT(ended.peak_bytes, kMostMemory);
  }
}
INSTANTIATE_TEST_SUITE_P(
    H5ad, Hostile,
    testing::Values(
        std::pair("external_link", "'X' is an external link; only values inside the file are read"),
        std::pair("soft_link", "'X' is a soft link; only values inside the file are read"),
        std::pair("soft_link_inside", "'X/data' is a soft link"),
        std::pair("itself", "has no 'mod/layers/obs'"),
        std::pair("many_links", "are the same values many times over"),
        std::pair("external_storage", "'X' lies in other files"),
        std::pair("virtual", "'X' lies in other files"),
        std::pair("huge", "'X' promises 1,152,921,504,606,846,976 values of 4 bytes, but has only 0 bytes"),
        std::pair("huge_names", "'obs/_index' promises 1,099,511,627,776 values"),
        std::pair("huge_shape", "x 1099511627776 values are implausible"),
        std::pair("filter", "is compressed by filter 32015"),
        std::pair("filter_twice", "is compressed 2 times over"),
        std::pair("text_matrix", "is text, expected a matrix of numbers"),
        std::pair("cube", "has 3 dimensions, expected at most 2"),
        std::pair("complex", "contains neither numbers nor strings"),
        std::pair("few_rows", "'X' has 5 rows, but there are 6 observations"),
        std::pair("few_columns", "'X' has 3 columns, but there are 4 variables"),
        std::pair("far_column", "a value lies in column 4 of 4"),
        std::pair("negative_column", "is -1, expected a whole number from 0"),
        std::pair("falling_starts", "indptr falls from 9 to 3 at 2"),
        std::pair("short_starts", "has 6 rows but 2 starts (indptr)"),
        std::pair("no_data", "'X/data' is not there"),
        std::pair("no_obs", "has no 'obs'; is it an AnnData file?"),
        std::pair("no_index", "does not say which of its columns are the names (_index)"),
        std::pair("odd_index", "does not say which of its columns are the names (_index)"),
        std::pair("odd_encoding", "is encoded as 'awkward-array', expected a dense or sparse matrix"),
        std::pair("twins", "rows 1 and 3 of 'obs' are both called 'b'"),
        std::pair("far_code", "the code 9 has no category; there are 3"),
        std::pair("short_mask", "the mask has 2 values, the column 6"), std::pair("no_rows", "has no rows"),
        std::pair("no_x", "has no X; --views takes other matrices as views, here obsm/X_pca"),
        std::pair("no_hdf5", "is not an HDF5 file"), std::pair("cut", "cannot be opened as an HDF5 file")),
    [](const auto& one) { return std::string(one.param.first); });

TEST(H5ad, LzfRefusesWhatItCannotHold) {
  const auto bytes = [](std::initializer_list<int> list) {
    std::vector<std::byte> out;
    for (int b : list) out.push_back(static_cast<std::byte>(b));
    return out;
  };
  std::vector<std::byte> out(8);
  EXPECT_EQ(lzf_decompress(bytes({1, 'a', 'b', 0x80, 1}), out), 8u);  // ab, then 6 from 2 back
  EXPECT_EQ(out, bytes({'a', 'b', 'a', 'b', 'a', 'b', 'a', 'b'}));
  EXPECT_EQ(lzf_decompress(bytes({1, 'a', 'b', 0x80, 2}), out), 0u);  // from before the start
  EXPECT_EQ(lzf_decompress(bytes({1, 'a', 'b', 0xA0, 1}), out), 0u);  // longer than the place
  EXPECT_EQ(lzf_decompress(bytes({5, 'a', 'b'}), out), 0u);           // cut off
  EXPECT_EQ(lzf_decompress(bytes({1, 'a', 'b', 0xE0}), out), 0u);
}

// ---- what we write

Json shown_by_anndata(const std::string& path) {
  const std::string out = path + ".json";
  if (!run_script(fmt::format("show {} > {}", path, out))) return {};
  return Json::parse(read_text(out));
}

// Views with gaps, odd names, unknown labels.
Dataset awkward() {
  Dataset data;
  data.rows = 3;
  data.name = "awkward";
  data.source = "a test";
  Matrix<float> dense(3, 2);
  for (std::size_t k = 0; k < 6; ++k) dense.values()[k] = static_cast<float>(k) + .5f;
  data.views.push_back({"rna", Table<float>(std::move(dense)), {"HLA-A", "β/2"}});
  Matrix<std::uint64_t> start(1, 4);
  Matrix<std::uint32_t> index(1, 2);
  Matrix<float> value(1, 2);
  start(0, 1) = start(0, 2) = 1;
  start(0, 3) = 2;
  index(0, 0) = 2;
  index(0, 1) = 0;
  value(0, 0) = 7;
  value(0, 1) = -1;
  data.views.push_back({"a/b", Csr{std::move(start), std::move(index), std::move(value), 3}, {}});
  Matrix<std::uint8_t> present(3, 2);
  present(0, 0) = present(2, 0) = present(0, 1) = present(2, 1) = present(1, 1) = 1;
  data.present = std::move(present);
  Matrix<std::int8_t> labels(3, 3);
  const std::int8_t cells[] = {1, 0, kUnknown, 0, 1, 1, 1, kUnknown, 0};
  std::ranges::copy(cells, labels.values().begin());
  data.labels = std::move(labels);
  data.label_names = {"ER positive", "any/all", "_index"};
  data.ids = {"s-1", "sömething", "s3"};
  return data;
}

TEST(H5mu, AnndataReadsWhatWeWrite) {
  NEEDS_ANNDATA;
  const TemporaryDirectory folder;
  write_dataset(awkward(), folder / "a.h5mu");
  const Json seen = shown_by_anndata(folder / "a.h5mu");
  EXPECT_EQ(seen["magic"], "MuData");
  EXPECT_EQ(seen["order"], Json::parse(R"(["rna", "view1"])"));
  EXPECT_EQ(seen["obs_names"], Json::parse(R"(["s-1", "sömething", "s3"])"));
  EXPECT_EQ(seen["mod"]["rna"]["X"], Json::parse("[[0.5, 1.5], [4.5, 5.5]]"));
  EXPECT_EQ(seen["mod"]["rna"]["obs_names"], Json::parse(R"(["s-1", "s3"])"));
  EXPECT_EQ(seen["mod"]["rna"]["var_names"], Json::parse(R"(["HLA-A", "β/2"])"));
  EXPECT_EQ(seen["mod"]["view1"]["X"], Json::parse("[[0, 0, 7], [0, 0, 0], [-1, 0, 0]]"));
  EXPECT_EQ(seen["mod"]["view1"]["sparse"], true);
  EXPECT_EQ(seen["obs"]["ER positive"], Json::parse("[true, false, true]"));
  EXPECT_EQ(seen["obs"]["label1"], Json::parse("[false, true, null]"));
  EXPECT_EQ(seen["obs"]["label2"], Json::parse("[null, true, false]"));
  EXPECT_EQ(seen["obsm"]["rna"], Json::parse("[true, false, true]"));
  EXPECT_EQ(seen["obsmap"]["rna"], Json::parse("[1, 0, 2]"));
}

TEST(H5ad, AnndataReadsWhatWeWrite) {
  NEEDS_ANNDATA;
  const TemporaryDirectory folder;
  Dataset data = awkward();
  data.views.pop_back();
  data.present = {};
  write_dataset(data, folder / "a.h5ad");
  const Json seen = shown_by_anndata(folder / "a.h5ad");
  EXPECT_EQ(seen["X"], Json::parse("[[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]"));
  EXPECT_EQ(seen["obs"]["label1"], Json::parse("[false, true, null]"));
  EXPECT_EQ(seen["var_names"], Json::parse(R"(["HLA-A", "β/2"])"));
}

void expect_same(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(content_hash(a), content_hash(b));
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.source, b.source);
  ASSERT_EQ(a.views.size(), b.views.size());
  for (std::size_t v = 0; v < a.views.size(); ++v) {
    EXPECT_EQ(a.views[v].column_names, b.views[v].column_names);
    EXPECT_EQ(a.views[v].sparse(), b.views[v].sparse());
  }
}

TEST(H5mu, OurOwnRoundTripKeepsEverything) {
  const TemporaryDirectory folder;
  const Dataset data = awkward();
  write_dataset(data, folder / "a.h5mu");
  expect_same(read_dataset(folder / "a.h5mu"), data);
}

TEST(H5ad, OneViewOnly) {
  const TemporaryDirectory folder;
  Dataset data = awkward();
  EXPECT_THROW(write_dataset(data, folder / "a.h5ad"), Error);
  data.views.pop_back();
  Matrix<std::uint8_t> present(3, 1);
  present(0, 0) = 1;
  data.present = std::move(present);
  EXPECT_THROW(write_dataset(data, folder / "a.h5ad"), Error);
  data.present = {};
  write_dataset(data, folder / "a.h5ad");
  expect_same(read_dataset(folder / "a.h5ad"), data);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5mu"));
}

// ---- the program

TEST(H5mu, InspectTrainPredictConvert) {
  const TemporaryDirectory folder;
  const std::string csv = folder / "s.npz", mu = folder / "s.h5mu", model = folder / "m.safetensors";
  ASSERT_EQ(run({"data", "simulate", "--rows", "60", "--views", "2", "--labels", "3", csv}).code, 0);
  Ended ended = run({"data", "convert", csv, mu});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ended = run({"data", "inspect", mu, "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Json::parse(ended.out)["labels"]["count"], 3);
  ended = run({"train", mu, "--epochs", "2", "--out", model});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ended = run({"predict", model, mu, "--out", folder / "a.csv"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  ended = run({"predict", model, csv, "--out", folder / "b.csv"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(read_text(folder / "a.csv"), read_text(folder / "b.csv"));
}

}  // namespace
}  // namespace lacuna
