#include "serve/counters.h"

#include <fmt/format.h>

namespace lacuna::serve {
namespace {

void family(std::string& out, const char* name, const char* type, const char* help) {
  fmt::format_to(std::back_inserter(out), "# HELP lacuna_{} {}\n# TYPE lacuna_{} {}\n", name, help, name,
                 type);
}

void single(std::string& out, const char* name, const char* type, const char* help, std::int64_t value) {
  family(out, name, type, help);
  fmt::format_to(std::back_inserter(out), "lacuna_{} {}\n", name, value);
}
void counter(std::string& out, const char* name, const char* help, const Count& value) {
  single(out, name, "counter", help, static_cast<std::int64_t>(value.load()));
}

template <std::size_t N>
void histogram(std::string& out, const char* name, const char* help, const Histogram<N>& values) {
  family(out, name, "histogram", help);
  std::uint64_t below = 0;
  for (std::size_t k = 0; k < N; ++k) {
    below += values.counts[k].load();
    fmt::format_to(std::back_inserter(out), "lacuna_{}_bucket{{le=\"{}\"}} {}\n", name, values.bounds[k],
                   below);
  }
  below += values.counts[N].load();
  fmt::format_to(std::back_inserter(out),
                 "lacuna_{}_bucket{{le=\"+Inf\"}} {}\nlacuna_{}_sum {}\nlacuna_{}_count {}\n", name, below,
                 name, values.sum.load(), name, below);
}

}  // namespace

std::string Counters::text() const {
  std::string out;
  counter(out, "connections_accepted_total", "Connections accepted.", accepted);
  counter(out, "connections_closed_total", "Accepted connections that are closed.", closed);
  counter(out, "connections_refused_total", "Connections beyond the limit, closed at once.",
          refused_connections);
  counter(out, "connections_timed_out_total", "Connections closed because the client was too slow or idle.",
          timed_out);
  single(out, "connections_open", "gauge", "Connections that are open.",
         static_cast<std::int64_t>(accepted.load() - closed.load()));
  counter(out, "requests_received_total", "Requests whose headers were read.", received);
  counter(out, "requests_abandoned_total", "Requests whose client went away before it had the answer.",
          abandoned);
  family(out, "requests_answered_total", "counter", "Answers given, by status.");
  for (std::size_t code = 0; code < by_status.size(); ++code)
    if (const std::uint64_t value = by_status[code].load(); value > 0)
      fmt::format_to(std::back_inserter(out), "lacuna_requests_answered_total{{code=\"{}\"}} {}\n", code,
                     value);
  counter(out, "received_bytes_total", "Bytes of request bodies.", bytes_in);
  counter(out, "sent_bytes_total", "Bytes of answers, headers included.", bytes_out);
  counter(out, "rows_predicted_total", "Rows predicted.", rows);
  counter(out, "batches_total", "Calls of the model; one may serve several requests.", batches);
  single(out, "queue_rows", "gauge", "Rows waiting for a prediction.", queued_rows.load());
  single(out, "body_bytes", "gauge", "Bytes of request bodies in memory.", body_bytes.load());
  counter(out, "model_swaps_total", "Models replaced by a changed file.", swaps);
  counter(out, "model_swaps_failed_total",
          "Changed model files that could not be loaded; the old model stayed.", failed_swaps);
  single(out, "model_files_gone", "gauge", "Models whose file is not there any more; the loaded model stays.",
         files_gone.load());
  histogram(out, "request_seconds", "From the end of a request's headers to the end of its answer.", seconds);
  histogram(out, "batch_rows", "Rows of a batch.", batch_rows);
  return out;
}

}  // namespace lacuna::serve
