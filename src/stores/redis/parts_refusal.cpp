#include "stores/redis/parts_refusal.h"

namespace vitrove::redis {

void PartsRefusal::refused(const Fault& why, Clock::time_point now) {
  until_ = (now + remembered).time_since_epoch();
  const std::string detail =
      "values above 832 KiB come whole, which costs the server more, since parts are refused (" +
      why.detail + "); an ACL has to grant STRLEN and GETRANGE";
  if (trouble_.begin(detail)) throttle_.log(spdlog::level::warn, "redis store: {}", detail);
}

void PartsRefusal::came() {
  if (!trouble_.end()) return;
  until_ = Clock::duration::min();
  logger()->info("redis store: values above 832 KiB come in parts again");
}

}  // namespace vitrove::redis
