// The server: listens, assigns connections to event loops, one per thread, watches the model files, shuts down in
// order.
#pragma once

#include <string>
#include <vector>

#include "serve/limits.h"

namespace lacuna::serve {

struct ServerOptions {
  std::vector<std::string> models;        // PATH, or NAME=PATH
  std::string listen = "127.0.0.1:8080";  // HOST:PORT; port 0 takes a free one
  std::vector<std::string> hosts;         // names by which it may be called on loopback, besides localhost
  std::string token_file;                 // bearer tokens, one per line; empty: no token is required
  std::string device = "cpu";             // of networks, as in lacuna predict
  std::string precision = "model";        // of a network's products, as there
  std::string empty = "refuse";           // the value of a null among the values of an item (/v1), as there
  int threads = 0;                        // event loops, and as many workers; 0 = all CPUs
  Limits limits;
  void declare(Options& options);
};

// Serves until SIGTERM or SIGINT, then answers requests in progress and returns. Errors at the start (a model that
// cannot be loaded, a port in use) are thrown, and so is the loss of the device, after requests in progress are
// answered.
void serve(const ServerOptions& options);

}  // namespace lacuna::serve
