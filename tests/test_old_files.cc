// Files of version 0.1 still load: models (where this program's own network was a preset of method mtd), folds, checkpoints and
// folders of experiments. fixtures/0.1 was written by version 0.1.0; never change it.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "checks.h"
#include "data/folds.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "program.h"
#include "temporary.h"

namespace lacuna {
namespace {

// The data that version 0.1 trained on: lacuna data simulate --rows 60 --views 2 --labels 3 --sizes 5,4 --seed 9
Dataset items() {
  SimulateOptions options;
  options.rows = 60;
  options.views = 2;
  options.labels = 3;
  options.sizes = {5, 4};
  options.seed = 9;
  return simulate(options).data;
}

TEST(OldModels, PresetsOfMtdAreMethodLacunaToday) {
  struct Case {
    const char* file;
    const char* preset;
    float scores[3];  // of the first item, as version 0.1 predicted them
  };
  for (const Case& one :
       {Case{"mtd-best-0.1.safetensors", "best", {0.025877248f, 0.019978723f, 0.020003647f}},
        Case{"mtd-distilled-0.1.safetensors", "distilled", {0.023789445f, 0.01632459f, 0.013713461f}}}) {
    const std::string path = std::string(LACUNA_SOURCE_DIR "/tests/fixtures/") + one.file;
    const Model model = Model::load(path);
    EXPECT_EQ(model.method().traits().name, "lacuna") << one.file;
    EXPECT_EQ(model.preset(), one.preset) << one.file;
    const Matrix<float> scores = model.predict(items());
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(scores(0, j), one.scores[j], 2e-5) << one.file << " label " << j;
  }
}

const std::string kOld = LACUNA_SOURCE_DIR "/tests/fixtures/0.1/";

// lacuna data mask toy.npz folds.npz --missing-views .5 --missing-labels .5 --repeats 2 --seed 3
TEST(OldFiles, FoldsAreTheSameRowsAndGaps) {
  const Folds folds = read_folds(kOld + "folds.npz");
  EXPECT_EQ(folds.rows, 60u);
  EXPECT_EQ(folds.views, 2u);
  EXPECT_EQ(folds.labels, 3u);
  ASSERT_EQ(folds.folds.size(), 2u);
  EXPECT_EQ(
      folds.hash(),
      "0363ba930dbf756dc74fab3b2f2d9da96374e0bc37878feaaf27a3036d513dd8");  // as version 0.1.0 computed it
}

// Interrupted by kill -9: lacuna train toy.npz --out M --seed 4 --threads 1 --checkpoint-every 0, with these settings.
TEST(OldFiles, CheckpointsAreContinuedOrRefusedForTheirNewSettings) {
  struct Interrupted {
    const char* file;
    std::vector<std::string> settings;
    float scores[3];  // of the first item, by the uninterrupted training of version 0.1.0
  };
  for (const auto& one :
       {Interrupted{"mtd",
                    {"--method", "mtd", "--embedding", "4", "--width", ".02", "--epochs", "300",
                     "--precision", "f32"},
                    {0.51626754f, 0.82724035f, 0.6561372f}},
        Interrupted{"naim3l", {"--method", "naim3l"}, {0.13209942f, 0.6014306f, 0.054790094f}}}) {
    const TemporaryDirectory folder;
    write_dataset(items(), folder / "toy.npz");
    std::filesystem::copy_file(kOld + one.file + ".checkpoint", folder / "m.checkpoint");
    std::vector<std::string> arguments = {
        "train", folder / "toy.npz",   "--out", folder / "m", "--seed", "4", "--threads",
        "1",     "--checkpoint-every", "0",     "--resume"};
    arguments.insert(arguments.end(), one.settings.begin(), one.settings.end());
    const Ended ended = run(arguments);
    if (ended.code != 0) {  // a setting that version 0.1.0 did not have, by its name
      EXPECT_EQ(ended.code, static_cast<int>(Exit::usage)) << ended.err;
      EXPECT_TRUE(has(ended.err, "was made by another training") && has(ended.err, "was absent"))
          << ended.err;
      continue;
    }
    EXPECT_TRUE(has(ended.err, "continuing from")) << ended.err;
    const Matrix<float> scores = Model::load(folder / "m").predict(items());
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(scores(0, j), one.scores[j], 2e-4) << one.file << " label " << j;
  }
}

// lacuna bench table --data toy.npz --out bench --methods prior,linear,mtd --set mtd.embedding=4 --set mtd.width=.02
// --set mtd.epochs=4 --repeats 1
TEST(OldFiles, CellsAreReported) {
  const TemporaryDirectory folder;
  std::filesystem::copy(kOld + "bench", folder / "bench", std::filesystem::copy_options::recursive);
  const Ended ended = run({"report", folder / "bench"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string cells = read_text(folder / "bench/tables/cells.csv");
  for (const char* cell : {"75dea8011f60dd4f", "8a0db3e949bac535", "29ecc9d6f4757ad5"})
    EXPECT_TRUE(has(cells, cell)) << cells;
  EXPECT_TRUE(has(cells, "0.648148")) << cells;  // AP of mtd on the test rows
}

}  // namespace
}  // namespace lacuna
