#include "data/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "data/checksums.h"

namespace lacuna {

namespace fs = std::filesystem;

namespace {

// The first line of every dataset.toml that is written here; one without it is its author's.
constexpr std::string_view kMark =
    "# Written by lacuna, which replaces the whole folder when it writes there again.\n";

// Whether a file in a folder with this dataset.toml was written together with it.
bool is_written(const std::string& name, const std::string& toml) {
  static const std::regex names(
      R"((ids|present|labels|label_names|view\d+(\.(values|index|start|columns|ids))?)\.(npy|csv|mtx))");
  if (name == kChecksumsFile) return true;
  if (name == "truth.npz") return toml.find("simulated, seed ") != std::string::npos;  // of data simulate
  return std::regex_match(name, names) && toml.find(fmt::format(" = \"{}\"\n", name)) != std::string::npos;
}

}  // namespace

void check_replaceable(const std::string& path, Replaced replaced) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (!fs::is_directory(path, error))
    fail(Exit::failed, "{}: is a file; a data set of this format is a folder", path);
  const std::string description = path + "/dataset.toml";
  const bool described = fs::is_regular_file(description, error);
  std::ostringstream text;  // not mapped: it is no input, which would be protected
  if (described) text << std::ifstream(description, std::ios::binary).rdbuf();
  const std::string toml = text.str();
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (replaced == Replaced::no_input && is_protected(entry.path().string()))
      fail(Exit::usage, "{}: contains {}, which this command reads, and is not replaced", path,
           entry.path().string());
    const std::string name = entry.path().filename().string();
    const bool ours = toml.starts_with(kMark) && entry.symlink_status().type() == fs::file_type::regular &&
                      (name == "dataset.toml" || is_written(name, toml));
    if (!ours)
      fail(Exit::failed,
           "{}: contains '{}', which is not part of a data set that lacuna wrote and would be lost; the "
           "folder is not replaced, write elsewhere",
           path, name);
  }
  if (error) fail(Exit::failed, "{}: cannot be looked through: {}", path, error.message());
}

AtomicFolder::AtomicFolder(std::string path, Replaced replaced)
    : path_(std::move(path)), replaced_(replaced) {
  static std::atomic<unsigned> counter{0};
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  check_replaceable(path_, replaced_);
  temporary_ = fmt::format("{}.tmp-{}-{}", path_, getpid(), counter++);
  make_directories(temporary_);
}

AtomicFolder::~AtomicFolder() {
  std::error_code error;
  fs::remove_all(temporary_, error);  // after commit: what was replaced
}

void AtomicFolder::commit(const std::string& description) {
  write_text(file("dataset.toml"), std::string(kMark) + description);
  check_replaceable(path_, replaced_);
  std::error_code error;
  const bool replaces = fs::exists(path_, error);
  const unsigned flags = replaces ? RENAME_EXCHANGE : 0u;
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags) != 0)
    fail(Exit::failed, "{}: cannot be replaced: {}", path_, std::strerror(errno));
}

}  // namespace lacuna
