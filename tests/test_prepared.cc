// Rows in files: the same bits as rows in memory, and nothing that is damaged is believed.
#include "data/prepared.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/threads.h"
#include "data/protocol.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "temporary.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr auto quiet = [](const std::string&) {};

class Prepared : public testing::Test {
 protected:
  void SetUp() override {
    SimulateOptions options;
    options.rows = 400;
    options.labels = 6;
    options.sizes = {40, 24, 12};
    Simulated simulated = simulate(options);
    Matrix<std::uint8_t> present(400, 3);
    Matrix<std::int8_t> labels(400, 6);
    for (std::size_t i = 0; i < 400; ++i) {
      for (std::size_t v = 0; v < 3; ++v) present(i, v) = v == i % 3 || (i * 7 + v) % 5 > 1;
      for (std::size_t j = 0; j < 6; ++j)
        labels(i, j) = (i + j) % 3 == 0 ? kUnknown : simulated.data.labels(i, j);
    }
    simulated.data.present = std::move(present);
    simulated.data.labels = std::move(labels);
    write_dataset(simulated.data, folder_ / "data");
    data_ = read_dataset(folder_ / "data");
    rows_ = learning_rows(select_all(data_), .2, 1);
    std::ranges::sort(rows_.learn.rows);
    std::ranges::sort(rows_.val.rows);
  }
  PreparedStore store() const { return {folder_ / "store", content_hash(data_)}; }
  PrepareOptions root_pca() const {
    PrepareOptions options;
    options.kind = "root-pca";
    options.components = 10;
    return options;
  }
  static Model small_model(const std::string& preset = "best") {
    Model model("lacuna");
    model.set_preset(preset);
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"epochs", "4"},
                                                          {"batch", "32"},
                                                          {"embedding", "16"},
                                                          {"encoder-widths", "24"},
                                                          {"decoder-widths", "16"},
                                                          {"guess-from", "2"},
                                                          {"precision", "f32"}})
      model.options().set(name, value, "test");
    return model;
  }
  // The model file after a fit with rows in memory, or in the store.
  std::string trained(bool in_files, const std::string& window = "0", const std::string& preset = "best",
                      const std::vector<std::pair<const char*, const char*>>& settings = {}) const {
    Model model = small_model(preset);
    model.options().set("shuffle-window", window, "test");
    for (const auto& [name, value] : settings) model.options().set(name, value, "test");
    FitContext context;
    if (in_files) {
      PreparedStore files = store();
      model.fit(rows_.learn, rows_.val, context, files);
      files.remove();
    } else {
      model.fit(rows_.learn, rows_.val, context);
    }
    return model.tensors().text();
  }
  std::string only_folder() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_ / "store")) all.push_back(entry.path().string());
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }

  TemporaryDirectory folder_;
  Dataset data_;
  LearningRows rows_;
};

template <class T>
bool same(const SharedMatrix<T>& a, const SharedMatrix<T>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::ranges::equal(std::as_const(a).values(), std::as_const(b).values());
}

SharedMatrix<float> rows_of(const Items& items, std::size_t v) {
  Matrix<float> rows(items.X[v].rows(), items.X[v].cols());
  items.copy_rows(v, 0, rows);
  return rows;
}

void expect_same(const Items& a, const Items& b) {
  ASSERT_EQ(a.X.size(), b.X.size());
  for (std::size_t v = 0; v < a.X.size(); ++v) EXPECT_TRUE(same(rows_of(a, v), rows_of(b, v))) << v;
  EXPECT_TRUE(same(a.W, b.W));
  EXPECT_TRUE(same(a.Y, b.Y));
  EXPECT_TRUE(same(a.G, b.G));
}

TEST_F(Prepared, RowsInFilesAreThoseInMemory) {
  for (const char* kind : {"zscore", "root-pca", "rbf-pca", "root-rbf-pca", "none", "minmax"}) {
    PrepareOptions options = root_pca();
    options.kind = kind;
    const Preparation here = Preparation::fit(rows_.learn, options);
    PreparedStore files = store();
    const PreparedRows found = files.get(rows_.learn, rows_.val, options, true, quiet);
    EXPECT_TRUE(found.train.mapped);
    expect_same(found.train, here.apply(rows_.learn, true));
    expect_same(found.val, here.apply(rows_.val, true));
    const PreparedRows again = store().get(rows_.learn, rows_.val, options, true, quiet);  // found, not made
    expect_same(again.train, found.train);
    found.train.fetch(0, found.train.rows());
    found.train.leave(0, found.train.rows());
    expect_same(again.train, found.train);
    files.remove();
  }
  EXPECT_FALSE(fs::exists(folder_ / "store"));
}

TEST_F(Prepared, TrainingOnFilesGivesTheBytesOfTrainingInMemory) {
  for (const char* window : {"0", "50", "96"})
    EXPECT_EQ(trained(true, window), trained(false, window)) << window;
  EXPECT_NE(trained(false, "50"), trained(false, "0"));
  set_threads(1);
  const std::string one = trained(true, "50");
  set_threads(3);
  EXPECT_EQ(trained(true, "50"), one);
  set_threads(0);
}

