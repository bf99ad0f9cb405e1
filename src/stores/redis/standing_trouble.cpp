#include "stores/redis/standing_trouble.h"

#include <utility>

namespace vitrove::redis {

bool StandingTrouble::begin(std::string detail) {
  std::lock_guard lock(mutex_);
  detail_ = std::move(detail);
  return !is_there_.exchange(true);
}

bool StandingTrouble::end() {
  if (!is_there_.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex_);
  if (!is_there_.exchange(false)) return false;
  detail_.clear();
  return true;
}

std::string StandingTrouble::detail() const {
  std::lock_guard lock(mutex_);
  return detail_;
}

}  // namespace vitrove::redis
