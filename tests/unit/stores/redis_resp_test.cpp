// The codec: what it takes, what it refuses, and that pieces make no difference.
#include <gtest/gtest.h>

#include "stores/redis/errors.h"
#include "stores/redis/hash_slot.h"
#include "stores/redis/resp.h"
#include "stores/redis/server_memory.h"
#include "stores/redis/slot_ranges.h"

namespace vitrove::redis {
namespace {

using namespace std::string_literals;

// Feeds `bytes` in pieces of `step`; the reply, or nothing when it is not whole or malformed.
std::optional<Reply> read(const std::string& bytes, std::size_t step, std::size_t& left) {
  ReplyBuilder builder;
  std::string held;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t count = std::min(step, bytes.size() - at);
    held += bytes.substr(at, count);
    at += count;
    std::string_view rest = held;
    const Parsed parsed = builder.feed(rest);
    held = std::string(rest);
    if (parsed == Parsed::malformed) return std::nullopt;
    if (parsed == Parsed::incomplete) continue;
    left = held.size() + bytes.size() - at;
    return builder.take();
  }
  return std::nullopt;
}

std::optional<Reply> read_whole(const std::string& bytes) {
  std::size_t left = 0;
  auto reply = read(bytes, bytes.size(), left);
  return left == 0 ? reply : std::nullopt;
}

bool is_malformed(const std::string& bytes) {
  ReplyBuilder builder;
  std::string_view rest = bytes;
  return builder.feed(rest) == Parsed::malformed;
}

TEST(RedisReply, IsReadInAnyPieces) {
  const std::string bytes =
      "*6\r\n+OK\r\n-ERR no\r\n:-42\r\n$5\r\n\r\n\0ab\r\n*2\r\n$-1\r\n*0\r\n$0\r\n\r\n"s;
  for (std::size_t step = 1; step <= bytes.size() + 3; ++step) {
    std::size_t left = 0;
    const auto reply = read(bytes + ":7\r\n", step, left);
    ASSERT_TRUE(reply) << step;
    EXPECT_EQ(left, 4u) << step;
    ASSERT_EQ(reply->elements.size(), 6u);
    EXPECT_EQ(reply->elements[0].text, "OK");
    EXPECT_EQ(reply->elements[1].error_code(), "ERR");
    EXPECT_EQ(reply->elements[2].number, -42);
    EXPECT_EQ(reply->elements[3].text, "\r\n\0ab"s);
    EXPECT_EQ(reply->elements[4].elements[0].type, ReplyType::nil);
    EXPECT_EQ(reply->elements[4].elements[1].type, ReplyType::array);
    EXPECT_EQ(reply->elements[5].text, "");
  }
}

TEST(RedisReply, IsRefusedWhenItIsNotResp) {
  for (const std::string bytes :
       {"\r\n", "hello\r\n", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":1x\r\n", ":+1\r\n",
        ": 1\r\n", "$\r\n", "$-2\r\n", "$x\r\n", "*-3\r\n", "$9223372036854775808\r\n",
        "$1099511627777\r\n", "*1099511627777\r\n", "$2\r\nabcd", "$2\r\nab\rx", "%1\r\n",
        ":99999999999999999999\r\n"}) {
    EXPECT_TRUE(is_malformed(bytes)) << bytes;
  }
  EXPECT_TRUE(is_malformed("+" + std::string(max_line_bytes, 'a')));
}

TEST(RedisReply, MakesNobodyAllocateByACount) {
  // Counts are believed only as far as bytes follow.
  ReplyBuilder builder;
  const std::string start = "*1000000000\r\n:1\r\n";
  std::string_view rest = start;
  EXPECT_EQ(builder.feed(rest), Parsed::incomplete);
  EXPECT_TRUE(is_malformed("$" + std::to_string(max_reply_bytes) + "\r\n"));
  std::string many = "*9999999\r\n";
  while (many.size() < (8u << 20)) many += ":1\r\n:2\r\n:3\r\n:4\r\n";
  EXPECT_TRUE(is_malformed(many));
}

TEST(RedisReply, IsRefusedWhenNestedTooDeeply) {
  std::string nested;
  for (std::size_t i = 0; i < max_reply_depth; ++i) nested += "*1\r\n";
  EXPECT_TRUE(read_whole(nested + ":1\r\n"));
  EXPECT_TRUE(is_malformed(nested + "*1\r\n:1\r\n"));
}

TEST(RedisCommand, FramesEveryWordByItsLength) {
  EXPECT_EQ(encode_command({"GET", "a\r\nDEL x\r\n"}),
            "*2\r\n$3\r\nGET\r\n$10\r\na\r\nDEL x\r\n\r\n");
  EXPECT_EQ(encode_command({"GET", std::string_view("\0", 1)}), "*2\r\n$3\r\nGET\r\n$1\r\n\0\r\n"s);
  const FramedCommand set = encode_set("key", 300, {"NX"});
  EXPECT_EQ(set.head, "*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$300\r\n");
  EXPECT_EQ(set.tail, "\r\n$2\r\nNX\r\n");
}

TEST(RedisSlot, IsWhatTheClusterSpecificationSays) {
  EXPECT_EQ(hash_slot("123456789"), 0x31C3 % slot_count);
  EXPECT_EQ(hash_slot("{user1000}.following"), hash_slot("user1000"));
  EXPECT_EQ(hash_slot("foo{}{bar}"), hash_slot("foo{}{bar}"));
  EXPECT_NE(hash_slot("foo{}{bar}"), hash_slot("bar"));
  EXPECT_EQ(hash_slot("foo{{bar}}zap"), hash_slot("{bar"));
  EXPECT_EQ(hash_slot("foo{bar}{zap}"), hash_slot("bar"));
  EXPECT_EQ(hash_slot(""), 0);
}

Reply error(const std::string& text) {
  Reply reply;
  reply.type = ReplyType::error;
  reply.text = text;
  return reply;
}

TEST(RedisRedirect, NamesTheServerThatIsToBeAsked) {
  const auto moved = redirect_of(error("MOVED 3999 127.0.0.1:6381"));
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->is_ask);
  EXPECT_EQ(moved->host, "127.0.0.1");
  EXPECT_EQ(moved->port, 6381);
  EXPECT_TRUE(redirect_of(error("ASK 3999 ::1:6381"))->is_ask);
  EXPECT_EQ(redirect_of(error("ASK 3999 ::1:6381"))->host, "::1");
  EXPECT_EQ(redirect_of(error("MOVED 3999 :6381"))->host, "");
  for (const char* text :
       {"MOVED", "MOVED 1", "MOVED 1 host", "MOVED 1 host:", "MOVED 1 host:0", "MOVED 1 host:65536",
        "MOVED 1 host:6x", "MOVED :1 host", "ERR a:1", "MOVED 1 host:99999999999"}) {
    EXPECT_FALSE(redirect_of(error(text))) << text;
  }
}

