// The example of docs/adding-a-method.md compiles, learns, and is the same after it was saved and loaded.
#include <gtest/gtest.h>

#include "../examples/nearest.cc"

namespace lacuna {
namespace {

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
