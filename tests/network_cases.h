// Small random items and networks for the tests of layers, losses and whole models.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/items.h"
#include "methods/mtd.h"
#include "nn/mtd.h"

namespace lacuna {

struct CaseShape {
  std::size_t rows = 9;
  std::vector<std::size_t> columns = {7, 12, 9};
  std::size_t labels = 5;
  double missing_views = .4, missing_labels = .4;
  bool some_view_nobody_has = false;  // the first view is missing everywhere
};

// Gaussian features, sparse labels, gaps; every row keeps at least one view.
inline Items random_items(const CaseShape& shape, std::uint64_t seed) {
  Random random(seed, Purpose::test);
  const std::size_t m = shape.columns.size();
  Items items;
  items.W = Matrix<std::uint8_t>(shape.rows, m);
  items.Y = Matrix<float>(shape.rows, shape.labels);
  items.G = Matrix<std::uint8_t>(shape.rows, shape.labels);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t v = 0; v < m; ++v)
      items.W(i, v) = random.uniform() >= static_cast<float>(shape.missing_views) &&
                      !(shape.some_view_nobody_has && v == 0);
    const std::size_t sure = shape.some_view_nobody_has && m > 1 ? 1 + random.below(m - 1) : random.below(m);
    items.W(i, sure) = 1;
    for (std::size_t j = 0; j < shape.labels; ++j) {
      items.G(i, j) = random.uniform() >= static_cast<float>(shape.missing_labels);
      items.Y(i, j) = items.G(i, j) && random.uniform() < .4f ? 1.f : 0.f;
    }
  }
  for (std::size_t v = 0; v < m; ++v) {
    auto& X = items.X.emplace_back(shape.rows, shape.columns[v]);
    for (std::size_t i = 0; i < shape.rows; ++i)
      for (float& x : X.row(i)) x = items.W(i, v) ? random.normal() : 0.f;
  }
  return items;
}

// The same items, most entries of view v being the background of their column. `told`: the items say so.
inline Items with_background(Items items, std::size_t v, bool told) {
  Random random(23, Purpose::test);
  Matrix<float> common(1, items.X[v].cols());
  for (float& x : common.values()) x = .5f * random.normal();
  for (std::size_t i = 0; i < items.rows(); ++i)
    for (std::size_t j = 0; j < common.cols() && items.W(i, v) != 0; ++j)
      if (random.uniform() > .15f) items.X[v](i, j) = common(0, j);
  items.common.resize(items.views());
  if (told) items.common[v] = std::move(common);
  return items;
}

inline std::vector<std::uint32_t> all_rows(const Items& items) {
  std::vector<std::uint32_t> rows(items.rows());
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

using Changes = std::vector<std::pair<std::string, std::string>>;

// The network settings of a preset, made small, with some of them changed.
inline MtdOptions small_options(const std::string& preset, const Changes& changes = {}) {
  struct Access : TwoChannelMethod {
    static MtdOptions take(TwoChannelMethod& method) { return method.*(&Access::network_options_); }
  };
  const auto method = make_method(method_of_preset(preset));
  PrepareOptions prepare;
  method->set_preset(preset, prepare);
  Options options;
  method->declare(options);
  const bool wide = preset != "best";
  options.set("encoder-widths", wide ? "0.8d,6" : "8", "");
  options.set("decoder-widths", wide ? "1e,6,0.8d" : "6", "");
  options.set("embedding", "5", "");
  options.set("classifier-bias", "0", "");
  for (const auto& [name, value] : changes) options.set(name, value, "test");
  return Access::take(dynamic_cast<TwoChannelMethod&>(*method));
}

inline NetworkShape network_shape_of(const Items& items) {
  NetworkShape shape;
  for (const auto& X : items.X) shape.columns.push_back(X.cols());
  shape.labels = items.labels();
  shape.training_rows = items.rows();
  return shape;
}

// With this rule the gradient of a parameter is old minus new.
inline UpdateRule gradient_rule() {
  UpdateRule rule;
  rule.optimiser = Optimiser::sgd;
  rule.rate = 1;
  rule.momentum = 0;
  return rule;
}

}  // namespace lacuna
