#include "base/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace lacuna {

LoadedLibrary load_library(const std::string& file, const char* variable,
                           const std::vector<const char*>& functions) {
  std::vector<std::string> places;
  if (const char* given = std::getenv(variable)) places.emplace_back(given);
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto folder = program.parent_path();
    for (const auto& place : {folder / file, folder / ".." / "lib" / file, folder / ".." / file,
                              folder / ".." / "lib" / "lacuna" / file})
      if (std::filesystem::exists(place, error)) places.push_back(place.lexically_normal().string());
  }
  places.push_back(file);
  LoadedLibrary result{{}, {}, fmt::format("{} is not there", file), true};
  for (const auto& place : places) {
    // Global: the plugins of MPI look for its functions.
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      if (std::filesystem::exists(place, error))
        result.why = fmt::format("{} cannot be loaded: {}", place, dlerror()), result.missing = false;
      continue;
    }
    result.functions.clear();
    for (const char* name : functions) result.functions.push_back(dlsym(library, name));
    if (std::ranges::find(result.functions, nullptr) == result.functions.end()) {
      result.place = place;
      result.why.clear();
      result.missing = false;
      return result;
    }
    result.why = fmt::format("{} does not belong to this program", place);
    result.missing = false;
  }
  return result;
}

}  // namespace lacuna
