// The networks of the benchmarks, in the shape of Corel5k, on made-up numbers: speed does not depend on what
// they mean.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/items.h"
#include "methods/mtd.h"
#include "nn/make.h"
#include "nn/mtd_options.h"
#include "nn/train.h"

namespace lacuna {

// The paper's network on the six views of Corel5k, and the small default network.
struct Yardstick {
  std::string name, preset;
  std::vector<std::size_t> columns;
};
inline const Yardstick kPaper{"paper", "authors", {100, 1000, 4096, 4096, 4096, 512}};
inline const Yardstick kBest{"best", "best", {96, 96, 96, 96, 96, 96}};

struct PresetOptions {
  MtdOptions network;
  TrainOptions train;
};

// What a preset of mtd or lacuna sets.
inline PresetOptions preset(const std::string& name) {
  const auto method = make_method(method_of_preset(name));
  PrepareOptions prepare;
  method->set_preset(name, prepare);
  PresetOptions setting;
  Options from, to;
  method->declare(from);
  setting.network.declare(to);
  setting.train.declare(to);
  for (const auto& option : to.all()) to.set(option.name, from.find(option.name)->text(), "preset " + name);
  return setting;
}

inline UpdateRule rule_of(const TrainOptions& train) {
  UpdateRule rule;
  rule.optimiser = train.optimiser;
  rule.rate = train.rate * .1;  // made-up data must not diverge
  rule.weight_decay = train.weight_decay;
  rule.average = train.average;
  return rule;
}

// Corel5k's colour histograms have 4096 columns and are 17.5, 8.6 and 4.0 % dense; standardised, the zeros of
// a column are one number.
constexpr std::size_t kHistogram = 4096;
constexpr float kDense[] = {.175f, .086f, .04f};

// Half of the view instances and half of the labels are missing; every row has a view.
inline Items made_up_items(std::size_t rows, const std::vector<std::size_t>& columns, std::size_t labels) {
  Items items;
  items.W = Matrix<std::uint8_t>(rows, columns.size());
  items.Y = Matrix<float>(rows, labels);
  items.G = Matrix<std::uint8_t>(rows, labels);
  std::vector<float> dense(columns.size(), 1);
  std::size_t histograms = 0;
  for (std::size_t v = 0; v < columns.size(); ++v) {
    items.X.emplace_back(rows, columns[v]);
    items.common.emplace_back();
    if (columns[v] != kHistogram) continue;
    dense[v] = kDense[histograms++ % std::size(kDense)];
    items.common[v] = Matrix<float>(1, columns[v]);
    Random random(2, Purpose::test, static_cast<std::uint32_t>(v));
    for (float& x : items.common[v].values()) x = random.uniform(-.4f, 0);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    Random random(1, Purpose::test, static_cast<std::uint32_t>(i));
    for (std::size_t v = 0; v < columns.size(); ++v) items.W(i, v) = random.below(2) == 0;
    items.W(i, random.below(columns.size())) = 1;
    for (std::size_t j = 0; j < labels; ++j) {
      items.G(i, j) = random.below(2) == 0;
      items.Y(i, j) = items.G(i, j) != 0 && random.uniform() < .013f ? 1.f : 0.f;
    }
    for (std::size_t v = 0; v < columns.size(); ++v)
      for (std::size_t j = 0; j < columns[v] && items.W(i, v) != 0; ++j)
        items.X[v](i, j) = dense[v] == 1 || random.uniform() < dense[v] ? random.uniform(-1.7f, 1.7f)
                                                                        : items.common[v](0, j);
  }
  return items;
}

}  // namespace lacuna
