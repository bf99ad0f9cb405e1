// Clusters: slots that move, servers that die, redirects that inherit everything (field case B53),
// and what is refused: Sentinels, and the wrong kind of server.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "redis_server.h"
#include "stores/redis/hash_slot.h"

namespace vitrove::testing {
namespace {

using ::testing::HasSubstr;

struct PlainCluster {
  RedisCluster cluster;
};
struct SecureCluster {
  TestCertificates certificates;
  RedisCluster cluster{"p@ss:w/rd#1", certificates};
};

template <typename Kind>
class RedisClusters : public ::testing::Test {
 protected:
  RedisCluster& cluster() { return kind_.cluster; }
  std::unique_ptr<EmbeddingStore> open() { return make_redis_store(cluster().options()); }
  std::uint16_t slot_of(const EmbeddingKey& key) {
    return redis::hash_slot("vitrove:" + key.text());
  }
  // Values of keys in all parts of the cluster.
  void fill(EmbeddingStore& store) {
    const std::vector<ConstBuffer> buffers(keys_.size(), ConstBuffer(value_));
    for (const auto& result : store.batch_put(keys_, buffers, PutMode::if_absent, {})) {
      ASSERT_TRUE(result.ok());
    }
  }
  void expect_all(EmbeddingStore& store) {
    for (const auto& found : store.batch_is_exist(keys_, {})) {
      EXPECT_EQ(to_string(found.status), "ok");
    }
    for (const EmbeddingKey& key : keys_) EXPECT_EQ(read_back(store, key), value_);
  }

  Kind kind_;
  const std::vector<EmbeddingKey> keys_ = key_numbers(60);
  const Bytes value_ = pattern(1, 20'000);
};
using Kinds = ::testing::Types<PlainCluster, SecureCluster>;
TYPED_TEST_SUITE(RedisClusters, Kinds);

TYPED_TEST(RedisClusters, SpreadTheKeysOverTheServers) {
  const auto store = this->open();
  this->fill(*store);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(this->cluster().server(i).ask({"DBSIZE"}).number, 0) << i;
  }
  this->expect_all(*store);
}

TYPED_TEST(RedisClusters, TellHowFullTheyAreTogether) {
  for (std::size_t i = 0; i < 3; ++i) {
    this->cluster().server(i).ask({"CONFIG", "SET", "maxmemory", "64mb"});
  }
  const auto store = this->open();
  this->fill(*store);
  EXPECT_TRUE(eventually([&] { return store->health().capacity == std::uint64_t{192} << 20; }));
  EXPECT_GT(store->health().bytes, this->keys_.size() * this->value_.size());
}

TYPED_TEST(RedisClusters, AreFollowedWhileSlotsMove) {
  const auto store = this->open();
  this->fill(*store);
  RedisCluster& cluster = this->cluster();
  for (std::size_t i = 0; i < 6; ++i) {
    const EmbeddingKey& key = this->keys_[i];
    const std::uint16_t slot = this->slot_of(key);
    const std::size_t from = cluster.owner_of(slot);
    const std::size_t to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);
    EXPECT_EQ(read_back(*store, key), this->value_) << "still there";
    cluster.move_key(store->get_key(key), from, to);
    EXPECT_EQ(read_back(*store, key), this->value_) << "ASK";
    EXPECT_TRUE(put_one(*store, key, this->value_, PutMode::replace).ok()) << "ASK";
    EXPECT_EQ(cluster.server(from).ask({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)}).number,
              0);
    cluster.end_move(slot, to);
    EXPECT_EQ(read_back(*store, key), this->value_) << "MOVED";
    EXPECT_TRUE(put_one(*store, key, this->value_, PutMode::replace).ok()) << "MOVED";
    ClaimToken token;
    EXPECT_TRUE(store->claim(key, std::chrono::seconds(60), token, {}).ok());
    EXPECT_TRUE(store->release(key, token, ClaimOutcome::stored, {}).ok());
  }
  this->expect_all(*store);
  EXPECT_EQ(store->health().state, StoreState::ready) << store->health().detail;
}

