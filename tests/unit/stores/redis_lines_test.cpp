// A batch of small values comes over several connections, which a server gives more of its time
// than one; what is large, and what is single, does not.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "redis_server.h"
#include "scripted_redis.h"
#include "stores/redis/node.h"
#include "stores/redis/settings.h"
#include "vitrove/redis_store.h"

namespace vitrove::testing {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t most_for_large = 8;

struct Values {
  std::vector<EmbeddingKey> keys;
  std::vector<Bytes> bytes;
};

Values put_values(EmbeddingStore& store, std::uint64_t first, std::size_t count,
                  std::size_t bytes) {
  Values values;
  for (std::uint64_t i = first; i < first + count; ++i) {
    values.keys.push_back(key_number(i));
    values.bytes.push_back(pattern(i, bytes));
    EXPECT_TRUE(put_one(store, values.keys.back(), values.bytes.back()).ok());
  }
  return values;
}

// By one call.
void compare(EmbeddingStore& store, const Values& values) {
  std::vector<Bytes> back;
  for (const Bytes& value : values.bytes) back.emplace_back(value.size());
  const std::vector<MutableBuffer> buffers(back.begin(), back.end());
  for (const StoreResult& result : store.batch_get(values.keys, buffers, {})) {
    EXPECT_EQ(to_string(result.status), "ok");
  }
  EXPECT_EQ(back, values.bytes);
}

// How often each of so many callers, who ask at the same time, had the values.
std::vector<int> counts_of_callers(EmbeddingStore& store, const Values& values, std::size_t callers,
                                   std::chrono::milliseconds time) {
  std::vector<int> counts(callers);
  std::atomic<std::size_t> waiting = callers;
  std::vector<std::jthread> threads;
  for (int& count : counts) {
    threads.emplace_back([&] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
      const auto end = std::chrono::steady_clock::now() + time;
      while (std::chrono::steady_clock::now() < end) {
        compare(store, values);
        ++count;
      }
    });
  }
  threads.clear();
  return counts;
}

class RedisLines : public ::testing::Test {
 protected:
  std::unique_ptr<EmbeddingStore> open(std::uint32_t pool) {
    RedisStoreOptions options = server_.options();
    options.pool = pool;
    return make_redis_store(options);
  }

  // A store that has asked often enough to have all the lines it gets. It lives on.
  EmbeddingStore& open_with_four(const Values& values) {
    EmbeddingStore& store = *opened_.emplace_back(open(8));
    const std::size_t others = lines();
    EXPECT_TRUE(eventually([&] {
      compare(store, values);
      return lines() == others + 4;
    }));
    return store;
  }

  // Connections whose last command was a GET.
  std::size_t lines() const {
    const std::string clients = server_.ask({"CLIENT", "LIST"}).text;
    std::size_t count = 0;
    const std::string sign = " cmd=get";  // and getrange
    for (std::size_t at = clients.find(sign); at != clients.npos; at = clients.find(sign, at + 1)) {
      ++count;
    }
    return count;
  }

  RedisServer server_;
  std::vector<std::unique_ptr<EmbeddingStore>> opened_;
};

TEST_F(RedisLines, AreFourForABatchOfSmallValues) {
  const Values small = put_values(*open(8), 0, 16, 64 * kib);
  open_with_four(small);
}

TEST_F(RedisLines, LeaveOneConnectionToOthers) {
  const auto store = open(3);
  const Values small = put_values(*store, 0, 16, 64 * kib);
  EXPECT_TRUE(eventually([&] {
    compare(*store, small);
    return lines() == 2;
  }));
  open_with_four(small);  // so that the keeper has had time for more
  for (int i = 0; i < 20; ++i) compare(*store, small);
  EXPECT_EQ(lines(), 2 + 4);
}

