#include "stores/redis/parts_refusal.h"

namespace vitrove::redis {

void PartsRefusal::refused(const Fault& why, Clock::time_point now) {
  until_ = (now + remembered).time_since_epoch();
  std::string detail =
      "values above 832 KiB come whole, which costs the server more, since parts are refused (" +
      why.detail + "); an ACL has to grant STRLEN and GETRANGE";
  {
    std::lock_guard lock(mutex_);
    detail_ = detail;
    if (is_refused_.exchange(true)) return;
  }
  throttle_.log(spdlog::level::warn, "redis store: {}", detail);
}

void PartsRefusal::came() {
  if (!is_refused_.load(std::memory_order_relaxed)) return;
  {
    std::lock_guard lock(mutex_);
    if (!is_refused_.exchange(false)) return;
    until_ = Clock::duration::min();
    detail_.clear();
  }
  logger()->info("redis store: values above 832 KiB come in parts again");
}

std::string PartsRefusal::detail() const {
  std::lock_guard lock(mutex_);
  return detail_;
}

}  // namespace vitrove::redis
