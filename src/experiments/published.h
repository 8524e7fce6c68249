// The figures printed in the paper (published.cc), for comparison with ours.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lacuna {

struct PublishedFigure {
  double mean = 0, deviation = 0;
};

struct PublishedSet {
  const char* name;
  std::size_t rows, labels;
  PublishedFigure methods[9][6];  // published_methods() x (AP, 1-HL, 1-RL, AUC, 1-OE, 1-Cov)
  double average_rank[9];
};
struct PublishedAblation {
  const char* row;
  double means[6];
};
struct PublishedTime {
  const char* method;
  double training, test;  // seconds
  double epochs;          // of the training; 0 if the paper does not count epochs for the method
};

const std::vector<std::string>& published_methods();      // our names of the nine
std::size_t published_method(const std::string& method);  // its position; 9 if the paper does not have it
const std::vector<PublishedSet>& published_sets();        // the five
// Whether a data set has this known name: the letters and digits of its own name begin with those of the known one.
bool same_set(const std::string& known, const std::string& data_name);
// The paper's figures for a data set, or null: the name must begin like theirs and both sizes must agree.
const PublishedSet* published_set(const std::string& data_name, std::size_t rows, std::size_t labels);
const PublishedAblation* published_ablation(const std::string& row);
const PublishedTime* published_time(const std::string& method);

}  // namespace lacuna
