// What is special about Redis: keys, claims, limits, refusals. Its failures are in
// redis_faults_test.cpp, clusters in redis_cluster_test.cpp.
#include "vitrove/redis_store.h"

#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "redis_server.h"
#include "vitrove/error.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class RedisStore : public ::testing::Test {
 protected:
  std::unique_ptr<EmbeddingStore> open() { return make_redis_store(server_.options()); }
  std::unique_ptr<EmbeddingStore> open_with_prefix(const std::string& prefix) {
    RedisStoreOptions options = server_.options();
    options.prefix = prefix;
    return make_redis_store(options);
  }
  static std::set<EmbeddingKey> listed(EmbeddingStore& store) {
    std::set<EmbeddingKey> keys;
    const StoreResult result = store.list({},
                                          [&](const ListedValue& value) {
                                            keys.insert(value.key);
                                            return true;
                                          },
                                          {});
    EXPECT_TRUE(result.ok());
    return keys;
  }
  std::string text_of(const std::string& name) { return server_.ask({"GET", name}).text; }

  RedisServer server_;
  const EmbeddingKey key_ = key_number(1);
  const Bytes value_ = pattern(1, 5000);
};

TEST_F(RedisStore, TouchesNoKeyThatIsNotItsOwn) {
  const auto store = open();
  const std::string stranger = "vitrove:" + key_.text() + "x";
  for (const std::string& name : {std::string("other"), key_.text(), stranger,
                                  std::string("vitrove:vt1-"), "vitrove:claim:" + key_.text()}) {
    server_.ask({"SET", name, "theirs"});
  }
  EXPECT_TRUE(listed(*store).empty());
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  EXPECT_EQ(listed(*store), std::set<EmbeddingKey>{key_});
  EXPECT_TRUE(remove_one(*store, key_).ok());
  EXPECT_EQ(server_.ask({"DBSIZE"}).number, 5);
  EXPECT_EQ(text_of(key_.text()), "theirs");
}

TEST_F(RedisStore, KeepsStoresOfDifferentPrefixesApart) {
  // "[ab]*" would match the others if it were taken for a pattern.
  std::vector<std::unique_ptr<EmbeddingStore>> stores;
  for (const char* prefix : {"a:", "b:", "", "[ab]*", "?:", "a\\", "x\r\nDEL a:\r\n"}) {
    stores.push_back(open_with_prefix(prefix));
    ASSERT_TRUE(put_one(*stores.back(), key_number(stores.size()), value_).ok());
  }
  for (std::size_t i = 0; i < stores.size(); ++i) {
    EXPECT_EQ(listed(*stores[i]), std::set<EmbeddingKey>{key_number(i + 1)}) << i;
    EXPECT_EQ(read_back(*stores[i], key_number(i + 1)), value_);
  }
  EXPECT_EQ(server_.ask({"DBSIZE"}).number, static_cast<std::int64_t>(stores.size()));
}

TEST_F(RedisStore, ListsThousandsOnceEach) {
  const auto store = open();
  const auto keys = key_numbers(3000);
  const std::vector<ConstBuffer> buffers(keys.size(), ConstBuffer(value_).first(300));
  store->batch_put(keys, buffers, PutMode::if_absent, {});
  std::size_t visits = 0;
  const auto count = [&](const ListedValue& value) {
    EXPECT_EQ(value.size, 300u);
    ++visits;
    return true;
  };
  EXPECT_TRUE(store->list({}, count, {}).ok());
  EXPECT_EQ(visits, keys.size());
}

TEST_F(RedisStore, TellsWhenAValueWasLastUsed) {
  const auto store = open();
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  const auto check = [](const ListedValue& value) {
    const auto age = std::chrono::system_clock::now() - value.last_used;
    EXPECT_LT(age, std::chrono::hours(1));
    return true;
  };
  EXPECT_TRUE(store->list({}, check, {}).ok());
}

TEST_F(RedisStore, LetsTheVisitorOfAListUseTheStore) {
  RedisStoreOptions options = server_.options();
  options.pool = 2;
  const auto store = make_redis_store(options);
  for (std::uint64_t i = 0; i < 20; ++i) put_one(*store, key_number(i), value_);
  const auto remove = [&](const ListedValue& value) {
    EXPECT_TRUE(remove_one(*store, value.key).ok());
    return true;
  };
  EXPECT_TRUE(store->list({}, remove, {}).ok());
  EXPECT_TRUE(listed(*store).empty());
}

TEST_F(RedisStore, KeepsDatabasesApart) {
  RedisStoreOptions options = server_.options();
  options.database = 3;
  const auto third = make_redis_store(options);
  ASSERT_TRUE(put_one(*third, key_, value_).ok());
  EXPECT_EQ(exists(*open(), key_).status, StoreStatus::absent);
  EXPECT_THAT(server_.info("db3"), HasSubstr("keys=1,"));
}

