// Multi-view multi-label data drawn from a known model, for demonstrations and for tests of scale
// (docs/simulating.md).
//   Z    (n, k)     shared factors; each is seen by about half of the views
//   P_v  (n, k_v)   factors of view v alone
//   X_v  = scale_v * ([Z seen by v, P_v] A_v + noise * N(0, 1)) + shift_v
//   L    (n, c)     affinity of items and labels: Z B + (P of the label's home view) C
// A row has the labels with the largest L + N(0, .3) - t_j; the offsets t_j give the labels a long tail of
// frequencies. Labels of a group share a direction of B, so they come together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/options.h"
#include "base/threads.h"
#include "data/dataset.h"

namespace lacuna {

struct SimulateOptions {
  std::int64_t rows = 0, views = 0, labels = 0;  // 0: 1000, 4, 20, or those of `like`
  std::int64_t shared_factors = 0;               // k; 0: by the number of labels
  std::int64_t private_factors = 4;              // k_v
  double cardinality = 0;                        // labels a row; 0: 2, or that of `like`
  double noise = 1;                              // standard deviation of the noise; that of the signal is 1
  std::vector<double> sizes = {};                // columns of the views
  std::string like = {};                         // a data set of the paper: its sizes
  std::uint64_t seed = 1;
  void declare(Options& options);
};

struct Simulated {
  Dataset data;
  Matrix<float> shared;            // Z (n, k)
  std::vector<Matrix<float>> own;  // P_v (n, k_v)
  Matrix<std::uint8_t> seen;       // (m, k) 1 = view v sees shared factor f
  Matrix<float> affinity;          // L (n, c); empty where the labels were given
};

Simulated simulate(const SimulateOptions& options);
// Views for the labels of a data set that may have no views: items with the same labels get similar factors.
// Rows, labels, names and ids are those of `labelled`.
Simulated simulate_views(const Dataset& labelled, const SimulateOptions& options);
// The same bits with the views in blocks of rows, none of which is kept: for more rows than memory. The views of the
// result have no rows.
using BlockSink = FunctionRef<void(const Dataset& block)>;
Simulated simulate(const SimulateOptions& options, BlockSink sink);
Simulated simulate_views(const Dataset& labelled, const SimulateOptions& options, BlockSink sink);
// The planted factors as arrays `shared`, `own_<view>`, `seen`, `affinity` of an .npz file.
void write_truth(const Simulated& simulated, const std::string& path);

}  // namespace lacuna
