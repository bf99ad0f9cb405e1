// A server that refuses the commands by which large values come in parts, be it to this user or
// because it does not know them, gives them whole.
#include <memory>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "contract/recording_observer.h"
#include "contract/test_values.h"
#include "redis_server.h"
#include "scripted_redis.h"
#include "stores/redis/parts_refusal.h"

namespace vitrove::testing {
namespace {

using redis::PartsRefusal;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t large = 2 * 1024 * 1024 + 17;

// How often the server has run the command, or has refused to.
std::int64_t count_of(const RedisServer& server, const std::string& command,
                      const std::string& field) {
  const std::string stats = server.ask({"INFO", "commandstats"}).text;
  const std::size_t line = stats.find("cmdstat_" + command + ":");
  if (line == stats.npos) return 0;
  const std::string name = field + "=";
  return std::stoll(stats.substr(stats.find(name, line) + name.size()));
}

void expect_whole(EmbeddingStore& store, const EmbeddingKey& key, const Bytes& value) {
  Bytes back(value.size());
  // Several buffers, so that what was to be a part's place is found again.
  const MutableBuffer whole(back);
  const std::vector<MutableBuffer> buffers = {whole.first(100), whole.subspan(100)};
  const MutableBufferList list(buffers);
  RecordingObserver observer({list});
  StoreContext context;
  context.observer = &observer;
  const auto results = store.batch_get_into_multi_buffers({&key, 1}, {&list, 1}, context);
  EXPECT_EQ(to_string(results.at(0).status), "ok");
  EXPECT_EQ(results.at(0).size, value.size());
  EXPECT_EQ(back, value);
  EXPECT_EQ(observer.seen(0), value.size());
  EXPECT_EQ(observer.complaints(), 0);
}

class RedisThatRefuses : public ::testing::TestWithParam<const char*> {
 protected:
  // The user of the store may, or may not, use a command.
  void set_right(const std::string& right) { server_.ask({"ACL", "SETUSER", "default", right}); }

