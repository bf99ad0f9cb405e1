// A new connection, ready for use: name, TCP, TLS, login, database.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stores/redis/connection.h"
#include "stores/redis/network.h"
#include "stores/redis/resp.h"
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

// The command that asks for the server's limit of a value, and what its answer says. Managed
// servers often hide their configuration; then nothing.
std::string ask_value_limit();
std::optional<std::uint64_t> parse_value_limit(const Reply& reply);

Dialed dial(const Endpoint& endpoint, const Settings& settings, Clock::time_point deadline,
            const std::stop_token& cancel);

}  // namespace vitrove::redis
