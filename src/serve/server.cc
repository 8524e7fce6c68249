#include "serve/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "ops/device.h"
#include "serve/session.h"

namespace lacuna::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr auto kTick = std::chrono::milliseconds(100);  // how often connections are looked at
constexpr auto kLook = std::chrono::milliseconds(500);  // how often model files are
constexpr int kBacklog = 4096;

tcp::endpoint endpoint_of(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : parse_int(listen.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    fail(Exit::usage, "--listen takes HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, not '{}'", listen);
  std::string host = listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ErrorCode error;
  if (const auto address = asio::ip::make_address(host, error); !error)
    return {address, static_cast<unsigned short>(*port)};
  asio::io_context context;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, std::to_string(*port), error);
  if (error || found.empty())
    fail(Exit::usage, "--listen {}: '{}' is not an address of this machine", listen, host);
  return found.begin()->endpoint();
}

// Whoever can reach another address is not kept out by a name, and a page from elsewhere has no token.
Hosts hosts_of(const ServerOptions& options) {
  if (!options.token_file.empty() || !endpoint_of(options.listen).address().is_loopback()) {
    if (!options.hosts.empty())
      fail(Exit::usage, "--host {} has no effect {}: names are checked on loopback without tokens",
           join(options.hosts, ","),
           options.token_file.empty() ? "with --listen " + options.listen : "with --token-file");
    return {};
  }
  std::vector<std::string> names = options.hosts;
  names.push_back(options.listen);
  return Hosts(std::move(names));
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

// As many files as the system grants; connections beyond that would fail in worse ways.
void allow_connections(Limits& limits) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  constexpr rlim_t kOthers = 64;  // files that are no connections
  const rlim_t possible = files.rlim_cur > 2 * kOthers ? files.rlim_cur - kOthers : kOthers;
  if (static_cast<rlim_t>(limits.connections) <= possible) return;
  fmt::print(stderr,
             "note: the system grants {} open files; at most {} connections instead of {} (ulimit -n)\n",
             files.rlim_cur, possible, limits.connections);
  limits.connections = static_cast<std::int64_t>(possible);
}

