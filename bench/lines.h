// One measurement as a line of JSON on stdout; bench/run collects them.
#pragma once

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace lacuna {

// ratio: how many times better than the peer; share: how near to the limit, 1 = at it. 0 where there is none.
// The peer's own value follows from the ratio; seconds are better when small, rates when large.
struct Line {
  std::string name;
  double value = 0;
  std::string unit;
  std::string peer = {};
  double ratio = 0, limit = 0, share = 0, spread = 0;
};

inline void print(const Line& line) {
  const auto number = [](double x) { return x > 0 ? fmt::format("{:.4g}", x) : std::string("null"); };
  const bool small_is_better = line.unit == "s" || line.unit == "ms";
  const double peer = line.ratio <= 0   ? 0
                      : small_is_better ? line.value * line.ratio
                                        : line.value / line.ratio;
  fmt::print(
      "{{\"name\": \"{}\", \"value\": {:.4g}, \"unit\": \"{}\", \"peer\": {}, \"peer_name\": {}, \"ratio\": "
      "{}, \"limit\": {}, "
      "\"share\": {}, \"spread\": {:.2g}}}\n",
      line.name, line.value, line.unit, number(peer), line.peer.empty() ? "null" : "\"" + line.peer + "\"",
      number(line.ratio), number(line.limit), number(line.share), line.spread);
  std::fflush(stdout);
}

// The numbers that a peer prints on its first line, up to two; zeros if it fails.
struct PeerNumbers {
  double first = 0, second = 0;
};
inline PeerNumbers ask_peer(const std::string& command) {
  PeerNumbers numbers;
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return numbers;
  if (std::fscanf(pipe, "%lf %lf", &numbers.first, &numbers.second) < 1) numbers = {};
  pclose(pipe);
  return numbers;
}

// A peer that stays and answers one request after the other, so that its work and ours can take turns.
class Peer {
 public:
  explicit Peer(const std::string& command) {
    std::signal(SIGPIPE, SIG_IGN);  // a peer that is gone is no answer, not our end
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      execl("/bin/sh", "sh", "-c", ("exec " + command + " 2>/dev/null").c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    requests_ = fdopen(to[1], "w");
    answers_ = fdopen(from[0], "r");
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    if (requests_ != nullptr) std::fclose(requests_);
    if (answers_ != nullptr) std::fclose(answers_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  // Zeros if it fails.
  PeerNumbers ask(std::size_t request) {
    PeerNumbers numbers;
    if (requests_ == nullptr) return numbers;
    fmt::print(requests_, "{}\n", request);
    std::fflush(requests_);
    if (std::fscanf(answers_, "%lf %lf", &numbers.first, &numbers.second) != 2) numbers = {};
    return numbers;
  }

 private:
  pid_t child_ = -1;
  std::FILE *requests_ = nullptr, *answers_ = nullptr;
};

}  // namespace lacuna
