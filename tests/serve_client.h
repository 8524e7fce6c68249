// The server as a process of its own, and a client that says exactly what it is told to: byte by byte, half, too much.
// Everything goes to 127.0.0.1.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "program.h"

namespace lacuna {

// Seconds after which something hangs. A machine that does other work as well is slow, not broken.
constexpr double kPatience = 120;

struct HttpAnswer {
  int status = 0;  // 0: the connection ended without one
  std::string head, body;
  nlohmann::json json() const { return nlohmann::json::parse(body); }
  std::string header(const std::string& name) const {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class Connection {
 public:
  explicit Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      const std::string why = std::strerror(errno);
      ::close(fd_);
      throw std::runtime_error("connect: " + why);
    }
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  Connection(Connection&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), left_(std::move(other.left_)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection() { close(); }

  // False if the other side is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Whether the other side takes more within a second.
  bool can_send() {
    pollfd wait{fd_, POLLOUT, 0};
    return poll(&wait, 1, 1000) == 1 && (wait.revents & (POLLERR | POLLHUP)) == 0;
  }
  void half_close() { shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // The next answer of the connection; status 0 if it ends, or after `seconds`.
  HttpAnswer read(double seconds = kPatience, bool head_only = false) {
    HttpAnswer answer;
    std::size_t end = 0;
    while ((end = left_.find("\r\n\r\n")) == std::string::npos)
      if (!more(seconds)) return answer;
    answer.head = left_.substr(0, end + 2);
    left_.erase(0, end + 4);
    answer.status = std::stoi(answer.head.substr(9, 3));
    const std::string length = answer.header("Content-Length");
    const std::size_t size = length.empty() || head_only ? 0 : std::stoul(length);
    while (left_.size() < size)
      if (!more(seconds)) return {};
    answer.body = left_.substr(0, size);
    left_.erase(0, size);
    return answer;
  }
  // Whether the other side has said that nothing more comes.
  bool ended(double seconds = kPatience) {
    while (more(seconds)) left_.clear();
    return at_end_;
  }

 private:
  bool more(double seconds) {
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
    char buffer[65536];
    const ssize_t size = recv(fd_, buffer, sizeof(buffer), 0);
    if (size <= 0) at_end_ = true;
    if (size <= 0) return false;
    left_.append(buffer, static_cast<std::size_t>(size));
    return true;
  }
  int fd_;
  std::string left_;
  bool at_end_ = false;
};

inline std::string post(const std::string& target, const std::string& body, const std::string& headers = "") {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}
inline std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

// The answer of /metrics: counters by their names with labels.
inline std::map<std::string, double> counters_of(const HttpAnswer& answer) {
  std::map<std::string, double> all;
  std::size_t at = 0;
  while (at < answer.body.size()) {
    const std::size_t end = answer.body.find('\n', at);
    const std::string line = answer.body.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    const std::size_t blank = line.rfind(' ');
    all[line.substr(0, blank)] = std::stod(line.substr(blank + 1));
  }
  return all;
}

class ServeProcess {
 public:
  explicit ServeProcess(const std::vector<std::string>& arguments)
      : process_([&] {
          std::vector<std::string> all = {"serve", "--listen", "127.0.0.1:0"};
          all.insert(all.end(), arguments.begin(), arguments.end());
          return all;
        }()) {
    const std::string sign = "listening on http://127.0.0.1:";
    for (int tries = 0; tries < 2400; ++tries) {
      const std::string said = process_.errors_so_far();
      const std::size_t at = said.find(sign);
      if (at != std::string::npos && said.find('\n', at) != std::string::npos) {
        port_ = std::stoi(said.substr(at + sign.size()));
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    throw std::runtime_error("the server does not listen: " + process_.errors_so_far());
  }

  int port() const { return port_; }
  Process& process() { return process_; }
  HttpAnswer ask(const std::string& request) const {
    Connection connection(port_);
    connection.send(request);
    return connection.read(kPatience, request.starts_with("HEAD"));
  }
  std::map<std::string, double> counters() const {
    return counters_of(ask(get("/metrics", "Connection: close\r\n")));
  }
  Ended stop(int signal = SIGTERM) {
    process_.send(signal);
    return process_.wait();
  }

 private:
  Process process_;
  int port_ = 0;
};

}  // namespace lacuna
