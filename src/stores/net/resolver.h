// Host names to addresses, without ever being stuck in the system's resolver.
#pragma once

#include <stop_token>
#include <vector>

#include <sys/socket.h>

#include "stores/net/endpoint.h"
#include "stores/net/fault.h"
#include "stores/net/waiter.h"

namespace vitrove::net {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// Empty with `fault` filled in when there is none. A name is looked up on a thread of its own,
// which is left to itself when the time is up: the system's resolver cannot be interrupted.
std::vector<Address> resolve(const Endpoint& endpoint, Clock::time_point deadline,
                             const std::stop_token& cancel, Fault& fault);

}  // namespace vitrove::net
