// Whether the server lets large values be read in parts, for gets, for health() and for the log.
//
// A user's ACL may lack STRLEN or GETRANGE, and proxies and engines may not know them; their values
// come whole then. A refusal holds for five minutes, for all servers of the store; after that the
// next large value is asked for in parts again, so that a right that was granted counts, and one
// that is still missing costs those who ask then a round trip.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "stores/redis/network.h"
#include "stores/redis/standing_trouble.h"

namespace vitrove::redis {

class PartsRefusal {
 public:
  static constexpr auto remembered = std::chrono::minutes(5);

  bool holds(Clock::time_point now = Clock::now()) const {
    return now.time_since_epoch() < until_.load();
  }
  // Parts were refused where a whole value was not. Logged once an hour at most.
  void refused(const Fault& why, Clock::time_point now = Clock::now());
  // Parts came that were asked for then. Says so when they had been refused, before that.
  void came(Clock::time_point asked);

  // Empty when all is well.
  std::string detail() const { return trouble_.detail(); }

 private:
  std::atomic<Clock::duration> until_{Clock::duration::min()};
  StandingTrouble trouble_{std::chrono::hours(1), "values above 832 KiB come in parts again"};
};

}  // namespace vitrove::redis
