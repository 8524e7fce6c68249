// The host names that a server answers to. A foreign page can make its own name resolve to 127.0.0.1 (DNS rebinding)
// and so read the answers of a server on loopback; the browser's Host header reveals it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna::serve {

class Hosts {
 public:
  Hosts() = default;                                // any name
  explicit Hosts(std::vector<std::string> others);  // localhost, addresses of loopback, and these
  // The value of a Host header, with or without a port. A request without one comes from no browser.
  bool allow(std::string_view host) const;

 private:
  bool any_ = true;
  std::vector<std::string> others_;
};

// "localhost" of "LocalHost:8080", "::1" of "[::1]:8080".
std::string host_name(std::string_view host);

}  // namespace lacuna::serve
