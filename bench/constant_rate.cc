// A client that asks at a constant rate and measures from the moment at which a request was due, not from when it could
// be sent: a server that stalls is charged for every request that waited (no coordinated omission).
// usage: constant_rate PORT TARGET BODY_FILE JSON_BYTES RATE SECONDS CONNECTIONS
//   JSON_BYTES: Inference-Header-Content-Length, or - for plain JSON. RATE 0: as fast as the answers come.
// Prints one line of JSON. Speaks to 127.0.0.1 alone.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Client {
  int fd = -1;
  bool busy = false;
  std::size_t sent = 0;
  Clock::time_point due{};
  std::string in;
  bool finished() const {  // an answer has come whole
    const std::size_t end = in.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::size_t at = in.find("Content-Length: ");
    return at != std::string::npos && in.size() >= end + 4 + std::stoul(in.substr(at + 16));
  }
};

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: constant_rate PORT TARGET BODY_FILE JSON_BYTES RATE SECONDS CONNECTIONS\n");
    return 2;
  }
  const int port = std::atoi(argv[1]);
  std::ostringstream body;
  body << std::ifstream(argv[3], std::ios::binary).rdbuf();
  const std::string json_bytes = argv[4];
  const double rate = std::atof(argv[5]), seconds = std::atof(argv[6]);
  const std::string request =
      std::string("POST ") + argv[2] +
      " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + std::to_string(body.str().size()) +
      (json_bytes == "-" ? "" : "\r\nInference-Header-Content-Length: " + json_bytes) + "\r\n\r\n" +
      body.str();
  std::vector<Client> clients(static_cast<std::size_t>(std::atoi(argv[7])));
  const int poller = epoll_create1(0);
  for (std::size_t k = 0; k < clients.size(); ++k) {
    clients[k].fd = connect_to(port);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = k;
    epoll_ctl(poller, EPOLL_CTL_ADD, clients[k].fd, &event);
  }
  const auto begun = Clock::now();
  const auto all = static_cast<std::size_t>(rate * seconds);
  const auto due_at = [&](std::size_t k) {
    return begun + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(static_cast<double>(k) / rate));
  };
  std::vector<double> latencies;
  std::size_t issued = 0, failed = 0;
  std::deque<std::size_t> free;
  for (std::size_t k = 0; k < clients.size(); ++k) free.push_back(k);
  const auto push = [&](Client& client) {
    while (client.busy && client.sent < request.size()) {
      const ssize_t size =
          send(client.fd, request.data() + client.sent, request.size() - client.sent, MSG_NOSIGNAL);
      if (size <= 0) return;
      client.sent += static_cast<std::size_t>(size);
    }
  };
  const auto over = [&] {
    if (rate > 0) return issued == all && free.size() == clients.size();
    return Clock::now() - begun >= std::chrono::duration<double>(seconds) && free.size() == clients.size();
  };
  while (!over()) {
    const auto now = Clock::now();
    if (now - begun > std::chrono::duration<double>(4 * seconds + 10)) break;  // hopelessly late
    while (!free.empty() && (rate > 0 ? issued < all && due_at(issued) <= now
                                      : now - begun < std::chrono::duration<double>(seconds))) {
      Client& client = clients[free.front()];
      free.pop_front();
      client.due = rate > 0 ? due_at(issued) : now;
      ++issued;
      client.busy = true;
      client.sent = 0;
      push(client);
    }
    int wait = 10;
    if (rate > 0 && issued < all && !free.empty())
      wait = std::max(
          0,
          static_cast<int>(std::chrono::duration<double, std::milli>(due_at(issued) - Clock::now()).count()));
    epoll_event events[256];
    const int count = epoll_wait(poller, events, 256, std::min(wait, 10));
    for (int e = 0; e < count; ++e) {
      const std::size_t k = events[e].data.u64;
      Client& client = clients[k];
      push(client);
      char buffer[1 << 16];
      for (ssize_t size = 0; (size = recv(client.fd, buffer, sizeof(buffer), 0)) > 0;)
        client.in.append(buffer, static_cast<std::size_t>(size));
      if (!client.busy || !client.finished()) continue;
      latencies.push_back(std::chrono::duration<double, std::milli>(Clock::now() - client.due).count());
      failed += client.in.compare(9, 3, "200") != 0;
      client.in.clear();
      client.busy = false;
      free.push_back(k);
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - begun).count();
  const std::size_t answered = latencies.size();
  if (rate > 0) latencies.resize(all, 1000 * took);  // what was never answered was at least as late
  std::sort(latencies.begin(), latencies.end());
  const auto quantile = [&](double q) {
    return latencies.empty()
               ? NAN
               : latencies[std::min(latencies.size() - 1,
                                    static_cast<std::size_t>(q * static_cast<double>(latencies.size())))];
  };
  std::printf(
      "{\"asked\": %zu, \"answered\": %zu, \"failed\": %zu, \"rate\": %.1f, \"p50\": %.3f, \"p99\": %.3f, "
      "\"max\": %.3f}\n",
      issued, answered, failed, static_cast<double>(answered) / took, quantile(.5), quantile(.99),
      latencies.empty() ? NAN : latencies.back());
  return failed == 0 && (rate == 0 || answered == all) ? 0 : 1;
}
