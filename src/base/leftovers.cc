#include "base/leftovers.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace lacuna {
namespace {

constexpr const char* kMark = ".tmp-";  // then the process, then a count

bool is_gone(const std::string& name, std::size_t number_at) {
  const int owner = std::atoi(name.c_str() + number_at);
  return owner > 0 && kill(owner, 0) != 0 && errno == ESRCH;
}

}  // namespace

void remove_leftovers(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string prefix = whole.filename().string() + kMark;
  std::error_code ignored;
  const auto folder = whole.has_parent_path() ? whole.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && is_gone(name, prefix.size()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

void remove_old_leftovers(const std::string& folder) {
  std::error_code ignored;
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto mark = name.rfind(kMark);
    if (mark == std::string::npos || !is_gone(name, mark + std::string(kMark).size())) continue;
    if (const auto written = entry.last_write_time(ignored); !ignored && written < hour_ago)
      unlink(entry.path().c_str());
  }
}

}  // namespace lacuna