TEST(RedisError, MeansWhatTheServerMeant) {
  const auto status_of = [](const char* text) { return fault_of(error(text)).status; };
  EXPECT_EQ(status_of("OOM command not allowed when used memory > 'maxmemory'."),
            StoreStatus::no_space);
  EXPECT_EQ(status_of("MISCONF Redis is configured to save RDB snapshots"), StoreStatus::no_space);
  EXPECT_EQ(status_of("READONLY You can't write against a read only replica."),
            StoreStatus::denied);
  EXPECT_EQ(status_of("NOAUTH Authentication required."), StoreStatus::denied);
  EXPECT_EQ(status_of("NOPERM this user has no permissions"), StoreStatus::denied);
  EXPECT_EQ(status_of("LOADING Redis is loading the dataset in memory"), StoreStatus::unavailable);
  EXPECT_EQ(status_of("BUSY Redis is busy running a script"), StoreStatus::unavailable);
  EXPECT_EQ(status_of("CLUSTERDOWN Hash slot not served"), StoreStatus::unavailable);
  EXPECT_EQ(status_of("ERR max number of clients reached"), StoreStatus::unavailable);
  EXPECT_EQ(status_of("ERR Protocol error: invalid bulk length"), StoreStatus::too_large);
  EXPECT_EQ(status_of("WRONGTYPE Operation against a key"), StoreStatus::io_error);
  EXPECT_EQ(status_of("never heard of"), StoreStatus::io_error);
  EXPECT_EQ(status_of(""), StoreStatus::io_error);
}

TEST(RedisError, IsShownWithoutControlCharactersAndNotAtLength) {
  const Fault fault = fault_of(error("ERR \x1b[31m\n" + std::string(1000, 'x')));
  EXPECT_EQ(fault.detail.find('\n'), std::string::npos);
  EXPECT_EQ(fault.detail.find('\x1b'), std::string::npos);
  EXPECT_LE(fault.detail.size(), 200u);
}

TEST(RedisSlots, LeaveOutWhatMakesNoSense) {
  const auto reply = read_whole(
      "*7\r\n"
      "*4\r\n:0\r\n:5460\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n*2\r\n$9\r\n127.0.0.2\r\n:7001\r\n"
      "*3\r\n:5461\r\n:5462\r\n*2\r\n$0\r\n\r\n:7002\r\n"
      "*3\r\n:5463\r\n:5464\r\n*2\r\n$-1\r\n:7003\r\n"
      "*3\r\n:5\r\n:16384\r\n*2\r\n$1\r\na\r\n:7000\r\n"
      "*3\r\n:7\r\n:6\r\n*2\r\n$1\r\na\r\n:7000\r\n"
      "*3\r\n:7\r\n:8\r\n*2\r\n$1\r\n?\r\n:7000\r\n"
      "*3\r\n:7\r\n:8\r\n*2\r\n$1\r\na\r\n:0\r\n");
  ASSERT_TRUE(reply);
  const auto ranges = parse_slot_ranges(*reply, "asked");
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 3u);
  EXPECT_EQ((*ranges)[0].last, 5460);
  EXPECT_EQ((*ranges)[0].server, (Endpoint{"127.0.0.1", 7000}));
  EXPECT_EQ((*ranges)[1].server, (Endpoint{"asked", 7002}));
  EXPECT_EQ((*ranges)[2].server, (Endpoint{"asked", 7003}));
  EXPECT_FALSE(parse_slot_ranges(error("ERR This instance has cluster support disabled"), "a"));
}

TEST(ServerMemory, IsFoundAmongAllElseThatTheServerTells) {
  const auto memory = parse_server_memory(
      "# Memory\r\nused_memory_human:1M\r\nused_memory:1048577\r\nused_memory_rss:5\r\n"
      "maxmemory_human:2M\r\nmaxmemory:2097152\r\nmaxmemory_policy:noeviction\r\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->used, 1'048'577u);
  EXPECT_EQ(memory->limit, 2'097'152u);
  EXPECT_EQ(parse_server_memory("used_memory:7")->limit, 0u);
}

TEST(ServerMemory, IsNothingWhenItIsNotSaid) {
  for (const char* info :
       {"", "used_memory", "used_memory:", "used_memory:\r\n", "used_memory:-1\r\n",
        "used_memory:12k\r\n", "used_memory:99999999999999999999\r\n", "xused_memory:1\r\n",
        "NOPERM"}) {
    EXPECT_FALSE(parse_server_memory(info)) << info;
  }
}

}  // namespace
}  // namespace vitrove::redis
