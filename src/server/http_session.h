// HttpSession: one connection. HTTP/1.1 with keep-alive; pipelined requests are answered one after
// the other, in order.
//
//  - The head decides first (HttpHandler::admit): a refused request's body is never read, and a
//    client that asked with Expect: 100-continue is told so before it sends it.
//  - Bodies are counted while they arrive: each against its route's limit (413), all together
//    against the server's allowance (429).
//  - From the head to the first byte of the reply there is one deadline; the session answers 504
//    itself if the handler has not.
//  - A client that goes while its request is being worked on stops that work (HttpRequest::cancel).
//    Ending to send counts as going, since nothing else tells the two apart: only what is answered
//    at once, from the pool or about the server's state, still reaches such a client.
//  - A reply's parts are written from where they lie. When nothing moves for the stall timeout the
//    connection is closed and the parts are released.
//  - A connection that ends with unread input is closed only after the client has had the chance to
//    read the reply.
//
// All work happens on the connection's strand. Beast is used in the .cpp alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <boost/asio/ip/tcp.hpp>

#include "server/http_handler.h"
#include "server/reply_budget.h"
#include "server/session_registry.h"

namespace vitrove {

struct SessionLimits {
  std::chrono::microseconds idle_timeout{60'000'000};        // between requests, and for a head
  std::chrono::microseconds send_stall_timeout{30'000'000};  // reply without progress
};

// Serves the connection until it ends; the session keeps itself alive and is listed in `registry`.
// The references outlive it.
void start_http_session(boost::asio::ip::tcp::socket socket, HttpHandler& handler,
                        const SessionLimits& limits, ByteAllowance& bodies,
                        SessionRegistry& registry);

}  // namespace vitrove
