#include "base/disk.h"

#include <sys/statvfs.h>

#include <filesystem>

namespace lacuna {

std::uint64_t free_bytes(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  struct statvfs info {};
  if (statvfs(folder.empty() ? "." : folder.c_str(), &info) != 0) return ~std::uint64_t{0};
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

}  // namespace lacuna
