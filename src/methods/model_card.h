// What is in a model, for people and programs: method, views with their columns and preparation, labels with thresholds
// and calibration, what it was trained on, how it did on validation. `lacuna show`, the model's page and the bindings
// print this.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "methods/model.h"

namespace lacuna {

// {"method", "title", "preset", "members", "parameters", "version", "date", "protocol", "views": [{"name", "columns",
// "column_names", "preparation"}], "labels": [{"name", "prior", "threshold", "slope", "intercept"}], "base", "aim",
// "training": {...}, "validation": {...}, "options": {...}}. What a file of an older version does not hold is null.
nlohmann::json model_card(const Model& model);
// How a view's values are prepared, in words.
std::string preparation_text(const Preparation::ViewMap& view);

}  // namespace lacuna
