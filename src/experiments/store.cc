#include "experiments/store.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/leftovers.h"
#include "base/text.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void remove_scratch(const std::string& folder, const std::string& prefix) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path(), error);
}

}  // namespace

json read_json(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  try {
    return json::parse(read_text(path));
  } catch (const json::exception& broken) {
    fail(Exit::data, "{}: is not valid JSON: {}", path, broken.what());
  }
}

CellStore::CellStore(std::string directory)
    : directory_(std::move(directory)),
      claims_(directory_ + "/claims", [this](const std::string& id) { return settled(id); }) {
  for (const char* folder : {"/cells", "/failed", "/experiments"}) make_directories(directory_ + folder);
}

bool CellStore::settled(const std::string& id) const {
  std::error_code error;
  return fs::exists(cell_path(id), error) || fs::exists(failure_path(id), error);
}

CellStore::State CellStore::state(const std::string& id) const {
  std::error_code error;
  if (fs::exists(cell_path(id), error)) return State::done;
  if (fs::exists(failure_path(id), error)) return State::failed;
  return claims_.taken(id) ? State::running : State::open;
}

std::unique_ptr<Claim> CellStore::claim(const std::string& id) {
  auto claim = claims_.take(id);
  if (claim != nullptr && !claim->first())  // what the process before left half written
    remove_scratch(directory_ + "/cells", "." + id + "-");
  return claim;
}

void CellStore::finish(const Claim& claim, const std::map<std::string, std::string>& files) {
  const std::string scratch =
      fmt::format("{}/cells/.{}-{}-{}", directory_, claim.id(), world_tag(), getpid());
  std::error_code error;
  fs::remove_all(scratch, error);
  make_directories(scratch);
  for (const auto& [name, content] : files) write_text(scratch + "/" + name, content);
  if (::rename(scratch.c_str(), cell_path(claim.id()).c_str()) != 0) {
    const int why = errno;
    fs::remove_all(scratch, error);
    if (why != EEXIST && why != ENOTEMPTY)
      lacuna::fail(Exit::failed, "{}: cannot be written: {}", cell_path(claim.id()), std::strerror(why));
  }
}

void CellStore::fail(const Claim& claim, const json& failure_record) {
  write_text(failure_path(claim.id()), failure_record.dump(2) + "\n");
}

void CellStore::forget_failure(const std::string& id) {
  std::error_code error;
  fs::remove(failure_path(id), error);
}

void CellStore::sweep() {
  claims_.sweep();
  for (const char* folder : {"/experiments", "/failed"}) remove_old_leftovers(directory_ + folder);
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(directory_ + "/cells", error)) {
    const std::string name = entry.path().filename().string();
    if (name[0] == '.' && !claims_.taken(name.substr(1, name.find('-') - 1))) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove_all(path, error);
}

json CellStore::read(const std::string& id, const std::string& file) const {
  try {
    return read_json(cell_path(id) + "/" + file);
  } catch (const Error& error) {
    lacuna::fail(error.code(), "{}; if {} is removed, --resume runs the cell again", error.what(),
                 cell_path(id));
  }
}

json CellStore::failure(const std::string& id) const {
  return read_json(failure_path(id));
}

std::string CellStore::find(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory_ + "/cells"))
    if (const std::string name = entry.path().filename().string(); name.starts_with(prefix) && name[0] != '.')
      found.push_back(name);
  if (found.empty())
    lacuna::fail(Exit::usage, "{} has no finished cell that starts with '{}'", directory_, prefix);
  if (found.size() > 1)
    lacuna::fail(Exit::usage, "'{}' may be any of {} cells of {}; give more of its id", prefix, found.size(),
                 directory_);
  return found[0];
}

}  // namespace lacuna
