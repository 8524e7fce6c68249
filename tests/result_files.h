// What a folder of results holds, for comparisons.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/files.h"

namespace lacuna {

inline std::size_t finished_cells(const std::string& folder) {
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/cells", error))
    count += entry.path().filename().string()[0] != '.';
  return count;
}

// Every file of a results folder that must not depend on how the run went, by relative path. run.json holds
// times and the machine, claims come and go.
inline std::map<std::string, std::string> result_files(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == "run.json") continue;
    files[std::filesystem::relative(entry.path(), folder).string()] = read_text(entry.path().string());
  }
  return files;
}

}  // namespace lacuna
