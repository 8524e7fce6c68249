// A request as handlers see it, and their answer.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace boost::asio {
class io_context;
}

namespace lacuna::serve {

// Views into memory of the connection, which exists until the answer is given.
struct Request {
  std::string_view method, target;  // "POST", "/v2/models/photos/infer"; the target is without its query
  std::string_view query;           // "top=5"
  std::string_view authorization;   // the header's value
  std::string_view host;            // the header's value; empty: there was none
  std::string_view body;
  std::optional<std::size_t> json_bytes;    // Inference-Header-Content-Length: tensors follow the JSON
  boost::asio::io_context* loop = nullptr;  // where the answer is to be given
};

struct Reply {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
  std::string headers;  // further lines, each with its end
  bool close = false;
};

// Called once, in the request's loop.
using Respond = std::function<void(Reply)>;

const char* reason(unsigned status);  // "Not Found"

// Application problem details (RFC 9457); `error` repeats the text for clients of the inference protocol. `members` are
// additional ones, such as the view and both sizes.
Reply problem(unsigned status, const std::string& detail,
              const nlohmann::json& members = nlohmann::json::object());

// Thrown while reading a request; becomes a problem document.
class Refusal : public std::runtime_error {
 public:
  Refusal(unsigned code, const std::string& detail, nlohmann::json more = nlohmann::json::object())
      : std::runtime_error(detail), status(code), members(std::move(more)) {}
  unsigned status;
  nlohmann::json members;
};
template <class... Args>
[[noreturn]] void refuse(unsigned status, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal(status, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lacuna::serve
