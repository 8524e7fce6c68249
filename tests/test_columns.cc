// Columns have names: a model knows those it was trained on, and finds them in any file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "checks.h"
#include "data/readers.h"
#include "data/scores.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "program.h"

namespace lacuna {
namespace {

constexpr std::size_t kRows = 60, kGenes = 5, kSpots = 3;

std::vector<std::string> names(const char* stem, std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t j = 0; j < count; ++j) out.push_back(fmt::format("{}{}", stem, j));
  return out;
}

Dataset named_data() {
  SimulateOptions options;
  options.rows = kRows;
  options.views = 2;
  options.labels = 3;
  options.sizes = {kGenes, kSpots};
  Dataset data = simulate(options).data;
  data.views[0].name = "rna";
  data.views[1].name = "img";
  data.views[0].column_names = names("gene", kGenes);
  data.views[1].column_names = names("spot", kSpots);
  data.ids = names("p", kRows);
  data.present = {};
  return data;
}

// The columns of a view in another order, names included.
View shuffled(const View& view, const std::vector<std::size_t>& order) {
  View out = view;
  Matrix<float> values(view.rows(), order.size());
  std::vector<float> row(view.columns());
  out.column_names.clear();
  for (std::size_t i = 0; i < values.rows(); ++i) {
    view.copy_row(i, row);
    for (std::size_t k = 0; k < order.size(); ++k) values(i, k) = row[order[k]];
  }
  for (const auto j : order) out.column_names.push_back(view.column_names[j]);
  out.features = std::move(values);
  return out;
}

std::string mismatch(const Model& model, const Dataset& data) {
  try {
    model.predict(data);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::mismatch) << error.what();
    return error.what();
  }
  return "(no error)";
}

TEST(Columns, AreFoundByNameInAnyOrderByEveryMethod) {
  const Dataset data = named_data();
  for (const auto& method : method_names()) {
    Model model(method);
    for (const auto& [name, value] : {std::pair{"epochs", "2"}, {"iterations", "3"}, {"members", "1"}})
      if (model.options().find(name) != nullptr) model.options().set(name, value, "test");
    model.fit(select_all(data));
    Dataset other = data;
    other.views[0] = shuffled(data.views[0], {3, 0, 4, 2, 1});
    EXPECT_TRUE(same(model.predict(other), model.predict(data))) << method;
    const auto notes = model.columns().match(other).notes;
    ASSERT_EQ(notes.size(), 1u) << method;
    EXPECT_TRUE(has(notes[0], "matched by name")) << notes[0];
    EXPECT_TRUE(model.columns().match(data).notes.empty());
  }
}

TEST(Columns, OfSparseViewsAreFoundByNameToo) {
  Dataset data = named_data();
  Model model("prior");
  model.options().set("prepare", "zscore", "test");
  model.fit(select_all(data));
  Matrix<std::uint64_t> start(1, 2);
  start(0, 1) = 2;
  Matrix<std::uint32_t> index(1, 2);
  index(0, 0) = 1, index(0, 1) = 4;
  Matrix<float> value(1, 2);
  value(0, 0) = 7, value(0, 1) = 9;
  Dataset one;
  one.rows = 1;
  one.views.push_back(
      {"rna", Csr{std::move(start), std::move(index), std::move(value), kGenes}, {}, "float32"});
  one.views[0].column_names = {"gene4", "gene3", "gene2", "gene1", "gene0"};
  const Columns::Match match = model.columns().match(one);
  std::vector<float> row(kGenes);
  match.data.views[0].copy_row(0, row);
  EXPECT_EQ(row, (std::vector<float>{9, 0, 0, 7, 0}));  // gene3 = 7, gene0 = 9
}

TEST(Columns, MissingAndUnknownOnesAreRefusedWithBothCounts) {
  const Dataset data = named_data();
  Model model("prior");
  model.fit(select_all(data));
  Dataset renamed = data;
  renamed.views[0].column_names[2] = "gene_2";
  std::string message = mismatch(model, renamed);
  for (const char* part : {"view 'rna'", "missing: 1 of the model's 5 columns ('gene2')",
                           "unknown to the model: 1 of its 5 columns ('gene_2')", "did you mean 'gene2'?"})
    EXPECT_TRUE(has(message, part)) << message;
  Dataset more = data;  // a table that came with its ids under an unknown header
  more.views[0].source_type = "text";
  more.views[0].column_names.push_back("nummer");
  more.views[0].features = Table<float>(Matrix<float>(more.rows, 6));
  message = mismatch(model, more);
  EXPECT_TRUE(has(message, "('nummer'); if they contain ids or labels, say so with --id-column")) << message;
  Dataset fewer = data;
  fewer.views[0] = shuffled(data.views[0], {0, 1, 2, 3});
  message = mismatch(model, fewer);
  EXPECT_TRUE(has(message, "missing: 1 of the model's 5 columns ('gene4')")) << message;
  EXPECT_FALSE(has(message, "unknown")) << message;
  Dataset twice = data;
  twice.views[0].column_names[2] = "gene1";
  EXPECT_TRUE(has(mismatch(model, twice), "both called 'gene1'")) << mismatch(model, twice);
}

