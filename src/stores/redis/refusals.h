// Whether the server takes puts at the moment, for health() and for the log.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>

#include "base/log.h"
#include "stores/redis/network.h"

namespace vitrove::redis {

class Refusals {
 public:
  // A put was refused for a reason that concerns all puts. Logged at most once a minute.
  void refused(const Fault& fault);
  // A put succeeded. Says so when puts were refused before.
  void accepted();
  // A value that the server never takes, which it did not tell before. Logged once.
  void too_large(std::uint64_t bytes);
  std::uint64_t smallest_too_large() const { return smallest_too_large_.load(); }

  // Empty when all is well.
  std::string detail() const;

 private:
  std::atomic<bool> is_refusing_{false};
  std::atomic<std::uint64_t> smallest_too_large_{std::numeric_limits<std::uint64_t>::max()};
  mutable std::mutex mutex_;
  std::string detail_;
  LogThrottle throttle_{std::chrono::minutes(1)};
};

}  // namespace vitrove::redis
