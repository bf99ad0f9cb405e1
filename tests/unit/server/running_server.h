// A server on a port of its own, for the tests that talk to it over sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raw_client.h"
#include "server/encode_server.h"

namespace vitrove::test {

// One MiB an item, and 16 MiB: far more than a kernel takes in for a client that does not read.
inline constexpr const char* large_rows = "stub:dim=1024,tokens=256,seed=1";
inline constexpr const char* huge_rows = "stub:dim=1024,tokens=4096,seed=1";
inline constexpr std::size_t huge_bytes = std::size_t{16} << 20;

inline ServerConfig socket_config() {
  ServerConfig config = small_config();
  config.port = 0;
  return config;
}

struct Running {
  explicit Running(const ServerConfig& config = socket_config(),
                   std::shared_ptr<TestEncoder> encoder = std::make_shared<TestEncoder>(),
                   std::vector<std::shared_ptr<EmbeddingStore>> stores = {})
      : parts(config, std::move(stores), std::move(encoder)), server(config, parts.service) {
    server.start();
  }
  ~Running() { parts.encoder->gate.open(); }

  std::uint16_t port() const { return server.port(); }
  std::uint64_t pinned() const { return parts.controller->stats().bytes_pinned; }
  bool holds_pins() {
    return eventually([&] { return pinned() >= huge_bytes; });
  }
  bool pins_are_back() {
    return eventually([&] { return pinned() == 0; });
  }

  ServiceParts parts;
  EncodeServer server;
};

inline RawReply get(std::uint16_t port, const std::string& target) {
  RawClient client(port);
  client.send(http_request("GET", target));
  return client.reply();
}

}  // namespace vitrove::test
