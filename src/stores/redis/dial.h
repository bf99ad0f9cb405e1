// A new connection, ready for use: name, TCP, TLS, login, database.
#pragma once

#include <memory>
#include <optional>

#include "stores/redis/connection.h"
#include "stores/redis/network.h"
#include "stores/redis/server_memory.h"
#include "stores/redis/settings.h"

namespace vitrove::redis {

struct Dialed {
  std::unique_ptr<Connection> connection;  // null: see `fault`
  Fault fault;
  // Where the server tells:
  std::optional<std::uint64_t> max_value_bytes;  // its own limit
  std::optional<ServerMemory> memory;
};

Dialed dial(const Endpoint& endpoint, const Settings& settings, Clock::time_point deadline,
            const std::stop_token& cancel);

}  // namespace vitrove::redis
