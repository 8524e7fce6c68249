// The missing rates that folds reach, as means over the repetitions.
#pragma once

#include <cstdint>
#include <vector>

#include "data/folds.h"

namespace lacuna {

inline double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

struct Rates {
  std::vector<double> existing;         // per view: instances that the data have
  std::vector<double> hidden;           // per view: share of them that is hidden
  std::vector<double> hidden_in_train;  // the same among the training rows
  std::vector<double> rows_with_views;  // [k]: share of the rows that have exactly k views left; 0..m
  double positives_hidden = 0;          // share of the known positives of the training rows
  double negatives_hidden = 0;          // share of the known negatives of the training rows
  double rows_without_positive = 0;     // share of the training rows that keep no known positive
  double labels_without_positive = 0;   // labels without a known positive among the training rows
};

Rates rates_of(const Dataset& data, const Folds& folds);

}  // namespace lacuna