// A preparation that keeps the columns writes no copy of them: rows are prepared while they are read, to the same bits.
TEST_F(Prepared, RowsThatKeepTheirColumnsStayInTheFilesOfTheData) {
  PrepareOptions options = root_pca();
  options.kind = "zscore";
  options.per_view = {data_.views[1].name + "=root-pca"};
  std::vector<std::string> said;
  PreparedStore files = store();
  const PreparedRows found = files.get(rows_.learn, rows_.val, options, true,
                                       [&](const std::string& text) { said.push_back(text); });
  EXPECT_NE(said.at(0).find("rows of 2 of 3 views are prepared while they are read"), std::string::npos)
      << said.at(0);
  for (const char* part : {"train", "val"})
    for (const int v : {0, 1, 2})
      EXPECT_EQ(fs::exists(fmt::format("{}/{}.x{}.npy", only_folder(), part, v)), v == 1) << part << v;
  for (const int v : {0, 1, 2}) EXPECT_EQ(found.train.is_raw(v), v != 1);
  expect_same(found.train, Preparation::fit(rows_.learn, options).apply(rows_.learn, true));
  // Rows on their way to a device, and those of some members, come by the same function.
  Matrix<float> one(1, 40);
  found.val.copy_rows(0, 3, one);
  EXPECT_TRUE(std::ranges::equal(one.values(), rows_of(found.val, 0).row(3)));
}

TEST_F(Prepared, TrainingOnTheFilesOfTheDataGivesTheBytesOfTrainingInMemory) {
  const std::string mixed = data_.views[2].name + "=root-pca";
  const std::vector<std::vector<std::pair<const char*, const char*>>> all = {
      {{"prepare", "zscore"}},
      {{"prepare", "minmax"}},
      {{"prepare", "none"}},
      {{"prepare", "zscore"}, {"prepare-view", mixed.c_str()}},
      {{"prepare", "zscore"}, {"members", "2"}}};
  for (std::size_t k = 0; k < all.size(); ++k)
    for (const char* window : {"0", "50"}) {
      if (k > 0 && (window[0] == '0') == (k % 2 == 0)) continue;  // the first in both orders, others in turn
      EXPECT_EQ(trained(true, window, "best", all[k]), trained(false, window, "best", all[k]))
          << all[k].back().second << ' ' << window;
    }
  EXPECT_EQ(trained(true, "64", "distilled", {{"prepare", "zscore"}}),
            trained(false, "64", "distilled", {{"prepare", "zscore"}}));
}

// Every method that reads rows in batches, with all that it does to them: masks, clean targets, noise, early fusion.
TEST_F(Prepared, SoDoesEveryMethodThatReadsBatches) {
  for (const auto& [method, preset] : std::vector<std::pair<const char*, const char*>>{
           {"mtd", "authors"}, {"mtd", "repaired"}, {"mtd", "paper"}, {"dicnet", "default"}}) {
    std::string texts[2];
    for (const bool in_files : {false, true}) {
      Model model(method);
      model.set_preset(preset);
      for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
               {"epochs", "3"}, {"batch", "32"}, {"width", ".02"}, {"embedding", "16"}, {"precision", "f32"}})
        model.options().set(name, value, "test");
      FitContext context;
      PreparedStore files = store();
      if (in_files)
        model.fit(rows_.learn, rows_.val, context, files);
      else
        model.fit(rows_.learn, rows_.val, context);
      texts[in_files ? 1 : 0] = model.tensors().text();
      files.remove();
    }
    EXPECT_EQ(texts[0], texts[1]) << method << ' ' << preset;
  }
}

// Members in several preparations, teachers and their soft labels.
TEST_F(Prepared, EnsemblesToo) {
  Model plan = small_model("distilled");
  EXPECT_GT(plan.members_planned(), 3u);
  EXPECT_EQ(trained(true, "64", "distilled"), trained(false, "64", "distilled"));
}

TEST_F(Prepared, OtherRowsOrSettingsGetAFolderOfTheirOwn) {
  PreparedStore files = store();
  files.get(rows_.learn, rows_.val, root_pca(), true, quiet);
  const auto count = [&] {
    return std::distance(fs::directory_iterator(folder_ / "store"), fs::directory_iterator());
  };
  EXPECT_EQ(count(), 1);
  PrepareOptions other = root_pca();
  other.components = 9;
  files.get(rows_.learn, rows_.val, other, true, quiet);
  EXPECT_EQ(count(), 2);
  Selection fewer = rows_.learn;
  fewer.rows.pop_back();
  files.get(fewer, rows_.val, root_pca(), true, quiet);
  EXPECT_EQ(count(), 3);
  Fold fold;  // one more gap
  fold.W = Matrix<std::uint8_t>(data_.rows, 3);
  fold.G = Matrix<std::uint8_t>(data_.rows, 6);
  std::ranges::fill(fold.W.values(), std::uint8_t{1});
  std::ranges::fill(fold.G.values(), std::uint8_t{1});
  fold.G(rows_.learn.rows[0], 0) = 0;
  Selection hidden = rows_.learn;
  hidden.fold = &fold;
  hidden.hide_labels = true;
  files.get(hidden, rows_.val, root_pca(), true, quiet);
  EXPECT_EQ(count(), 4);
  files.remove();
  EXPECT_FALSE(fs::exists(folder_ / "store"));
}

