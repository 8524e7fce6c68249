// Parts of the program that need special hardware or software (a GPU, MPI) are shared libraries next to the program,
// which are loaded on demand.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

struct LoadedLibrary {
  std::string place;             // the file
  std::vector<void*> functions;  // in the order asked for
  std::string why;               // why it could not be loaded, one sentence; empty if it was
  bool missing = false;          // there is no such file
};

// Searches the path in the environment variable, the program's folder, the lib/ folder next to that, and the system's
// paths. The library is never unloaded.
LoadedLibrary load_library(const std::string& file, const char* variable,
                           const std::vector<const char*>& functions);

}  // namespace lacuna
