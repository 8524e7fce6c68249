#include "experiments/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kHeartbeat = std::chrono::seconds(5);
constexpr double kSilence = 120;  // seconds after which an unseen owner counts as gone

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
std::string world() {
  std::string boot;
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    char buffer[64];
    boot.assign(buffer, std::fread(buffer, 1, sizeof buffer, file));
    std::fclose(file);
  }
  std::error_code error;
  return std::string(trim(boot)) + " " + fs::read_symlink("/proc/self/ns/pid", error).string();
}

// Short name of the world, for scratch files that may be too young to say who writes them.
std::string world_tag() {
  Sha256 hash;
  hash.add(world());
  return hash.hex().substr(0, 8);
}

// Age in seconds by the file's own clock against ours; negative if it is gone.
double age(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return -1;
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::max(0., static_cast<double>(now.tv_sec - info.st_mtim.tv_sec));
}

bool alive(const std::string& path) {
  json owner;
  try {
    owner = read_json(path);
  } catch (const Error&) {
  }
  if (owner.is_object() && owner.value("world", "") == world()) {
    const std::string start = process_start(owner.value("pid", 0L));
    return !start.empty() && start == owner.value("start", "");
  }
  const double seconds = age(path);
  return seconds >= 0 && seconds < kSilence;
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

// Of the process that writes a scratch file .ID-WORLD-PROCESS-N.
bool writer_alive(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const auto parts = split(name, '-');
  const auto pid = parts.size() > 3 ? parse_int(parts[2]) : std::nullopt;
  if (pid && parts[1] == world_tag()) return !process_start(*pid).empty();
  const double seconds = age(path);
  return seconds >= 0 && seconds < kSilence;
}

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

Claim::Claim(std::string folder, std::string id, std::string path)
    : folder_(std::move(folder)), id_(std::move(id)), path_(std::move(path)) {
  heart_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kHeartbeat, [this] { return ending_; }))
      utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
  });
}

Claim::~Claim() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  heart_.join();
  // Void claims before ours go first: as long as ours stands, nobody can take the cell on.
  std::error_code error;
  for (const auto& [number, path] : claims_of(folder_, id_))
    if (path != path_) fs::remove(path, error);
  fs::remove(path_, error);
}

CellStore::CellStore(std::string directory) : directory_(std::move(directory)) {
  for (const char* folder : {"/cells", "/claims", "/failed", "/experiments"})
    make_directories(directory_ + folder);
}

CellStore::State CellStore::state(const std::string& id) const {
  std::error_code error;
  if (fs::exists(cell_path(id), error)) return State::done;
  if (fs::exists(failure_path(id), error)) return State::failed;
  const auto claims = claims_of(directory_ + "/claims", id);
  return !claims.empty() && alive(claims.back().second) ? State::running : State::open;
}

std::unique_ptr<Claim> CellStore::claim(const std::string& id) {
  std::error_code error;
  if (fs::exists(cell_path(id), error) || fs::exists(failure_path(id), error)) return nullptr;
  // One look at the claims says both whether the cell is taken and which number is next. With a second look
  // the number could be one beyond a claim that was made in between, and two processes would win.
  const std::string folder = directory_ + "/claims";
  const auto claims = claims_of(folder, id);
  if (!claims.empty() && alive(claims.back().second)) return nullptr;
  const long number = claims.empty() ? 1 : claims.back().first + 1;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const json owner = {
      {"world", world()}, {"host", host}, {"pid", long{getpid()}}, {"start", process_start(getpid())}};
  const std::string path = fmt::format("{}/{}.{}", folder, id, number);
  // A new name each time, so that nobody who saw an old one can remove this one.
  static std::atomic<unsigned> counter{0};
  const std::string scratch = fmt::format("{}/.{}-{}-{}-{}", folder, id, world_tag(), getpid(), counter++);
  write_text(scratch, owner.dump() + "\n");
  const bool won = ::link(scratch.c_str(), path.c_str()) == 0;
  const int why = errno;
  ::unlink(scratch.c_str());
  if (!won && why == EEXIST) return nullptr;
  if (!won) lacuna::fail(Exit::failed, "{}: cannot be claimed: {}", path, std::strerror(why));
  auto claim = std::make_unique<Claim>(folder, id, path);
  // Between our look and our link the cell may have been finished and its claims removed.
  if (fs::exists(cell_path(id), error) || fs::exists(failure_path(id), error)) return nullptr;
  if (number > 1) {  // what the process before left half written
    remove_scratch(directory_ + "/cells", "." + id + "-");
    remove_scratch(folder, "." + id + "-");
  }
  return claim;
}

void CellStore::finish(const Claim& claim, const std::map<std::string, std::string>& files) {
  const std::string scratch = fmt::format("{}/cells/.{}-{}", directory_, claim.id(), getpid());
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
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(directory_ + "/claims", error)) {
    // A void claim on an open cell stays until the cell is taken over: removing it could hit a new claim of
    // that name.
    const std::string name = entry.path().filename().string(), id = name.substr(0, name.rfind('.'));
    const bool scratch = name[0] == '.', settled = fs::exists(cell_path(id)) || fs::exists(failure_path(id));
    const bool live = scratch ? writer_alive(entry.path().string()) : alive(entry.path().string());
    if ((scratch || settled) && !live) gone.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(directory_ + "/cells", error)) {
    const std::string name = entry.path().filename().string();
    if (name[0] != '.') continue;
    const auto claims = claims_of(directory_ + "/claims", name.substr(1, name.find('-') - 1));
    if (claims.empty() || !alive(claims.back().second)) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove_all(path, error);
}

json CellStore::read(const std::string& id, const std::string& file) const {
  return read_json(cell_path(id) + "/" + file);
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
