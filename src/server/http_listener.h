// HttpListener: the listening socket, the I/O threads, and the connections they serve.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/http_handler.h"
#include "server/reply_budget.h"

namespace vitrove {

struct ListenerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint32_t io_threads = 2;
  std::uint32_t max_connections = 4096;
  std::chrono::microseconds send_stall_timeout{30'000'000};
};

// Whether an address that is not loopback is among those the host means. Throws
// Error{invalid_argument} when it means none.
bool listens_beyond_loopback(const std::string& host);

class HttpListener {
 public:
  // The references outlive the listener.
  HttpListener(ListenerOptions options, HttpHandler& handler, ByteAllowance& bodies);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  // Binds and begins to serve. Throws Error{unavailable} with one clear line.
  void start();
  std::uint16_t port() const;

  // Takes in the connections that wait in the backlog, then closes the listening socket and drains
  // all connections.
  void drain();
  // False when connections are left at the deadline.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);
  // Ends all connections and the threads. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
