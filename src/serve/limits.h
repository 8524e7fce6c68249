// The limits on clients, in one place. Every limit has its own error and a test (tests/test_serve*.cc).
#pragma once

#include <cstdint>

#include "base/options.h"

namespace lacuna::serve {

struct Limits {
  std::int64_t header_bytes = 16 << 10;   // 431
  std::int64_t body_bytes = 64 << 20;     // 413
  std::int64_t rows = 16384;              // of one request: 413
  double header_seconds = 10;             // from the first byte of a request: 408
  double body_seconds = 60;               // from the end of its headers: 408
  double idle_seconds = 75;               // between requests: the connection is closed
  double write_seconds = 60;              // for a client to receive its answer: the connection is closed
  std::int64_t connections = 16384;       // more are closed at once
  std::int64_t queue_rows = 8192;         // waiting for a prediction: 503
  std::int64_t memory_bytes = 512 << 20;  // bodies being read or predicted: 503
  double delay_ms = 1;                    // maximum time that a request waits to be batched with others
  std::int64_t batch_rows = 256;          // of a batch made of several requests
  double drain_seconds = 30;              // after SIGTERM, for requests in progress
  double linger_seconds = 1;              // after SIGTERM, for a request that is still arriving

  void declare(Options& o) {
    o.add("max-header", header_bytes, "bytes of a request's headers").range(256, 1 << 20);
    o.add("max-body", body_bytes, "bytes of a request's body").range(1, 1LL << 40);
    o.add("max-rows", rows, "rows of a request").range(1, 1 << 30);
    o.add("header-time", header_seconds, "seconds for a request's headers").range(.05, 3600);
    o.add("body-time", body_seconds, "seconds for a request's body").range(.05, 86400);
    o.add("idle-time", idle_seconds, "seconds that a connection may be idle").range(.05, 86400);
    o.add("write-time", write_seconds, "seconds for a client to receive its answer").range(.05, 86400);
    o.add("max-connections", connections, "open connections").range(1, 1 << 24);
    o.add("max-queue", queue_rows, "rows waiting for a prediction; beyond that the answer is 503").range(1, 1 << 30);
    o.add("max-memory", memory_bytes, "bytes of all bodies together; beyond that the answer is 503")
        .range(1, 1LL << 44);
    o.add("batch-delay", delay_ms, "milliseconds that a request may wait to be batched with others")
        .range(0, 60000);
    o.add("batch-rows", batch_rows, "rows of a batch made of several requests").range(1, 1 << 20);
    o.add("drain-time", drain_seconds, "seconds after SIGTERM for requests in progress")
        .range(0, 3600);
  }
};

}  // namespace lacuna::serve
