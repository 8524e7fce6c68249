// Settings of the command line of an experiment: KEY=VALUE for every method that has it, METHOD.KEY=VALUE for one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/cell.h"

namespace lacuna {

// Restores the values of --set, which may contain commas at which the list was split.
std::vector<std::string> joined_settings(const std::vector<std::string>& parts);
// The settings that apply to a method.
std::map<std::string, std::string> settings_for(const MethodChoice& method,
                                                const std::vector<std::string>& set);
// Exit::usage for a key that no chosen method has, or that means different things to them.
void check_settings(const std::vector<MethodChoice>& methods, const std::vector<std::string>& set);

}  // namespace lacuna
