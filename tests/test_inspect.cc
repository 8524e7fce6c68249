#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "data/inspect.h"
#include "data/readers.h"
#include "data/simulate.h"
#include "shared_data.h"

namespace lacuna {
namespace {

bool says(const Report& report, const std::string& part) {
  for (const auto& line : report.advice)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

Dataset with_view(Matrix<float>&& values) {
  Dataset data;
  data.name = "hand-made";
  data.rows = values.rows();
  data.views.push_back({"a", Table<float>(std::move(values)), {}, "float32"});
  return data;
}

TEST(Inspect, FiguresOfAView) {
  Matrix<float> values(4, 3);
  const float cells[] = {1, 0, 5, 2, 0, 5, 3, 0, 5, 99, 99, 99};  // the last row is missing
  std::copy(std::begin(cells), std::end(cells), values.values().begin());
  Dataset data = with_view(std::move(values));
  Matrix<std::uint8_t> W(4, 1);
  W(0, 0) = W(1, 0) = W(2, 0) = 1;
  data.present = std::move(W);
  const Report report = inspect(data);
  const ViewReport& view = report.views[0];
  EXPECT_EQ(view.columns, 3u);
  EXPECT_DOUBLE_EQ(view.missing, .25);
  EXPECT_DOUBLE_EQ(view.density, 6. / 9);
  EXPECT_EQ(view.min, 0);
  EXPECT_EQ(view.max, 5);
  EXPECT_EQ(view.median, 2);
  EXPECT_DOUBLE_EQ(view.mean, 21. / 9);
  EXPECT_NEAR(view.deviation, std::sqrt(89. / 9 - 49. / 9), 1e-12);
  EXPECT_EQ(view.constant_columns, 2u);
  EXPECT_EQ(report.rows_with_views, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_TRUE(says(report, "2 of 3 columns are constant"));
  EXPECT_TRUE(says(report, "1 row has no view at all"));
  EXPECT_TRUE(says(report, "there are no labels"));
  EXPECT_EQ(view.prepare, "log-pca");  // of the rows that are there: the 99 of the missing one is not told
  EXPECT_EQ(view.reason, "counts: non-negative integers up to 5, 33 % zeros");
}

// Columns that vary between chunks of rows only, in a file with more rows than a chunk has.
TEST(Inspect, ConstantColumnsOfManyRows) {
  Matrix<float> values(1000, 2);
  for (std::size_t i = 0; i < 1000; ++i) values(i, 0) = 7, values(i, 1) = i < 900 ? 1.f : 2.f;
  EXPECT_EQ(inspect(with_view(std::move(values))).views[0].constant_columns, 1u);
}

TEST(Inspect, NonFiniteValuesWithTheirPlace) {
  Matrix<float> values(300, 4);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 4; ++j) values(i, j) = static_cast<float>(i * 4 + j);
  values(210, 3) = std::numeric_limits<float>::infinity();
  values(211, 0) = std::numeric_limits<float>::quiet_NaN();
  const Report report = inspect(with_view(std::move(values)));
  EXPECT_EQ(report.views[0].non_finite, 2u);
  EXPECT_EQ(report.views[0].bad_row, 210u);
  EXPECT_EQ(report.views[0].bad_column, 3u);
  EXPECT_TRUE(std::isfinite(report.views[0].mean));
  EXPECT_EQ(report.views[0].max, 1199);
  EXPECT_TRUE(says(report, "the first at row 210, column 3"));
  EXPECT_EQ(report.views[0].prepare, "");  // nothing can be prepared before it is mended
}

TEST(Inspect, DuplicatesInEveryView) {
  Dataset data = simulate({.rows = 50, .views = 2}).data;
  Matrix<float> a(50, 64), b(50, 48);
  for (std::size_t i = 0; i < 50; ++i) {
    data.views[0].copy_row(i == 30 || i == 40 ? 7 : i, a.row(i));
    data.views[1].copy_row(i == 30 ? 7 : i, b.row(i));  // 40 repeats 7 in the first view only
  }
  data.views[0].features = Table<float>(std::move(a));
  data.views[1].features = Table<float>(std::move(b));
  Report report = inspect(data);
  EXPECT_EQ(report.duplicates, 1u);
  EXPECT_EQ(report.duplicate, 30u);
  EXPECT_EQ(report.duplicate_of, 7u);

  Matrix<std::uint8_t> W(
      50, 2);  // without the second view 40 repeats 7 as well; without any view nothing repeats
  for (std::size_t i = 0; i < 50; ++i) W(i, 0) = i != 1 && i != 2;
  data.present = std::move(W);
  EXPECT_EQ(inspect(data).duplicates, 2u);
}

TEST(Inspect, SparseViewsAsDenseOnes) {
  Matrix<std::uint64_t> start(1, 4);
  Matrix<std::uint32_t> index(1, 3);
  Matrix<float> value(1, 3);
  start(0, 1) = 2, start(0, 2) = 2, start(0, 3) = 3;
  index(0, 0) = 0, index(0, 1) = 3, index(0, 2) = 3;
  value(0, 0) = 4, value(0, 1) = 1, value(0, 2) = 1;
  Dataset data;
  data.rows = 3;
  data.views.push_back({"s", Csr{std::move(start), std::move(index), std::move(value), 5}, {}, "float32"});
  const ViewReport view = inspect(data).views[0];
  EXPECT_TRUE(view.sparse);
  EXPECT_DOUBLE_EQ(view.density, 3. / 15);
  EXPECT_DOUBLE_EQ(view.mean, 6. / 15);
  EXPECT_EQ(view.constant_columns, 3u);
  EXPECT_EQ(view.zero_rows, 1u);
}

TEST(Inspect, Labels) {
  Dataset data;
  data.name = "labels only";
  data.rows = 4;
  Matrix<std::int8_t> Y(4, 3);
  const std::int8_t cells[] = {1, 0, kUnknown, 1, 0, 1, kUnknown, 0, kUnknown, 0, 0, kUnknown};
  std::copy(std::begin(cells), std::end(cells), Y.values().begin());
  data.labels = std::move(Y);
  data.label_names = {"a", "b", "c"};
  const Report report = inspect(data);
  EXPECT_DOUBLE_EQ(report.cardinality, 3. / 4);
  EXPECT_DOUBLE_EQ(report.unknown, 4. / 12);
  EXPECT_EQ(report.labels[0].positives, 2u);
  EXPECT_EQ(report.labels[0].known, 3u);
  EXPECT_EQ(report.rows_without_positive, 2u);
  EXPECT_TRUE(says(report, "1 of 3 labels without a known positive"));
  EXPECT_TRUE(says(report, "1 of 3 labels without a known negative"));
  EXPECT_TRUE(says(report, "there are no views"));
}

TEST(Inspect, Corel5k) {
  LACUNA_NEEDS(path, "corel5k/corel5k_six_view.mat");
  const Report report = inspect(read_dataset(path));
  EXPECT_EQ(report.rows, 4999u);
  const std::size_t columns[] = {512, 4096, 100, 1000, 4096, 4096};
  const std::uint64_t constant[] = {0, 221, 0, 0, 524, 3262};
  ASSERT_EQ(report.views.size(), 6u);
  for (std::size_t v = 0; v < 6; ++v) {
    EXPECT_EQ(report.views[v].columns, columns[v]);
    EXPECT_EQ(report.views[v].constant_columns, constant[v]);
  }
  EXPECT_EQ(report.labels.size(), 260u);
  EXPECT_NEAR(report.cardinality, 3.3965, 5e-5);
  EXPECT_EQ(report.rows_without_positive, 7u);
}

}  // namespace
}  // namespace lacuna