class Server {
 public:
  Server(const ServerOptions& options, Limits& limits, std::size_t threads)
      : limits_(limits),
        registry_(options.models, options.precision, options.empty, counters_),
        loops_(threads),
        acceptor_(loops_[0].context),
        again_(loops_[0].context),
        signals_(loops_[0].context, SIGTERM, SIGINT),
        service_(limits, counters_, registry_,
                 options.token_file.empty() ? Tokens() : Tokens::read(options.token_file), hosts_of(options),
                 threads) {
    const tcp::endpoint wanted = endpoint_of(options.listen);
    ErrorCode error;
    acceptor_.open(wanted.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(wanted, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (error) fail(Exit::failed, "cannot listen on {}: {}", text_of(wanted), error.message());
    if (!wanted.address().is_loopback() && options.token_file.empty())
      fmt::print(stderr, "note: anyone who can reach {} may use this server; --token-file requires a token\n",
                 text_of(wanted));
  }

  void run() {
    for (const auto& model : registry_.all())
      fmt::print(stderr, "model {}: {} views, {} labels, from {}\n", model->name, model->views.size(),
                 model->labels(), model->path);
    fmt::print(stderr, "listening on http://{}\n", text_of(acceptor_.local_endpoint()));
    accept();
    wait_for_signal();
    for (Loop& loop : loops_) tick(loop, std::make_shared<asio::steady_timer>(loop.context));
    std::thread watcher([this] { watch(); });
    std::vector<std::thread> threads;
    for (std::size_t k = 1; k < loops_.size(); ++k)
      threads.emplace_back([this, k] { loops_[k].context.run(); });
    loops_[0].context.run();
    for (auto& thread : threads) thread.join();
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    news_.notify_all();
    watcher.join();
    fmt::print(stderr, "stopped: {} requests answered, {} abandoned\n", counters_.answered.load(),
               counters_.abandoned.load());
    if (service_.queue().device_lost())
      fail(Exit::failed, "the GPU was lost: start the server again, or with --device cpu");
  }

 private:
  void accept() {
    Loop& loop = loops_[next_++ % loops_.size()];
    acceptor_.async_accept(loop.context, [this, &loop](ErrorCode error, tcp::socket socket) {
      if (!error) begin(loop, std::move(socket));
      if (closing_) return;
      if (!error) return accept();
      again_.expires_after(kTick);  // no more files, mostly: let some connections end first
      again_.async_wait([this](ErrorCode) {
        if (!closing_) accept();
      });
    });
  }

  void begin(Loop& loop, tcp::socket socket) {
    if (counters_.accepted - counters_.closed >= static_cast<std::uint64_t>(limits_.connections)) {
      ++counters_.refused_connections;
      return;  // the socket closes itself
    }
    ++counters_.accepted;
    auto session = std::make_shared<Session>(std::move(socket), loop, service_);
    asio::post(loop.context, [session, &loop] {
      loop.sessions.insert(session);
      session->start();
    });
  }

  // Those whom the system has let in already are served; nobody else is. One of them may wait for its handler, which
  // comes before what is posted here.
  void close_the_door() {
    closing_ = true;
    ErrorCode error;
    acceptor_.cancel(error);
    again_.cancel();
    asio::post(loops_[0].context, [this] {
      accept_the_last();
      service_.drain();
      for (Loop& loop : loops_)
        asio::post(loop.context, [&loop] {
          for (const auto& session : loop.sessions) session->hurry();
        });
    });
  }

  void accept_the_last() {
    ErrorCode error;
    acceptor_.non_blocking(true, error);
    while (!error) {
      Loop& loop = loops_[next_++ % loops_.size()];
      tcp::socket socket(loop.context);
      acceptor_.accept(socket, error);
      if (!error) begin(loop, std::move(socket));
    }
    acceptor_.close(error);
  }

  void wait_for_signal() {
    signals_.async_wait([this](ErrorCode error, int signal) {
      if (error) return;
      if (closing_) {
        fmt::print(stderr, "a second signal: stopping at once\n");
        drained_by_ = Clock::now();
        return;
      }
      stop(signal == SIGTERM ? "SIGTERM" : "SIGINT");
      wait_for_signal();
    });
  }

  void stop(const char* why) {
    fmt::print(stderr, "{}: no new connections; finishing requests in progress\n", why);
    drained_by_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(limits_.drain_seconds));
    close_the_door();
  }

  void tick(Loop& loop, std::shared_ptr<asio::steady_timer> timer) {
    timer->expires_after(kTick);
    timer->async_wait([this, &loop, timer](ErrorCode) {
      if (&loop == &loops_[0] && !closing_ && service_.queue().device_lost()) stop("the GPU was lost");
      const auto now = Clock::now();
      const std::vector<std::shared_ptr<Session>> sessions(loop.sessions.begin(), loop.sessions.end());
      for (const auto& session : sessions) session->check(now);
      if (service_.draining()) {
        if (now >= drained_by_.load())
          for (const auto& session : sessions) session->abort();
        if (counters_.accepted == counters_.closed) return loop.context.stop();
      }
      tick(loop, timer);
    });
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (!news_.wait_for(lock, kLook, [this] { return ended_; })) {
      lock.unlock();
      registry_.look();
      lock.lock();
    }
  }

  Limits& limits_;
  Counters counters_;
  Registry registry_;
  std::vector<Loop> loops_;
  tcp::acceptor acceptor_;
  asio::steady_timer again_;
  asio::signal_set signals_;
  Service service_;  // its workers post to the loops: it ends first
  std::size_t next_ = 0;
  bool closing_ = false;  // known to the first loop alone
  std::atomic<Clock::time_point> drained_by_{};
  std::mutex mutex_;
  std::condition_variable news_;
  bool ended_ = false;
};

}  // namespace

void ServerOptions::declare(Options& o) {
  o.add("models", models, "model files; NAME=PATH serves one under another name")
      .positional()
      .metavar("MODEL...")
      .required();
  o.add("listen", listen, "where to listen; port 0 takes a free one").metavar("HOST:PORT");
  o.add("host", hosts, "on loopback without tokens: accepted host names (the Host header), besides localhost")
      .metavar("NAME,...");
  o.add("token-file", token_file, "bearer tokens, one per line; requests need one of them").metavar("FILE");
  o.add("device", device, "device of networks: auto (a GPU if available), cpu, cuda or cuda:N")
      .metavar("DEVICE");
  o.add("precision", precision, "precision of matrix products: the model's setting, f32 or bf16")
      .choices({"model", "f32", "bf16"});
  o.add("empty", empty, "how to fill a null among the values of an item in /v1: refuse, zero or mean")
      .choices({"refuse", "zero", "mean"});
  o.add("threads", threads, "event loops, and as many workers; 0 = all CPUs").range(0, 1024);
  limits.declare(o);
}

void serve(const ServerOptions& options) {
  Limits limits = options.limits;
  if (limits.memory_bytes < limits.body_bytes)
    fail(Exit::usage, "--max-memory {} is less than --max-body {}: no such body could be read",
         limits.memory_bytes, limits.body_bytes);
  allow_connections(limits);
  std::signal(SIGPIPE, SIG_IGN);
  set_device(parse_device(options.device));
  const int loops = options.threads > 0 ? options.threads : threads();
  Server(options, limits, static_cast<std::size_t>(loops)).run();
}

}  // namespace lacuna::serve