TYPED_TEST(RedisClusters, AreFollowedForEachPartOfALargeValue) {
  const auto store = this->open();
  this->fill(*store);  // so that the slots are known
  RedisCluster& cluster = this->cluster();
  const EmbeddingKey key = key_number(0, "large");
  const Bytes large = pattern(3, 6 << 20);
  ASSERT_TRUE(put_one(*store, key, large).ok());
  const std::uint16_t slot = this->slot_of(key);
  const std::size_t from = cluster.owner_of(slot);
  const std::size_t to = (from + 1) % 3;
  cluster.begin_move(slot, from, to);
  cluster.move_key(store->get_key(key), from, to);
  EXPECT_EQ(read_back(*store, key), large) << "ASK";
  cluster.end_move(slot, to);
  EXPECT_EQ(read_back(*store, key), large) << "MOVED";
}

TYPED_TEST(RedisClusters, ServeWhatTheyStillHaveWhenAServerDies) {
  const auto store = this->open();
  this->fill(*store);
  RedisCluster& cluster = this->cluster();
  cluster.server(0).kill();
  const auto found = store->batch_is_exist(this->keys_, {});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_lost = this->slot_of(this->keys_[i]) <= 5460;
    EXPECT_EQ(to_string(found[i].status), is_lost ? "unavailable" : "ok");
  }
  EXPECT_EQ(store->health().state, StoreState::degraded);
  cluster.server(0).start();
  cluster.wait_until_whole();
  EXPECT_TRUE(eventually([&] {
    for (const EmbeddingKey& key : this->keys_) {
      if (!put_one(*store, key, this->value_).ok()) return false;
    }
    return true;
  }));
  this->expect_all(*store);
  EXPECT_TRUE(eventually([&] { return store->health().state == StoreState::ready; }));
}

TYPED_TEST(RedisClusters, AnswerForTheServersThatLiveWhileAnotherHangs) {
  this->fill(*this->open());
  RedisCluster& cluster = this->cluster();
  for (std::size_t hung = 0; hung < 3; ++hung) {
    const auto store = this->open();
    ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::ready; }));
    cluster.server(hung).freeze();
    StoreContext context;  // shorter than it takes the keeper to notice
    context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    const auto found = store->batch_is_exist(this->keys_, context);
    cluster.server(hung).thaw();
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (cluster.owner_of(this->slot_of(this->keys_[i])) == hung) continue;
      EXPECT_EQ(to_string(found[i].status), "ok") << hung;
    }
    cluster.wait_until_whole();
  }
}

TYPED_TEST(RedisClusters, AreFoundThroughAnyServerThatLives) {
  RedisStoreOptions options = this->cluster().options();
  options.servers.insert(options.servers.begin(), {"127.0.0.1", free_port()});
  const auto store = make_redis_store(options);
  this->fill(*store);
  this->expect_all(*store);
  EXPECT_TRUE(eventually([&] { return store->health().state == StoreState::ready; }));
}

TYPED_TEST(RedisClusters, MissOnlyTheKeysOfSlotsThatNobodyServes) {
  const auto store = this->open();
  this->fill(*store);
  const std::uint16_t slot = this->slot_of(this->keys_[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    this->cluster().server(i).ask({"CLUSTER", "DELSLOTS", std::to_string(slot)});
  }
  const auto found = store->batch_is_exist(this->keys_, {});
  EXPECT_EQ(to_string(found[0].status), "unavailable");
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_EQ(to_string(found[i].status),
              this->slot_of(this->keys_[i]) == slot ? "unavailable" : "ok");
  }
}

TYPED_TEST(RedisClusters, AreRefusedUnderAUrlForOneServerAndTheOtherWayRound) {
  RedisStoreOptions options = this->cluster().options();
  options.cluster = false;
  const auto store = make_redis_store(options);
  ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::down; }));
  EXPECT_THAT(store->health().detail, HasSubstr("redis+cluster://"));
  EXPECT_FALSE(put_one(*store, this->keys_[0], this->value_).ok());

  RedisServer single;
  options = single.options();
  options.cluster = true;
  const auto other = make_redis_store(options);
  ASSERT_TRUE(eventually([&] { return other->health().state == StoreState::down; }));
  EXPECT_THAT(other->health().detail, HasSubstr("no cluster"));
}

TEST(RedisSentinel, IsRefusedWithAClearLine) {
  TemporaryDirectory directory;
  const std::string file = directory.path() / "sentinel.conf";
  std::ofstream(file) << "sentinel resolve-hostnames no\n";
  RedisServer sentinel({"--sentinel"}, {}, file);
  const auto store = make_redis_store(sentinel.options());
  ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::down; }));
  EXPECT_THAT(store->health().detail, HasSubstr("Sentinel"));
  EXPECT_FALSE(put_one(*store, key_number(1), pattern(1, 500)).ok());
}

}  // namespace
}  // namespace vitrove::testing
