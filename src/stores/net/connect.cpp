#include "stores/net/connect.h"

#include <cerrno>
#include <system_error>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "stores/net/deadline.h"

namespace vitrove::net {
namespace {

Fault system_fault(const char* what, int error_number) {
  return {StoreStatus::unavailable, error_number,
          std::string(what) + ": " + std::generic_category().message(error_number)};
}

// Without delay, and noticing at last when the other side is gone without a word.
void tune(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

Fault wait_connected(int socket, Clock::time_point deadline, const std::stop_token& cancel) {
  const pollfd awaited{socket, POLLOUT, 0};
  switch (Waiter(cancel).wait({&awaited, 1}, deadline)) {
    case Waiter::Woken::timeout:
      return {StoreStatus::timeout, ETIMEDOUT, "no connection in time"};
    case Waiter::Woken::cancelled:
      return {StoreStatus::cancelled, 0, "cancelled"};
    case Waiter::Woken::ready:
      break;
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? Fault{} : system_fault("cannot connect", error);
}

Fault connect_to(const Address& address, Clock::time_point deadline, const std::stop_token& cancel,
                 UniqueFd& socket) {
  socket.reset(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_fault("no socket", errno);
  const auto* const target = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(socket.get(), target, address.length) != 0) {
    if (errno != EINPROGRESS) return system_fault("cannot connect", errno);
    if (Fault fault = wait_connected(socket.get(), deadline, cancel)) return fault;
  }
  tune(socket.get());
  return {};
}

}  // namespace

UniqueFd connect_to_any(std::span<const Address> addresses, Clock::time_point deadline,
                        const std::stop_token& cancel, Fault& fault) {
  UniqueFd socket;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto until = share_of(deadline, addresses.size() - i);
    fault = connect_to(addresses[i], until, cancel, socket);
    if (!fault) return socket;
    if (fault.status == StoreStatus::cancelled) break;
  }
  return UniqueFd();
}

}  // namespace vitrove::net
