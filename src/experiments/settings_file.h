// Settings per method and data set from a TOML file (src/experiments/paper.toml is the built-in one and explains the
// format).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/config.h"
#include "experiments/cell.h"

namespace lacuna {

class SettingsFile {
 public:
  // "" = none, "paper" = the built-in one, else a path. Exit::usage, with the line, if a table names no method or a key
  // is not one of its settings.
  static SettingsFile read(const std::string& name);
  static const char* paper();  // the built-in file, as text

  // The settings of a method on a data set; values for this data set override those for all.
  std::map<std::string, std::string> find(const MethodChoice& method, const std::string& data) const;
  // Tables for data sets that are not among these, each with its line and the nearest name. None for the built-in file,
  // which always has such tables.
  std::vector<std::string> idle_tables(const std::vector<std::string>& data) const;

 private:
  std::vector<ConfigEntry> entries_;
  bool shipped_ = false;
};

}  // namespace lacuna
