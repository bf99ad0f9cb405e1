#include "stores/redis/standing_trouble.h"

#include <utility>

namespace vitrove::redis {

StandingTrouble::StandingTrouble(std::chrono::seconds period, std::string over)
    : over_(std::move(over)), throttle_(period) {}

void StandingTrouble::begin(const std::string& detail) {
  {
    std::lock_guard lock(mutex_);
    detail_ = detail;
    is_there_ = true;
  }
  throttle_.log(spdlog::level::warn, "redis store: {}", detail);
}

bool StandingTrouble::end() {
  if (!is_there_.load(std::memory_order_relaxed)) return false;
  {
    std::lock_guard lock(mutex_);
    if (!is_there_.exchange(false)) return false;
    detail_.clear();
  }
  logger()->info("redis store: {}", over_);
  return true;
}

std::string StandingTrouble::detail() const {
  std::lock_guard lock(mutex_);
  return detail_;
}

}  // namespace vitrove::redis