TEST_F(RedisLines, AreOneWhereMoreIsNotWorthIt) {
  const auto store = open(8);
  const Values few = put_values(*store, 0, 7, 64 * kib);
  const Values large = put_values(*store, 100, 4, 1024 * kib);  // keep the server busy over one
  const Values small = put_values(*store, 200, 16, 64 * kib);
  for (int round = 0; round < 2; ++round) {
    compare(*store, few);
    compare(*store, large);
    open_with_four(small);  // time enough for the keeper
  }
  compare(*store, few);
  compare(*store, large);
  EXPECT_EQ(lines(), 1 + 2 * 4);
}

TEST_F(RedisLines, AreManyForManyCallersOfSmallValues) {
  const auto store = open(64);
  const Values small = put_values(*store, 0, 1, 256 * kib);
  EXPECT_TRUE(eventually([&] {
    counts_of_callers(*store, small, 24, std::chrono::milliseconds(50));
    return lines() > most_for_large;
  }));
}

TEST_F(RedisLines, AreEightForManyCallersOfLargeValues) {
  const auto store = open(64);
  const Values large = put_values(*store, 0, 1, 2048 * kib);
  counts_of_callers(*store, large, 24, std::chrono::milliseconds(300));
  EXPECT_LE(lines(), most_for_large);
}

// Who comes back at once does not take the connection that another waits for.
TEST_F(RedisLines, GoToThoseWhoHaveWaitedLongest) {
  const auto store = open(2);
  const Values small = put_values(*store, 0, 1, kib);
  const auto counts = counts_of_callers(*store, small, 8, std::chrono::milliseconds(400));
  const auto [least, most] = std::ranges::minmax(counts);
  EXPECT_GE(least * 2, most);
}

// Whose server goes away while they wait are told at once: none of them tries it for himself.
TEST_F(RedisLines, AreWaitedForNoLongerThanTheServerIsThere) {
  RedisStoreOptions options = server_.options();
  options.pool = 2;
  options.timeout = std::chrono::milliseconds(300);
  options.connect_timeout = std::chrono::seconds(30);
  const auto store = make_redis_store(options);
  const Values small = put_values(*store, 0, 1, kib);
  ASSERT_TRUE(eventually([&] {
    const auto counts = counts_of_callers(*store, small, 2, std::chrono::milliseconds(20));
    return lines() == 2;
  }));
  server_.freeze();
  const auto began = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 12; ++i) {
      callers.emplace_back([&] {
        Bytes back(kib);
        EXPECT_FALSE(get_one(*store, small.keys.front(), back).ok());
      });
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  server_.thaw();
}

TEST_F(RedisLines, AreAskedForOnceASecondWhileTheServerGivesNoMore) {
  const auto began = std::chrono::steady_clock::now();
  {
    const auto store = open(64);
    const Values small = put_values(*store, 0, 1, kib);
    ASSERT_TRUE(eventually([&] { return server_.info("connected_clients") == "3"; }));
    server_.ask({"CONFIG", "SET", "maxclients", "2"});
    counts_of_callers(*store, small, 24, std::chrono::milliseconds(3500));
  }
  ASSERT_TRUE(eventually([&] {
    try {
      return server_.ask({"CONFIG", "SET", "maxclients", "100"}).text == "OK";
    } catch (const std::exception&) {
      return false;
    }
  }));
  const auto took = std::chrono::steady_clock::now() - began;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(took).count();
  EXPECT_LE(std::stol(server_.info("rejected_connections")), 24 + 4 * (seconds + 1))
      << "all at once at the beginning, then one and the keeper's";
}

void use_at_the_same_time(redis::Node& node, std::size_t count) {
  std::vector<redis::Node::Lease> leases;
  for (std::size_t i = 0; i < count; ++i) {
    redis::Fault fault;
    leases.push_back(node.lease(redis::Use::read, {}, fault));
    ASSERT_TRUE(leases.back()) << fault.detail;
  }
  for (redis::Node::Lease& lease : leases) lease.give_back();
}

