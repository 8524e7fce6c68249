// Clusters and neighbours of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

// k-means with k-means++ starts (each next centre is drawn by squared distance), at most 100 rounds. Returns
// the cluster of each row, numbered without gaps: empty clusters are left out.
std::vector<std::uint32_t> k_means(MatrixView<const double> X, std::size_t count, std::uint64_t seed);

// The symmetric graph of the `neighbours` nearest rows (the row itself included, as in the authors' program) with
// weights exp(-|x_i - x_j|²/2). Two rows are connected if either is a neighbour of the other. Zero rows carry no
// information and have no edges. Ties go to the smaller index.
struct Graph {
  std::vector<std::size_t> start;  // edges of row i: start[i]..start[i+1], self-loops left out
  std::vector<std::uint32_t> neighbour;
  std::vector<double> weight;
  std::vector<double> degree;  // sum of the weights of the row

  // out = (D - S) X
  void laplacian(MatrixView<const double> X, MatrixView<double> out) const;
};
Graph nearest_graph(MatrixView<const float> X, std::size_t neighbours);

}  // namespace lacuna
