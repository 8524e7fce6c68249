// The examples of docs/extending.md compile and work, and the page shows them as they are.
#include <gtest/gtest.h>

#include <filesystem>

#include "../examples/extending/format.cc"
#include "../examples/extending/loss.cc"
#include "../examples/extending/method.cc"
#include "../examples/extending/metric.cc"
#include "base/files.h"
#include "base/random.h"
#include "data/metrics.h"
#include "temporary.h"

namespace lacuna {
namespace {

TEST(Extending, ThePageShowsTheExamples) {
  std::string examples;
  for (const auto& entry : std::filesystem::directory_iterator(LACUNA_SOURCE_DIR "/examples/extending"))
    examples += read_text(entry.path().string());
  const std::string page = read_text(LACUNA_SOURCE_DIR "/docs/extending.md"), fence = "```cpp\n";
  std::size_t blocks = 0;
  for (auto at = page.find(fence); at != page.npos; at = page.find(fence, at + 1)) {
    const auto begin = at + fence.size();
    const std::string block = page.substr(begin, page.find("```", begin) - begin);
    EXPECT_NE(examples.find(block), examples.npos) << block;
    ++blocks;
  }
  EXPECT_GE(blocks, 5u);
}

TEST(Extending, TheExampleOfAFormatReadsAndRefuses) {
  const TemporaryDirectory folder;
  write_text(folder / "words.vec", "sun 1 2.5 -3\nsea 0 1 NA\n");
  FlatTable table = read_text_vectors(folder / "words.vec", {});
  EXPECT_EQ(table.ids, (std::vector<std::string>{"sun", "sea"}));
  ReadOptions options;
  options.empty = "zero";
  const Dataset data = assemble(std::move(table), options, "words.vec");
  EXPECT_EQ(data.rows, 2u);
  EXPECT_EQ(std::get<Table<float>>(data.views[0].features)(0, 1), 2.5f);
  write_text(folder / "short.vec", "sun 1 2\nsea 0\n");
  EXPECT_THROW(read_text_vectors(folder / "short.vec", {}), Error);
}

TEST(Extending, TheExampleOfAMetricLeavesOutUnknownLabels) {
  Matrix<float> scores(3, 2);
  Matrix<std::int8_t> truth(3, 2);
  scores(0, 0) = .9f, truth(0, 0) = 1, truth(0, 1) = 0;         // right
  scores(1, 0) = .9f, truth(1, 0) = 0, truth(1, 1) = kUnknown;  // wrong
  truth(2, 0) = truth(2, 1) = kUnknown;                         // does not count
  EXPECT_EQ(exact_match(scores, truth, .5), .5);
  EXPECT_EQ(metric_names().size(), metric_definitions().size());
}

TEST(Extending, TheExampleOfALossHasItsGradient) {
  constexpr std::size_t kRows = 4, kLabels = 3;
  Random random(1, Purpose::test);
  Matrix<double> logits(kRows, kLabels), gradient(kRows, kLabels), scrap(kRows, kLabels);
  Matrix<float> Y(kRows, kLabels);
  Matrix<std::uint8_t> G(kRows, kLabels);
  for (auto& x : logits.values()) x = random.uniform_double() - .5;
  for (std::size_t k = 0; k < Y.values().size(); ++k) {
    Y.values()[k] = static_cast<float>(random.below(2));
    G.values()[k] = k % 3 != 0;
  }
  const std::vector<std::uint32_t> rows = {3, 1, 0, 2};
  const LabelRows labels{Y, G, rows};
  const ExampleLosses<double> losses;
  const auto value = [&] {
    double result = 0;
    losses.brier_loss(logits, labels, 1, scrap, &result);
    return result;
  };
  double first = 0;
  losses.brier_loss(logits, labels, 2, gradient, &first);
  EXPECT_EQ(first, value());
  constexpr double kStep = 1e-6;
  for (std::size_t k = 0; k < logits.values().size(); ++k) {
    double& x = logits.values()[k];
    const double at = x;
    x = at + kStep;
    const double above = value();
    x = at - kStep;
    const double below = value();
    x = at;
    EXPECT_NEAR(gradient.values()[k], 2 * (above - below) / (2 * kStep), 1e-8) << k;
  }
}

TEST(Extending, TheExampleOfAMethodWorks) {
  Items items;
  items.W = Matrix<std::uint8_t>(8, 2);
  items.X = {Matrix<float>(8, 1), Matrix<float>(8, 2)};
  items.Y = Matrix<float>(8, 1);
  items.G = Matrix<std::uint8_t>(8, 1);
  for (std::size_t i = 0; i < 8; ++i) {  // two heaps: around 0 and around 10, the second has the label
    items.W(i, 0) = items.W(i, 1) = items.G(i, 0) = 1;
    items.X[0](i, 0) = (i < 4 ? 0.f : 10.f) + static_cast<float>(i % 4);
    items.Y(i, 0) = i < 4 ? 0.f : 1.f;
  }
  const auto method = make_nearest();
  Options options;
  method->declare(options);
  options.set("neighbours", "3", "test");
  FitContext context;
  method->fit(items, Items{}, context);
  Matrix<float> scores(8, 1), again(8, 1);
  method->predict(items, scores);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(scores(i, 0) > .5f, i >= 4) << i;

  Tensors file;
  method->save(file);
  const auto loaded = make_nearest();
  Options same;
  loaded->declare(same);
  same.set("neighbours", "3", "test");
  loaded->load(file, {.columns = {1, 2}, .labels = 1});
  loaded->predict(items, again);
  EXPECT_TRUE(std::ranges::equal(scores.values(), again.values()));
}

}  // namespace
}  // namespace lacuna
