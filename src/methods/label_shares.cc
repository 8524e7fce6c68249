#include "methods/label_shares.h"

#include <numeric>

namespace lacuna {

std::vector<double> label_shares(const Items& items) {
  const std::size_t c = items.labels();
  std::vector<double> known(c), positive(c);
  for (std::size_t i = 0; i < items.rows(); ++i)
    for (std::size_t j = 0; j < c; ++j) {
      if (items.G(i, j) == 0) continue;
      known[j] += 1;
      positive[j] += static_cast<double>(items.Y(i, j));
    }
  const double all = std::reduce(known.begin(), known.end()),
               share = (std::reduce(positive.begin(), positive.end()) + .5) / (all + 1);
  std::vector<double> shares;
  for (std::size_t j = 0; j < c; ++j) shares.push_back((positive[j] + share) / (known[j] + 1));
  return shares;
}

}  // namespace lacuna
