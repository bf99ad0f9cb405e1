// What this client shares with other stores that are reached over a network.
#pragma once

#include "stores/net/endpoint.h"
#include "stores/net/fault.h"
#include "stores/net/waiter.h"

namespace vitrove::redis {

using net::Clock;
using net::Endpoint;
using net::Fault;
using net::Waiter;

}  // namespace vitrove::redis
