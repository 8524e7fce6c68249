// Which labels occur together, estimated from labels that are known only in part. A pair is counted only on rows that
// know both of its labels, so labels hidden at random do not bias the shares. Of n such rows n_j have label j, n_k have
// label k, n_jk have both:
//   e = n_j n_k / n                                      rows expected with both if they were independent
//   φ = (n_jk - e) n / √(n_j (n - n_j) n_k (n - n_k))    the correlation: Pearson's, where all labels are known
//   λ = e / (e + s (1 - n_j/n) (1 - n_k/n))              the reliability of the counts
// λφ is shrunk towards independence: a pair that was expected once and observed twice says little, one that was
// expected a hundred times and observed two hundred times says much. s is estimated from the data: 1/s is by how much
// the variance of n_jk / e over all pairs exceeds that of chance (moments of the hypergeometric distribution). If
// labels are independent, nothing exceeds it, and every λ is 0.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

// The number of rows that know both labels, and of those that have the first, the second, both.
struct LabelPair {
  std::uint32_t known = 0, first = 0, second = 0, both = 0;
  double expected() const;     // e; 0 where nothing is known
  double correlation() const;  // φ; NaN if a label does not vary on these rows
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
  // The log odds ratio of the pair's counts, shrunk by λ towards those of independent labels; finite.
  double log_odds_ratio(std::size_t j, std::size_t k) const;

 private:
  std::size_t place(std::size_t j, std::size_t k) const { return k * (k - 1) / 2 + j; }  // j < k

  std::vector<std::uint32_t> known_, positives_;
  std::vector<LabelPair> pairs_;  // below the diagonal, row by row
  double spread_ = 0;
};

// All pairs (a, b), a < b: the largest |correlation| first, equal ones in the order of their labels.
std::vector<std::pair<std::size_t, std::size_t>> pairs_by_strength(const LabelGraph& graph);

// The strongest positive pairs as a maximum spanning forest, without pairs weaker than `least`. Every label occurs
// once, in depth-first order: a label is followed by its children, the strongest first, and the largest trees come
// first.
struct LabelForest {
  struct Node {
    std::size_t label = 0, depth = 0;
    double tie = 0;  // correlation with its parent; 0 for a root
  };
  std::vector<Node> nodes;
  std::size_t single = 0;  // number of labels without any pair; they come last
};
LabelForest strongest_ties(const LabelGraph& graph, double least);

}  // namespace lacuna
