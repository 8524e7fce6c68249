// The significance tests against published worked examples and printed tables.
#include "experiments/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <tuple>
#include <vector>

#include "experiments/distributions.h"

namespace lacuna {
namespace {

// Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006), table 6: AUC of
// C4.5 and three variants (+m, +cf, +m+cf) on 14 data sets. In the row before the last the paper prints .975
// twice but ranks them 2 and 3; the digit that tells them apart is ours.
constexpr double kDemsar[14][4] = {
    {.763, .768, .771, .798},  {.599, .591, .590, .569}, {.954, .971, .968, .967}, {.628, .661, .654, .657},
    {.882, .888, .886, .898},  {.936, .931, .916, .931}, {.661, .668, .609, .685}, {.583, .583, .563, .625},
    {.775, .838, .866, .875},  {1.00, 1.00, 1.00, 1.00}, {.940, .962, .965, .962}, {.619, .666, .614, .669},
    {.972, .981, .9751, .975}, {.957, .978, .946, .970}};

std::vector<double> column(std::size_t j) {
  std::vector<double> values;
  for (const auto& row : kDemsar) values.push_back(row[j]);
  return values;
}

TEST(Statistics, RanksShareTiesAndPutMissingLast) {
  EXPECT_EQ(ranks(std::vector<double>{.5, .9, .5, std::nan("")}), (std::vector<double>{2.5, 1, 2.5, 4}));
}

TEST(Statistics, FriedmanOnDemsarsExample) {
  const Friedman f = friedman(MatrixView<const double>(&kDemsar[0][0], 14, 4));
  const double printed[] = {3.143, 2.000, 2.893, 1.964};
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(f.mean_ranks[j], printed[j], 5e-4);
  EXPECT_NEAR(f.chi_squared, 9.28, .005);
  EXPECT_NEAR(f.f, 3.69, .005);
  // SciPy's, by the same ranks.
  EXPECT_NEAR(f.chi_squared, 9.278571428571437, 1e-12);
  EXPECT_NEAR(f.chi_squared_p, .025807496707063185, 1e-13);
  EXPECT_NEAR(f.f, 3.686313032089068, 1e-12);
  EXPECT_NEAR(f.f_p, .01982300619224907, 1e-13);
  EXPECT_EQ(f.blocks, 14u);
  EXPECT_EQ(f.methods, 4u);
  EXPECT_FALSE(f.rejects(.0198));
  EXPECT_TRUE(f.rejects(.05));
  EXPECT_NEAR(f_tail(2.85, 3, 39), .05, 5e-4);
}

TEST(Statistics, NemenyiOnDemsarsExample) {
  EXPECT_NEAR(critical_difference(.05, 4, 14), 1.25, .005);
  EXPECT_NEAR(critical_difference(.10, 4, 14), 1.12, .005);
  // At 0.10 the pairs C4.5 / C4.5+m and C4.5 / C4.5+m+cf differ (1.143 and 1.179), no other does.
  const std::vector<double> mean_ranks = {3.143, 2.000, 2.893, 1.964};
  EXPECT_EQ(rank_groups(mean_ranks, 1.12), (std::vector<std::vector<std::size_t>>{{3, 1, 2}, {2, 0}}));
  EXPECT_NEAR(critical_difference(.05, 4, 14), 1.253559147, 1e-8);
  EXPECT_NEAR(critical_difference(.10, 4, 14), 1.118060167, 1e-8);
  // p of a difference of mean ranks, in units of its standard error.
  const double unit = std::numbers::sqrt2 / std::sqrt(4 * 5 / (6 * 14.));
  EXPECT_NEAR(range_tail(1.143 * unit, 4), .0886105489, 1e-9);
  EXPECT_NEAR(range_tail(.5 * unit, 4), .7349587949, 1e-9);
  EXPECT_NEAR(range_tail(2 * unit, 4), 2.427922511e-4, 1e-11);
}

TEST(Statistics, StudentisedRangeTables) {
  // Demsar's table 5: q(alpha, k, infinity) / sqrt(2).
  const double at05[] = {1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164};
  const double at10[] = {1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920};
  for (int k = 2; k <= 10; ++k) {
    EXPECT_NEAR(range_critical(.05, k) / std::sqrt(2.), at05[k - 2], 1.1e-3) << k;
    EXPECT_NEAR(range_critical(.10, k) / std::sqrt(2.), at10[k - 2], 1.1e-3) << k;
  }
}

TEST(Statistics, WilcoxonOnDemsarsExample) {
  const Wilcoxon w = wilcoxon(column(1), column(0));
  EXPECT_DOUBLE_EQ(w.plus, 93);
  EXPECT_DOUBLE_EQ(w.minus, 12);
  EXPECT_DOUBLE_EQ(w.statistic, 12);
  EXPECT_LE(w.statistic, 21);  // the critical value for 14 pairs at 0.05
  EXPECT_LT(w.p, .05);
}

TEST(Statistics, WilcoxonExactSmall) {
  // Eight pairs, all in favour of one side: 2 / 2^8; with five pairs two-sided 0.05 cannot be reached.
  const std::vector<double> zero(8, 0), rising = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_DOUBLE_EQ(wilcoxon(rising, zero).p, 2. / 256);
  EXPECT_DOUBLE_EQ(wilcoxon(std::span(rising).first(5), std::span(zero).first(5)).p, 2. / 32);
  EXPECT_DOUBLE_EQ(wilcoxon(zero, zero).p, 1);
  // Darwin's maize (Zea mays), cross- against self-fertilised, eighths of an inch: T = 24, exact p = 0.0413.
  const std::vector<double> darwin = {49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
  const Wilcoxon w = wilcoxon(darwin, std::vector<double>(15, 0));
  EXPECT_DOUBLE_EQ(w.statistic, 24);
  EXPECT_NEAR(w.p, .0413, 5e-5);
}

TEST(Statistics, WilcoxonByTheNormalDistribution) {
  EXPECT_NEAR(wilcoxon(column(1), column(0)).z, (12 - 52.5) / std::sqrt(253.75), 1e-12);
  // 61 pairs are too many to count: the differences -1, 2, -3, ... give rank sums of 930 and 961.
  std::vector<double> differences;
  for (int i = 1; i <= 61; ++i) differences.push_back(i % 2 == 0 ? i : -i);
  const Wilcoxon w = wilcoxon(differences, std::vector<double>(61, 0));
  EXPECT_DOUBLE_EQ(w.plus, 930);
  EXPECT_DOUBLE_EQ(w.minus, 961);
  EXPECT_NEAR(w.z, -.111333, 5e-7);
  EXPECT_NEAR(w.p, .911352, 5e-7);
}

TEST(Statistics, SmallCases) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(best_ranks(std::vector<double>{.5, .7, nan, .7}), (std::vector<double>{3, 1, 4, 1}));
  EXPECT_DOUBLE_EQ(sample_deviation(std::vector<double>{1, 3}), std::sqrt(2.)) << "two values are enough";
  EXPECT_TRUE(rank_groups(std::vector<double>{1, 3}, 1).empty()) << "nobody is a group alone";
  EXPECT_EQ(rank_groups(std::vector<double>{3.5, 1, 1.5}, 1),
            (std::vector<std::vector<std::size_t>>{{1, 2}}));
}

TEST(Statistics, HolmOnDemsarsExample) {
  // Against C4.5 as control: p = .016, .019, .607; Holm rejects the first two at 0.05 and keeps the third.
  const auto adjusted = holm(std::vector<double>{.019, .607, .016});
  EXPECT_NEAR(adjusted[2], .048, 1e-12);
  EXPECT_NEAR(adjusted[0], .048, 1e-12);  // 2 * .019 = .038, raised to the one before
  EXPECT_NEAR(adjusted[1], .607, 1e-12);
}

TEST(Statistics, PairedTOnStudentsSleepData) {
  // Student (1908): t = 4.0621 with 9 degrees of freedom, p = 0.002833.
  const std::vector<double> first = {.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2};
  const std::vector<double> second = {1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedT plain = corrected_resampled_t(second, first, 0);
  EXPECT_NEAR(plain.t, 4.0621, 5e-5);
  EXPECT_NEAR(plain.p, .002833, 5e-7);
  // Nadeau and Bengio: the variance factor 1/10 becomes 1/10 + 15/70.
  const PairedT corrected = corrected_resampled_t(second, first, .15 / .7);
  EXPECT_NEAR(corrected.t, plain.t * std::sqrt(.1 / (.1 + .15 / .7)), 1e-12);
  EXPECT_GT(corrected.p, plain.p);
}

TEST(Statistics, PrintedQuantiles) {
  EXPECT_NEAR(student_two_sided(2.262, 9), .05, 5e-5);
  EXPECT_NEAR(student_two_sided(63.657, 1), .01, 1e-7);
  EXPECT_NEAR(f_tail(5.636, 5, 10), .01, 5e-6);
  EXPECT_NEAR(chi_squared_tail(7.815, 3), .05, 5e-5);
  EXPECT_NEAR(chi_squared_tail(23.209, 10), .01, 5e-6);
  EXPECT_NEAR(chi_squared_tail(.103, 2), .95, 5e-4);
  EXPECT_NEAR(normal_cdf(1.959963985), .975, 1e-9);
}

// Values of SciPy 1.10, quantiles of mpmath with 40 digits, on both sides of every change of formula.
TEST(Distributions, ValuesToTwelveDigits) {
  const auto near = [](double seen, double expected) { EXPECT_NEAR(seen / expected, 1, 2e-12) << expected; };
  for (const auto& [x, freedom, expected] :
       std::vector<std::tuple<double, double, double>>{{.01, 1, .920344325445942},
                                                       {1, 1, .317310507862911},
                                                       {.5, 3, .918891411654676},
                                                       {2, 3, .57240670447088},
                                                       {12, 3, .00738316050535977},
                                                       {3, 7, .885002231643151},
                                                       {7.9, 7, .341494417545449},
                                                       {9.1, 7, .245555998896675},
                                                       {40, 7, 1.25879038737131e-06},
                                                       {150, 100, .000903932042354018},
                                                       {90, 100, .75319796559983},
                                                       {300, 100, 7.41210085732302e-22}})
    near(chi_squared_tail(x, freedom), expected);
  for (const auto& [x, a, b, expected] :
       std::vector<std::tuple<double, double, double, double>>{{.2, 1, 1, .73227952719877},
                                                               {1, 1, 1, .5},
                                                               {5, 1, 1, .26772047280123},
                                                               {.5, 3, 7, .694036387568814},
                                                               {1.5, 3, 7, .295808919296438},
                                                               {8, 3, 7, .0115620743552445},
                                                               {1.1, 20, 30, .397754375378301},
                                                               {3, 20, 30, .00322978106456428},
                                                               {.3, 20, 30, .996660946883696},
                                                               {4, 2, 200, .0198000401139204}})
    near(f_tail(x, a, b), expected);
  for (const auto& [t, freedom, expected] :
       std::vector<std::tuple<double, double, double>>{{.1, 1, .936548965138893},
                                                       {1, 1, .5},
                                                       {30, 1, .0212128048110708},
                                                       {.5, 4, .643329963181863},
                                                       {2.5, 4, .0667665448119881},
                                                       {-2.5, 4, .0667665448119881},
                                                       {1.2, 30, .239530350889662},
                                                       {5, 30, 2.32966854670078e-05},
                                                       {3, 200, .0030430471139059}})
    near(student_two_sided(t, freedom), expected);
  near(f_tail(2.84506780527935, 3, 39), .05);
  near(f_tail(.798769776932235, 2, 5), .5);
  near(f_tail(.156537811675396, 4, 4), .95);
  near(f_tail(60.8549050832665, 3, 10), 1e-6);
  near(student_two_sided(2.26215716279821, 9), .05);
  near(student_two_sided(.136598199353699, 3), .9);
  near(student_two_sided(27.7716476593667, 4), 1e-5);
  near(normal_cdf(-3), .00134989803163009);
  near(normal_cdf(-1), .158655253931457);
  near(normal_cdf(.5), .691462461274013);
  for (const auto& [q, k, expected] :
       std::vector<std::tuple<double, int, double>>{{.5, 2, .7236736098318},
                                                    {1, 2, .479500122187},
                                                    {3, 2, .03389485352469},
                                                    {.5, 3, .9334219451353},
                                                    {2, 3, .3334993250401},
                                                    {4, 3, .01298766137319},
                                                    {1, 10, .9994801305445},
                                                    {3, 10, .5121840739708},
                                                    {5, 10, .01485743788778}}) {
    near(range_tail(q, k), expected);
    if (k < 10) {
      EXPECT_NEAR(range_critical(expected, k), q, 1e-10);
    }
  }
}

TEST(Distributions, Ends) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double x : {0., -1.}) {
    EXPECT_EQ(chi_squared_tail(x, 3), 1);
    EXPECT_EQ(f_tail(x, 2, 3), 1);
    EXPECT_EQ(range_tail(x, 3), 1);
  }
  EXPECT_EQ(f_tail(infinity, 2, 3), 0);
  EXPECT_EQ(student_two_sided(infinity, 3), 0);
  EXPECT_EQ(student_two_sided(-infinity, 3), 0);
  EXPECT_EQ(student_two_sided(0, 3), 1);
  EXPECT_EQ(normal_cdf(0), .5);
}

TEST(Statistics, DegenerateInputsStayFinite) {
  const std::vector<double> same(6, .5);
  EXPECT_EQ(corrected_resampled_t(same, same, .2).p, 1);
  EXPECT_EQ(corrected_resampled_t(std::vector<double>(6, .7), same, .2).p, 0);
  EXPECT_EQ(corrected_resampled_t(std::vector<double>{.7}, std::vector<double>{.5}, .2).p, 1);
  const double perfect[] = {3, 2, 1, 3, 2, 1, 3, 2, 1};  // every block agrees: F is infinite
  const Friedman f = friedman(MatrixView<const double>(perfect, 3, 3));
  EXPECT_TRUE(std::isinf(f.f));
  EXPECT_EQ(f.f_p, 0);
}

TEST(Statistics, PropertiesOfRandomTables) {
  EXPECT_TRUE(rc::check("ranks sum to k(k+1)/2; Wilcoxon is symmetric; Holm keeps order", [] {
    const auto raw = *rc::gen::container<std::vector<int>>(12, rc::gen::inRange(0, 6));
    std::vector<double> a(raw.begin(), raw.begin() + 6), b(raw.begin() + 6, raw.end());
    const auto r = ranks(a);
    RC_ASSERT(std::abs(std::accumulate(r.begin(), r.end(), 0.) - 21) < 1e-12);
    const Wilcoxon ab = wilcoxon(a, b), ba = wilcoxon(b, a);
    RC_ASSERT(ab.plus == ba.minus && ab.p == ba.p && ab.p > 0 && ab.p <= 1);
    const std::vector<double> p = {ab.p, ab.p / 2, ab.p / 3};
    const auto adjusted = holm(p);
    RC_ASSERT(adjusted[2] <= adjusted[1] && adjusted[1] <= adjusted[0] && adjusted[2] >= p[2]);
  }));
}

}  // namespace
}  // namespace lacuna
