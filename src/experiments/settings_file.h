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
  // "" = none, "paper" = the shipped one, else a path. Exit::usage, with the line, where a table names no method or a
  // key is not a setting of it.
  static SettingsFile read(const std::string& name);
  static const char* paper();  // the shipped file, as text

  // What a method gets on a data set; the data set's own values come before those for all.
  std::map<std::string, std::string> find(const MethodChoice& method, const std::string& data) const;
  // Tables for data sets that are not among these, each with its line and the nearest name; the shipped file has some
  // for any run.
  std::vector<std::string> idle_tables(const std::vector<std::string>& data) const;

 private:
  std::vector<ConfigEntry> entries_;
  bool shipped_ = false;
};

}  // namespace lacuna
