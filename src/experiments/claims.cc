#include "experiments/claims.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kHeartbeat = std::chrono::seconds(5);
constexpr double kSilence = 120;  // seconds after which an unseen owner counts as gone
constexpr double kClockFor = 30;  // seconds for which the folder's clock is not asked again

// The start time of a process in clock ticks since boot, "" if no such process runs: with it a reused
// process number is not taken for the old process.
std::string process_start(long pid) {
  std::error_code error;
  const std::string path = fmt::format("/proc/{}/stat", pid);
  if (!fs::exists(path, error)) return "";
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "r")) {
    char buffer[4096];
    text.assign(buffer, std::fread(buffer, 1, sizeof buffer, file));
    std::fclose(file);
  }
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return "";
  const auto fields = split(std::string_view(text).substr(name_end + 2), ' ');
  // One that has ended and waits for its parent to look (Z, X) does nothing any more.
  return fields.size() > 19 && fields[0] != "Z" && fields[0] != "X" ? std::string(fields[19]) : "";
}

// Processes with the same world see each other's process numbers: one boot of one kernel, one process
// namespace.
const std::string& world() {
  static const std::string known = [] {
    std::string boot;
    if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
      char buffer[64];
      boot.assign(buffer, std::fread(buffer, 1, sizeof buffer, file));
      std::fclose(file);
    }
    std::error_code error;
    return std::string(trim(boot)) + " " + fs::read_symlink("/proc/self/ns/pid", error).string();
  }();
  return known;
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double own_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return seconds_of(now);
}

// A new name each time, so that no process that saw an old one can remove this one.
std::string scratch_path(const std::string& folder, const std::string& id) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}/.{}-{}-{}-{}", folder, id, world_tag(), getpid(), counter++);
}

// Seconds that the clock of the folder's file system is ahead of ours: a file server has its own. 0 where nothing can
// be written to find out.
double clock_ahead(const std::string& folder) {
  const std::string path = scratch_path(folder, "clock");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0) return 0;
  struct stat info {};
  const bool known = ::fstat(fd, &info) == 0;
  ::close(fd);
  ::unlink(path.c_str());
  return known ? seconds_of(info.st_mtim) - own_now() : 0;
}

double folder_now(const std::string& folder) {
  struct Reading {
    double ahead = 0;
    double when = 0;
  };
  static std::mutex mutex;
  static std::map<std::string, Reading> readings;
  const double when = steady_seconds();
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = readings.try_emplace(folder);
  if (fresh || when - at->second.when > kClockFor) at->second = {clock_ahead(folder), when};
  return own_now() + at->second.ahead;
}

// Seconds since the file was touched, by its own file system's clock; negative if it is gone.
double age(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return -1;
  return std::max(0., folder_now(fs::path(path).parent_path().string()) - seconds_of(info.st_mtim));
}

bool fresh(const std::string& path) {
  const double seconds = age(path);
  return seconds >= 0 && seconds < kSilence;
}

json read_owner(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  try {
    return json::parse(read_text(path), nullptr, false);
  } catch (const Error&) {  // it went away meanwhile
    return nullptr;
  }
}

bool alive(const std::string& path, const json& owner) {
  if (owner.is_object() && owner.value("world", "") == world()) {
    const std::string start = process_start(owner.value("pid", 0L));
    return !start.empty() && start == owner.value("start", "");
  }
  return fresh(path);
}

bool alive(const std::string& path) {
  return alive(path, read_owner(path));
}

std::vector<std::pair<long, std::string>> claims_of(const std::string& folder, const std::string& id) {
  std::vector<std::pair<long, std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(id + ".")) continue;
    if (const auto number = parse_int(name.substr(id.size() + 1)))
      found.emplace_back(*number, entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string claim_path(const std::string& folder, const std::string& id, long number) {
  return fmt::format("{}/{}.{}", folder, id, number);
}

// Of the process that writes a scratch file .ID-WORLD-PROCESS-N.
bool writer_alive(const std::string& path) {
  const auto name = fs::path(path).filename().string();
  const auto parts = split(name, '-');
  const auto pid = parts.size() > 3 ? parse_int(parts[2]) : std::nullopt;
  if (pid && parts[1] == world_tag()) return !process_start(*pid).empty();
  return fresh(path);
}

// The answer to a link may be lost on its way from a file server, and the second attempt then finds the first one's
// work. Two names say that the link was made.
bool linked(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return true;
  const int why = errno;
  struct stat info {};
  if (::stat(from.c_str(), &info) == 0 && info.st_nlink == 2) return true;
  errno = why;
  return false;
}

}  // namespace

