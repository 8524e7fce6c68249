// Every classical method on real data with half of the views and half of the labels hidden: better than the
// labels' frequencies.
#include <gtest/gtest.h>

#include "data/folds.h"
#include "data/readers.h"
#include "methods/model.h"
#include "shared_data.h"

namespace lacuna {
namespace {

double test_ap(const std::string& method, const Dataset& data, const Folds& folds) {
  Model model(method);
  const Selection train = select_part(data, folds, 0, Part::train),
                  val = select_part(data, folds, 0, Part::val),
                  test = select_part(data, folds, 0, Part::test);
  // Keeps the test quick; all have converged far enough by then.
  if (Option* option = model.options().find("iterations")) option->set("30");
  if (Option* option = model.options().find("rounds")) option->set("30");
  FitContext context;
  model.fit(train, val, context);
  const Matrix<float> scores = model.predict(test);
  Matrix<std::int8_t> truth(test.rows.size(), data.label_count());
  for (std::size_t i = 0; i < truth.rows(); ++i)
    for (std::size_t j = 0; j < truth.cols(); ++j) truth(i, j) = test.label(i, j);
  return evaluate(scores, truth).ap;
}

void expect_better_than_prior(const std::string& path, const ReadOptions& how) {
  const Dataset data = read_dataset(path, how);
  const Folds folds = make_folds(data, MaskOptions{});
  const double floor = test_ap("prior", data, folds);
  for (const char* method : {"naim3l", "cdmm", "lvsl", "dm2l", "glocal", "imvwl", "c2ae"}) {
    const double ap = test_ap(method, data, folds);
    EXPECT_GT(ap, floor) << method;
    std::printf("%s %.4f (prior %.4f)\n", method, ap, floor);
  }
}

TEST(Classical, EmotionsAboveThePrior) {
  LACUNA_NEEDS(path, "emotions/emotions.arff");
  ReadOptions how;
  how.label_columns = {"6"};
  how.views = {"timbre=0-63", "rhythm=64-71"};
  expect_better_than_prior(path, how);
}

TEST(Classical, YeastAboveThePrior) {
  LACUNA_NEEDS(path, "yeast/yeast.arff");
  ReadOptions how;
  how.label_columns = {"14"};
  how.views = {"expression=0-78", "profile=79-102"};
  expect_better_than_prior(path, how);
}

}  // namespace
}  // namespace lacuna