TEST_F(RedisStore, GivesValuesTheirTimeToLive) {
  RedisStoreOptions options = server_.options();
  options.ttl = std::chrono::hours(1);
  const auto store = make_redis_store(options);
  for (const PutMode mode : {PutMode::if_absent, PutMode::replace}) {
    ASSERT_TRUE(put_one(*store, key_, value_, mode).ok());
    const std::int64_t left = server_.ask({"PTTL", store->get_key(key_)}).number;
    EXPECT_GT(left, 0);
    EXPECT_LE(left, 3'600'000);
  }
  ASSERT_TRUE(put_one(*open(), key_number(2), value_).ok());
  EXPECT_EQ(server_.ask({"PTTL", store->get_key(key_number(2))}).number, -1);
}

TEST_F(RedisStore, MissesWhatHasExpired) {
  RedisStoreOptions options = server_.options();
  options.ttl = milliseconds(1);
  const auto store = make_redis_store(options);
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  EXPECT_TRUE(eventually([&] { return exists(*store, key_).status == StoreStatus::absent; }));
  Bytes bytes(value_.size());
  EXPECT_EQ(get_one(*store, key_, bytes).status, StoreStatus::absent);
}

TEST_F(RedisStore, GivesAClaimToOneOnly) {
  const auto store = open();
  const auto other = open();
  ClaimToken mine;
  ClaimToken theirs;
  ASSERT_TRUE(store->capabilities().can_claim);
  ASSERT_TRUE(store->claim(key_, seconds(60), mine, {}).ok());
  EXPECT_EQ(other->claim(key_, seconds(60), theirs, {}).status, StoreStatus::conflict);
  EXPECT_EQ(store->claim(key_, seconds(60), theirs, {}).status, StoreStatus::conflict);
  EXPECT_TRUE(other->claim(key_number(2), seconds(60), theirs, {}).ok());
  EXPECT_EQ(exists(*store, key_).status, StoreStatus::absent);
}

TEST_F(RedisStore, LetsOnlyTheHolderRenewAndRelease) {
  const auto store = open();
  ClaimToken mine;
  ASSERT_TRUE(store->claim(key_, seconds(60), mine, {}).ok());
  for (const char* text : {"", "guess", "0\r\nx"}) {
    const ClaimToken guess{text};
    EXPECT_EQ(store->renew(key_, guess, seconds(600), {}).status, StoreStatus::conflict);
    EXPECT_EQ(store->release(key_, guess, ClaimOutcome::stored, {}).status, StoreStatus::conflict);
  }
  const std::string name = "vitrove:claim:" + key_.text();
  EXPECT_LE(server_.ask({"PTTL", name}).number, 60'000);
  EXPECT_TRUE(store->renew(key_, mine, seconds(600), {}).ok());
  EXPECT_GT(server_.ask({"PTTL", name}).number, 60'000);
  EXPECT_TRUE(store->release(key_, mine, ClaimOutcome::stored, {}).ok());
  EXPECT_EQ(store->release(key_, mine, ClaimOutcome::stored, {}).status, StoreStatus::conflict);
  ClaimToken next;
  EXPECT_TRUE(store->claim(key_, seconds(60), next, {}).ok());
  EXPECT_NE(next.value, mine.value);
}

TEST_F(RedisStore, LosesAClaimWhoseTimeIsOver) {
  const auto store = open();
  ClaimToken mine;
  ASSERT_TRUE(store->claim(key_, milliseconds(1), mine, {}).ok());
  ClaimToken theirs;
  EXPECT_TRUE(eventually([&] { return store->claim(key_, seconds(60), theirs, {}).ok(); }));
  EXPECT_EQ(store->renew(key_, mine, seconds(60), {}).status, StoreStatus::conflict);
  EXPECT_EQ(store->release(key_, mine, ClaimOutcome::not_stored, {}).status, StoreStatus::conflict);
  EXPECT_TRUE(store->release(key_, theirs, ClaimOutcome::not_stored, {}).ok());
}

TEST_F(RedisStore, LetsExactlyOneOfManyWinAClaim) {
  const auto store = open();
  std::atomic<int> won{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      ClaimToken token;
      if (store->claim(key_, seconds(60), token, {}).ok()) ++won;
    });
  }
  threads.clear();
  EXPECT_EQ(won, 1);
}

