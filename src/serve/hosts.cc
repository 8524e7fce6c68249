#include "serve/hosts.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>

namespace lacuna::serve {

std::string host_name(std::string_view host) {
  if (host.starts_with('['))
    host = host.substr(1, host.find(']') - 1);
  else
    host = host.substr(0, host.find(':'));
  std::string name(host);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

Hosts::Hosts(std::vector<std::string> others) : any_(false), others_(std::move(others)) {
  for (std::string& name : others_) name = host_name(name);
}

bool Hosts::allow(std::string_view host) const {
  if (any_ || host.empty()) return true;
  const std::string name = host_name(host);
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(name, error);
  return name == "localhost" || (!error && address.is_loopback()) ||
         std::ranges::find(others_, name) != others_.end();
}

}  // namespace lacuna::serve
