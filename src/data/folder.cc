#include "data/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace lacuna {

namespace fs = std::filesystem;

AtomicFolder::AtomicFolder(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> counter{0};
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  std::error_code error;
  if (fs::exists(path_, error)) {
    if (!fs::is_directory(path_, error))
      fail(Exit::failed, "{}: is a file; a data set of this form is a folder", path_);
    if (!fs::is_empty(path_, error) && !fs::exists(path_ + "/dataset.toml", error))
      fail(Exit::failed, "{}: holds something other than a data set and is not replaced", path_);
    for (const auto& entry : fs::recursive_directory_iterator(path_, error))
      if (is_protected(entry.path().string()))
        fail(Exit::usage, "{}: holds {}, which was read by this command, and is not replaced", path_,
             entry.path().string());
  }
  temporary_ = fmt::format("{}.tmp-{}-{}", path_, getpid(), counter++);
  make_directories(temporary_);
}

AtomicFolder::~AtomicFolder() {
  std::error_code error;
  fs::remove_all(temporary_, error);  // after commit: what was replaced
}

void AtomicFolder::commit() {
  std::error_code error;
  const bool replaces = fs::exists(path_, error);
  const unsigned flags = replaces ? RENAME_EXCHANGE : 0u;
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags) != 0)
    fail(Exit::failed, "{}: cannot be replaced: {}", path_, std::strerror(errno));
}

}  // namespace lacuna
