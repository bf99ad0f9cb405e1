#include "stores/redis/parts_refusal.h"

namespace vitrove::redis {

void PartsRefusal::refused(const Fault& why, Clock::time_point now) {
  until_ = (now + remembered).time_since_epoch();
  trouble_.begin(
      "values above 832 KiB come whole, which costs the server more, since parts are refused (" +
      why.detail + "); an ACL has to grant STRLEN and GETRANGE, and a proxy to know them");
}

void PartsRefusal::came(Clock::time_point asked) {
  // Of a cluster another server refuses them, perhaps since then.
  if (asked.time_since_epoch() + remembered <= until_.load()) return;
  if (trouble_.end()) until_ = Clock::duration::min();
}

}  // namespace vitrove::redis
