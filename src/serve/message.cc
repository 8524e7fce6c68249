#include "serve/message.h"

namespace lacuna::serve {

const char* reason(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

Reply problem(unsigned status, const std::string& detail, const nlohmann::json& members) {
  nlohmann::ordered_json document = {
      {"title", reason(status)}, {"status", status}, {"detail", detail}, {"error", detail}};
  for (const auto& [key, value] : members.items()) document[key] = value;
  Reply reply;
  reply.status = status;
  reply.type = "application/problem+json";
  // Whatever a client sent may be quoted in the detail: bytes that are no text are replaced.
  reply.body = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (status == 503) reply.headers = "Retry-After: 1\r\n";
  if (status == 401) reply.headers = "WWW-Authenticate: Bearer realm=\"lacuna\"\r\n";
  return reply;
}

}  // namespace lacuna::serve
