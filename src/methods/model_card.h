// A description of a model for people and programs: method, views with their columns and preparation, labels with
// thresholds and calibration, training data, validation metrics. `lacuna show`, the model's page and the bindings print
// it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "methods/model.h"

namespace lacuna {

// {"method", "title", "preset", "members", "parameters", "version", "date", "protocol", "views": [{"name", "columns",
// "column_names", "preparation"}], "labels": [{"name", "prior", "threshold", "slope", "intercept"}], "base", "aim",
// "training": {...}, "validation": {...}, "options": {...}}. What a file of an older version does not contain is null.
nlohmann::json model_card(const Model& model);
// The preparation of a view, in words.
std::string preparation_text(const Preparation::ViewMap& view);

}  // namespace lacuna
