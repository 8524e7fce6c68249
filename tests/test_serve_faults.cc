// What clients, networks and operators do to a server: slow, half, broken, too much, at the wrong moment. Nothing wrong
// is answered, nothing hangs, and the counters add up.
#include <sys/resource.h>

#include <atomic>
#include <filesystem>

#include "serve_model.h"

namespace lacuna {
namespace {

using namespace std::chrono_literals;

const SmallModel& small() {
  static const SmallModel model;
  return model;
}

// Whether something comes true before anybody would call it hanging.
template <class Condition>
bool comes_true(Condition condition) {
  for (int tries = 0; tries < 6000; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

// A request of which the last byte does not come yet: batches wait for it as long as --batch-delay lets them. Of a
// server with one thread, so that whoever sees its body counted knows that it is waited for.
struct Held {
  Connection connection;
  std::string last;
  Held(const ServeProcess& server, const std::string& request)
      : connection(server.port()), last(request.substr(request.size() - 1)) {
    connection.send(std::string_view(request).substr(0, request.size() - 1));
    EXPECT_TRUE(comes_true([&] { return server.counters()["lacuna_body_bytes"] > 0; }));
  }
  HttpAnswer release() {
    connection.send(last);
    return connection.read();
  }
};

// The books of a server that nobody talks to but us.
void expect_balanced(const ServeProcess& server) {
  std::map<std::string, double> counters;
  comes_true([&] {  // connections are closed, and counted as closed, a little later than we see it
    counters = server.counters();
    return counters["lacuna_connections_open"] == 1 &&
           counters["lacuna_connections_accepted_total"] == counters["lacuna_connections_closed_total"] + 1;
  });
  double answered = 0;
  for (const auto& [name, value] : counters)
    if (name.starts_with("lacuna_requests_answered_total")) answered += value;
  EXPECT_EQ(counters["lacuna_connections_open"], 1);  // the one that asks
  EXPECT_EQ(counters["lacuna_connections_accepted_total"], counters["lacuna_connections_closed_total"] + 1);
  EXPECT_EQ(counters["lacuna_requests_received_total"],
            answered + counters["lacuna_requests_abandoned_total"] + 1);
  EXPECT_EQ(counters["lacuna_queue_rows"], 0);
  EXPECT_EQ(counters["lacuna_body_bytes"], 0);
}

TEST(ServeFaults, SlowHeadersAndBodies) {
  ServeProcess server({small().path, "--header-time", ".6", "--body-time", ".6", "--idle-time", "1"});
  const std::string request = post(infer_target(), small().request(0, 1, 7).dump());
  {  // one letter at a time, but never done
    Connection slow(server.port());
    for (int k = 0; k < 10 && slow.send(request.substr(static_cast<std::size_t>(k), 1)); ++k)
      std::this_thread::sleep_for(100ms);
    EXPECT_EQ(slow.read().status, 408);
    EXPECT_TRUE(slow.ended());
  }
  {
    Connection slow(server.port());
    const std::size_t body = request.find("\r\n\r\n") + 4;
    slow.send(request.substr(0, body + 10));
    for (int k = 0; k < 10; ++k) {
      std::this_thread::sleep_for(100ms);
      if (!slow.send(request.substr(body + 10 + static_cast<std::size_t>(k), 1))) break;
    }
    EXPECT_EQ(slow.read().status, 408);
    EXPECT_TRUE(slow.ended());
  }
  {  // nothing at all
    Connection idle(server.port());
    EXPECT_TRUE(idle.ended());
  }
  expect_balanced(server);
}

TEST(ServeFaults, SlowButInTime) {
  ServeProcess server({small().path});
  const std::string request = post(infer_target(), small().request(0, 1, 7).dump());
  Connection patient(server.port());
  for (std::size_t at = 0; at < request.size(); at += 20) {
    patient.send(request.substr(at, 20));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(patient.read().status, 200);
  patient.close();
  expect_balanced(server);
}

TEST(ServeFaults, AClientThatDoesNotTakeItsAnswer) {
  ServeProcess server({small().path, "--write-time", ".5", "--max-rows", "20000"});
  Connection deaf(server.port());
  // Many answers of 64 rows each, none of them read: the server's socket fills up.
  const std::string request = post(infer_target(), small().request(0, 64, 1).dump());
  EXPECT_TRUE(comes_true([&] {
    while (deaf.can_send() && deaf.send(request)) {
    }
    return server.counters()["lacuna_connections_timed_out_total"] == 1;
  }));
  deaf.reset();
  expect_balanced(server);
}

TEST(ServeFaults, HalfClosedAndReset) {
  ServeProcess server({small().path});
  const std::string request = post(infer_target(), small().request(0, 1, 7).dump());
  {  // says that it has no more to say, and still gets its answer
    Connection half(server.port());
    half.send(request);
    half.half_close();
    EXPECT_EQ(half.read().status, 200);
    EXPECT_TRUE(half.ended());
  }
  {  // ends in the middle
    Connection half(server.port());
    half.send(request.substr(0, request.size() - 5));
    half.half_close();
    EXPECT_TRUE(half.ended());
  }
  for (std::size_t cut : {std::size_t{0}, std::size_t{10}, request.size() - 1, request.size()}) {
    Connection gone(server.port());
    gone.send(request.substr(0, cut));
    gone.reset();
  }
  EXPECT_EQ(server.ask(request).status, 200);
  expect_balanced(server);
}

TEST(ServeFaults, Pipelining) {
  ServeProcess server({small().path});
  Connection connection(server.port());
  std::string all;
  constexpr std::size_t kCount = 50;
  for (std::size_t i = 0; i < kCount; ++i) {
    all += post(infer_target(), small().request(i, 1, 7).dump());
    all += get("/v2/health/live");
  }
  std::thread sender([&] { connection.send(all); });
  for (std::size_t i = 0; i < kCount; ++i) {
    const HttpAnswer answer = connection.read();
    ASSERT_EQ(answer.status, 200);
    expect_scores(answer.json(), small().expected(small().path, i, 1, 7));
    ASSERT_EQ(connection.read().json(), nlohmann::json({{"live", true}}));
  }
  sender.join();
  connection.close();
  expect_balanced(server);
}

TEST(ServeFaults, OversizeAndBroken) {
  ServeProcess server({small().path, "--max-body", "20000", "--max-header", "2000"});
  {  // too large, said so: not read
    Connection large(server.port());
    large.send("POST " + infer_target() + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20001\r\n\r\n");
    const HttpAnswer answer = large.read();
    EXPECT_EQ(answer.status, 413);
    EXPECT_NE(answer.body.find("20001"), std::string::npos);
    EXPECT_TRUE(large.ended());
  }
  {  // too large, sent all the same: the answer arrives
    Connection large(server.port());
    large.send(post(infer_target(), std::string(300000, ' ')));
    EXPECT_EQ(large.read().status, 413);
  }
  {  // in chunks without end
    Connection large(server.port());
    large.send("POST " + infer_target() +
               " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "400\r\n" + std::string(1024, ' ') + "\r\n";
    for (int k = 0; k < 100 && large.send(chunk); ++k) {
    }
    EXPECT_EQ(large.read().status, 413);
  }
  const std::pair<std::string, int> broken[] = {
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(3000, 'a') + "\r\n\r\n", 431},
      {"GET / HTTP/7.3\r\n\r\n", 505},
      {"hello\r\n\r\n", 400},
      {std::string("\0\1\2\3\r\n\r\n", 8), 400},
      {"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
       400},
      {"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
       415},
      {"GET /v2 HTTP/1.1\r\nHost: localhost\r\nHost: evil.org\r\n\r\n", 400},
      {"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nExpect: wonders\r\nContent-Length: 1\r\n\r\n", 417},
  };
  for (const auto& [request, status] : broken) {
    const HttpAnswer answer = server.ask(request);
    EXPECT_EQ(answer.status, status) << request.substr(0, 60) << "\n" << answer.body;
  }
  EXPECT_EQ(server.ask(get("/v2/health/live")).status, 200);
  expect_balanced(server);
}

TEST(ServeFaults, TenThousandIdleConnections) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t count = std::min<std::size_t>(10000, files.rlim_max > 1000 ? files.rlim_max - 500 : 100);
  ServeProcess server({small().path, "--idle-time", "600"});
  std::vector<Connection> idle;
  idle.reserve(count);
  for (std::size_t k = 0; k < count; ++k) idle.emplace_back(server.port());
  const std::string request = post(infer_target(), small().request(0, 1, 7).dump());
  for (int k = 0; k < 50; ++k) ASSERT_EQ(server.ask(request).status, 200);
  EXPECT_TRUE(comes_true(  // those that asked are closed a little later than we see it
      [&] { return server.counters()["lacuna_connections_open"] == static_cast<double>(count + 1); }));
  for (std::size_t k = 0; k < count; k += 997) {  // each of them still works
    idle[k].send(request);
    ASSERT_EQ(idle[k].read().status, 200);
  }
  idle.clear();
  expect_balanced(server);
}

TEST(ServeFaults, ConnectionsBeyondTheLimitAreClosedAndOthersStay) {
  ServeProcess server({small().path, "--max-connections", "3"});
  std::vector<Connection> held;
  for (int k = 0; k < 3; ++k) {
    held.emplace_back(server.port());
    held.back().send(get("/v2/health/live"));
    ASSERT_EQ(held.back().read().status, 200);
  }
  Connection more(server.port());
  EXPECT_TRUE(more.ended());
  held[1].send(get("/metrics"));
  EXPECT_EQ(counters_of(held[1].read())["lacuna_connections_refused_total"], 1);
  held.clear();
  expect_balanced(server);
}

TEST(ServeFaults, OverloadIsAnsweredAtOnce) {
  ServeProcess server({small().path, "--max-queue", "64", "--threads", "1", "--batch-delay", "60000"});
  const std::string request = post(infer_target(), small().request(0, 60, 7).dump());
  Held held(server, post(infer_target(), small().request(0, 1, 7).dump()));
  Connection waiting(server.port());
  waiting.send(request);
  ASSERT_TRUE(comes_true([&] { return server.counters()["lacuna_queue_rows"] == 60; }));
  for (int k = 0; k < 20; ++k) {
    const HttpAnswer busy = server.ask(request);
    EXPECT_EQ(busy.status, 503);
    EXPECT_EQ(busy.header("Retry-After"), "1");
  }
  EXPECT_EQ(held.release().status, 200);
  EXPECT_EQ(waiting.read().status, 200);
  waiting.close();
  held.connection.close();
  expect_balanced(server);
}

TEST(ServeFaults, UnderOverloadEveryRequestIsAnswered) {
  ServeProcess server({small().path, "--max-queue", "64", "--threads", "1"});
  const std::string request = post(infer_target(), small().request(0, 60, 7).dump());
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 16; ++c)
    clients.emplace_back([&] {
      Connection connection(server.port());
      for (int k = 0; k < 20; ++k) {
        connection.send(request);
        const HttpAnswer answer = connection.read();
        answered += answer.status == 200 || (answer.status == 503 && answer.header("Retry-After") == "1");
      }
    });
  for (auto& client : clients) client.join();
  EXPECT_EQ(answered, 320);
  expect_balanced(server);
}

TEST(ServeFaults, BodiesBeyondTheMemoryAreRefused) {
  ServeProcess server({small().path, "--max-body", "100000", "--max-memory", "150000"});
  Connection first(server.port());
  first.send("POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{");
  ASSERT_TRUE(comes_true([&] { return server.counters()["lacuna_body_bytes"] > 0; }));
  Connection second(server.port());
  second.send("POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{");
  const HttpAnswer answer = second.read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  first.reset();
  second.close();
  expect_balanced(server);
}

// A list of the lines of a body could need many times its memory.
TEST(ServeFaults, LinesBeyondTheLimitAreCountedAndNotListed) {
  ServeProcess server({small().path});
  const std::string blank(30 << 20, '\n');
  const HttpAnswer answer = server.ask(post("/v1/suggest-batch", blank + small().item(0, 7).dump()));
  EXPECT_EQ(answer.status, 413);
  EXPECT_NE(answer.body.find("31457281 lines"), std::string::npos) << answer.body;
  EXPECT_EQ(server.ask(post("/v1/suggest-batch", blank)).body, "");
  EXPECT_LT(server.stop().peak_bytes, std::size_t{400} << 20);
}

// Asks all the time; every answer must be one of the models', whole.
struct Load {
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, wrong{0}, refused{0}, lost{0};
  std::vector<std::thread> clients;

  Load(int port, std::vector<Matrix<float>> truths, int count = 8) {
    for (int c = 0; c < count; ++c) clients.emplace_back([this, port, truths] { work(port, truths); });
  }
  ~Load() { end(); }
  void end() {
    stop = true;
    for (auto& client : clients)
      if (client.joinable()) client.join();
  }
  void work(int port, const std::vector<Matrix<float>>& truths) {
    const std::string request = post(infer_target(), small().request(0, 2, 7).dump());
    while (!stop) {
      try {
        Connection connection(port);
        while (!stop) {
          if (!connection.send(request)) break;
          const HttpAnswer answer = connection.read();
          if (answer.status == 0) {
            ++lost;
            break;
          }
          if (answer.status != 200) {
            ++refused;
            continue;
          }
          ++(is_one_of(answer.json()["outputs"][0]["data"], truths) ? good : wrong);
          if (answer.header("Connection") == "close") break;
        }
      } catch (const std::runtime_error&) {  // nobody listens any more
        return;
      }
    }
  }
  static bool is_one_of(const nlohmann::json& data, const std::vector<Matrix<float>>& truths) {
    for (const auto& truth : truths) {
      bool same = data.size() == truth.values().size();
      for (std::size_t k = 0; same && k < data.size(); ++k)
        same = std::abs(data[k].get<float>() - truth.values()[k]) < 1e-5f;
      if (same) return true;
    }
    return false;
  }
};

void replace(const std::string& from, const std::string& path) {
  std::filesystem::copy_file(from, path + ".new");
  std::filesystem::rename(path + ".new", path);
}

TEST(ServeFaults, AThousandRequestsWhileTheModelIsSwapped) {
  const TemporaryDirectory folder;
  const std::string served = folder / "photos.safetensors", first = folder / "first",
                    second = folder / "second", broken = folder / "broken";
  small().train(first, 5);
  small().train(second, 6);
  std::ofstream(broken) << "this is not a model";
  std::filesystem::copy_file(first, served);
  ServeProcess server({served});
  Load load(server.port(), {small().expected(first, 0, 2, 7), small().expected(second, 0, 2, 7)}, 4);
  const auto swaps = [&](const std::string& name) { return server.counters()["lacuna_model_swaps_" + name]; };
  const auto wait_for = [&](const std::string& name, double value) {
    EXPECT_TRUE(comes_true([&] { return swaps(name) == value; }));
  };
  replace(second, served);
  wait_for("total", 1);
  replace(broken, served);
  wait_for("failed_total", 1);
  EXPECT_EQ(server.ask(get("/v2/models/photos")).json()["versions"][0], "2");
  replace(first, served);
  wait_for("total", 2);
  while (load.good < 1000) std::this_thread::sleep_for(20ms);
  load.end();
  EXPECT_EQ(load.wrong + load.refused + load.lost, 0);
  const auto last = server.ask(post(infer_target(), small().request(0, 2, 7).dump())).json();
  expect_scores(last, small().expected(first, 0, 2, 7));
  expect_balanced(server);
  const Ended ended = server.stop();
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("stays at version 2"), std::string::npos) << ended.err;
}

TEST(ServeFaults, AModelThatTakesOrGivesSomethingElseIsWarnedOf) {
  const TemporaryDirectory folder;
  const std::string served = folder / "photos.safetensors", same = folder / "same", other = folder / "other";
  SmallModel changed;
  changed.train(same, 9);
  changed.data.views[1].name = "smell";
  changed.data.label_names[4] = "blue";
  changed.train(other, 9);
  std::filesystem::copy_file(small().path, served);
  ServeProcess server({served});
  const auto swapped = [&](double count) {
    return comes_true([&] { return server.counters()["lacuna_model_swaps_total"] == count; });
  };
  replace(same, served);
  ASSERT_TRUE(swapped(1));
  replace(other, served);
  ASSERT_TRUE(swapped(2));
  const std::string said = server.stop().err;
  const std::size_t at = said.find("warning: ");
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("warning: ", at + 1), std::string::npos) << said;
  for (const std::string& words :
       {std::string("version 3"), small().data.views[1].name + " 9, ", std::string("smell 9, "),
        "label 4 was '" + small().data.label_names[4] + "' and is 'blue'"})
    EXPECT_NE(said.find(words, at), std::string::npos) << words << "\n" << said;
}

TEST(ServeFaults, AModelFileThatIsRemovedIsReportedAndItsModelStays) {
  const TemporaryDirectory folder;
  const std::string served = folder / "photos.safetensors";
  std::filesystem::copy_file(small().path, served);
  ServeProcess server({served});
  EXPECT_EQ(server.counters().at("lacuna_model_files_gone"), 0);
  std::filesystem::remove(served);
  EXPECT_TRUE(comes_true([&] { return server.counters()["lacuna_model_files_gone"] == 1; }));
  expect_scores(server.ask(post(infer_target(), small().request(0, 2, 7).dump())).json(),
                small().expected(small().path, 0, 2, 7));
  replace(small().path, served);
  EXPECT_TRUE(comes_true([&] { return server.counters()["lacuna_model_swaps_total"] == 1; }));
  EXPECT_EQ(server.counters()["lacuna_model_files_gone"], 0);
  const Ended ended = server.stop();
  EXPECT_NE(ended.err.find("stays at version 1, " + served + " is gone"), std::string::npos) << ended.err;
}

TEST(ServeFaults, SigtermUnderLoadLosesNothing) {
  ServeProcess server({small().path});
  Load load(server.port(), {small().expected(small().path, 0, 2, 7)});
  while (load.good < 200) std::this_thread::sleep_for(5ms);
  const Ended ended = server.stop();
  load.end();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(load.wrong + load.refused + load.lost, 0);
  EXPECT_NE(ended.err.find("SIGTERM"), std::string::npos);
  EXPECT_NE(ended.err.find(" 0 abandoned"), std::string::npos) << ended.err;
}

TEST(ServeFaults, SigtermWaitsForARequestOnItsWayAndNotForAnIdleOne) {
  ServeProcess server({small().path});
  Connection idle(server.port()), busy(server.port());
  const std::string request = post(infer_target(), small().request(0, 2, 7).dump());
  busy.send(request.substr(0, request.size() - 10));
  ASSERT_TRUE(comes_true([&] { return server.counters()["lacuna_body_bytes"] > 0; }));
  server.process().send(SIGTERM);
  ASSERT_TRUE(
      comes_true([&] { return server.process().errors_so_far().find("SIGTERM") != std::string::npos; }));
  busy.send(request.substr(request.size() - 10));
  const HttpAnswer answer = busy.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(idle.ended());
  EXPECT_EQ(server.process().wait().code, 0);
}

TEST(ServeFaults, KilledAndStartedAgain) {
  const auto request = post(infer_target(), small().request(0, 2, 7).dump());
  int port = 0;
  {
    ServeProcess server({small().path});
    port = server.port();
    Load load(port, {small().expected(small().path, 0, 2, 7)}, 2);
    while (load.good < 20) std::this_thread::sleep_for(5ms);
    server.process().send(SIGKILL);
    EXPECT_EQ(server.process().wait().signal, SIGKILL);
    load.end();
    EXPECT_EQ(load.wrong, 0);
  }
  Process again(
      {"serve", small().path, "--listen", "127.0.0.1:" + std::to_string(port)});  // the same port, at once
  HttpAnswer answer;
  EXPECT_TRUE(comes_true([&] {
    try {
      Connection connection(port);
      connection.send(request);
      answer = connection.read();
    } catch (const std::runtime_error&) {  // not yet
    }
    return answer.status == 200;
  }));
  again.send(SIGTERM);
  EXPECT_EQ(again.wait().code, 0);
}

TEST(ServeFaults, ABatchServesManyRequests) {
  constexpr std::size_t kClients = 64, kRounds = 5;
  ServeProcess server(
      {small().path, "--threads", "1", "--batch-delay", "60000", "--batch-rows", std::to_string(kClients)});
  Held held(server, post(infer_target(), small().request(0, 1, 7).dump()));
  std::vector<Connection> connections;
  for (std::size_t k = 0; k < kClients; ++k) connections.emplace_back(server.port());
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < kClients; ++k)
      connections[k].send(post(infer_target(), small().request(k, 1, 7).dump()));
    for (std::size_t k = 0; k < kClients; ++k) {
      const HttpAnswer answer = connections[k].read();
      ASSERT_EQ(answer.status, 200);
      if (round == 0) expect_scores(answer.json(), small().expected(small().path, k, 1, 7));
    }
  }
  auto counters = server.counters();
  EXPECT_EQ(counters["lacuna_rows_predicted_total"], kClients * kRounds);
  EXPECT_EQ(counters["lacuna_batches_total"], kRounds);
  EXPECT_EQ(held.release().status, 200);
}

}  // namespace
}  // namespace lacuna
