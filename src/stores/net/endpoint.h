// Where a server listens.
#pragma once

#include <compare>
#include <string>

namespace vitrove::net {

struct Endpoint {
  std::string host;
  int port = 6379;

  std::string text() const {
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  auto operator<=>(const Endpoint&) const = default;
};

}  // namespace vitrove::net
