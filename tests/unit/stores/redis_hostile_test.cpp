// A "Redis" that says what it likes: nothing it says makes a value out of what is none, takes our
// memory, or reaches the next command (field cases B56, B86).
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/recording_observer.h"
#include "contract/test_values.h"
#include "redis_server.h"
#include "scripted_redis.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using Words = ScriptedRedis::Words;

const std::string value(1000, 'v');

StoreResult get_from(ScriptedRedis& server, Bytes& bytes) {
  const auto store = make_redis_store(server.options());
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + milliseconds(300);
  return get_one(*store, key_number(1), bytes, context);
}

TEST(HostileRedis, IsNeverBelieved) {
  const std::vector<std::string> answers = {
      "",                                  // nothing at all
      "garbage\r\n",                       //
      std::string(100'000, 'x'),           // a line without an end
      "$1000\r\n" + value.substr(0, 999),  // a byte short
      "$1000\r\n" + value + "xx",          // no line end
      "$1000\r\n" + value + "\rx",         //
      "$999\r\n" + value + "\r\n",         // longer than it says
      "$1001\r\n" + value + "\r\n",        // shorter than it says
      "$9999999999999999999\r\n",          //
      "$1099511627777\r\n",                //
      "$-2\r\n",                           //
      "*1\r\n" + bulk(value),              // another kind
      "*1000000000\r\n",                   //
      "+" + value + "\r\n",                //
      ":1000\r\n",                         //
      "-ERR " + value + "\r\n",            //
      "%1\r\n+a\r\n+b\r\n",                // RESP3
      bulk(""),                            //
      "$-1\r\n",                           //
  };
  for (const std::string& answer : answers) {
    ScriptedRedis server([&](const Words&) { return answer; });
    Bytes bytes(1000);
    EXPECT_FALSE(get_from(server, bytes).ok()) << answer.substr(0, 40);
  }
}

TEST(HostileRedis, IsUnderstoodHoweverSlowlyItSpeaks) {
  for (const std::size_t step : {1u, 3u, 500u}) {
    ScriptedRedis server([](const Words&) { return bulk(value); }, step);
    const auto store = make_redis_store(server.options());
    const auto keys = key_numbers(5);
    std::vector<Bytes> bytes(5, Bytes(1000));
    bytes[2].resize(999);
    const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
    const auto results = store->batch_get(keys, buffers, {});
    for (const std::size_t i : {0u, 1u, 3u, 4u}) {
      EXPECT_TRUE(results[i].ok()) << i;
      EXPECT_EQ(bytes[i], Bytes(1000, std::byte{'v'}));
    }
    EXPECT_EQ(results[2].status, StoreStatus::size_mismatch);
    EXPECT_EQ(results[2].size, 1000u);
  }
}

TEST(HostileRedis, CannotAnswerACommandThatWasNotAsked) {
  // Each answer comes with a second one, which would be the answer to the next command.
  const std::string wrong(1000, 'w');
  ScriptedRedis server([&](const Words&) { return bulk(value) + bulk(wrong); });
  const auto store = make_redis_store(server.options());
  for (int round = 0; round < 20; ++round) {
    Bytes bytes(1000);
    const StoreResult result = get_one(*store, key_number(1), bytes);
    if (result.ok()) {
      EXPECT_EQ(bytes, Bytes(1000, std::byte{'v'})) << round;
    }
  }
}

TEST(HostileRedis, GetsNoCommandInsideAValueThatItRefusedTooEarly) {
  ScriptedRedis server([](const Words&) { return ":5\r\n"; });
  server.refuse_puts_early();
  const auto store = make_redis_store(server.options());
  EXPECT_FALSE(put_one(*store, key_number(1), Bytes(64u << 20)).ok());
  server.read_on();
  const StoreResult found = exists(*store, key_number(2));
  EXPECT_EQ(to_string(found.status), "ok") << "on a connection of its own";
  EXPECT_TRUE(eventually([&] { return server.has_ended(); }));
  EXPECT_EQ(server.unread_end().find("STRLEN"), std::string::npos);
}

TEST(HostileRedis, SpoilsNoAnswerThatCameBefore) {
  // Two answers, then nonsense: the first two stand, the others are faults.
  std::atomic<int> asked{0};
  ScriptedRedis server([&](const Words&) { return asked++ < 2 ? bulk(value) : "nonsense\r\n"; });
  const auto store = make_redis_store(server.options());
  const auto keys = key_numbers(4);
  std::vector<Bytes> bytes(4, Bytes(1000));
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  const auto results = store->batch_get(keys, buffers, {});
  EXPECT_TRUE(results[0].ok());
  EXPECT_TRUE(results[1].ok());
  EXPECT_TRUE(results[2].is_fault());
  EXPECT_TRUE(results[3].is_fault());
}

TEST(HostileRedis, IsAskedAgainWhenItHangsUpInTheMiddleOfABatch) {
  // Every third command ends the connection; the rest is asked for on a new one.
  std::atomic<int> asked{0};
  ScriptedRedis server([&](const Words&) -> std::optional<std::string> {
    if (++asked % 3 == 0) return std::nullopt;
    return bulk(value);
  });
  const auto store = make_redis_store(server.options());
  const auto keys = key_numbers(6);
  std::vector<Bytes> bytes(6, Bytes(1000));
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  std::vector<MutableBufferList> lists;
  for (const MutableBuffer& buffer : buffers) lists.emplace_back(&buffer, 1);
  RecordingObserver observer(lists);
  StoreContext context;
  context.observer = &observer;
  const auto results = store->batch_get_into_multi_buffers(keys, lists, context);
  EXPECT_EQ(observer.complaints(), 0);
  for (const StoreResult& result : results) EXPECT_EQ(to_string(result.status), "ok");
}

TEST(HostileRedis, MakesNobodyFollowRedirectsForEver) {
  std::atomic<int> asked{0};
  std::atomic<int> port{0};
  ScriptedRedis server([&](const Words& words) -> std::optional<std::string> {
    const std::string number = std::to_string(port);
    if (words[0] != "CLUSTER") {
      ++asked;
      return "-MOVED 1 :" + number + "\r\n";
    }
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk("127.0.0.1") + ":" + number + "\r\n";
  });
  port = server.options().servers[0].second;
  RedisStoreOptions options = server.options();
  options.cluster = true;
  const auto store = make_redis_store(options);
  EXPECT_TRUE(eventually([&] { return exists(*store, key_number(1)).error_number == EREMOTE; }));
  EXPECT_LT(asked, 20);
}

TEST(HostileRedis, IsNotAskedForTheMapWhileAnotherServerCanBe) {
  // Each says that all slots are its own; but one of them is cut off from its cluster.
  struct Claimant {
    std::atomic<bool> is_cut_off{false};
    std::atomic<int> port{0};
    ScriptedRedis server{[this](const Words& words) -> std::optional<std::string> {
      if (words[0] != "CLUSTER")
        return is_cut_off ? "-CLUSTERDOWN The cluster is down\r\n" : ":5\r\n";
      return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk("127.0.0.1") + ":" + std::to_string(port) +
             "\r\n";
    }};
    Claimant() { port = server.options().servers[0].second; }
  };
  Claimant one;
  Claimant other;
  (one.port < other.port ? one : other).is_cut_off = true;  // the first to be asked
  RedisStoreOptions options = one.server.options();
  options.servers.push_back(other.server.options().servers[0]);
  options.cluster = true;
  const auto store = make_redis_store(options);
  EXPECT_TRUE(eventually([&] { return exists(*store, key_number(1)).ok(); }));
}

TEST(HostileRedis, CannotMakeAListEndlessForACallerWhoLeaves) {
  std::atomic<int> asked{0};
  std::stop_source leave;
  ScriptedRedis server([&](const Words& words) -> std::optional<std::string> {
    if (words[0] != "SCAN") return ":300\r\n";
    if (++asked == 50) leave.request_stop();
    return "*2\r\n" + bulk("7") + "*2\r\n" + bulk("vitrove:" + key_number(1).text()) +
           bulk("vitrove:junk");
  });
  const auto store = make_redis_store(server.options());
  StoreContext context;
  context.cancel = leave.get_token();
  int visits = 0;
  const StoreResult result = store->list(
      {},
      [&](const ListedValue&) {
        ++visits;
        return true;
      },
      context);
  EXPECT_EQ(result.status, StoreStatus::cancelled);
  EXPECT_EQ(visits, 1);
}

TEST(HostileRedis, CannotListWhatIsNoPage) {
  for (const std::string answer : {"+OK\r\n", "*0\r\n", "*2\r\n:0\r\n*0\r\n",
                                   "*2\r\n$1\r\n0\r\n:1\r\n", "-ERR no\r\n", "$-1\r\n"}) {
    ScriptedRedis server([&](const Words&) { return answer; });
    const auto store = make_redis_store(server.options());
    const StoreResult result = store->list({}, [](const ListedValue&) { return true; }, {});
    EXPECT_EQ(result.status, StoreStatus::io_error) << answer;
  }
}

TEST(HostileRedis, IsReadyAgainWhenItSaysThatAValueIsThereAlready) {
  std::atomic<int> asked{0};
  ScriptedRedis server(
      [&](const Words&) { return asked++ == 0 ? "-OOM no memory\r\n" : "$-1\r\n"; });
  const auto store = make_redis_store(server.options());
  EXPECT_EQ(put_one(*store, key_number(1), Bytes(10)).status, StoreStatus::no_space);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  EXPECT_TRUE(put_one(*store, key_number(1), Bytes(10)).ok());
  EXPECT_EQ(store->health().state, StoreState::ready) << store->health().detail;
}

TEST(HostileRedis, GetsOddAnswersToPutsAndClaimsNotBelieved) {
  const std::vector<std::string> answers = {":1\r\n", "*0\r\n", bulk("OK"), "-ERR no\r\n"};
  for (const std::string& answer : answers) {
    ScriptedRedis server([&](const Words&) { return answer; });
    const auto store = make_redis_store(server.options());
    EXPECT_EQ(put_one(*store, key_number(1), Bytes(10)).status, StoreStatus::io_error);
    ClaimToken token;
    EXPECT_EQ(store->claim(key_number(1), milliseconds(10), token, {}).status,
              StoreStatus::io_error);
  }
}

TEST(HostileRedis, HasNoCountBelowZero) {
  ScriptedRedis server([](const Words&) { return ":-5\r\n"; });
  const auto store = make_redis_store(server.options());
  const std::vector<StoreResult> answers = {
      exists(*store, key_number(1)), remove_one(*store, key_number(1)),
      store->renew(key_number(1), ClaimToken{"x"}, milliseconds(10), {}),
      store->release(key_number(1), ClaimToken{"x"}, ClaimOutcome::stored, {})};
  for (const StoreResult& answer : answers) {
    EXPECT_EQ(to_string(answer.status), "io_error");
    EXPECT_EQ(answer.error_number, EPROTO);
  }
}

TEST(HostileRedis, SpoilsByANegativeCountNoOtherItem) {
  std::atomic<int> asked{0};
  ScriptedRedis server([&](const Words&) { return asked++ == 1 ? ":-1\r\n" : ":1\r\n"; });
  const auto store = make_redis_store(server.options());
  const auto results = store->batch_remove(key_numbers(3), {});
  EXPECT_TRUE(results[0].ok());
  EXPECT_TRUE(results[1].is_fault());
  EXPECT_TRUE(results[2].ok());
}

}  // namespace
}  // namespace vitrove::testing
