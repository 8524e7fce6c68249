// Assigns the chains of a network to ranks. A chain is an encoder or a decoder of one view, with its parameters, their
// optimiser state and the rows that it reads. Where chains meet (fusion, classifier, losses of all views), every rank
// computes the result itself, in the same order and with the same bits.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ranks.h"

namespace lacuna {

class Division {
 public:
  Division() = default;
  // Assigns the most expensive chains first, each to the rank that has least so far. Chains from `later` on are
  // computed after the others, so each of the two kinds is divided evenly. The result of a training does not depend on
  // the division. Exit::usage for more ranks than chains.
  Division(const Ranks& ranks, std::span<const double> costs, std::size_t later = ~std::size_t{0})
      : ranks_(&ranks), owners_(costs.size()) {
    const auto size = static_cast<std::size_t>(ranks.size());
    if (size > costs.size())
      fail(Exit::usage,
           "the network divides into {} parts (encoders and decoders of its views), there are {} ranks; "
           "start at most {}",
           costs.size(), size, costs.size());
    std::vector<std::size_t> order(costs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
    std::vector<double> all(size);
    for (const bool second : {false, true}) {
      std::vector<std::pair<double, double>> loads;  // per rank: of this kind, of all chains
      for (const double load : all) loads.emplace_back(0, load);
      for (const std::size_t chain : order) {
        if ((chain >= later) != second) continue;
        const auto least = std::ranges::min_element(loads);
        least->first += costs[chain];
        least->second += costs[chain];
        owners_[chain] = static_cast<int>(least - loads.begin());
      }
      for (std::size_t r = 0; r < size; ++r) all[r] = loads[r].second;
    }
  }

  const Ranks& ranks() const { return *ranks_; }
  int owner(std::size_t chain) const { return owners_[chain]; }
  bool mine(std::size_t chain) const { return owners_[chain] == ranks_->rank(); }

 private:
  const Ranks* ranks_ = &one_rank();
  std::vector<int> owners_;
};

}  // namespace lacuna
