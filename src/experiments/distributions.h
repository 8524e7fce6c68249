// Tails of the distributions for the significance tests, in double precision. They are computed, not tabulated, so any
// number of methods and data sets and any level work.
#pragma once

namespace lacuna {

double normal_cdf(double z);
double chi_squared_tail(double x, double freedom);                              // P(X >= x)
double f_tail(double x, double numerator_freedom, double denominator_freedom);  // P(F >= x)
double student_two_sided(double t, double freedom);                             // P(|T| >= |t|)
// The studentised range of k normal means with infinite degrees of freedom (Nemenyi's test).
double range_tail(double q, int k);
double range_critical(double level, int k);  // the q whose tail is `level`

}  // namespace lacuna
