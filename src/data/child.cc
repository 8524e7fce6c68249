#include "data/child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 16;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitMemory = false;  // its shadow memory alone would be beyond any limit
#elif defined(__has_feature)
constexpr bool kLimitMemory = !__has_feature(address_sanitizer);
#else
constexpr bool kLimitMemory = true;
#endif

void limit_memory(std::uint64_t more) {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{bytes, bytes};
  if (pages != 0) setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

void Channel::put_bytes(Bytes bytes) {
  if (out_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() <= kBuffer) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return;
  }
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Broken();
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void Channel::put_text(std::string_view value) {
  put_number(value.size());
  put_bytes(as_bytes(value));
}

void Channel::flush() {
  Bytes rest(out_);
  while (!rest.empty()) {
    const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Broken();
    rest = rest.subspan(static_cast<std::size_t>(n));
  }
  out_.clear();
}

void Channel::get_bytes(std::span<std::byte> out) {
  while (!out.empty()) {
    if (in_at_ < in_.size()) {
      const std::size_t n = std::min(out.size(), in_.size() - in_at_);
      std::memcpy(out.data(), in_.data() + in_at_, n);
      in_at_ += n;
      out = out.subspan(n);
      continue;
    }
    const bool large = out.size() >= kBuffer;  // goes to its place without a copy
    if (!large) in_.resize(kBuffer);
    const ssize_t n = large ? ::read(fd_, out.data(), out.size()) : ::read(fd_, in_.data(), in_.size());
    if (!large) {
      in_.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
      in_at_ = 0;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Broken();
    if (large) out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::uint64_t Channel::get_count() {
  const std::uint64_t value = get_number();
  if (value > most_) throw Broken();
  return value;
}

std::string Channel::get_text() {
  std::string value(get_count(), '\0');
  get_bytes(std::as_writable_bytes(std::span(value)));
  return value;
}

Child::Child(std::string name, std::uint64_t most, Limits limits, const std::function<void(Channel&)>& work)
    : name_(std::move(name)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail(Exit::failed, "{}: no socket: {}", name_, std::strerror(errno));
  pid_ = fork();
  if (pid_ == 0) {
    ::close(ends[0]);
    if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) dup2(null, STDERR_FILENO);
    const rlimit seconds{limits.seconds, limits.seconds}, no_core{0, 0};
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &no_core);
    if (kLimitMemory && limits.memory != 0) limit_memory(limits.memory);
    try {
      Channel channel(ends[1], UINT64_MAX);
      work(channel);
      channel.flush();
    } catch (...) {  // the parent is gone, or there is no memory left to say what happened
      _exit(1);
    }
    _exit(0);
  }
  ::close(ends[1]);
  if (pid_ < 0) {
    ::close(ends[0]);
    fail(Exit::failed, "{}: no process: {}", name_, std::strerror(errno));
  }
  fd_ = ends[0];
  channel_ = Channel(fd_, most);
}

Child::~Child() {
  if (fd_ >= 0) ::close(fd_);
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
}

int Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

void Child::fail_broken(const char* library) {
  ::close(fd_);  // so that a child that still writes ends as well
  fd_ = -1;
  const int status = wait();
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    fail(Exit::data,
         "{}: is damaged or not what it seems: {} took longer to read it than such a file can take", name_,
         library);
  fail(Exit::data, "{}: is damaged: {} stopped while reading it ({})", name_, library,
       WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                           : fmt::format("status {}", WEXITSTATUS(status)));
}

}  // namespace lacuna
