// Significance tests for comparisons of methods (docs/experiments.md explains when to use which):
//   - over several data sets: Friedman with the Iman-Davenport correction, then Nemenyi (all pairs, one
//     critical difference) or Wilcoxon's signed ranks with Holm's correction (pairs with one method);
//   - over repetitions on one data set: the t-test corrected for overlapping training sets (Nadeau and
//     Bengio).
// Values are "higher is better"; rank 1 is the best; ties share the mean rank.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

// Descending ranks of one row of values, ties by mean rank. A value that is not a number ranks last.
std::vector<double> ranks(std::span<const double> values);

// The same, but ties all get the best of their ranks: the paper's Ave.R is a mean of these.
std::vector<double> best_ranks(std::span<const double> values);

double mean(std::span<const double> values);
double deviation(std::span<const double> values);  // population (the papers' way): divides by n
constexpr const char* kDeviationWords =
    "population standard deviation (divided by n)";       // of what is printed so
double sample_deviation(std::span<const double> values);  // divides by n - 1

struct Friedman {
  std::size_t blocks = 0, methods = 0;  // N data sets, k methods
  std::vector<double> mean_ranks;       // k
  double chi_squared = 0, chi_squared_p = 1;
  double f = 0, f_p = 1;  // Iman-Davenport: F with k - 1 and (k - 1)(N - 1) degrees of freedom
  bool rejects(double alpha) const { return f_p < alpha; }
};
// values (N, k); N >= 2 and k >= 2.
Friedman friedman(MatrixView<const double> values);

// Nemenyi's critical difference of mean ranks.
double critical_difference(double alpha, std::size_t methods, std::size_t blocks);
// Maximal groups of methods whose mean ranks lie within `difference` of each other: the bars of the diagram.
// Each group lists positions in `mean_ranks`, best first; groups of one are left out.
std::vector<std::vector<std::size_t>> rank_groups(std::span<const double> mean_ranks, double difference);

struct Wilcoxon {
  std::size_t used = 0;        // pairs with a difference
  double plus = 0, minus = 0;  // R+ and R-: rank sums where a > b and where a < b
  double statistic = 0;        // T, the smaller of both
  double z = 0, p = 1;         // p is exact up to 60 differing pairs, else the normal approximation
};
// Pairs without difference are ranked too, and both sides share their ranks (one pair is dropped if their number is
// odd), as in Demsar (2006).
Wilcoxon wilcoxon(std::span<const double> a, std::span<const double> b);

// Holm's step-down adjustment; result[i] belongs to p[i]. Adjusted values below alpha are significant.
std::vector<double> holm(std::span<const double> p);

struct PairedT {
  double difference = 0, t = 0, p = 1;
  double freedom = 0;
};
// Repetitions of random splits of one data set: var(d) * (1/n + test_share / train_share) in place of var(d)
// / n. test_to_train = 0 is the plain paired t-test.
PairedT corrected_resampled_t(std::span<const double> a, std::span<const double> b, double test_to_train);

}  // namespace lacuna