TEST_F(RedisLines, AreClosedToEightWhenNobodyUsesThem) {
  const auto settings = std::make_shared<redis::Settings>();
  settings->options = server_.options();
  redis::Node node({"127.0.0.1", server_.port()}, settings, [] {});
  const auto others = [&] { return std::stoi(server_.info("connected_clients")) - 2; };
  auto now = redis::Clock::now();
  const auto pass_half_a_minute = [&] { node.tend(now += std::chrono::seconds(31), {}); };
  use_at_the_same_time(node, 20);
  pass_half_a_minute();  // and one connection more, which watches
  use_at_the_same_time(node, 15);
  EXPECT_EQ(others(), 20);
  pass_half_a_minute();
  EXPECT_TRUE(eventually([&] { return others() == 15; })) << "those that were used";
  pass_half_a_minute();
  EXPECT_TRUE(eventually([&] { return others() == 8; }));
  pass_half_a_minute();
  EXPECT_EQ(others(), 8);
}

// Like large gets; small ones are as many as there are callers.
TEST_F(RedisLines, AreEightForManyCallersWhoPut) {
  const auto store = open(64);
  const Bytes value = pattern(0, 2048 * kib);
  {
    std::vector<std::jthread> callers;
    for (std::uint64_t caller = 0; caller < 24; ++caller) {
      callers.emplace_back([&, caller] {
        for (std::uint64_t i = 0; i < 4; ++i) {
          EXPECT_TRUE(put_one(*store, key_number(caller * 4 + i), value).ok());
        }
      });
    }
  }
  const std::string clients = server_.ask({"CLIENT", "LIST"}).text;
  std::size_t count = 0;
  for (std::size_t at = clients.find(" cmd=set"); at != clients.npos;
       at = clients.find(" cmd=set", at + 1)) {
    ++count;
  }
  EXPECT_LE(count, most_for_large);
}

// What a further connection was given is asked for again when that one breaks.
TEST_F(RedisLines, ThatBreakLoseNothing) {
  const Values small = put_values(*open(8), 0, 16, 64 * kib);
  EmbeddingStore& store = open_with_four(small);
  for (int i = 0; i < 20; ++i) {
    server_.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    // Its own question whether the server lives may have been cut off, too.
    ASSERT_TRUE(eventually([&] { return exists(store, small.keys.front()).ok(); }));
    compare(store, small);
  }
}

// Connections of the keeper's that nobody has used yet may have been cut off as well.
TEST(RedisSpareLines, ThatBreakAtTheirFirstUseLoseNothing) {
  ScriptedRedis server(
      [](const ScriptedRedis::Words&) { return bulk(std::string(64 * kib, 'v')); });
  const auto store = make_redis_store(server.options());
  const Values values{key_numbers(16), std::vector(16, Bytes(64 * kib, std::byte{'v'}))};
  for (int call = 0; call < 2; ++call) compare(*store, values);  // the second one wants more lines
  // The keeper's own, that of the calls, and three spare ones, made one after the other.
  ASSERT_TRUE(eventually([&] { return server.accepted() >= 5; }));
  server.break_open_connections();
  compare(*store, values);
}

TEST_F(RedisLines, TellOfEachValueWhetherItIsThere) {
  const Values small = put_values(*open(8), 0, 16, 64 * kib);
  EmbeddingStore& store = open_with_four(small);
  ASSERT_TRUE(remove_one(store, small.keys.at(13)).ok());
  std::vector<Bytes> back(16, Bytes(64 * kib));
  const std::vector<MutableBuffer> buffers(back.begin(), back.end());
  const auto results = store.batch_get(small.keys, buffers, {});
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(to_string(results[i].status), i == 13 ? "absent" : "ok") << i;
    EXPECT_EQ(back[i] == small.bytes[i], i != 13) << i;
  }
}

}  // namespace
}  // namespace vitrove::testing
