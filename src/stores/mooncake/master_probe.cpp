#include "stores/mooncake/master_probe.h"

#include <cerrno>
#include <memory>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/environment.h"
#include "base/unique_fd.h"

namespace vitrove::mooncake {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// 0, or the error number of the attempt.
int try_to_connect(const addrinfo& address, std::chrono::milliseconds timeout) {
  const UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wanted{fd.get(), POLLOUT, 0};
  const int ready = ::poll(&wanted, 1, static_cast<int>(timeout.count()));
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

}  // namespace

std::string why_unreachable(const std::string& address, std::chrono::milliseconds timeout) {
  const std::size_t colon = address.rfind(':');
  if (address.find("://") != address.npos || address.find(',') != address.npos ||
      colon == address.npos) {
    return {};
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (failed != 0) return std::string("its name is not known: ") + ::gai_strerror(failed);
  const Addresses addresses(found);
  int error = 0;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    error = try_to_connect(*one, timeout);
    if (error == 0) return {};
  }
  return errno_text(error);
}

}  // namespace vitrove::mooncake
