// Waits for sockets, for time, and for a caller who leaves.
#pragma once

#include <optional>
#include <span>
#include <stop_token>

#include <poll.h>

#include "base/unique_fd.h"
#include "vitrove/embedding_store.h"

namespace vitrove::net {

using Clock = std::chrono::steady_clock;

class Waiter {
 public:
  // Without descriptors to spare, a cancellation is noticed only when something else happens.
  explicit Waiter(const std::stop_token& cancel);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  enum class Woken { ready, timeout, cancelled };
  // Until one of `sockets` is ready. Never longer than an hour.
  Woken wait(std::span<const pollfd> sockets, Clock::time_point deadline) const;

 private:
  struct Wake {
    int fd;
    void operator()() const noexcept;
  };

  const std::stop_token cancel_;
  UniqueFd event_;
  std::optional<std::stop_callback<Wake>> callback_;  // after what it writes to
};

}  // namespace vitrove::net