std::string world_tag() {
  Sha256 hash;
  hash.add(world());
  return hash.hex().substr(0, 8);
}

Claim::Claim(std::string folder, std::string id, long number)
    : folder_(std::move(folder)), id_(std::move(id)), number_(number) {
  heart_ = std::thread([this] {
    const std::string path = claim_path(folder_, id_, number_);
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kHeartbeat, [this] { return ending_; }))
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  });
}

Claim::~Claim() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  heart_.join();
  // Void claims before ours go first: as long as ours exists, no other process can take it over. A later one belongs to a process
  // that took ours for void.
  std::error_code error;
  try {
    for (const auto& [number, path] : claims_of(folder_, id_))
      if (number <= number_) fs::remove(path, error);
  } catch (
      const std::exception&) {  // the folder is gone or cannot be read; a claim without a heartbeat expires
  }
}

Claims::Claims(std::string folder, std::function<bool(const std::string& id)> settled)
    : folder_(std::move(folder)), settled_(std::move(settled)) {
  make_directories(folder_);
}

std::unique_ptr<Claim> Claims::take(const std::string& id) const {
  if (settled_(id)) return nullptr;
  // One look at the claims says both whether it is taken and which number is next. With a second look the number could
  // be one beyond a claim that was made in between, and two processes would win.
  const auto claims = claims_of(folder_, id);
  if (!claims.empty() && alive(claims.back().second)) return nullptr;
  const long number = claims.empty() ? 1 : claims.back().first + 1;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const json owner = {{"world", world()},
                      {"host", host},
                      {"pid", long{getpid()}},
                      {"start", process_start(getpid())},
                      {"since", folder_now(folder_)}};
  const std::string path = claim_path(folder_, id, number), scratch = scratch_path(folder_, id);
  write_text(scratch, owner.dump() + "\n");
  const bool won = linked(scratch, path);
  const int why = errno;
  ::unlink(scratch.c_str());
  if (!won && why == EEXIST) return nullptr;
  if (!won) fail(Exit::failed, "{}: cannot be claimed: {}", path, std::strerror(why));
  auto claim = std::make_unique<Claim>(folder_, id, number);
  // Between our look and our link it may have been settled and its claims removed.
  if (settled_(id)) return nullptr;
  return claim;
}

bool Claims::taken(const std::string& id) const {
  const auto claims = claims_of(folder_, id);
  return !claims.empty() && alive(claims.back().second);
}

std::map<std::string, Owner> Claims::owners() const {
  std::map<std::string, std::pair<long, std::string>> newest;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    const auto dot = name.rfind('.');
    if (dot == 0 || dot == std::string::npos) continue;
    if (const auto number = parse_int(name.substr(dot + 1)))
      newest[name.substr(0, dot)] =
          std::max(newest[name.substr(0, dot)], std::pair(long{*number}, entry.path().string()));
  }
  std::map<std::string, Owner> found;
  for (const auto& [id, claim] : newest) {
    const json owner = read_owner(claim.second);
    const double silent = age(claim.second);
    if (silent < 0 || !owner.is_object() || settled_(id)) continue;
    found[id] = {.host = owner.value("host", ""),
                 .pid = owner.value("pid", 0L),
                 .seconds = std::max(0., folder_now(folder_) - owner.value("since", folder_now(folder_))),
                 .silent = silent,
                 .alive = alive(claim.second, owner)};
  }
  return found;
}

void Claims::sweep() const {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    // A void claim on something open stays until it is taken over: removing it could hit a new claim of that name.
    const std::string name = entry.path().filename().string(), id = name.substr(0, name.rfind('.'));
    const bool scratch = name[0] == '.';
    const bool live = scratch ? writer_alive(entry.path().string()) : alive(entry.path().string());
    if ((scratch || settled_(id)) && !live) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove(path, error);
}

}  // namespace lacuna
