// The page about a model that was just trained: what it learned from, how good it is on its validation rows, how it
// decides (lacuna train --report).
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
