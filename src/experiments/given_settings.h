// Settings of the command line of an experiment: KEY=VALUE for every method that has it, METHOD.KEY=VALUE for one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/cell.h"

namespace lacuna {

// --set as given: a value may hold commas, at which the list was split.
std::vector<std::string> joined_settings(const std::vector<std::string>& parts);
// What of it a method gets.
std::map<std::string, std::string> settings_for(const MethodChoice& method,
                                                const std::vector<std::string>& set);
// A key that no chosen method has is a mistake, not a wish; so is one that means different things to them.
void check_settings(const std::vector<MethodChoice>& methods, const std::vector<std::string>& set);

}  // namespace lacuna