  RedisServer server_;
  const EmbeddingKey key_ = key_number(1);
  const Bytes value_ = pattern(7, large);
  const std::unique_ptr<EmbeddingStore> store_ = make_redis_store(server_.options());
};

INSTANTIATE_TEST_SUITE_P(ACommand, RedisThatRefuses, ::testing::Values("getrange", "strlen"),
                         [](const auto& refused) { return refused.param; });

TEST_P(RedisThatRefuses, GivesLargeValuesWholeInTheVeryCall) {
  ASSERT_TRUE(put_one(*store_, key_, value_).ok());
  set_right(std::string("-") + GetParam());
  expect_whole(*store_, key_, value_);
  EXPECT_EQ(count_of(server_, "get", "calls"), 1);
}

TEST_P(RedisThatRefuses, IsNotAskedForPartsAgain) {
  ASSERT_TRUE(put_one(*store_, key_, value_).ok());
  set_right(std::string("-") + GetParam());
  expect_whole(*store_, key_, value_);
  const std::int64_t refusals = count_of(server_, GetParam(), "rejected_calls");
  EXPECT_GT(refusals, 0);
  for (int i = 0; i < 3; ++i) expect_whole(*store_, key_, value_);
  EXPECT_EQ(count_of(server_, GetParam(), "rejected_calls"), refusals);
  EXPECT_EQ(count_of(server_, "get", "calls"), 4);
}

TEST_P(RedisThatRefuses, IsWellAndHealthSaysWhatItCosts) {
  ASSERT_TRUE(put_one(*store_, key_, value_).ok());
  set_right(std::string("-") + GetParam());
  EXPECT_EQ(store_->health().detail, "");
  expect_whole(*store_, key_, value_);
  EXPECT_EQ(store_->health().state, StoreState::ready);
  EXPECT_THAT(store_->health().detail,
              AllOf(HasSubstr("come whole"), HasSubstr("NOPERM"), HasSubstr(GetParam()),
                    HasSubstr("grant STRLEN and GETRANGE")));
}

TEST_P(RedisThatRefuses, TellsOfEachLargeValueWhetherItIsThere) {
  const auto keys = key_numbers(4);
  const Bytes small = pattern(2, 1000);
  ASSERT_TRUE(put_one(*store_, keys[1], value_).ok());
  ASSERT_TRUE(put_one(*store_, keys[2], small).ok());
  ASSERT_TRUE(put_one(*store_, keys[3], small).ok());
  set_right(std::string("-") + GetParam());
  for (int round = 0; round < 2; ++round) {  // refused, and remembered
    std::vector<Bytes> bytes = {Bytes(large), Bytes(large), Bytes(large), Bytes(1000)};
    const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
    const auto results = store_->batch_get(keys, buffers, {});
    EXPECT_EQ(results.at(0).status, StoreStatus::absent);
    EXPECT_TRUE(results.at(1).ok());
    EXPECT_EQ(bytes.at(1), value_);
    EXPECT_EQ(results.at(2).status, StoreStatus::size_mismatch);
    EXPECT_EQ(results.at(2).size, 1000u);
    EXPECT_EQ(bytes.at(3), small);
  }
}

// What is missing then is more than the right to read in parts.
TEST_P(RedisThatRefuses, GetsAsWellIsRememberedForNothing) {
  ASSERT_TRUE(put_one(*store_, key_, value_).ok());
  set_right(std::string("-") + GetParam());
  set_right("-get");
  Bytes back(large);
  EXPECT_EQ(get_one(*store_, key_, back).status, StoreStatus::denied);
  EXPECT_EQ(store_->health().detail, "");
  set_right("+@all");
  expect_whole(*store_, key_, value_);
  EXPECT_EQ(count_of(server_, "get", "calls"), 0);
  EXPECT_GT(count_of(server_, "getrange", "calls"), 1);
}

TEST(RedisPartsRefusal, OfOneServerOfAClusterIsOvercome) {
  RedisCluster cluster;
  const auto store = make_redis_store(cluster.options());
  cluster.server(1).ask({"ACL", "SETUSER", "default", "-getrange"});
  const auto keys = key_numbers(12);
  const Bytes value = pattern(3, large);
  for (const EmbeddingKey& key : keys) {
    ASSERT_TRUE(eventually([&] { return put_one(*store, key, value).ok(); }));
  }
  std::vector<Bytes> bytes(keys.size(), Bytes(large));
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  for (int round = 0; round < 2; ++round) {
    for (const StoreResult& result : store->batch_get(keys, buffers, {})) {
      EXPECT_EQ(to_string(result.status), "ok");
    }
    for (Bytes& back : bytes) {
      EXPECT_EQ(back, value);
      back.assign(large, std::byte{0});
    }
  }
  EXPECT_GT(count_of(cluster.server(1), "getrange", "rejected_calls"), 0);
  EXPECT_THAT(store->health().detail, HasSubstr("come whole"));
}

TEST(RedisPartsRefusal, IsTheSameWhereTheCommandIsUnknown) {
  RedisServer server({"--rename-command", "GETRANGE", ""});
  const auto store = make_redis_store(server.options());
  const Bytes value = pattern(3, large);
  ASSERT_TRUE(put_one(*store, key_number(1), value).ok());
  expect_whole(*store, key_number(1), value);
  EXPECT_THAT(store->health().detail, AllOf(HasSubstr("come whole"), HasSubstr("unknown command")));
}

// Proxies have words of their own.
TEST(RedisPartsRefusal, IsUnderstoodInAnyWords) {
  for (const std::string words : {"ERR unknown command 'GETRANGE', with args beginning with: 'x'",
                                  "unsupported command 'getrange'", "ERR not allowed here"}) {
    std::atomic<int> parts{0};
    ScriptedRedis server([&](const ScriptedRedis::Words& command) {
      if (command[0] == "GET") return bulk(std::string(large, 'v'));
      if (command[0] == "GETRANGE") ++parts;
      return command[0] == "STRLEN" ? ":" + std::to_string(large) + "\r\n" : "-" + words + "\r\n";
    });
    const auto store = make_redis_store(server.options());
    expect_whole(*store, key_number(1), Bytes(large, std::byte{'v'}));
    EXPECT_THAT(store->health().detail, HasSubstr(words));
    const int asked = parts;
    expect_whole(*store, key_number(2), Bytes(large, std::byte{'v'}));
    EXPECT_EQ(parts, asked);
  }
}

// What a server in trouble says is no word about the command.
TEST(RedisPartsRefusal, IsNoneWhereTheServerIsInTrouble) {
  for (const std::string words : {"LOADING Redis is loading", "BUSY a script runs",
                                  "WRONGTYPE it is a list", "CLUSTERDOWN The cluster is down"}) {
    std::atomic<int> gets{0};
    ScriptedRedis server([&](const ScriptedRedis::Words& command) {
      if (command[0] == "GET") ++gets;
      return "-" + words + "\r\n";
    });
    const auto store = make_redis_store(server.options());
    Bytes back(large);
    EXPECT_TRUE(get_one(*store, key_number(1), back).is_fault());
    EXPECT_EQ(gets, 0) << words;
    EXPECT_EQ(store->health().detail, "");
  }
}

// The refusal has cost a part of the call's time; the next call has all of it.
TEST(RedisPartsRefusal, IsRememberedThoughTheWholeValueCameTooLate) {
  std::atomic<int> parts{0};
  std::atomic<bool> is_silent{true};
  ScriptedRedis server([&](const ScriptedRedis::Words& command) -> std::string {
    if (command[0] == "GET") return is_silent ? "" : bulk(std::string(large, 'v'));
    ++parts;
    return "-ERR unknown command\r\n";
  });
  const auto store = make_redis_store(server.options());
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + milliseconds(300);
  Bytes back(large);
  EXPECT_EQ(to_string(get_one(*store, key_number(1), back, context).status), "timeout");
  const int asked = parts;
  is_silent = false;
  ASSERT_TRUE(eventually([&] { return get_one(*store, key_number(1), back).ok(); }));
  EXPECT_EQ(back, Bytes(large, std::byte{'v'}));
  EXPECT_EQ(parts, asked);
}

// --- how long it is remembered ---

const redis::Fault no_right{StoreStatus::denied, EPERM, "NOPERM no right to 'getrange'"};

TEST(RedisPartsRefusal, HoldsForFiveMinutes) {
  PartsRefusal refusal;
  const auto now = redis::Clock::now();
  EXPECT_FALSE(refusal.holds(now));
  refusal.refused(no_right, now);
  EXPECT_TRUE(refusal.holds(now));
  EXPECT_TRUE(refusal.holds(now + minutes(5) - seconds(1)));
  EXPECT_FALSE(refusal.holds(now + minutes(5)));
  EXPECT_THAT(refusal.detail(), HasSubstr("NOPERM no right to 'getrange'"))
      << "as long as nothing else is known";
  refusal.refused(no_right, now + minutes(6));
  EXPECT_TRUE(refusal.holds(now + minutes(7)));
}

TEST(RedisPartsRefusal, IsOverWhenPartsCome) {
  PartsRefusal refusal;
  const auto now = redis::Clock::now();
  refusal.refused(no_right, now);
  refusal.came(now + seconds(1));
  EXPECT_FALSE(refusal.holds(now + seconds(1)));
  EXPECT_EQ(refusal.detail(), "");
}

// Of a cluster one server may refuse what others were already about to give.
TEST(RedisPartsRefusal, IsNotOverForWhatWasAskedForBefore) {
  PartsRefusal refusal;
  const auto now = redis::Clock::now();
  refusal.refused(no_right, now);
  refusal.came(now - seconds(1));
  EXPECT_TRUE(refusal.holds(now + seconds(1)));
  EXPECT_NE(refusal.detail(), "");
}

TEST(RedisPartsRefusal, IsSaidOnce) {
  std::ostringstream words;
  spdlog::drop("vitrove");
  spdlog::register_logger(std::make_shared<spdlog::logger>(
      "vitrove", std::make_shared<spdlog::sinks::ostream_sink_mt>(words)));
  PartsRefusal refusal;
  for (int i = 0; i < 3; ++i) refusal.refused(no_right);
  refusal.came(redis::Clock::now() + seconds(1));
  refusal.refused(no_right);  // as of a cluster one of whose servers refuses
  spdlog::drop("vitrove");
  const std::string said = words.str();
  const std::size_t first = said.find("grant STRLEN and GETRANGE");
  EXPECT_NE(first, said.npos);
  EXPECT_EQ(said.find("grant STRLEN and GETRANGE", first + 1), said.npos);
  EXPECT_THAT(said, HasSubstr("in parts again"));
}

}  // namespace
}  // namespace vitrove::testing
