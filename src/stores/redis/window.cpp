#include "stores/redis/window.h"

#include <algorithm>

// Not <netinet/tcp.h>, whose tcp_info lacks what is looked for here.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace vitrove::redis {
namespace {

constexpr std::uint64_t least_window = 512 * 1024;
constexpr std::uint64_t largest_window = 16 << 20;
constexpr std::uint64_t line_bytes_a_microsecond = 10'000;  // 80 Gbit/s

}  // namespace

std::uint64_t owed_bytes_window(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return least_window;
  // What no ack was ever faster than, so that a server that is busy does not count as far away.
  const std::uint64_t on_the_line = info.tcpi_min_rtt * line_bytes_a_microsecond;
  return std::min(least_window + on_the_line, largest_window);
}

}  // namespace vitrove::redis
