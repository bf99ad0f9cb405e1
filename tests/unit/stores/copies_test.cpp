// The table "Copies in user space" of docs/performance.md: what goes straight between a value's own
// memory and the socket, the file or OpenSSL is not copied by us.
#include <gtest/gtest.h>

#include "contract/temporary_directory.h"
#include "contract/test_values.h"
#include "redis_server.h"
#include "unit/stores/moved_bytes.h"
#include "vitrove/file_store.h"

namespace vitrove::testing {
namespace {

constexpr std::size_t run_bytes = 256 << 10;
constexpr std::size_t value_bytes = 5 * run_bytes;

struct Straight {
  std::uint64_t put = 0;
  std::uint64_t get = 0;
};

// As the cache puts and gets: of a small piece and several runs.
Straight measure(EmbeddingStore& store) {
  const EmbeddingKey key = key_number(1);
  Bytes value = pattern(3, value_bytes);
  const std::vector<std::size_t> sizes{256, run_bytes, run_bytes - 256};
  Straight straight;
  {
    const auto pieces = cut(ConstBuffer(value), sizes);
    const ConstBufferList list(pieces);
    const MovedBytes moved(value);
    EXPECT_TRUE(
        store.batch_put_from_multi_buffers({&key, 1}, {&list, 1}, PutMode::if_absent, {})[0].ok());
    straight.put = moved.count();
  }
  Bytes back(value.size());
  const auto pieces = cut(MutableBuffer(back), sizes);
  const MutableBufferList list(pieces);
  const MovedBytes moved(back);
  EXPECT_TRUE(store.batch_get_into_multi_buffers({&key, 1}, {&list, 1}, {})[0].ok());
  EXPECT_EQ(back, value);
  straight.get = moved.count();
  return straight;
}

TEST(Copies, NoneToAndFromFiles) {
  const TemporaryDirectory directory;
  const Straight straight = measure(*make_file_store({.root = directory.path() / "store"}));
  EXPECT_EQ(straight.put, value_bytes);
  EXPECT_EQ(straight.get, value_bytes);
}

TEST(Copies, NoneToRedisAndNextToNoneFromIt) {
  const RedisServer server;
  const Straight straight = measure(*make_redis_store(server.options()));
  EXPECT_EQ(straight.put, value_bytes);
  EXPECT_GE(straight.get, value_bytes - 512) << "what came along with the reply's length";
  EXPECT_LE(straight.get, value_bytes);
}

TEST(Copies, NextToNoneFromARedisThatRefusesParts) {
  const RedisServer server({"--rename-command", "GETRANGE", ""});
  const Straight straight = measure(*make_redis_store(server.options()));
  EXPECT_GE(straight.get, value_bytes - 128);
  EXPECT_LE(straight.get, value_bytes);
}

// OpenSSL itself makes one: what it encrypts from the runs, and decrypts into them.
TEST(Copies, NoneOfOursToAndFromRedisOverTls) {
  const TestCertificates certificates;
  const int port = free_port();
  const RedisServer server(certificates.arguments(port));
  RedisStoreOptions options = server.options();
  options.servers = {{"127.0.0.1", port}};
  options.tls = true;
  options.tls_ca = certificates.ca();
  const Straight straight = measure(*make_redis_store(options));
  EXPECT_GE(straight.put, value_bytes / 10 * 9) << "all but a record or two for each small piece";
  EXPECT_LE(straight.put, value_bytes);
  EXPECT_GE(straight.get, value_bytes - 512);
  EXPECT_LE(straight.get, value_bytes);
}

}  // namespace
}  // namespace vitrove::testing
