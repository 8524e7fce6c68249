// Weights of labels in the losses, so that rare labels count more: w_j is proportional to share_j^-½ (sqrt) or
// share_j^-1 (inverse), where share_j = (k + 1) / (n + 2) for k positives among n known entries of the label in the
// training rows. Their mean over all known entries is 1. Positive and negative entries have the same weight, so the
// network still learns probabilities.
#pragma once

#include <cmath>
#include <vector>

#include "data/items.h"
#include "nn/mtd_options.h"
#include "ops/engine.h"

namespace lacuna {

inline std::vector<float> label_weights(const Items& items, LabelWeight kind) {
  const double power = kind == LabelWeight::inverse ? -1 : -.5;
  std::vector<double> known(items.labels(), 0), weight(items.labels(), 0);
  double sum = 0, all = 0;
  items.for_rows([&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < items.labels(); ++j)
        if (items.G(i, j) != 0) known[j] += 1, weight[j] += static_cast<double>(items.Y(i, j));
  });
  for (std::size_t j = 0; j < items.labels(); ++j) {
    weight[j] = std::pow((weight[j] + 1) / (known[j] + 2), power);
    sum += known[j] * weight[j];
    all += known[j];
  }
  std::vector<float> weights;
  for (const double w : weight) weights.push_back(static_cast<float>(sum > 0 ? w * all / sum : 1));
  return weights;
}

// The same in the memory of an engine, made with the first batch.
class LabelWeights {
 public:
  // Empty: all labels weigh the same.
  std::span<const float> on(const Engine& engine, const Items& items, LabelWeight kind) {
    if (kind == LabelWeight::none) return {};
    if (weights_.empty()) {
      const std::vector<float> weights = label_weights(items, kind);
      weights_ = EngineMatrix<float>(engine, 1, weights.size());
      upload<float>(engine, {weights.data(), 1, weights.size()}, weights_);
    }
    return {weights_.data(), weights_.cols()};
  }

 private:
  EngineMatrix<float> weights_;  // (1, c)
};

}  // namespace lacuna
