// TLS: whom we believe, and what we say when we do not (field case B53).
#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "redis_server.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

namespace vitrove::testing {
namespace {

using ::testing::HasSubstr;

class RedisTls : public ::testing::Test {
 protected:
  RedisStoreOptions options() const {
    RedisStoreOptions options = server_.options();
    options.servers = {{"127.0.0.1", port_}};
    options.tls = true;
    options.tls_ca = certificates_.ca();
    return options;
  }
  // Why a store with these options is down.
  static std::string complaint(const RedisStoreOptions& options) {
    const auto store = make_redis_store(options);
    if (!eventually([&] { return store->health().state == StoreState::down; })) return "none";
    return store->health().detail;
  }

  TestCertificates certificates_;
  int port_ = free_port();
  RedisServer server_{certificates_.arguments(port_), "p@ss:w/rd#1"};
  const EmbeddingKey key_ = key_number(1);
};

TEST_F(RedisTls, IsChosenByTheUrl) {
  const std::string url = "rediss://:p%40ss%3Aw%2Frd%231@127.0.0.1:" + std::to_string(port_) +
                          "?tls_ca=" + certificates_.ca();
  const auto store = EmbeddingStoreFactory::with_builtins().create_backend(url);
  EXPECT_TRUE(put_one(*store, key_, pattern(1, 100'000)).ok());
  EXPECT_EQ(read_back(*store, key_), pattern(1, 100'000));
}

TEST_F(RedisTls, RefusesACertificateOfAnUnknownAuthority) {
  const TestCertificates others;
  RedisStoreOptions options = this->options();
  options.tls_ca = others.ca();
  EXPECT_THAT(complaint(options), HasSubstr("certificate refused"));
  options.tls_ca.clear();
  EXPECT_THAT(complaint(options), HasSubstr("certificate refused"));
  options.tls_verify = false;
  EXPECT_EQ(exists(*make_redis_store(options), key_).status, StoreStatus::absent);
}

TEST_F(RedisTls, RefusesACertificateOfAnotherName) {
  RedisStoreOptions options = this->options();
  options.tls_name = "redis.example";
  EXPECT_THAT(complaint(options), HasSubstr("certificate refused"));
  // Another spelling of the server's address, which stands in no certificate, and is known where
  // "localhost" is not.
  options.servers = {{"127.1", port_}};
  options.tls_name = "127.0.0.1";
  EXPECT_EQ(exists(*make_redis_store(options), key_).status, StoreStatus::absent);
}

TEST_F(RedisTls, ShowsACertificateOfItsOwnWhenItHasOne) {
  server_.ask({"CONFIG", "SET", "tls-auth-clients", "yes"});
  EXPECT_NE(complaint(options()), "none");
  RedisStoreOptions options = this->options();
  options.tls_cert = certificates_.certificate();
  options.tls_key = certificates_.key();
  EXPECT_EQ(exists(*make_redis_store(options), key_).status, StoreStatus::absent);
}

TEST_F(RedisTls, IsRefusedAtOnceWhenItsFilesCannotBeUsed) {
  for (const auto member :
       {&RedisStoreOptions::tls_ca, &RedisStoreOptions::tls_cert, &RedisStoreOptions::tls_key}) {
    RedisStoreOptions options = this->options();
    options.tls_cert = certificates_.certificate();
    options.tls_key = certificates_.key();
    options.*member = "/no/such/file";
    EXPECT_THROW(make_redis_store(options), Error);
  }
}

TEST_F(RedisTls, DoesNotSpeakToAPlainPort) {
  RedisStoreOptions options = this->options();
  options.servers = {{"127.0.0.1", server_.port()}};
  options.connect_timeout = std::chrono::seconds(2);  // it waits for the end of a command
  EXPECT_THAT(complaint(options), HasSubstr("TLS"));
}

TEST_F(RedisTls, SurvivesTheDeathOfItsServer) {
  // Writing to a socket that is gone must not raise SIGPIPE, whatever the program thinks of it.
  ASSERT_EQ(::signal(SIGPIPE, SIG_DFL), SIG_DFL);
  const auto store = make_redis_store(options());
  const Bytes value = pattern(1, 8u << 20);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(eventually([&] { return put_one(*store, key_, value).ok(); }));
    std::jthread killer([&] { server_.kill(); });
    for (int i = 0; i < 20; ++i) {
      const StoreResult result = put_one(*store, key_number(2), value, PutMode::replace);
      EXPECT_TRUE(result.ok() || result.status == StoreStatus::unavailable);
    }
    killer.join();
    server_.start();
  }
  ASSERT_TRUE(eventually([&] { return put_one(*store, key_, value).ok(); }));
  EXPECT_TRUE(read_back(*store, key_) == value);
}

}  // namespace
}  // namespace vitrove::testing
