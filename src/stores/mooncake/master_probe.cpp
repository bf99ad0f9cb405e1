#include "stores/mooncake/master_probe.h"

#include <charconv>

#include "stores/net/connect.h"

namespace vitrove::mooncake {

std::string why_unreachable(const std::string& address, std::chrono::milliseconds timeout,
                            const std::stop_token& cancel) {
  const std::size_t colon = address.rfind(':');
  if (address.find("://") != address.npos || address.find(',') != address.npos ||
      colon == address.npos) {
    return {};
  }
  net::Endpoint endpoint{address.substr(0, colon)};
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  const char* const end = address.data() + address.size();
  const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, endpoint.port);
  if (error != std::errc{} || stop != end) return "its port is not a number";

  const auto deadline = net::Clock::now() + timeout;
  net::Fault fault;
  const auto addresses = net::resolve(endpoint, deadline, cancel, fault);
  if (!fault) net::connect_to_any(addresses, deadline, cancel, fault);
  return fault.detail;
}

}  // namespace vitrove::mooncake
