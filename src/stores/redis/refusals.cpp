#include "stores/redis/refusals.h"

namespace vitrove::redis {

void Refusals::refused(const Fault& fault) {
  {
    std::lock_guard lock(mutex_);
    detail_ = "puts are refused: " + fault.detail;
    is_refusing_ = true;
  }
  throttle_.log(spdlog::level::warn, "redis store: puts are refused: {}", fault.detail);
}

void Refusals::accepted() {
  if (!is_refusing_.load(std::memory_order_relaxed)) return;
  {
    std::lock_guard lock(mutex_);
    if (!is_refusing_.exchange(false)) return;
    detail_.clear();
  }
  logger()->info("redis store: puts are accepted again");
}

std::string Refusals::detail() const {
  std::lock_guard lock(mutex_);
  return detail_;
}

}  // namespace vitrove::redis
