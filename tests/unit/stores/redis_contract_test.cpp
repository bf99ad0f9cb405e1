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

class TlsHarness {
 public:
  TlsHarness() { shared().server.ask({"FLUSHALL"}); }
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return make_redis_store(shared().options()); }

 private:
  struct Shared {
    TestCertificates certificates;
    int port = free_port();
    RedisServer server{certificates.arguments(port), "p@ss:w/rd#1"};

    RedisStoreOptions options() const {
      RedisStoreOptions options = server.options();
      options.servers = {{"127.0.0.1", port}};
      options.tls = true;
      options.tls_ca = certificates.ca();
      return options;
    }
  };
  static Shared& shared() {
    static Shared one;
    return one;
  }
  std::unique_ptr<EmbeddingStore> store_ = open();
};
INSTANTIATE_TYPED_TEST_SUITE_P(RedisTls, StoreContract, TlsHarness, );

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
