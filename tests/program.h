// The program as its users start it: as a process of its own, with its exit code, its two streams and its
// signals.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "temporary.h"

namespace lacuna {

struct Ended {
  int code = 0;  // exit code; -1 if a signal ended it
  int signal = 0;
  std::string out, err;
  std::size_t peak_bytes = 0;  // largest resident memory
};

class Process {
 public:
  // `most_bytes`: no file may grow beyond it (a full disk, as far as the process can tell); 0 = no limit.
  explicit Process(std::vector<std::string> arguments, rlim_t most_bytes = 0) {
    arguments.insert(arguments.begin(), LACUNA_PROGRAM);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const std::string out = folder_ / "out", err = folder_ / "err";
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    const int fd_out = open(out.c_str(), O_WRONLY | O_CREAT, 0600),
              fd_err = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(fd_out, STDOUT_FILENO);
    dup2(fd_err, STDERR_FILENO);
    if (most_bytes != 0) {
      const rlimit limit{most_bytes, most_bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  Ended wait() {
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    pid_ = 0;
    Ended ended;
    ended.peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ended.out = text(folder_ / "out");
    ended.err = text(folder_ / "err");
    return ended;
  }
  std::string errors_so_far() const { return text(folder_ / "err"); }

 private:
  static std::string text(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
  }
  TemporaryDirectory folder_;
  pid_t pid_ = 0;
};

inline Ended run(std::vector<std::string> arguments) {
  return Process(std::move(arguments)).wait();
}

}  // namespace lacuna
