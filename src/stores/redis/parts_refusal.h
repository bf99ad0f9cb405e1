// Whether the server lets large values be read in parts, for gets, for health() and for the log.
//
// A user's ACL may lack STRLEN or GETRANGE, and proxies and engines may not know them; their values
// come whole then. A refusal holds for five minutes, for all servers of the store; after that the
// next large value is asked for in parts again, so that a right that was granted counts, and one
// that is still missing costs a round trip in five minutes.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/log.h"
#include "stores/redis/network.h"
#include "stores/redis/standing_trouble.h"

namespace vitrove::redis {

class PartsRefusal {
 public:
  static constexpr auto remembered = std::chrono::minutes(5);

  bool holds(Clock::time_point now = Clock::now()) const {
    return now.time_since_epoch() < until_.load();
  }
  // Parts were refused where a whole value was not. Logged when that is new, once an hour at most.
  void refused(const Fault& why, Clock::time_point now = Clock::now());
  // Parts came. Says so when they were refused before.
  void came();

  // Empty when all is well.
  std::string detail() const { return trouble_.detail(); }

 private:
  std::atomic<Clock::duration> until_{Clock::duration::min()};
  StandingTrouble trouble_;
  LogThrottle throttle_{std::chrono::hours(1)};
};

}  // namespace vitrove::redis
