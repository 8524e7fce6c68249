#include "data/label_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/threads.h"
#include "data/dataset.h"

namespace lacuna {
namespace {

// One bit a row and label: a label is known, a label is there.
struct Bits {
  std::size_t words = 0;
  std::vector<std::uint64_t> known, there;  // (c, words)
};

Bits bits_of(MatrixView<const std::int8_t> labels) {
  Bits bits;
  bits.words = (labels.rows + 63) / 64;
  bits.known.resize(labels.cols * bits.words);
  bits.there.resize(labels.cols * bits.words);
  parallel_for(bits.words, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * 64; i < std::min(end * 64, labels.rows); ++i)
      for (std::size_t j = 0; j < labels.cols; ++j) {
        const std::uint64_t bit = std::uint64_t{1} << (i % 64);
        if (labels(i, j) != kUnknown) bits.known[j * bits.words + i / 64] |= bit;
        if (labels(i, j) == 1) bits.there[j * bits.words + i / 64] |= bit;
      }
  });
  return bits;
}

std::uint32_t count(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
  std::uint32_t sum = 0;
  for (std::size_t w = 0; w < words; ++w) sum += static_cast<std::uint32_t>(std::popcount(a[w] & b[w]));
  return sum;
}

// What chance alone does to the number of rows with both labels.
double chance_variance(const LabelPair& pair) {
  const double n = pair.known, a = pair.first, b = pair.second;
  return n < 2 ? 0 : a * b * (n - a) * (n - b) / (n * n * (n - 1));
}

}  // namespace

double LabelPair::expected() const {
  return known == 0 ? 0 : static_cast<double>(first) * second / known;
}

double LabelPair::correlation() const {
  const double n = known, a = first, b = second, square = a * (n - a) * b * (n - b);
  if (!(square > 0)) return std::numeric_limits<double>::quiet_NaN();
  return (n * both - a * b) / std::sqrt(square);
}

double LabelPair::lift() const {
  const double e = expected();
  return e > 0 ? both / e : std::numeric_limits<double>::quiet_NaN();
}

LabelGraph::LabelGraph(MatrixView<const std::int8_t> labels)
    : known_(labels.cols),
      positives_(labels.cols),
      pairs_(labels.cols * (labels.cols - (labels.cols > 0)) / 2) {
  const Bits bits = bits_of(labels);
  const std::size_t words = bits.words;
  parallel_for(labels.cols, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const auto* known = bits.known.data() + k * words;
      const auto* there = bits.there.data() + k * words;
      known_[k] = count(known, known, words);
      positives_[k] = count(there, there, words);
      for (std::size_t j = 0; j < k; ++j) {
        const auto* other_known = bits.known.data() + j * words;
        const auto* other_there = bits.there.data() + j * words;
        pairs_[place(j, k)] = {count(known, other_known, words), count(known, other_there, words),
                               count(there, other_known, words), count(there, other_there, words)};
      }
    }
  });
  double beyond = 0, square = 0;
  for (const LabelPair& pair : pairs_) {
    const double e = pair.expected(), off = pair.both - e;
    beyond += off * off - chance_variance(pair);
    square += e * e;
  }
  spread_ = square > 0 ? std::max(0., beyond / square) : 0;
}

LabelPair LabelGraph::pair(std::size_t j, std::size_t k) const {
  if (j < k) return pairs_[place(j, k)];
  LabelPair turned = pairs_[place(k, j)];
  std::swap(turned.first, turned.second);
  return turned;
}

double LabelGraph::belief(std::size_t j, std::size_t k) const {
  const LabelPair of = pair(j, k);
  const double n = of.known, e = of.expected();
  if (!(e > 0) || !(spread_ > 0)) return 0;
  return e / (e + (1 - of.first / n) * (1 - of.second / n) / spread_);
}

double LabelGraph::correlation(std::size_t j, std::size_t k) const {
  const double phi = pair(j, k).correlation();
  return std::isnan(phi) ? 0 : belief(j, k) * phi;
}

double LabelGraph::log_odds_ratio(std::size_t j, std::size_t k) const {
  const LabelPair of = pair(j, k);
  if (std::isnan(of.correlation())) return 0;
  const double n = of.known, a = of.first, b = of.second, e = of.expected();
  const double both = e + belief(j, k) * (of.both - e);
  return std::log(both * (n - a - b + both) / ((a - both) * (b - both)));
}

std::vector<std::pair<std::size_t, std::size_t>> pairs_by_strength(const LabelGraph& graph) {
  struct Tie {
    double strength;
    std::size_t a, b;
  };
  std::vector<Tie> ties;
  for (std::size_t a = 0; a + 1 < graph.labels(); ++a)
    for (std::size_t b = a + 1; b < graph.labels(); ++b)
      ties.push_back({std::abs(graph.correlation(a, b)), a, b});
  std::ranges::stable_sort(ties, [](const Tie& x, const Tie& y) { return x.strength > y.strength; });
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const Tie& tie : ties) pairs.emplace_back(tie.a, tie.b);
  return pairs;
}

namespace {

std::size_t root_of(std::vector<std::size_t>& parent, std::size_t j) {
  while (parent[j] != j) j = parent[j] = parent[parent[j]];
  return j;
}

}  // namespace

LabelForest strongest_ties(const LabelGraph& graph, double least) {
  const std::size_t c = graph.labels();
  std::vector<std::size_t> parent(c), size(c, 1);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  std::vector<std::vector<std::pair<double, std::size_t>>> near(c);  // the strongest first, as they are taken
  for (const auto& [j, k] : pairs_by_strength(graph)) {
    const double tie = graph.correlation(j, k);
    const std::size_t a = root_of(parent, j), b = root_of(parent, k);
    if (tie < least || a == b) continue;
    parent[b] = a;
    size[a] += size[b];
    near[j].emplace_back(tie, k);
    near[k].emplace_back(tie, j);
  }
  // A tree hangs on its most frequent label.
  std::vector<std::size_t> top(c, c), roots;
  for (std::size_t j = 0; j < c; ++j) {
    std::size_t& best = top[root_of(parent, j)];
    if (best == c || graph.positives(j) > graph.positives(best)) best = j;
  }
  for (const std::size_t j : top)
    if (j != c) roots.push_back(j);
  std::ranges::stable_sort(roots, [&](std::size_t a, std::size_t b) {
    const std::size_t of_a = size[root_of(parent, a)], of_b = size[root_of(parent, b)];
    return of_a != of_b ? of_a > of_b : graph.positives(a) > graph.positives(b);
  });
  LabelForest forest;
  std::vector<std::uint8_t> met(c);
  std::vector<LabelForest::Node> waiting;
  for (const std::size_t root : roots) {
    forest.single += near[root].empty();
    waiting.push_back({root, 0, 0});
    while (!waiting.empty()) {
      const LabelForest::Node node = waiting.back();
      waiting.pop_back();
      met[node.label] = 1;
      forest.nodes.push_back(node);
      for (auto at = near[node.label].rbegin(); at != near[node.label].rend(); ++at)
        if (met[at->second] == 0) waiting.push_back({at->second, node.depth + 1, at->first});
    }
  }
  return forest;
}

}  // namespace lacuna
