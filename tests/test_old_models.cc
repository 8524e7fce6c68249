// Model files of version 0.1, where this program's own network was a preset of method mtd, still load and predict the same.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/simulate.h"
#include "methods/model.h"

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

}  // namespace
}  // namespace lacuna
