// The request handlers: a table of paths and handlers, independent of sockets.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "serve/counters.h"
#include "serve/hosts.h"
#include "serve/limits.h"
#include "serve/message.h"
#include "serve/queue.h"
#include "serve/registry.h"
#include "serve/tokens.h"

namespace lacuna::serve {

class Service {
 public:
  Service(const Limits& limits, Counters& counters, Registry& registry, Tokens tokens, Hosts hosts,
          std::size_t workers)
      : limits_(limits),
        counters_(counters),
        registry_(registry),
        tokens_(std::move(tokens)),
        hosts_(std::move(hosts)),
        queue_(limits, counters, workers) {}

  // Answers by `respond`, in request.loop, now or later. The request's memory must exist until then.
  void handle(const Request& request, Respond respond);
  // Called before the body of a request is read: an answer that refuses it, or none.
  bool refuses(const Request& request, Reply& reply) const;

  const Limits& limits() const { return limits_; }
  Counters& counters() { return counters_; }
  BatchQueue& queue() { return queue_; }
  void drain() { draining_ = true; }
  bool draining() const { return draining_; }

 private:
  Reply answer(const Request& request) const;  // everything but predictions
  ModelPointer model_of(std::string_view target, std::string_view& rest) const;
  void infer(const Request& request, const ModelPointer& model, Respond respond);
  void suggest(const Request& request, bool many, Respond respond);
  // `write` turns the outcome into the answer: in the request's loop, or, if that is expensive, in the queue's worker.
  enum class Where { loop, worker };
  void submit(const Request& request, const ModelPointer& model, Rows rows, Where where,
              std::function<Reply(const Outcome&)> write, Respond respond);

  const Limits& limits_;
  Counters& counters_;
  Registry& registry_;
  Tokens tokens_;
  Hosts hosts_;
  BatchQueue queue_;
  std::atomic<bool> draining_{false};
};

}  // namespace lacuna::serve
