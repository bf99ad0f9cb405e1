// A Redis that is away, dies, hangs, restarts, refuses or is flushed (field cases B43, B49, B50,
// B52, B53): every answer is per key, in time, and true.
#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "redis_server.h"
#include "stores/redis/dial.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/redis_store.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

StoreContext within(milliseconds time) {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + time;
  return context;
}

// What has come to connections at that port and was not read yet, as the kernel tells.
std::uint64_t unread_bytes(int port) {
  std::ifstream table("/proc/net/tcp");
  std::uint64_t most = 0;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    std::string queues;  // sent:received
    words >> number >> local >> remote >> state >> queues;
    const bool is_connection = state == "01";
    if (!is_connection || std::stoi(local.substr(local.find(':') + 1), nullptr, 16) != port)
      continue;
    most = std::max<std::uint64_t>(most,
                                   std::stoull(queues.substr(queues.find(':') + 1), nullptr, 16));
  }
  return most;
}

class RedisFaults : public ::testing::Test {
 protected:
  static bool puts(EmbeddingStore& store, const EmbeddingKey& key, const Bytes& value) {
    return eventually([&] { return put_one(store, key, value).ok(); });
  }

  RedisServer server_;
  const EmbeddingKey key_ = key_number(1);
  const Bytes value_ = pattern(1, 5000);
};

TEST_F(RedisFaults, IsBornWithoutAServerAndFindsItLater) {
  server_.kill();
  const auto store = make_redis_store(server_.options());
  ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::down; }));
  EXPECT_THAT(store->health().detail, HasSubstr("cannot connect"));
  EXPECT_EQ(put_one(*store, key_, value_).status, StoreStatus::unavailable);
  EXPECT_EQ(exists(*store, key_).error_number, ECONNREFUSED);
  EXPECT_EQ(store->list({}, [](const ListedValue&) { return true; }, {}).status,
            StoreStatus::unavailable);
  ClaimToken token;
  EXPECT_EQ(store->claim(key_, seconds(1), token, {}).status, StoreStatus::unavailable);
  server_.start();
  EXPECT_TRUE(puts(*store, key_, value_));
  EXPECT_EQ(store->health().state, StoreState::ready);
  EXPECT_EQ(store->health().detail, "");
}

TEST_F(RedisFaults, RefusesToBeBornWithoutAServerWhenStrict) {
  RedisStoreOptions options = server_.options();
  options.strict = true;
  EXPECT_TRUE(exists(*make_redis_store(options), key_).status == StoreStatus::absent);
  server_.kill();
  EXPECT_THROW(make_redis_store(options), Error);
}

TEST_F(RedisFaults, EndsPromptlyWhileItsServerIsAway) {
  server_.freeze();
  const auto start = std::chrono::steady_clock::now();
  make_redis_store(server_.options()).reset();
  server_.thaw();
  // The greeting alone would have waited for 20 s.
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
}

TEST_F(RedisFaults, ComesBackAfterEveryRestart) {
  const auto store = make_redis_store(server_.options());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(puts(*store, key_, value_));
    EXPECT_EQ(read_back(*store, key_), value_);
    server_.kill();
    const StoreResult result = exists(*store, key_);
    EXPECT_EQ(to_string(result.status), "unavailable");
    server_.start();
    ASSERT_TRUE(eventually([&] { return exists(*store, key_).status == StoreStatus::absent; }));
  }
}

TEST_F(RedisFaults, NoticesThatItsServerIsGoneThoughNobodyAsks) {
  const auto store = make_redis_store(server_.options());
  ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::ready; }));
  server_.kill();
  EXPECT_TRUE(eventually([&] { return store->health().state == StoreState::down; }));
}

TEST_F(RedisFaults, UsesNoConnectionThatTheServerHasClosed) {
  const auto store = make_redis_store(server_.options());
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  for (int round = 0; round < 20; ++round) {
    server_.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_EQ(to_string(exists(*store, key_).status), "ok");
  }
}

TEST_F(RedisFaults, AnswersInTimeWhileItsServerHangs) {
  const auto store = make_redis_store(server_.options());
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.freeze();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(exists(*store, key_, within(seconds(2))).status, StoreStatus::timeout);
  // From now on nobody waits: the server is known to be silent.
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(exists(*store, key_).status, StoreStatus::unavailable);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
  EXPECT_EQ(store->health().state, StoreState::down);
  EXPECT_THAT(store->health().detail, HasSubstr("silent"));
  server_.thaw();
  EXPECT_TRUE(eventually([&] { return exists(*store, key_).ok(); }));
}

