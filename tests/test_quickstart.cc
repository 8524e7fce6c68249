// The example that the README shows: it compiles (the build does that), runs, and tags a new item.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "temporary.h"

namespace lacuna {
namespace {

TEST(Quickstart, LearnsAndTags) {
  const TemporaryDirectory folder;
  SimulateOptions options;
  options.rows = 200;
  options.labels = 5;
  options.sizes = {10, 8};
  options.views = 2;
  const Dataset data = simulate(options).data;
  write_dataset(data, folder / "photos.npz");
  const std::array<std::uint32_t, 3> few = {1, 2, 3};
  Dataset fresh = select_rows(data, few);
  fresh.views.resize(1);  // new items lack a view
  fresh.present = {};
  fresh.labels = {};
  fresh.label_names = {};
  write_dataset(fresh, folder / "new.npz");
  ASSERT_EQ(std::system(("cd '" + folder / "." + "' && " LACUNA_QUICKSTART " > out.txt").c_str()), 0);

  const Model model = Model::load(folder / "photos.safetensors");
  EXPECT_EQ(model.label_names(), data.label_names);
  const Matrix<float> scores = model.predict(fresh);
  const Matrix<std::uint8_t> decided = model.decide(scores);
  std::string expected;
  for (std::size_t j = 0; j < 5; ++j)
    if (decided(0, j)) expected += fmt::format("{} {:.2f}\n", data.label_names[j], scores(0, j));
  EXPECT_EQ(read_text(folder / "out.txt"), expected);
}

TEST(Quickstart, TheReadmeShowsIt) {
  const std::string readme = read_text(LACUNA_SOURCE_DIR "/README.md"),
                    example = read_text(LACUNA_SOURCE_DIR "/examples/quickstart.cc");
  const std::string fence = "```cpp\n";
  const auto begin = readme.find(fence) + fence.size(), end = readme.find("```", begin);
  ASSERT_LT(begin, end);
  std::vector<std::string> shown, code;
  for (const auto line : split(std::string_view(readme).substr(begin, end - begin), '\n'))
    shown.emplace_back(trim(line));
  const auto body = example.find("int main() {") + std::string("int main() {\n").size();
  for (const auto line : split(std::string_view(example).substr(body, example.rfind('}') - body), '\n'))
    code.emplace_back(trim(line));
  EXPECT_EQ(shown, code);
}

}  // namespace
}  // namespace lacuna
