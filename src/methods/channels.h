// Access to the embeddings of methods with two channels per view (a shared one and the view's own), for experiments on
// how well the channels separate.
#pragma once

#include <vector>

#include "base/matrix.h"
#include "data/items.h"

namespace lacuna {

class ChannelReader {
 public:
  virtual ~ChannelReader() = default;
  // shared[v] and own[v] (n, d_e): the embeddings of view v without masks and dropout; rows of missing instances are
  // undefined. May be called during fit, from FitContext::before_training and after_epoch.
  virtual void channels(const Items& items, std::vector<Matrix<float>>& shared,
                        std::vector<Matrix<float>>& own) const = 0;
};

}  // namespace lacuna
