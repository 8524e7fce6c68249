// Fitted preparations in model files: what a map holds, tensor by tensor.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/prepare.h"

namespace lacuna {

void Preparation::save(Tensors& file, const std::string& prefix) const {
  auto list = nlohmann::json::array();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const ViewMap& map = views_[v];
    list.push_back({{"name", map.name},
                    {"kind", map.kind},
                    {"reason", map.reason},
                    {"columns", map.columns},
                    {"log_scale", map.log_scale},
                    {"power", map.power},
                    {"gain", map.gain},
                    {"clamp", map.clamp},
                    {"linear", map.linear},
                    {"residual", map.residual}});
    const std::string stem = prefix + std::to_string(v) + ".";
    if (!map.scale.empty()) {
      file.put(stem + "shift", map.shift.view());
      file.put(stem + "scale", map.scale.view());
    }
    if (!map.directions.empty()) {
      file.put(stem + "directions", map.directions.view());
      file.put(stem + "variances", std::span<const float>(map.variances));
    }
    map.kernel.save(file, stem + "kernel.");
  }
  file.metadata[prefix + "views"] = std::move(list);
}

Preparation Preparation::load(const Tensors& file, const std::string& prefix) {
  Preparation result;
  const std::string key = prefix + "views";
  if (!file.metadata.contains(key) || !file.metadata[key].is_array())
    fail(Exit::data, "{}: its metadata lacks the list '{}'", file.path(), key);
  try {
    for (const auto& entry : file.metadata[key]) {
      ViewMap map;
      map.name = entry.at("name").get<std::string>();
      map.kind = entry.at("kind").get<std::string>();
      map.reason = entry.at("reason").get<std::string>();
      map.columns = entry.at("columns").get<std::size_t>();
      map.log_scale = entry.at("log_scale").get<double>();
      map.power = entry.value("power", 0.0);
      map.gain = entry.at("gain").get<float>();
      map.clamp = entry.at("clamp").get<bool>();
      map.residual = entry.at("residual").get<double>();
      const std::string stem = prefix + std::to_string(result.views_.size()) + ".";
      const auto check = [&](const Matrix<float>& matrix, const std::string& name, std::size_t rows,
                             std::size_t cols) {
        if (matrix.rows() != rows || (cols != 0 && matrix.cols() != cols))
          fail(Exit::data, "{}: tensor '{}{}' has shape ({}, {}), view '{}' has {} columns", file.path(),
               stem, name, matrix.rows(), matrix.cols(), map.name, map.columns);
      };
      if (file.has(stem + "scale")) {
        map.shift = file.matrix(stem + "shift");
        map.scale = file.matrix(stem + "scale");
        check(map.shift, "shift", 1, map.columns);
        check(map.scale, "scale", 1, map.columns);
      }
      if (file.has(stem + "directions")) {
        map.directions = file.matrix(stem + "directions");
        check(map.directions, "directions", map.columns, 0);
        map.variances = file.floats(stem + "variances");
        map.kernel = KernelMap::load(file, stem + "kernel.", map.directions.cols());
        map.linear = entry.value("linear", std::size_t{0});
        if (map.linear > map.directions.cols())
          fail(Exit::data, "{}: view '{}' keeps {} of {} directions", file.path(), map.name, map.linear,
               map.directions.cols());
      }
      result.views_.push_back(std::move(map));
    }
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "{}: broken metadata under '{}': {}", file.path(), key, error.what());
  }
  return result;
}

}  // namespace lacuna
