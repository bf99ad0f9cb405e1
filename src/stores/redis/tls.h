// TLS on OpenSSL: what every connection of a store shares, and the stream made of one.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "stores/redis/network.h"
#include "stores/redis/stream.h"
#include "vitrove/redis_store.h"

struct ssl_ctx_st;

namespace vitrove::redis {

// Certificates are read once, when it is made. Thread-safe.
class TlsContext {
 public:
  // Throws Error{invalid_argument} when a file cannot be used.
  explicit TlsContext(const RedisStoreOptions& options);

  // The handshake with `host`, whose name the certificate has to bear. Null with `fault` when it
  // fails.
  std::unique_ptr<Stream> handshake(UniqueFd socket, const std::string& host,
                                    Clock::time_point deadline, const std::stop_token& cancel,
                                    Fault& fault) const;

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  std::string server_name_;
  bool verify_;
};

}  // namespace vitrove::redis
