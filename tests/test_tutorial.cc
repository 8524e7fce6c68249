// The commands of docs/tutorial.md, as they stand there, one after another in one shell.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/text.h"
#include "data/metrics.h"
#include "data/readers.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// All lines of the blocks that are marked as shell.
std::string commands(const std::string& page) {
  std::string script;
  bool inside = false;
  const std::string text = read_text(page);
  for (const auto line : split(text, '\n')) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside) {
      script += std::string(line) + "\n";
    }
  }
  return script;
}

TEST(Tutorial, ItsCommandsRunAndTheTagsAreGood) {
  if (std::system("python3 -c 'import random' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is not there";
  const TemporaryDirectory folder;
  fs::create_directory_symlink(LACUNA_SOURCE_DIR "/examples", folder / "examples");
  fs::create_directory(folder / "bin");
  fs::create_symlink(LACUNA_PROGRAM, folder / "bin/lacuna");
  const std::string script = commands(LACUNA_SOURCE_DIR "/docs/tutorial.md");
  EXPECT_GE(std::ranges::count(script, '\n'), 8);
  std::ofstream(folder / "script") << "set -e\ncd " << folder / "" << "\nexport PATH=" << folder / "bin" << ":$PATH\n"
                                   << script;
  const int status = std::system(fmt::format("bash {} > {} 2> {}", folder / "script", folder / "out", folder / "err").c_str());
  const std::string out = read_text(folder / "out"), err = read_text(folder / "err");
  ASSERT_EQ(status, 0) << out << err;
  for (const char* words : {"rows are joined by id: ", "mrna.csv (unnamed first column)", "decimal commas",
                            "come in another order than in the training data"})
    EXPECT_NE(err.find(words), std::string::npos) << words << "\n" << err;
  ReadOptions read;
  read.label_columns = {"5"};
  // Far better than chance on people it has not seen.
  const Dataset scored = read_dataset(folder / "scores.csv", [] {
    ReadOptions features;
    features.views = {"scores"};
    return features;
  }());
  const Dataset truth = read_dataset(folder / "omics/new_labels.csv", read);
  ASSERT_EQ(scored.views[0].column_names, truth.label_names);
  Matrix<float> scores(truth.rows, truth.label_count());
  for (std::size_t i = 0; i < truth.rows; ++i) {
    const auto at = std::ranges::find(scored.ids, truth.ids[i]);
    ASSERT_NE(at, scored.ids.end()) << truth.ids[i];
    scored.views[0].copy_row(static_cast<std::size_t>(at - scored.ids.begin()), scores.row(i));
  }
  EXPECT_GT(evaluate(scores, truth.labels).macro_auc, .75);
}

}  // namespace
}  // namespace lacuna
