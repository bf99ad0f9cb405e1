// What a URL may say, and what is refused in one clear line (field cases B53, B79, B87).
#include "stores/redis/redis_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove::redis {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

RedisStoreOptions read(const std::string& text) {
  const StoreUrl url = StoreUrl::parse(text);
  StoreOptions options(url.options);
  RedisStoreOptions chosen = read_options(url, options);
  options.reject_unknown();
  check_options(chosen);
  return chosen;
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RedisUrl, HasDefaults) {
  const auto options = read("redis://localhost");
  ASSERT_EQ(options.servers.size(), 1u);
  EXPECT_EQ(options.servers[0], (std::pair<std::string, int>("localhost", 6379)));
  EXPECT_FALSE(options.tls);
  EXPECT_FALSE(options.cluster);
  EXPECT_EQ(options.prefix, "vitrove:");
  EXPECT_EQ(options.database, 0);
}

TEST(RedisUrl, SaysEverything) {
  const auto options = read(
      "valkeys://me:p%40ss%3Aw%2Frd%231@[::1]:7000/3?connect_timeout=3s&timeout=250ms&pool=4"
      "&prefix=a:&ttl=1h&max_value_bytes=8MiB&tls_ca=/ca&tls_cert=/c&tls_key=/k&tls_name=n"
      "&tls_verify=no&strict=yes");
  EXPECT_EQ(options.servers[0], (std::pair<std::string, int>("::1", 7000)));
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "p@ss:w/rd#1");
  EXPECT_EQ(options.database, 3);
  EXPECT_EQ(options.connect_timeout, milliseconds(3000));
  EXPECT_EQ(options.timeout, milliseconds(250));
  EXPECT_EQ(options.pool, 4u);
  EXPECT_EQ(options.prefix, "a:");
  EXPECT_EQ(options.ttl, milliseconds(3'600'000));
  EXPECT_EQ(options.max_value_bytes, 8u << 20);
  EXPECT_TRUE(options.tls);
  EXPECT_EQ(options.tls_ca, "/ca");
  EXPECT_EQ(options.tls_cert, "/c");
  EXPECT_EQ(options.tls_key, "/k");
  EXPECT_EQ(options.tls_name, "n");
  EXPECT_FALSE(options.tls_verify);
  EXPECT_TRUE(options.strict);
}

TEST(RedisUrl, NamesAnyNodesOfACluster) {
  for (const std::string scheme : {"redis+cluster", "valkey+cluster"}) {
    const auto options = read(scheme + "://a:1,b,[::1]:3");
    EXPECT_TRUE(options.cluster);
    EXPECT_FALSE(options.tls);
    ASSERT_EQ(options.servers.size(), 3u);
    EXPECT_EQ(options.servers[1], (std::pair<std::string, int>("b", 6379)));
    EXPECT_EQ(options.servers[2], (std::pair<std::string, int>("::1", 3)));
  }
  EXPECT_TRUE(read("rediss+cluster://a").tls);
  EXPECT_TRUE(read("valkeys+cluster://a").cluster);
}

TEST(RedisUrl, IsRefusedWhenItMakesNoSense) {
  EXPECT_THAT(refusal("redis:"), HasSubstr("no host"));
  EXPECT_THAT(refusal("redis://a:1,b:2"), HasSubstr("redis+cluster"));
  EXPECT_THAT(refusal("redis+cluster://a:1,,b:2"), HasSubstr("empty host"));
  EXPECT_THAT(refusal("redis+cluster://a:0,b"), HasSubstr("port"));
  EXPECT_THAT(refusal("redis+cluster://a/1"), HasSubstr("database"));
  EXPECT_THAT(refusal("redis://a/one"), HasSubstr("database"));
  EXPECT_THAT(refusal("redis://a/-1"), HasSubstr("database"));
  EXPECT_THAT(refusal("redis://a?pool=1"), HasSubstr("pool"));
  EXPECT_THAT(refusal("redis://a?timeout=0s"), HasSubstr("timeout"));
  EXPECT_THAT(refusal("redis://a?timeout=1000000d"), HasSubstr("longer than an hour"));
  EXPECT_THAT(refusal("redis://a?connect_timeout=61m"), HasSubstr("longer than an hour"));
  EXPECT_THAT(refusal("redis://a?max_value_bytes=0"), HasSubstr("max_value_bytes"));
  EXPECT_THAT(refusal("redis://user@a"), HasSubstr("password"));
  EXPECT_THAT(refusal("rediss://a?tls_key=/k"), HasSubstr("tls_cert"));
}

TEST(RedisUrl, WithUnknownOptionsIsRefused) {
  EXPECT_THAT(refusal("redis://a?tiemout=1s"), HasSubstr("tiemout"));
  EXPECT_THAT(refusal("redis://a?tiemout=1s"), HasSubstr("connect_timeout"));
  EXPECT_THAT(refusal("redis://a?tls_ca=/x"), HasSubstr("tls_ca"));
}

TEST(RedisUrl, OfASentinelIsRefusedWithAClearLine) {
  for (const std::string scheme :
       {"redis+sentinel", "rediss+sentinel", "redis-sentinel", "rediss-sentinel", "valkey+sentinel",
        "valkeys+sentinel", "valkey-sentinel", "valkeys-sentinel"}) {
    const auto factory = EmbeddingStoreFactory::with_builtins();
    try {
      factory.create_backend(scheme + "://:secret@a:26379/mymaster");
      FAIL() << scheme;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("Sentinel is not supported"));
      EXPECT_THAT(error.what() + error.detail(), Not(HasSubstr("secret")));
    }
  }
}

TEST(RedisUrl, NeverShowsItsPassword) {
  for (const std::string text :
       {"redis://me:hunter2@a?pool=0", "redis://me:hunter2@a?wrong=1", "redis://me:hunter2@a/x",
        "rediss://me:hunter2@a?tls_ca=/no/such/file", "redis://:hunter2@a:1,b:2"}) {
    try {
      EmbeddingStoreFactory::with_builtins().create_backend(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what() + error.detail(), Not(HasSubstr("hunter2")));
    }
  }
}

TEST(RedisUrl, IsKnownUnderEveryScheme) {
  const auto factory = EmbeddingStoreFactory::with_builtins();
  for (const std::string scheme : {"redis", "rediss", "valkey", "valkeys", "redis+cluster",
                                   "rediss+cluster", "valkey+cluster", "valkeys+cluster"}) {
    EXPECT_EQ(factory.create_backend(scheme + "://127.0.0.1:1")->name(), "redis") << scheme;
  }
}

}  // namespace
}  // namespace vitrove::redis
