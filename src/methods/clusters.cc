#include "methods/clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "base/threads.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

double squared_distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

}  // namespace

std::vector<std::uint32_t> k_means(MatrixView<const double> X, std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> cluster(X.rows);
  if (X.rows == 0) return cluster;
  Random random(seed, Purpose::cluster);
  Matrix<double> centres(count, X.cols);
  std::vector<double> nearest(X.rows, std::numeric_limits<double>::infinity());
  std::size_t chosen = random.below(X.rows);
  for (std::size_t k = 0; k < count; ++k) {
    std::copy(X.row(chosen).begin(), X.row(chosen).end(), centres.row(k).begin());
    double sum = 0;
    for (std::size_t i = 0; i < X.rows; ++i) {
      nearest[i] = std::min(nearest[i], squared_distance(X.row(i), centres.row(k)));
      sum += nearest[i];
    }
    double at = random.uniform_double() * sum;
    for (chosen = 0; chosen + 1 < X.rows && at >= nearest[chosen]; ++chosen) at -= nearest[chosen];
  }
  for (int round = 0; round < 100; ++round) {
    bool moved = round == 0;
    for (std::size_t i = 0; i < X.rows; ++i) {
      std::uint32_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t k = 0; k < count; ++k) {
        const double distance = squared_distance(X.row(i), centres.row(k));
        if (distance < least) least = distance, best = static_cast<std::uint32_t>(k);
      }
      moved = moved || cluster[i] != best;
      cluster[i] = best;
    }
    if (!moved) break;
    std::vector<double> sizes(count);
    Matrix<double> sums(count, X.cols);
    for (std::size_t i = 0; i < X.rows; ++i) {
      ++sizes[cluster[i]];
      for (std::size_t j = 0; j < X.cols; ++j) sums(cluster[i], j) += X(i, j);
    }
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t j = 0; j < X.cols && sizes[k] > 0; ++j) centres(k, j) = sums(k, j) / sizes[k];
  }
  std::vector<std::uint32_t> name(count, 0);
  for (const std::uint32_t k : cluster) name[k] = 1;
  std::exclusive_scan(name.begin(), name.end(), name.begin(), 0u);
  for (std::uint32_t& k : cluster) k = name[k];
  return cluster;
}

void Graph::laplacian(MatrixView<const double> X, MatrixView<double> out) const {
  parallel_for(X.rows, 32, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto to = out.row(i);
      for (std::size_t j = 0; j < X.cols; ++j) to[j] = degree[i] * X(i, j);
      for (std::size_t e = start[i]; e < start[i + 1]; ++e) {
        const auto from = X.row(neighbour[e]);
        for (std::size_t j = 0; j < X.cols; ++j) to[j] -= weight[e] * from[j];
      }
    }
  });
}

Graph nearest_graph(MatrixView<const float> X, std::size_t neighbours) {
  const std::size_t n = X.rows;
  std::vector<double> squares(n);
  for (std::size_t i = 0; i < n; ++i)
    for (const float x : X.row(i)) squares[i] += static_cast<double>(x) * static_cast<double>(x);
  std::vector<std::vector<std::pair<std::uint32_t, double>>> edges(n);
  std::vector<std::vector<std::pair<std::uint32_t, double>>> chosen(n);
  constexpr std::size_t kStrip = 256;
  for (std::size_t first = 0; first < n; first += kStrip) {
    const std::size_t rows = std::min(kStrip, n - first);
    Matrix<float> dots(rows, n);
    product(X.slice(first, rows), X, Transpose::right, false, dots);
    parallel_for(rows, 8, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        const std::size_t i = first + r;
        if (squares[i] == 0) continue;
        std::vector<std::pair<double, std::uint32_t>> distance;
        for (std::size_t j = 0; j < n; ++j)
          if (j != i && squares[j] > 0)
            distance.push_back({std::max(squares[i] + squares[j] - 2 * static_cast<double>(dots(r, j)), 0.0),
                                static_cast<std::uint32_t>(j)});
        const std::size_t take = std::min(neighbours - 1, distance.size());
        std::partial_sort(distance.begin(), distance.begin() + static_cast<std::ptrdiff_t>(take),
                          distance.end());
        for (std::size_t k = 0; k < take; ++k)
          chosen[i].push_back({distance[k].second, std::exp(-distance[k].first / 2)});
      }
    });
  }
  for (std::size_t i = 0; i < n; ++i)
    for (const auto& [j, w] : chosen[i]) {
      edges[i].push_back({j, w});
      edges[j].push_back({static_cast<std::uint32_t>(i), w});
    }
  Graph graph;
  graph.start = {0};
  for (std::size_t i = 0; i < n; ++i) {
    std::sort(edges[i].begin(), edges[i].end());
    double degree = 0;
    for (std::size_t e = 0; e < edges[i].size(); ++e) {
      // An edge that both chose stands twice; the larger of its two (equal but for rounding) weights is kept.
      if (e + 1 < edges[i].size() && edges[i][e + 1].first == edges[i][e].first) continue;
      graph.neighbour.push_back(edges[i][e].first);
      graph.weight.push_back(edges[i][e].second);
      degree += edges[i][e].second;
    }
    graph.degree.push_back(degree);
    graph.start.push_back(graph.neighbour.size());
  }
  return graph;
}

}  // namespace lacuna
