// Settings in a TOML file, by the same names as on the command line: `epochs = 50`. Table headers are ignored:
// [training] epochs = 50 is the same as epochs = 50.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/options.h"

namespace lacuna {

struct ConfigEntry {
  std::string name, text;  // text as Option::set reads it
  std::string where;       // "FILE:LINE"
  std::vector<std::string> tables = {};  // the tables that contain it, outermost first
};
std::vector<ConfigEntry> read_config(const std::string& path);  // Exit::data with line and column
std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& path);  // the same of a file's text
// Sets every entry; an unknown name is Exit::usage with its line and the nearest valid name. Names in `skip`
// are ignored.
void apply_config(const std::vector<ConfigEntry>& entries, Options& options,
                  const std::vector<std::string>& skip = {});
std::string config_text(const Options& options,
                        const std::vector<std::string>& skip = {});  // read_config reads it

}  // namespace lacuna
