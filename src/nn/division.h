// Which rank computes which chain of a network: an encoder or a decoder of one view, with its parameters, their optimiser
// state and the rows that it reads. What all chains come together in (fusion, the classifier, losses of all views) every
// rank computes for itself, in the same order and with the same bits.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ranks.h"

namespace lacuna {

class Division {
 public:
  Division() = default;
  // The most expensive chains first, each to the rank that has least so far. The result of a training does not depend
  // on it. Exit::usage for more ranks than chains.
  Division(const Ranks& ranks, std::span<const double> costs) : ranks_(&ranks), owners_(costs.size()) {
    const auto size = static_cast<std::size_t>(ranks.size());
    if (size > costs.size())
      fail(Exit::usage,
           "the network divides into {} parts (encoders and decoders of its views), there are {} ranks; "
           "start at most {}",
           costs.size(), size, costs.size());
    std::vector<std::size_t> order(costs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
    std::vector<double> loads(size);
    for (const std::size_t chain : order) {
      const auto least = std::ranges::min_element(loads);
      *least += costs[chain];
      owners_[chain] = static_cast<int>(least - loads.begin());
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
