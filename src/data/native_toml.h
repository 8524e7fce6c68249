// Fragments of a dataset.toml, for the writers of folders.
#pragma once

#include <string>

#include "data/dataset.h"

namespace lacuna {

std::string toml_text(const std::string& text);  // a TOML basic string
std::string toml_top(const Dataset& data);       // schema, name, source, licence, rows

}  // namespace lacuna
