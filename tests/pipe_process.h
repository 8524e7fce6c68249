// The program between two pipes, as a shell would start it: what is sent to it and what comes back, while it runs.
#pragma once

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "program.h"

namespace lacuna {

class PipeProcess {
 public:
  explicit PipeProcess(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), LACUNA_PROGRAM);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int in[2], out[2], err[2];
    if (pipe(in) != 0 || pipe(out) != 0 || pipe(err) != 0) throw std::runtime_error("no pipes");
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      for (int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) close(fd);
      execv(argv[0], argv.data());
      _exit(127);
    }
    signal(SIGPIPE, SIG_IGN);
    close(in[0]), close(out[1]), close(err[1]);
    to_ = in[1], from_ = out[0], errors_ = err[0];
  }
  ~PipeProcess() {
    finish();
    close(from_);
    close(errors_);
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  PipeProcess(const PipeProcess&) = delete;
  PipeProcess& operator=(const PipeProcess&) = delete;

  void send(std::string_view text) const {  // gives up where the program has ended
    while (!text.empty()) {
      const ssize_t n = write(to_, text.data(), text.size());
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void finish() {  // no more is sent
    if (to_ >= 0) close(to_);
    to_ = -1;
  }
  // The next line that comes back, or "" after so many seconds.
  std::string line(double seconds = 60) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return text;
      }
      if (std::chrono::steady_clock::now() > until) return "";
      pollfd ready{from_, POLLIN, 0};
      if (poll(&ready, 1, 50) <= 0) continue;
      if (!take()) return "";
    }
  }
  // Sends all (in a thread of its own), reads all, and waits for the end.
  Ended talk(std::string_view text) {
    std::thread sender([&] {
      send(text);
      finish();
    });
    std::string errors;
    std::thread listener([&] { errors = drain(errors_); });
    while (take()) {
    }
    sender.join();
    listener.join();
    Ended ended;
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    pid_ = 0;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended.peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
    ended.out = std::move(buffer_);
    ended.err = std::move(errors);
    return ended;
  }

 private:
  bool take() {
    char chunk[1 << 16];
    const ssize_t n = read(from_, chunk, sizeof chunk);
    if (n <= 0) return false;
    buffer_.append(chunk, static_cast<std::size_t>(n));
    return true;
  }
  static std::string drain(int fd) {
    std::string all;
    char chunk[1 << 12];
    for (ssize_t n = 0; (n = read(fd, chunk, sizeof chunk)) > 0;)
      all.append(chunk, static_cast<std::size_t>(n));
    return all;
  }

  pid_t pid_ = 0;
  int to_ = -1, from_ = -1, errors_ = -1;
  std::string buffer_;
};

}  // namespace lacuna
