// How labels go together, estimated where labels are known only in part. A pair is counted on the rows that know both of
// its labels, and on no other, so that labels hidden at random leave every share without bias. Of n such rows n_j have
// label j, n_k label k, n_jk both:
//   e = n_j n_k / n                                      rows expected with both if they were independent
//   φ = (n_jk - e) n / √(n_j (n - n_j) n_k (n - n_k))    the correlation: Pearson's, where all labels are known
//   λ = e / (e + s (1 - n_j/n) (1 - n_k/n))              how far the counts are to be believed
// λφ is shrunk towards independence: a pair that was expected once and met twice says little, one expected a hundred
// times and met two hundred times says much. s comes from the data: 1/s is the variance of the ratio n_jk / e over all
// pairs, beyond what chance gives it (moments of the hypergeometric distribution). Where labels are independent there is
// no such variance, and every λ is 0.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

// Rows that know both labels, and of them those that have the first, the second, both.
struct LabelPair {
  std::uint32_t known = 0, first = 0, second = 0, both = 0;
  double expected() const;     // e; 0 where nothing is known
  double correlation() const;  // φ; NaN where a label does not vary on these rows
  double lift() const;         // n_jk / e; NaN where e is 0
};

class LabelGraph {
 public:
  LabelGraph() = default;
  // labels (n, c): 1, 0, kUnknown. The same bits for any number of threads.
  explicit LabelGraph(MatrixView<const std::int8_t> labels);

  std::size_t labels() const { return known_.size(); }
  std::uint32_t known(std::size_t j) const { return known_[j]; }          // rows that know label j
  std::uint32_t positives(std::size_t j) const { return positives_[j]; }  // and have it
  LabelPair pair(std::size_t j, std::size_t k) const;                     // j != k

  double spread() const { return spread_; }                // 1/s; 0: no more than chance
  double belief(std::size_t j, std::size_t k) const;       // λ, below 1
  double correlation(std::size_t j, std::size_t k) const;  // λφ; 0 where φ is not defined
  // Of the pair's table, shrunk by λ towards the table of independent labels; finite.
  double log_odds_ratio(std::size_t j, std::size_t k) const;

 private:
  std::size_t place(std::size_t j, std::size_t k) const { return k * (k - 1) / 2 + j; }  // j < k

  std::vector<std::uint32_t> known_, positives_;
  std::vector<LabelPair> pairs_;  // below the diagonal, row by row
  double spread_ = 0;
};

// All pairs (a, b), a < b: the largest |correlation| first, equal ones in the order of their labels.
std::vector<std::pair<std::size_t, std::size_t>> pairs_by_strength(const LabelGraph& graph);

// The strongest ties as a forest: of all pairs the strongest is taken first, and each further one that joins two parts.
// Only positive ties of at least `least`. Every label comes once, in the order in which the forest is walked: a label is
// followed by what hangs on it, the strongest first, and the largest trees come first.
struct LabelForest {
  struct Node {
    std::size_t label = 0, depth = 0;
    double tie = 0;  // to the label that it hangs on; 0 at a root
  };
  std::vector<Node> nodes;
  std::size_t single = 0;  // labels without any tie; they come last
};
LabelForest strongest_ties(const LabelGraph& graph, double least);

}  // namespace lacuna
