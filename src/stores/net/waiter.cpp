#include "stores/net/waiter.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <sys/eventfd.h>

namespace vitrove::net {
namespace {

// Rounded up, so that a wait that ends has reached its deadline.
int poll_timeout(Clock::time_point deadline) {
  const auto now = Clock::now();
  if (deadline <= now) return 0;
  const auto left = std::min<Clock::duration>(deadline - now, std::chrono::hours(1));
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace

void Waiter::Wake::operator()() const noexcept { ::eventfd_write(fd, 1); }

Waiter::Waiter(const std::stop_token& cancel) : cancel_(cancel) {
  if (!cancel.stop_possible()) return;
  event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event_) callback_.emplace(cancel, Wake{event_.get()});
}

Waiter::~Waiter() = default;

Waiter::Woken Waiter::wait(std::span<const pollfd> sockets, Clock::time_point deadline) const {
  std::vector<pollfd> all(sockets.begin(), sockets.end());
  if (event_) all.push_back({event_.get(), POLLIN, 0});
  while (true) {
    if (cancel_.stop_requested()) return Woken::cancelled;
    const int ready = ::poll(all.data(), all.size(), poll_timeout(deadline));
    if (cancel_.stop_requested()) return Woken::cancelled;
    if (ready > 0) return Woken::ready;
    if (ready == 0 && Clock::now() >= deadline) return Woken::timeout;
    if (ready < 0 && errno != EINTR) return Woken::ready;  // whoever reads next learns why
  }
}

}  // namespace vitrove::net