TEST_F(RedisFaults, WaitsForASilentServerNoLongerThanItsTimeout) {
  RedisStoreOptions options = server_.options();
  options.timeout = milliseconds(200);
  const auto store = make_redis_store(options);
  ASSERT_TRUE(puts(*store, key_, value_));
  server_.freeze();
  const StoreResult result = exists(*store, key_);  // no deadline
  EXPECT_TRUE(result.status == StoreStatus::timeout || result.status == StoreStatus::unavailable);
  server_.thaw();
}

// Whichever clock runs out first: that of the dial or that of the connection's last byte.
TEST_F(RedisFaults, SaysThatAServerIsSilentWhichAnswersNoGreeting) {
  server_.freeze();  // the kernel still accepts connections for it
  for (const auto& [deadline, patience] : {std::pair{milliseconds(1'500), milliseconds(20'000)},
                                           {milliseconds(20'000), milliseconds(1'500)}}) {
    redis::Settings settings{server_.options(), nullptr};
    settings.options.connect_timeout = patience;
    const auto until = std::chrono::steady_clock::now() + deadline;
    const redis::Dialed dialed = redis::dial({"127.0.0.1", server_.port()}, settings, until, {});
    EXPECT_EQ(dialed.connection, nullptr);
    EXPECT_EQ(dialed.fault.status, StoreStatus::timeout);
    EXPECT_EQ(dialed.fault.detail, "the server is silent");
  }
  server_.thaw();
}

TEST_F(RedisFaults, LetsACallerLeaveWhileItsServerHangs) {
  const auto store = make_redis_store(server_.options());
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.ask({"CLIENT", "PAUSE", "600000", "ALL"});
  std::stop_source leave;
  StoreContext context;
  context.cancel = leave.get_token();
  std::atomic<bool> started{false};
  StoreResult result;
  std::jthread caller([&] {
    started = true;
    result = exists(*store, key_, context);
  });
  ASSERT_TRUE(eventually([&] { return started.load(); }));
  std::this_thread::sleep_for(milliseconds(20));  // most likely it waits by now; either way it ends
  leave.request_stop();
  caller.join();
  EXPECT_EQ(result.status, StoreStatus::cancelled);
}

