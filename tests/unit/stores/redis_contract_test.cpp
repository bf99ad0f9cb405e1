// The contract suite over real servers: plain, TLS with a password, and a cluster of three.
#include <gtest/gtest.h>

#include "contract/store_contract.h"
#include "redis_server.h"

namespace vitrove::testing {
namespace {

// Servers live as long as the test program; each test starts with an empty one.
class SingleHarness {
 public:
  SingleHarness() { server().ask({"FLUSHALL"}); }
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return make_redis_store(server().options()); }

 private:
  static RedisServer& server() {
    static RedisServer shared;
    return shared;
  }
  std::unique_ptr<EmbeddingStore> store_ = open();
};
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, StoreContract, SingleHarness, );

class ClusterHarness {
 public:
  ClusterHarness() { cluster().flush(); }
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return make_redis_store(cluster().options()); }

 private:
  static RedisCluster& cluster() {
    static RedisCluster shared;
    return shared;
  }
  std::unique_ptr<EmbeddingStore> store_ = open();
};
INSTANTIATE_TYPED_TEST_SUITE_P(RedisCluster, StoreContract, ClusterHarness, );

}  // namespace
}  // namespace vitrove::testing