TEST_F(RedisStore, AnswersNoSpaceWhenMemoryIsFullAndServesOn) {
  const auto store = open();
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.ask({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  const StoreResult refused = put_one(*store, key_number(2), value_);
  EXPECT_EQ(refused.status, StoreStatus::no_space);
  EXPECT_EQ(refused.error_number, ENOMEM);
  ClaimToken token;
  EXPECT_EQ(store->claim(key_, seconds(60), token, {}).status, StoreStatus::no_space);
  EXPECT_EQ(read_back(*store, key_), value_);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  EXPECT_THAT(store->health().detail, HasSubstr("OOM"));
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(put_one(*store, key_number(2), value_).ok());
  EXPECT_EQ(store->health().state, StoreState::ready);
}

TEST_F(RedisStore, MissesWhatTheServerHasEvicted) {
  const auto store = open();
  server_.ask({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  server_.ask({"CONFIG", "SET", "maxmemory", "8mb"});
  const Bytes value = pattern(3, 100'000);
  const auto keys = key_numbers(200);
  for (const EmbeddingKey& key : keys) EXPECT_TRUE(put_one(*store, key, value).ok());
  std::size_t there = 0;
  Bytes bytes(value.size());
  for (const EmbeddingKey& key : keys) {
    const StoreResult result = get_one(*store, key, bytes);
    EXPECT_TRUE(result.ok() || result.status == StoreStatus::absent);
    EXPECT_TRUE(!result.ok() || bytes == value);
    there += result.ok() ? 1 : 0;
  }
  EXPECT_GT(there, 0u);
  EXPECT_LT(there, keys.size());
}

TEST_F(RedisStore, ReadsFromAReplicaAndAnswersDeniedToPuts) {
  RedisServer replica;
  const auto store = open();
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  const auto reader = make_redis_store(replica.options());
  replica.ask({"REPLICAOF", "127.0.0.1", std::to_string(server_.port())});
  ASSERT_TRUE(eventually([&] { return exists(*reader, key_).ok(); }));
  EXPECT_EQ(read_back(*reader, key_), value_);
  EXPECT_EQ(put_one(*reader, key_number(2), value_).status, StoreStatus::denied);
  EXPECT_EQ(remove_one(*reader, key_).status, StoreStatus::denied);
}

TEST_F(RedisStore, LearnsTheServersOwnLimit) {
  server_.ask({"CONFIG", "SET", "proto-max-bulk-len", "1048576"});
  const auto store = open();
  ASSERT_TRUE(put_one(*store, key_, value_).ok());  // connected
  EXPECT_EQ(store->capabilities().max_value_bytes, 1048576u);
  EXPECT_EQ(put_one(*store, key_number(2), Bytes(1048577)).status, StoreStatus::too_large);
  EXPECT_TRUE(put_one(*store, key_number(3), Bytes(1048576)).ok());
}

TEST_F(RedisStore, ForgetsALimitThatTheServerHasNoMore) {
  const auto store = open();
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.ask({"CONFIG", "SET", "proto-max-bulk-len", "1048576"});
  const Bytes large = pattern(7, 2u << 20);
  EXPECT_EQ(put_one(*store, key_number(2), large).status, StoreStatus::too_large);
  EXPECT_LT(store->capabilities().max_value_bytes, large.size());
  server_.ask({"CONFIG", "SET", "proto-max-bulk-len", "536870912"});
  EXPECT_TRUE(eventually([&] { return store->capabilities().max_value_bytes > large.size(); }));
  EXPECT_TRUE(put_one(*store, key_number(2), large).ok());
}

TEST_F(RedisStore, ForgetsALimitThatAnotherServerAtItsPlaceMayNotHave) {
  RedisServer server({"--proto-max-bulk-len", "1048576", "--rename-command", "CONFIG", "HIDDEN"});
  const auto store = make_redis_store(server.options());
  const Bytes large = pattern(7, 2u << 20);
  EXPECT_EQ(put_one(*store, key_, large).status, StoreStatus::too_large);
  EXPECT_LT(store->capabilities().max_value_bytes, large.size());
  server.kill();
  EXPECT_TRUE(eventually(
      [&] { return !exists(*store, key_).ok() && store->health().state == StoreState::down; }));
  server.start();
  EXPECT_TRUE(eventually([&] { return store->capabilities().max_value_bytes > large.size(); }));
}

TEST_F(RedisStore, HasALimitOfItsOwn) {
  RedisStoreOptions options = server_.options();
  options.max_value_bytes = 5000;
  const auto store = make_redis_store(options);
  EXPECT_TRUE(put_one(*store, key_, value_).ok());
  EXPECT_EQ(put_one(*store, key_number(2), Bytes(5001)).status, StoreStatus::too_large);
}

// The server answers an error in the middle of the value, and hangs up.
void expect_only_the_large_one_skipped(EmbeddingStore& store, const Bytes& small) {
  const auto keys = key_numbers(5, "batch");
  const Bytes large = pattern(7, 6u << 20);
  const std::vector<ConstBuffer> buffers = {small, small, large, small, small};
  const auto results = store.batch_put(keys, buffers, PutMode::if_absent, {});
  for (const std::size_t i : {0u, 1u, 3u, 4u}) {
    EXPECT_EQ(to_string(results[i].status), "ok") << i;
    EXPECT_EQ(read_back(store, keys[i]), small) << i;
  }
  EXPECT_EQ(to_string(results[2].status), "too_large");
  EXPECT_LT(store.capabilities().max_value_bytes, large.size()) << "it is not tried again";
  EXPECT_EQ(exists(store, keys[2]).status, StoreStatus::absent);
}

TEST_F(RedisStore, SkipsAValueThatTheServerNoLongerTakes) {
  const auto store = open();
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.ask({"CONFIG", "SET", "proto-max-bulk-len", "1048576"});
  expect_only_the_large_one_skipped(*store, value_);
}

TEST_F(RedisStore, SkipsAValueBeyondALimitThatTheServerHides) {
  RedisServer server({"--proto-max-bulk-len", "1048576", "--rename-command", "CONFIG", "HIDDEN"});
  expect_only_the_large_one_skipped(*make_redis_store(server.options()), value_);
}

TEST_F(RedisStore, HealsAKeyUnderWhichSomethingElseStands) {
  const auto store = open();
  server_.ask({"RPUSH", store->get_key(key_), "a", "b"});
  Bytes bytes(value_.size());
  EXPECT_EQ(get_one(*store, key_, bytes).status, StoreStatus::io_error);
  EXPECT_EQ(exists(*store, key_).status, StoreStatus::io_error);
  EXPECT_TRUE(listed(*store).empty());
  EXPECT_TRUE(put_one(*store, key_, value_, PutMode::replace).ok());
  EXPECT_EQ(read_back(*store, key_), value_);
}

TEST_F(RedisStore, TakesAnEmptyStringForNoValue) {
  const auto store = open();
  server_.ask({"SET", store->get_key(key_), ""});
  Bytes bytes(10);
  EXPECT_EQ(get_one(*store, key_, bytes).status, StoreStatus::size_mismatch);
  EXPECT_EQ(exists(*store, key_).status, StoreStatus::absent);
}

TEST_F(RedisStore, BatchesOverASmallPoolOfConnections) {
  RedisStoreOptions options = server_.options();
  options.pool = 3;
  const auto store = make_redis_store(options);
  std::vector<std::jthread> threads;
  for (std::uint64_t worker = 0; worker < 12; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::uint64_t i = 0; i < 30; ++i) {
        EXPECT_TRUE(put_one(*store, key_number(worker * 30 + i), value_).ok());
        EXPECT_EQ(read_back(*store, key_number(worker * 30 + i)), value_);
      }
    });
  }
  threads.clear();
  // The pool, the one that watches, and the one that asks.
  EXPECT_LE(std::stoi(server_.info("connected_clients")), 5);
}

TEST_F(RedisStore, LetsNoPutDelayAGet) {
  RedisStoreOptions options = server_.options();
  options.pool = 2;
  const auto store = make_redis_store(options);
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.ask({"CLIENT", "PAUSE", "600000", "WRITE"});
  std::stop_source leave;
  StoreContext context;
  context.cancel = leave.get_token();
  std::vector<std::jthread> puts;
  for (std::uint64_t i = 0; i < 4; ++i) {
    puts.emplace_back([&, i] {
      const StoreResult result =
          put_one(*store, key_number(10 + i), value_, PutMode::replace, context);
      EXPECT_EQ(result.status, StoreStatus::cancelled);
    });
  }
  ASSERT_TRUE(eventually([&] {
    return server_.info("blocked_clients") != "0" ||
           server_.info("paused_reason") == "client_pause";
  }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read_back(*store, key_), value_);
  leave.request_stop();
  puts.clear();
  server_.ask({"CLIENT", "UNPAUSE"});
}

TEST_F(RedisStore, TellsHowFullTheServerIs) {
  server_.ask({"CONFIG", "SET", "maxmemory", "64mb"});
  const auto store = open();
  const Bytes large(std::size_t{8} << 20, std::byte{1});
  ASSERT_TRUE(put_one(*store, key_, large).ok());
  EXPECT_TRUE(eventually([&] { return store->health().bytes.value_or(0) > large.size(); }));
  EXPECT_EQ(store->health().capacity, std::uint64_t{64} << 20);
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(eventually([&] { return !store->health().capacity; })) << "a bound that is no more";
  EXPECT_TRUE(store->health().bytes);
}

TEST_F(RedisStore, SaysNothingOfMemoryWhereTheServerDoesNot) {
  const RedisServer server({"--rename-command", "INFO", "HIDDEN"});
  const auto store = make_redis_store(server.options());
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  const StoreHealth health = store->health();
  EXPECT_EQ(health.state, StoreState::ready);
  EXPECT_FALSE(health.bytes);
  EXPECT_FALSE(health.capacity);
}

}  // namespace
}  // namespace vitrove::testing
