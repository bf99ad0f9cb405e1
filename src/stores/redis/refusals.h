// Whether the server takes puts at the moment, for health() and for the log.
#pragma once

#include <chrono>
#include <string>

#include "base/log.h"
#include "stores/redis/network.h"
#include "stores/redis/standing_trouble.h"

namespace vitrove::redis {

class Refusals {
 public:
  // A put was refused for a reason that concerns all puts. Logged at most once a minute.
  void refused(const Fault& fault);
  // A put succeeded. Says so when puts were refused before.
  void accepted();

  // Empty when all is well.
  std::string detail() const { return trouble_.detail(); }

 private:
  StandingTrouble trouble_;
  LogThrottle throttle_{std::chrono::minutes(1)};
};

}  // namespace vitrove::redis
