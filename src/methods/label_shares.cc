#include "methods/label_shares.h"

#include <numeric>

namespace lacuna {

std::vector<double> label_shares(const Items& items) {
  const std::size_t c = items.labels();
  std::vector<double> known(c), positive(c);
  items.for_rows([&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        if (items.G(i, j) == 0) continue;
        known[j] += 1;
        positive[j] += static_cast<double>(items.Y(i, j));
      }
  });
  const double all = std::reduce(known.begin(), known.end()),
               share = (std::reduce(positive.begin(), positive.end()) + .5) / (all + 1);
  std::vector<double> shares;
  for (std::size_t j = 0; j < c; ++j) shares.push_back((positive[j] + share) / (known[j] + 1));
  return shares;
}

}  // namespace lacuna
