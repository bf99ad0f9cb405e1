// A connection that the server has no room for: it gets one reply and goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace vitrove {

// Sends `reply` without reading a request, and hangs up once the client has had the chance to read
// it: closing with unread input would reset the connection and lose it. Never blocks. `leaving`
// counts such connections, of which there are few; beyond those the reply is sent and hoped for.
void turn_away(boost::asio::ip::tcp::socket socket, std::string reply,
               std::atomic<std::uint32_t>& leaving);

}  // namespace vitrove