TEST(Columns, WithoutNamesOnOneSideAreTakenInTheirOrderAndThatIsSaid) {
  const Dataset data = named_data();
  Dataset bare = data;
  bare.views[0].column_names.clear();
  bare.views[1].column_names.clear();
  Model named("prior"), unnamed("prior");
  named.fit(select_all(data));
  unnamed.fit(select_all(bare));
  EXPECT_TRUE(same(named.predict(bare), named.predict(data)));
  EXPECT_EQ(named.columns().match(bare).notes.size(), 2u);
  EXPECT_TRUE(has(named.columns().match(bare).notes[0], "the columns of the data have no names"));
  EXPECT_TRUE(has(unnamed.columns().match(data).notes[0], "the columns of the model have no names"));
  EXPECT_TRUE(unnamed.columns().match(bare).notes.empty());
  bare.views[0].features = Table<float>(Matrix<float>(kRows, 9));
  EXPECT_TRUE(has(mismatch(named, bare), "9 columns, the model expects 5"));
}

TEST(Columns, NamesAndMeansAreKeptInTheFileAndOlderFilesLoad) {
  const Dataset data = named_data();
  const TemporaryDirectory folder;
  Model model("prior");
  model.fit(select_all(data));
  model.save(folder / "model");
  Tensors file = Tensors::read(folder / "model");
  const Model loaded = Model::load(file);
  EXPECT_EQ(loaded.columns().views()[0].names, data.views[0].column_names);
  EXPECT_EQ(loaded.columns().views()[0].means, model.columns().views()[0].means);
  auto wrong = file;
  wrong.metadata["column_names"][1].push_back("one too many");
  EXPECT_THROW(Model::load(wrong), Error);
  wrong.metadata["column_names"] = 3;
  EXPECT_THROW(Model::load(wrong), Error);
  Tensors older = file;  // version 0.1 wrote neither
  older.metadata.erase("column_names");
  EXPECT_TRUE(Model::load(older).columns().views()[0].names.empty());
  EXPECT_TRUE(same(Model::load(older).predict(data), loaded.predict(data)));
  const Columns bare = Columns::load(Tensors(), {{"rna", kGenes, {}, {}}, {"img", kSpots, {}, {}}});
  Dataset holes = data;
  EXPECT_EQ(bare.match(holes).source, (std::vector<int>{0, 1}));
  holes.empty_cells = true;
  EXPECT_THROW(bare.match(holes), Error);
}

TEST(Columns, EmptyCellsBecomeTheMeansOfTheTrainingRows) {
  const Dataset data = named_data();
  Model model("prior");
  model.options().set("prepare", "zscore", "test");
  Selection train = select_all(data);
  train.rows.resize(40);
  model.fit(train, 0);
  double sum = 0;
  const auto& table = std::get<Table<float>>(data.views[0].features);
  for (std::size_t i = 0; i < 40; ++i) sum += double{table(i, 2)};
  Matrix<float> one(1, kGenes);
  for (std::size_t j = 0; j < kGenes; ++j) one(0, j) = table(50, j);
  one(0, 2) = std::numeric_limits<float>::quiet_NaN();
  Dataset asked;
  asked.rows = 1;
  asked.views.push_back({"rna", Table<float>(std::move(one)), data.views[0].column_names, "float32"});
  asked.empty_cells = true;
  const Columns::Match match = model.columns().match(asked);
  EXPECT_FLOAT_EQ(std::get<Table<float>>(match.data.views[0].features)(0, 2), static_cast<float>(sum / 40));
  EXPECT_FLOAT_EQ(std::get<Table<float>>(match.data.views[0].features)(0, 3), table(50, 3));
}

// --- as a user meets it -----------------------------------------------------------------------------------

class ColumnsProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    data_ = new Dataset(named_data());
    write(*data_, "train");
    write_dataset(*data_, path("train.npz"));
    const Ended ended = run({"train", path("train"), "--out", path("model"), "--method", "imvwl"});
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    delete data_;
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  // A folder of CSV files as a person has it; `cell` may change what is written.
  static void write(const Dataset& data, const std::string& name, const std::string& gap = "") {
    make_directories(path(name));
    for (const View& view : data.views) {
      std::ofstream file(path(name) + "/" + view.name + ".csv");
      file << "id";
      for (const auto& column : view.column_names) file << ',' << column;
      std::vector<float> row(view.columns());
      for (std::size_t i = 0; i < data.rows; ++i) {
        file << '\n' << data.ids[i];
        view.copy_row(i, row);
        for (std::size_t j = 0; j < row.size(); ++j)
          file << ',' << (i == 0 && j == 1 && gap == view.name ? "" : fmt::format("{}", row[j]));
      }
      file << '\n';
    }
    if (data.labels.empty()) return;
    std::ofstream file(path(name) + "/labels.csv");
    file << "id";
    for (const auto& label : data.label_names) file << ',' << label;
    for (std::size_t i = 0; i < data.rows; ++i) {
      file << '\n' << data.ids[i];
      for (const auto y : data.labels.row(i)) file << ',' << int{y};
    }
    file << '\n';
  }
  static Matrix<float> scores(const std::string& data, std::string* err = nullptr,
                              std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"predict", path("model"), path(data), "--out", path("scores.npy")});
    const Ended ended = run(more);
    EXPECT_EQ(ended.code, 0) << ended.err;
    if (err != nullptr) *err = ended.err;
    Matrix<float> values;
    if (ended.code != 0) return values;
    const Scores scored = read_scores(path("scores.npy"));
    values = Matrix<float>(scored.values.rows(), scored.values.cols());
    values.copy_from(scored.values);
    return values;
  }

  static TemporaryDirectory* folder_;
  static Dataset* data_;
};
TemporaryDirectory* ColumnsProgram::folder_ = nullptr;
Dataset* ColumnsProgram::data_ = nullptr;

TEST_F(ColumnsProgram, ShuffledColumnsGiveTheSameScoresAndThatIsSaidOnce) {
  const Matrix<float> expected = scores("train");
  Dataset other = *data_;
  other.views[0] = shuffled(data_->views[0], {4, 3, 2, 1, 0});
  write(other, "shuffled");
  std::string err;
  EXPECT_TRUE(same(scores("shuffled", &err), expected));
  EXPECT_TRUE(has(err, "view 'rna': its 5 columns come in another order")) << err;
  EXPECT_EQ(err.find("another order"), err.rfind("another order")) << err;
  for (const char* form : {"other.npz", "other.mat", "other.csv", "other"}) {  // every form keeps names
    write_dataset(other, path(form));
    EXPECT_TRUE(same(scores(form), expected)) << form;
  }
}

TEST_F(ColumnsProgram, RenamedColumnsAreRefused) {
  Dataset other = *data_;
  other.views[1].column_names[0] = "pixel0";
  write(other, "renamed");
  const Ended ended = run({"predict", path("model"), path("renamed"), "--out", path("no.csv")});
  EXPECT_EQ(ended.code, 4) << ended.err;
  EXPECT_TRUE(has(ended.err, "missing: 1 of the model's 3 columns ('spot0')")) << ended.err;
  EXPECT_TRUE(has(ended.err, "('pixel0')")) << ended.err;
}

TEST_F(ColumnsProgram, ASingleTableIsTheViewItIsNamedAfter) {
  Dataset alone = *data_;
  alone.views.pop_back();
  alone.labels = {};
  alone.label_names.clear();
  write(alone, "alone");
  const Matrix<float> expected = scores("alone");
  EXPECT_TRUE(same(scores("alone/rna.csv"), expected));
  std::filesystem::copy_file(path("alone/rna.csv"), path("new.csv"));
  const Ended ended = run({"predict", path("model"), path("new.csv"), "--out", path("no.csv")});
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(has(ended.err, "--views NAME")) << ended.err;
  EXPECT_TRUE(same(scores("new.csv", nullptr, {"--views", "rna"}), expected));
}

TEST_F(ColumnsProgram, EmptyMeanDoesNotDependOnTheOtherRowsOfTheFile) {
  Dataset several = *data_;
  several.labels = {};
  several.label_names.clear();
  write(several, "several", "rna");
  const std::vector<std::uint32_t> first = {0};
  write(select_rows(several, first), "single", "rna");
  const Matrix<float> many = scores("several", nullptr, {"--empty", "mean"});
  const Matrix<float> one = scores("single", nullptr, {"--empty", "mean"});
  ASSERT_EQ(one.rows(), 1u);
  // The last bits of a product may depend on a row's place in its batch.
  for (std::size_t j = 0; j < one.cols(); ++j) EXPECT_NEAR(one(0, j), many(0, j), 1e-6f);
}

}  // namespace
}  // namespace lacuna
