// What all connections of a store have in common, so that those made after a redirect inherit it
// (field case B53).
#pragma once

#include <memory>

#include "stores/redis/tls.h"
#include "vitrove/redis_store.h"

namespace vitrove::redis {

struct Settings {
  RedisStoreOptions options;
  std::shared_ptr<const TlsContext> tls;  // null: plain TCP
};

}  // namespace vitrove::redis
