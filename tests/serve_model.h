// A small trained model on disk, with its data, for tests of the server.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/readers.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "serve_client.h"

namespace lacuna {

struct SmallModel {
  TemporaryDirectory folder;
  Dataset data;
  std::string path = folder / "photos.safetensors";

  explicit SmallModel(std::uint64_t seed = 1) {
    SimulateOptions options;
    options.rows = 200;
    options.views = 3;
    options.labels = 6;
    options.sizes = {12, 9, 7};
    data = simulate(options).data;
    data.label_names[2] = "a \"quoted\" <name>";
    train(path, seed);
  }
  void train(const std::string& out, std::uint64_t seed) const {
    Model model("mtd");
    for (const auto& [name, value] : {std::pair{"embedding", "24"},
                                      {"encoder-widths", "32"},
                                      {"decoder-widths", "16"},
                                      {"epochs", "4"},
                                      {"precision", "f32"}})
      model.options().set(name, value, "test");
    model.fit(select_all(data), .2, seed);
    model.save(out);
  }

  std::vector<float> row(std::size_t v, std::size_t i) const {
    std::vector<float> values(data.views[v].columns());
    data.views[v].copy_row(i, values);
    return values;
  }
  // A request of the inference protocol for rows begin to begin + count, with the views whose bit is set.
  nlohmann::json request(std::size_t begin, std::size_t count, unsigned views) const {
    nlohmann::json inputs = nlohmann::json::array();
    for (std::size_t v = 0; v < data.views.size(); ++v) {
      if ((views >> v & 1) == 0) continue;
      std::vector<float> all;
      for (std::size_t i = begin; i < begin + count; ++i)
        for (const float x : row(v, i)) all.push_back(x);
      inputs.push_back({{"name", data.views[v].name},
                        {"datatype", "FP32"},
                        {"shape", {count, data.views[v].columns()}},
                        {"data", all}});
    }
    return {{"inputs", inputs}};
  }
  nlohmann::json item(std::size_t i, unsigned views) const {
    nlohmann::json all = nlohmann::json::object();
    for (std::size_t v = 0; v < data.views.size(); ++v)
      if ((views >> v & 1) != 0) all[data.views[v].name] = row(v, i);
    return {{"id", "item" + std::to_string(i)}, {"views", all}};
  }
  // What the model itself says about those rows.
  Matrix<float> expected(const std::string& model, std::size_t begin, std::size_t count,
                         unsigned views) const {
    std::vector<std::uint32_t> rows;
    for (std::size_t i = begin; i < begin + count; ++i) rows.push_back(static_cast<std::uint32_t>(i));
    Dataset part = select_rows(data, rows);
    Matrix<std::uint8_t> present(count, data.views.size());
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t v = 0; v < data.views.size(); ++v) present(i, v) = views >> v & 1;
    part.present = std::move(present);
    return Model::load(model).predict(part);
  }
};

inline std::string infer_target() {
  return "/v2/models/photos/infer";
}

inline void expect_scores(const nlohmann::json& answer, MatrixView<const float> expected,
                          float most = 1e-5f) {
  ASSERT_TRUE(answer.contains("outputs")) << answer.dump();
  const auto& output = answer["outputs"][0];
  ASSERT_EQ(output["name"], "scores");
  ASSERT_EQ(output["shape"], nlohmann::json({expected.rows, expected.cols}));
  for (std::size_t i = 0; i < expected.rows; ++i)
    for (std::size_t j = 0; j < expected.cols; ++j)
      ASSERT_NEAR(output["data"][i * expected.cols + j].get<float>(), expected(i, j), most);
}

}  // namespace lacuna
