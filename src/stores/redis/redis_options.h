// A store URL as options of the Redis store.
#pragma once

#include "vitrove/embedding_store_factory.h"
#include "vitrove/redis_store.h"

namespace vitrove::redis {

// Throws Error{invalid_argument}. Names no password and no path.
RedisStoreOptions read_options(const StoreUrl& url, StoreOptions& options);
// What the URL cannot say wrong but a caller of make_redis_store() can.
void check_options(const RedisStoreOptions& options);

}  // namespace vitrove::redis