TEST_F(RedisFaults, NeverTakesALateReplyForAnotherAnswer) {
  const auto store = make_redis_store(server_.options());
  const auto keys = key_numbers(8);
  std::vector<Bytes> values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    values.push_back(pattern(i, 70'000));
    ASSERT_TRUE(put_one(*store, keys[i], values[i]).ok());
  }
  std::size_t overdue = 0;
  for (int round = 0; round < 200; ++round) {
    const auto i = static_cast<std::size_t>(round) % keys.size();
    if (round % 10 == 0) server_.ask({"CLIENT", "PAUSE", "30", "ALL"});
    Bytes bytes(values[i].size());
    const StoreResult result = get_one(*store, keys[i], bytes, within(milliseconds(10)));
    ASSERT_TRUE(!result.ok() || bytes == values[i]) << round;
    overdue += result.ok() ? 0 : 1;
  }
  EXPECT_GT(overdue, 0u);
  ASSERT_TRUE(eventually([&] { return exists(*store, keys[0]).ok(); }));
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_TRUE(read_back(*store, keys[i]) == values[i]);
}

TEST_F(RedisFaults, LeavesTheBuffersOfAnOverdueCallAlone) {
  const auto store = make_redis_store(server_.options());
  const Bytes value = pattern(2, 4u << 20);
  ASSERT_TRUE(put_one(*store, key_, value).ok());
  server_.freeze();
  Bytes bytes(value.size());
  EXPECT_EQ(get_one(*store, key_, bytes, within(milliseconds(150))).status, StoreStatus::timeout);
  std::ranges::fill(bytes, std::byte{0xA5});  // somebody else's by now
  server_.thaw();
  ASSERT_TRUE(eventually([&] { return exists(*store, key_).ok(); }));
  EXPECT_TRUE(read_back(*store, key_) == value);
  EXPECT_THAT(bytes, ::testing::Each(std::byte{0xA5}));
}

TEST_F(RedisFaults, NeverStoresHalfAValue) {
  const auto store = make_redis_store(server_.options());
  const Bytes value = pattern(3, 64u << 20);
  ASSERT_TRUE(eventually([&] { return exists(*store, key_).status == StoreStatus::absent; }));
  server_.freeze();  // so that the put cannot end before it is left
  std::stop_source leave;
  StoreContext context;
  context.cancel = leave.get_token();
  StoreResult result;
  std::jthread caller([&] { result = put_one(*store, key_, value, PutMode::if_absent, context); });
  ASSERT_TRUE(eventually([&] { return unread_bytes(server_.port()) > 10'000; }));
  leave.request_stop();
  caller.join();
  EXPECT_EQ(result.status, StoreStatus::cancelled);
  server_.thaw();
  ASSERT_TRUE(eventually([&] { return !exists(*store, key_).is_fault(); }));
  EXPECT_EQ(exists(*store, key_).status, StoreStatus::absent);
}

TEST_F(RedisFaults, AnswersUnavailableWhileTheServerIsBusy) {
  const auto store = make_redis_store(server_.options());
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  server_.ask({"CONFIG", "SET", "busy-reply-threshold", "1"});
  std::jthread script([&] { server_.ask({"EVAL", "while true do end", "0"}); });
  ASSERT_TRUE(eventually([&] {
    const StoreResult result = exists(*store, key_, within(milliseconds(50)));
    return result.status == StoreStatus::unavailable && result.error_number == EBUSY;
  }));
  ASSERT_TRUE(eventually([&] { return !server_.ask({"SCRIPT", "KILL"}).is_error(); }));
  script.join();
  EXPECT_TRUE(eventually([&] { return exists(*store, key_).ok(); }));
}

TEST_F(RedisFaults, SurvivesAServerThatTakesNoMoreClients) {
  const auto first = make_redis_store(server_.options());
  ASSERT_TRUE(put_one(*first, key_, value_).ok());
  ASSERT_TRUE(eventually([&] { return server_.info("connected_clients") == "3"; }));
  server_.ask({"CONFIG", "SET", "maxclients", "2"});
  const auto second = make_redis_store(server_.options());
  EXPECT_EQ(exists(*second, key_).status, StoreStatus::unavailable);
  EXPECT_TRUE(exists(*first, key_).ok());
}

TEST_F(RedisFaults, UsesTheConnectionsItHasWhenItGetsNoMore) {
  RedisStoreOptions options = server_.options();
  options.pool = 8;
  const auto store = make_redis_store(options);
  ASSERT_TRUE(put_one(*store, key_, value_).ok());
  ASSERT_TRUE(eventually([&] { return server_.info("connected_clients") == "3"; }));
  server_.ask({"CONFIG", "SET", "maxclients", "2"});
  std::atomic<int> failed{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) failed += exists(*store, key_).ok() ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(store->health().state, StoreState::ready) << store->health().detail;
}

// Threads that put and get golden values while `harm` happens; nothing but true answers may come.
class RedisUnderLoad : public RedisFaults {
 protected:
  template <typename Harm>
  void run(Harm harm) {
    const auto store = make_redis_store(server_.options());
    std::atomic<bool> stop{false};
    std::vector<std::jthread> threads;
    for (std::size_t worker = 0; worker < 4; ++worker) {
      threads.emplace_back([&, worker] {
        for (std::uint64_t i = worker; !stop; i = (i + 1) % keys_) use(*store, i);
      });
    }
    ASSERT_TRUE(eventually([&] { return hits_ > 100; }));
    harm();
    const std::uint64_t before = hits_;
    EXPECT_TRUE(eventually([&] { return hits_ > before + 100; })) << "hits resume";
    stop = true;
    threads.clear();
    EXPECT_EQ(wrong_, 0);
    EXPECT_EQ(store->health().state, StoreState::ready);
  }

 private:
  static bool is_honest(StoreStatus status) {
    return status == StoreStatus::ok || status == StoreStatus::absent ||
           status == StoreStatus::unavailable || status == StoreStatus::timeout;
  }
  void use(EmbeddingStore& store, std::uint64_t number) {
    const EmbeddingKey key = key_number(number);
    const Bytes golden = pattern(number, 20'000);
    Bytes bytes(golden.size());
    const StoreResult got = get_one(store, key, bytes, within(seconds(2)));
    if (got.ok()) {
      ++hits_;
      if (bytes != golden) ++wrong_;
    } else {
      const StoreResult put = put_one(store, key, golden, PutMode::if_absent, within(seconds(2)));
      if (!is_honest(got.status) || !is_honest(put.status)) ++wrong_;
    }
    std::this_thread::yield();
  }

  static constexpr std::uint64_t keys_ = 50;
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<int> wrong_{0};
};

TEST_F(RedisUnderLoad, GivesNothingButTrueAnswersWhileItIsFlushed) {
  run([&] {
    for (int i = 0; i < 50; ++i) server_.ask({"FLUSHALL"});
  });
}

TEST_F(RedisUnderLoad, GivesNothingButTrueAnswersWhileItIsKilledAndRestarted) {
  run([&] {
    for (int i = 0; i < 3; ++i) {
      server_.kill();
      server_.start();
    }
  });
}

TEST_F(RedisUnderLoad, GivesNothingButTrueAnswersWhileItStopsAndGoesOn) {
  run([&] {
    for (int i = 0; i < 3; ++i) {
      server_.freeze();
      std::this_thread::sleep_for(milliseconds(300));  // how long it hangs, nothing waits for it
      server_.thaw();
    }
  });
}

TEST_F(RedisUnderLoad, GivesNothingButTrueAnswersWhileConnectionsAreCut) {
  run([&] {
    for (int i = 0; i < 50; ++i) {
      server_.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    }
  });
}

TEST(RedisLogin, WorksWithAPasswordOfAnyCharacters) {
  RedisServer server({}, "p@ss:w/rd#1 ?%");
  const auto factory = EmbeddingStoreFactory::with_builtins();
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  const auto store = factory.create_backend("redis://:p%40ss%3Aw%2Frd%231%20%3F%25@" + host);
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::absent);
  server.ask({"ACL", "SETUSER", "me", "on", ">mine", "~vitrove:*", "+@all"});
  const auto mine = factory.create_backend("valkey://me:mine@" + host);
  EXPECT_TRUE(put_one(*mine, key_number(1), pattern(1, 500)).ok());
  const auto elsewhere = factory.create_backend("redis://me:mine@" + host + "?prefix=x:");
  EXPECT_EQ(put_one(*elsewhere, key_number(1), pattern(1, 500)).status, StoreStatus::denied);
}

TEST(RedisLogin, ThatMayNotReadListsNothingAndSaysSo) {
  RedisServer server;
  ASSERT_TRUE(put_one(*make_redis_store(server.options()), key_number(1), pattern(1, 500)).ok());
  for (const std::string_view forbidden : {"-getrange", "-strlen"}) {
    server.ask({"ACL", "SETUSER", "me", "reset", "on", ">mine", "~vitrove:*", "+@all", forbidden});
    RedisStoreOptions options = server.options();
    options.user = "me";
    options.password = "mine";
    const auto store = make_redis_store(options);
    ListOptions all;
    all.with_header = true;
    const StoreResult result = store->list(all, [](const ListedValue&) { return true; }, {});
    EXPECT_EQ(to_string(result.status), "denied") << forbidden;
  }
}

TEST(RedisLogin, IsRefusedWithoutShowingThePassword) {
  RedisServer server({}, "right");
  RedisServer nameless({"--rename-command", "AUTH", "HIDDEN"});  // repeats what it is told
  for (RedisStoreOptions options : {server.options(), nameless.options()}) {
    options.password = "hunter2";
    const auto store = make_redis_store(options);
    EXPECT_FALSE(exists(*store, key_number(1)).ok());
    ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::down; }));
    EXPECT_THAT(store->health().detail, HasSubstr("login refused"));
    EXPECT_THAT(store->health().detail, Not(HasSubstr("hunter2")));
  }
  RedisStoreOptions anonymous = server.options();
  anonymous.password.clear();
  const auto store = make_redis_store(anonymous);
  ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::down; }));
  EXPECT_THAT(store->health().detail, HasSubstr("NOAUTH"));
}

}  // namespace
}  // namespace vitrove::testing
