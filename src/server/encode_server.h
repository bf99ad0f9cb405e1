// EncodeServer: the HTTP encode server (design section 8) around an EncodeService.
//
//   EncodeServer server(config);   // loads the encoder, opens the stores; throws Error
//   server.start();                // binds and serves in background threads; throws Error
//   server.begin_drain();          // from a signal-handling thread: see below
//   server.wait();                 // until drained, or forced
//
// Draining: /ready answers 503 at once; after `drain_delay` the listener closes, new work gets 503,
// running requests end and queued puts are flushed within `drain_timeout`; then wait() returns.
// force_stop() ends it at once. Both may be called from any thread, and again, but not from a
// signal handler itself.
//
// Two I/O threads do nothing but HTTP; requests run on a bounded pool; metrics, admin routes and
// /health have threads of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/encode_service.h"
#include "server/server_config.h"

namespace vitrove {

class EncodeServer {
 public:
  // The second form takes a ready service (tests, hosts with their own stores).
  explicit EncodeServer(const ServerConfig& config);
  EncodeServer(const ServerConfig& config, std::shared_ptr<EncodeService> service);
  // Stops by force when still running, and waits for what cannot be stopped: an encoder's run, a
  // store's call.
  ~EncodeServer();
  EncodeServer(const EncodeServer&) = delete;
  EncodeServer& operator=(const EncodeServer&) = delete;

  // Throws Error{unavailable}: "port 8090 is in use", "cannot listen on ...".
  void start();
  std::uint16_t port() const;  // after start()
  std::string host() const;

  void begin_drain();
  void force_stop();
  // Blocks until the server has ended, for a bounded time after begin_drain(). True when everything
  // accepted was answered and all puts were flushed. All connections are closed; work that nobody
  // waits for may still run, and may be stuck: only the destructor waits for it.
  bool wait();

  EncodeService& service();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
