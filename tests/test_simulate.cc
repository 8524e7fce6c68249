#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "data/metrics.h"
#include "data/simulate.h"

namespace lacuna {
namespace {

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double ma = std::accumulate(a.begin(), a.end(), 0.) / n,
               mb = std::accumulate(b.begin(), b.end(), 0.) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

std::vector<double> positives(const Dataset& data) {
  std::vector<double> counts(data.label_count(), 0);
  for (std::size_t i = 0; i < data.rows; ++i)
    for (std::size_t j = 0; j < counts.size(); ++j) counts[j] += data.labels(i, j) == 1;
  return counts;
}

TEST(Simulate, SizesCardinalityAndTail) {
  const Simulated s = simulate({.rows = 2000, .labels = 50, .cardinality = 3.4});
  s.data.check("simulated");
  EXPECT_EQ(s.data.rows, 2000u);
  ASSERT_EQ(s.data.views.size(), 4u);
  EXPECT_EQ(s.data.views[0].columns(), 64u);
  EXPECT_EQ(s.data.label_count(), 50u);
  auto counts = positives(s.data);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.), 6800);  // exactly 3.4 a row
  std::sort(counts.begin(), counts.end());
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[49], 5 * counts[5]);  // a long tail
  for (std::size_t i = 0; i < 2000; ++i) {
    const auto y = s.data.labels.row(i);
    EXPECT_GE(std::count(y.begin(), y.end(), std::int8_t{1}), 1);
  }
}

TEST(Simulate, LikeThePaper) {
  const Simulated s = simulate({.rows = 60, .like = "corel5k"});  // what is given wins
  ASSERT_EQ(s.data.views.size(), 6u);
  const std::size_t sizes[] = {512, 4096, 100, 1000, 4096, 4096};
  for (std::size_t v = 0; v < 6; ++v) EXPECT_EQ(s.data.views[v].columns(), sizes[v]);
  EXPECT_EQ(s.data.views[5].name, "lab");
  EXPECT_EQ(s.data.label_count(), 260u);
  EXPECT_THROW(simulate({.like = "corel"}), Error);
  EXPECT_THROW(simulate({.views = 3, .sizes = {4, 5}}), Error);
}

TEST(Simulate, SameSeedSameBitsForAnyNumberOfThreads) {
  set_threads(1);
  const auto hash = content_hash(simulate({.rows = 300}).data);
  set_threads(3);
  EXPECT_EQ(content_hash(simulate({.rows = 300}).data), hash);
  set_threads(0);
  EXPECT_NE(content_hash(simulate({.rows = 300, .seed = 2}).data), hash);
}

// The planted truth is what the data show: affinities rank the labels far better than frequencies do.
TEST(Simulate, AffinityExplainsTheLabels) {
  const Simulated s = simulate({});
  Matrix<float> known(1000, 20), floor(1000, 20);
  const auto counts = positives(s.data);
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t j = 0; j < 20; ++j) {
      floor(i, j) = static_cast<float>(counts[j]);
      known(i, j) = s.affinity(i, j) + std::log(floor(i, j)) / 2;
    }
  const Metrics best = evaluate(known, s.data.labels), least = evaluate(floor, s.data.labels);
  EXPECT_GT(best.ap, least.ap + .2);
  EXPECT_GT(best.macro_auc, .9);
  EXPECT_NEAR(least.macro_auc, .5, 1e-9);
}

// Views complement each other: no view sees all shared factors, together they do, and what a view does not
// see leaves no trace in it.
TEST(Simulate, ViewsComplementEachOther) {
  const Simulated s = simulate({.rows = 3000, .noise = .1});
  for (std::size_t f = 0; f < s.shared.cols(); ++f) {
    std::size_t seen = 0;
    for (std::size_t v = 0; v < 4; ++v) {
      seen += s.seen(v, f);
      std::vector<double> factor, feature;
      double strongest = 0;
      for (std::size_t j = 0; j < s.data.views[v].columns(); ++j) {
        factor.clear(), feature.clear();
        for (std::size_t i = 0; i < 3000; ++i) {
          factor.push_back(static_cast<double>(s.shared(i, f)));
          feature.push_back(static_cast<double>(std::get<Table<float>>(s.data.views[v].features)(i, j)));
        }
        strongest = std::max(strongest, std::abs(correlation(factor, feature)));
        if (j == 7) break;
      }
      EXPECT_EQ(strongest > .15, s.seen(v, f) == 1) << "view " << v << " factor " << f << ": " << strongest;
    }
    EXPECT_EQ(seen, 2u);
  }
}

TEST(Simulate, LabelsOfAGroupComeTogether) {
  const Simulated s = simulate({.rows = 4000});
  double inside = 0, across = 0;
  std::size_t inside_pairs = 0, across_pairs = 0;
  for (std::size_t a = 0; a < 20; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      std::vector<double> x, y;
      for (std::size_t i = 0; i < 4000; ++i) {
        x.push_back(static_cast<double>(s.affinity(i, a)));
        y.push_back(static_cast<double>(s.affinity(i, b)));
      }
      const double r = correlation(x, y);
      (a % 4 == b % 4 ? inside : across) += r;
      ++(a % 4 == b % 4 ? inside_pairs : across_pairs);
    }
  EXPECT_GT(inside / static_cast<double>(inside_pairs), across / static_cast<double>(across_pairs) + .2);
}

// Items with the same label lie nearer to each other than others do.
TEST(Simulate, ViewsForGivenLabels) {
  Dataset labelled = simulate({.rows = 600, .labels = 12}).data;
  labelled.views.clear();
  const Simulated s = simulate_views(labelled, {.sizes = {30, 20}});
  s.data.check("simulated");
  ASSERT_EQ(s.data.views.size(), 2u);
  EXPECT_EQ(s.data.rows, 600u);
  EXPECT_TRUE(s.affinity.empty());
  double near = 0, far = 0, near_pairs = 0, far_pairs = 0;
  for (std::size_t a = 0; a < 600; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      bool shares = false;
      for (std::size_t j = 0; j < 12; ++j)
        shares = shares || (labelled.labels(a, j) == 1 && labelled.labels(b, j) == 1);
      double distance = 0;
      for (std::size_t f = 0; f < s.shared.cols(); ++f)
        distance += std::pow(static_cast<double>(s.shared(a, f) - s.shared(b, f)), 2);
      (shares ? near : far) += distance;
      ++(shares ? near_pairs : far_pairs);
    }
  EXPECT_LT(near / near_pairs, .85 * far / far_pairs);
  EXPECT_THROW(simulate_views(labelled, {.rows = 5}), Error);
  labelled.labels = {};
  EXPECT_THROW(simulate_views(labelled, {}), Error);
}

}  // namespace
}  // namespace lacuna