TEST_F(Prepared, DamagedFoldersAreRefused) {
  const auto damage = [&](const std::string& file, auto&& change) {
    PreparedStore files = store();
    files.get(rows_.learn, rows_.val, root_pca(), true, quiet);
    const std::string path = only_folder() + "/" + file;
    std::string bytes = read_text(path);
    change(bytes);
    std::ofstream(path, std::ios::binary) << bytes;
    std::string message;
    try {
      store().get(rows_.learn, rows_.val, root_pca(), true, quiet);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::data) << file;
      message = error.what();
    }
    EXPECT_NE(message.find(only_folder()), std::string::npos) << file << ": " << message;
    files.remove();
  };
  const auto flip = [](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 1); };
  const auto cut = [](std::string& bytes) { bytes.resize(bytes.size() / 2); };
  for (const char* file : {"train.x0.npy", "train.w.npy", "train.y.npy", "train.g.npy", "val.x2.npy"}) {
    damage(file, flip);
    damage(file, cut);
    damage(file, [](std::string& bytes) { bytes.clear(); });
  }
  damage("checksums.json", cut);
  damage("checksums.json", [](std::string& bytes) { bytes = "{}"; });
  damage("key.json", [](std::string& bytes) { bytes.replace(bytes.find("root-pca"), 8, "none-pca"); });
  damage("key.json", [](std::string& bytes) { bytes = "no json"; });
  damage("preparation.safetensors", cut);
}

// A header that lies about the shape is not believed even where the checksums, of the values alone, agree.
TEST_F(Prepared, ALyingShapeIsRefused) {
  PreparedStore files = store();
  files.get(rows_.learn, rows_.val, root_pca(), true, quiet);
  const std::string path = only_folder() + "/train.x0.npy";
  std::string bytes = read_text(path);
  const std::string shape = std::to_string(rows_.learn.rows.size()) + ", 10";
  const auto at = bytes.find(shape);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, shape.size(), "10, " + std::to_string(rows_.learn.rows.size()));
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_THROW(store().get(rows_.learn, rows_.val, root_pca(), true, quiet), Error);
}

TEST_F(Prepared, AFolderThatIsNotWholeIsNotThere) {
  const std::string leftover = folder_ / "store/0123.tmp-1-0";
  fs::create_directories(leftover);
  PreparedStore files = store();
  EXPECT_NO_THROW(files.get(rows_.learn, rows_.val, root_pca(), true, quiet));
  files.remove();
  EXPECT_TRUE(fs::exists(leftover));  // of a process that runs, for all anybody knows
}

TEST_F(Prepared, MethodsThatNeedAllRowsSaySo) {
  Model model("naim3l");
  FitContext context;
  PreparedStore files = store();
  try {
    model.fit(rows_.learn, rows_.val, context, files);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("lacuna, mtd"), std::string::npos) << error.what();
  }
}

TEST_F(Prepared, AFitBeyondTheLimitIsRefusedWithBothNumbers) {
  Model model = small_model();
  model.options().set("encoder-widths", "20000", "test");
  FitContext context;
  context.memory_limit = std::uint64_t{50} << 20;
  PreparedStore files = store();
  try {
    model.fit(rows_.learn, rows_.val, context, files);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::failed);
    EXPECT_NE(std::string(error.what()).find("52 MB"), std::string::npos) << error.what();
  }
}

TEST(SharedMatrix, CopiesShareUntilOneIsWrittenTo) {
  SharedMatrix<float> a(2, 3);
  a(1, 2) = 5;
  SharedMatrix<float> b = a;
  EXPECT_EQ(std::as_const(a).data(), std::as_const(b).data());
  b(0, 0) = 7;
  EXPECT_NE(std::as_const(a).data(), std::as_const(b).data());
  EXPECT_EQ(std::as_const(a)(0, 0), 0);
  EXPECT_EQ(std::as_const(b)(1, 2), 5);
  const std::vector<float> there = {1, 2, 3, 4};
  SharedMatrix<float> file(nullptr, {there.data(), 2, 2});
  file(1, 1) = 9;  // never into memory that is not its own
  EXPECT_EQ(there[3], 4);
  EXPECT_EQ(std::as_const(file)(1, 1), 9);
}

}  // namespace
}  // namespace lacuna
