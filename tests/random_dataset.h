// Random data sets for property tests: dense and sparse views, gaps, three-valued labels, odd names.
#pragma once

#include <rapidcheck.h>

#include <set>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

inline std::string odd_name(std::size_t i) {
  static const std::vector<std::string> parts = {
      "gist",      "a b", "it's",  "say \"hi\"", "two\nlines",  "ünïcode", "日本", "a,b;c",
      "tab\there", "W",   "label", "x.data",     "back\\slash", "🙂",    "%",    "{0}",
      "-1",        "'",   "/",     "#"};
  const std::string part = *rc::gen::elementOf(parts);
  return i == 0 ? part : part + std::to_string(i);
}

inline std::vector<std::string> odd_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(odd_name(i) + (i == 0 ? "" : "~"));
  return names;
}

inline float random_value() {
  return *rc::gen::oneOf(
      rc::gen::just(0.f),
      rc::gen::map(rc::gen::inRange(-70000, 70000), [](int x) { return static_cast<float>(x); }),
      rc::gen::map(rc::gen::inRange(-1000000, 1000000),
                   [](int x) { return static_cast<float>(x) * 1.7e-5f; }),
      rc::gen::elementOf(std::vector<float>{1e-30f, -3.4e38f, 16777216.f, 1e-42f}));
}

inline Dataset random_dataset() {
  Dataset data;
  data.name = odd_name(0);
  data.source = *rc::gen::elementOf(std::vector<std::string>{"", "somewhere \"else\"\n"});
  data.rows = *rc::gen::inRange<std::size_t>(1, 7);
  const auto views = *rc::gen::inRange<std::size_t>(0, 4),
             labels = *rc::gen::inRange<std::size_t>(views == 0 ? 1 : 0, 4);
  const auto view_names = odd_names(views);
  for (std::size_t v = 0; v < views; ++v) {
    const auto columns = *rc::gen::inRange<std::size_t>(1, 5);
    View view;
    view.name = view_names[v];
    if (*rc::gen::arbitrary<bool>()) view.column_names = odd_names(columns);
    if (*rc::gen::arbitrary<bool>()) {
      Matrix<float> values(data.rows, columns);
      for (float& x : values.values()) x = random_value();
      view.features = std::move(values);
    } else {
      std::vector<std::uint32_t> index;
      std::vector<float> value;
      Matrix<std::uint64_t> start(1, data.rows + 1);
      for (std::size_t i = 0; i < data.rows; ++i) {
        for (std::uint32_t j = 0; j < columns; ++j)
          if (const float x = random_value(); *rc::gen::arbitrary<bool>() && x != 0) {
            index.push_back(j);
            value.push_back(x);
          }
        start(0, i + 1) = index.size();
      }
      Matrix<std::uint32_t> indices(1, index.size());
      Matrix<float> values(1, value.size());
      std::copy(index.begin(), index.end(), indices.data());
      std::copy(value.begin(), value.end(), values.data());
      view.features = Csr{std::move(start), std::move(indices), std::move(values), columns};
    }
    data.views.push_back(std::move(view));
  }
  if (views > 0 && *rc::gen::arbitrary<bool>()) {
    Matrix<std::uint8_t> present(data.rows, views);
    for (auto& w : present.values()) w = *rc::gen::inRange<std::uint8_t>(0, 2);
    for (std::size_t v = 0; v < views; ++v) present(v % data.rows, v) = 1;  // somebody has each view
    data.present = std::move(present);
  }
  if (labels > 0) {
    Matrix<std::int8_t> Y(data.rows, labels);
    for (auto& y : Y.values()) y = *rc::gen::inRange<std::int8_t>(-1, 2);
    data.labels = std::move(Y);
    data.label_names = odd_names(labels);
  }
  if (*rc::gen::arbitrary<bool>()) data.ids = odd_names(data.rows);
  data.check("random data set");
  return data;
}

}  // namespace lacuna
