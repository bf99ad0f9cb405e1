#include "stores/redis/refusals.h"

namespace vitrove::redis {

void Refusals::refused(const Fault& fault) {
  trouble_.begin("puts are refused: " + fault.detail);
  throttle_.log(spdlog::level::warn, "redis store: puts are refused: {}", fault.detail);
}

void Refusals::accepted() {
  if (trouble_.end()) logger()->info("redis store: puts are accepted again");
}

}  // namespace vitrove::redis
