// What is wrong with a file store at the moment, for health() and for the log.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log.h"

namespace vitrove::file {

class FaultLog {
 public:
  explicit FaultLog(std::string root) : root_(std::move(root)) {}

  // Logged at most once a minute.
  void failed(std::string_view what, int error_number);
  // Logged as often, and nothing that is wrong with the store.
  void noted(std::string_view what, int error_number);
  // Says so when something was wrong before.
  void succeeded();

  bool is_degraded() const { return degraded_.load(); }
  std::string detail() const;

 private:
  const std::string root_;
  std::atomic<bool> degraded_{false};
  mutable std::mutex mutex_;
  std::string detail_;
  LogThrottle throttle_{std::chrono::minutes(1)};
  LogThrottle notes_{std::chrono::minutes(1)};
};

}  // namespace vitrove::file
