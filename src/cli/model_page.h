// The page about a newly trained model: its training data, its metrics on the validation rows, its decision rule
// (lacuna train --report).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/items.h"
#include "methods/model.h"

namespace lacuna::cli {

struct TrainingFacts {
  std::string command, data;  // as typed
  nlohmann::json document;    // of train --json
};
void write_model_page(const std::string& path, const TrainingFacts& facts, const Model& model,
                      const Selection& learn, const Selection& val);

}  // namespace lacuna::cli
