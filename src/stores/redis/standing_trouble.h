// Something that a server does not do, from when that shows until it is seen to do it: for health()
// and for the log. Thread-safe; where there is none, end() costs one load.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "base/log.h"

namespace vitrove::redis {

class StandingTrouble {
 public:
  // A warning at most in every `period`; `over` is logged when it ends.
  StandingTrouble(std::chrono::seconds period, std::string over);

  // The words of the last one stay.
  void begin(const std::string& detail);
  // True when there was one.
  bool end();

  // Empty when all is well.
  std::string detail() const;

 private:
  const std::string over_;
  LogThrottle throttle_;
  std::atomic<bool> is_there_{false};
  mutable std::mutex mutex_;
  std::string detail_;
};

}  // namespace vitrove::redis
