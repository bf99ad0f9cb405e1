// Starting: constructing a store blocks on nothing, and what is missing is said in plain words.
#include <fstream>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "contract/test_values.h"
#include "stores/mooncake/staging.h"
#include "unit/mooncake/fake_cluster.h"
#include "unit/mooncake/helper_facts.h"
#include "unit/mooncake/waiting.h"
#include "vitrove/error.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Somebody who listens as a master would; or does not.
class Listener {
 public:
  Listener() {
    open();
    socklen_t length = sizeof address_;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address_), &length);
  }
  void open() {
    fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
    ::listen(fd_.get(), 128);
  }
  void close() { fd_.reset(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  UniqueFd fd_;
  sockaddr_in address_{};
};

bool is_down(const EmbeddingStore& store) {
  return eventually([&] { return store.health().state == StoreState::down; });
}
bool is_ready(const EmbeddingStore& store) {
  return eventually([&] { return store.health().state == StoreState::ready; });
}

TEST(MooncakeStart, WaitsForAMasterThatComesLater) {
  const FakeCluster cluster;
  Listener master;
  master.close();
  auto options = cluster.options();
  options.master = master.address();
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(is_down(*store));
  EXPECT_THAT(store->health().detail, HasSubstr("no master answers at " + master.address()));
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::unavailable);
  master.open();
  ASSERT_TRUE(is_ready(*store));
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 100)).ok());
}

TEST(MooncakeStart, AsksNobodyWhileTheMasterIsLostAndGoesOnWhenItIsBack) {
  const FakeCluster cluster;
  Listener master;
  auto options = cluster.options();
  options.master = master.address();
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 100)).ok());
  const pid_t pid = helper_pid(*store);

  master.close();
  cluster.set_faults("exist code -900");
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::unavailable);
  ASSERT_TRUE(is_down(*store));
  // A question would kill the helper now, and none is asked.
  cluster.set_faults("exist abort");
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::unavailable);
  cluster.set_faults("");
  master.open();
  ASSERT_TRUE(is_ready(*store));
  EXPECT_TRUE(exists(*store, key_number(1)).ok());
  EXPECT_EQ(helper_pid(*store), pid);
}

TEST(MooncakeStart, SurvivesASetUpThatHangs) {
  const FakeCluster cluster;
  cluster.set_faults("setup hang");
  auto options = cluster.options();
  options.start_timeout = milliseconds(300);
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(is_down(*store));
  EXPECT_THAT(store->health().detail, HasSubstr("set-up took longer than 300 ms"));
  cluster.set_faults("");
  EXPECT_TRUE(is_ready(*store));
}

TEST(MooncakeStart, TellsWhenMasterAndClientAreOfDifferentVersions) {
  const FakeCluster cluster;
  cluster.set_faults("setup code -300");
  const auto store = make_mooncake_store(cluster.options());
  ASSERT_TRUE(is_down(*store));
  EXPECT_THAT(store->health().detail, HasSubstr("different versions"));
  cluster.set_faults("setup code -1");
  EXPECT_TRUE(eventually(
      [&] { return store->health().detail.find("failed with code -1") != std::string::npos; }));
}

TEST(MooncakeStart, IsNotReadyWithoutItsStagingMemory) {
  const FakeCluster cluster;
  cluster.set_faults("register code -1");
  const auto store = make_mooncake_store(cluster.options());
  ASSERT_TRUE(is_down(*store));
  EXPECT_THAT(store->health().detail, HasSubstr("refuses"));
  EXPECT_THAT(store->health().detail, HasSubstr("bytes of memory with code -1"));
  cluster.set_faults("");
  EXPECT_TRUE(is_ready(*store));
}

TEST(MooncakeStart, TellsWhenThePoolsMemoryIsRefused) {
  const FakeCluster cluster;
  const auto store = make_mooncake_store(cluster.options());
  ASSERT_TRUE(is_ready(*store));
  EXPECT_EQ(store->health().detail.find("refuses"), std::string::npos);
  cluster.set_faults("register code -1");
  mooncake::StagingMemory pool(1 << 20);
  auto arena = pool.take(1 << 20, std::chrono::steady_clock::time_point::max(), {});
  ASSERT_TRUE(arena);
  store->register_shared_buffer(arena->bytes(), pool.memfd());
  EXPECT_TRUE(eventually([&] {
    return store->health().detail.find("refuses the pool's memory") != std::string::npos;
  }));
  EXPECT_EQ(store->health().state, StoreState::ready);
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 100)).ok());
}

TEST(MooncakeStart, TellsWhatIsMissing) {
  const FakeCluster cluster;
  const auto detail_with = [&](auto change) {
    auto options = cluster.options();
    change(options);
    const auto store = make_mooncake_store(options);
    EXPECT_TRUE(is_down(*store));
    return store->health().detail;
  };
  EXPECT_THAT(detail_with([](auto& o) { o.library = "/nowhere/libmooncake_store.so"; }),
              HasSubstr("cannot be loaded"));
  EXPECT_THAT(detail_with([](auto& o) {
                o.library = test::binary_dir() / "test-plugins" / "libvitrove_store_no_symbol.so";
              }),
              HasSubstr("no function mooncake_store_create"));
  EXPECT_THAT(detail_with([](auto& o) { o.helper = "/nowhere/helper"; }),
              HasSubstr("cannot start"));
  EXPECT_THAT(detail_with([](auto& o) {
                o.library.clear();
                o.python = "no-such-python";
              }),
              HasSubstr("cannot start no-such-python"));
  EXPECT_THAT(detail_with([](auto& o) { o.tenant = "team"; }), HasSubstr("no tenants"));
}

TEST(MooncakeStart, IsAnErrorOnlyWhenItIsStrict) {
  const FakeCluster cluster;
  auto options = cluster.options();
  options.strict = true;
  EXPECT_NO_THROW(make_mooncake_store(options));
  options.helper = "/nowhere/helper";
  options.start_timeout = milliseconds(200);
  EXPECT_THROW(make_mooncake_store(options), Error);
}

// Programs that are no helpers.
class NoHelper : public ::testing::TestWithParam<const char*> {};

TEST_P(NoHelper, IsKilledWithAllItsChildren) {
  const FakeCluster cluster;
  const auto program = cluster.directory() / "program";
  std::ofstream(program) << "#!/bin/sh\nsleep 1000 &\n" << GetParam() << "\nwait\n";
  ::chmod(program.c_str(), 0700);
  auto options = cluster.options();
  options.helper = program;
  options.start_timeout = milliseconds(2000);
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(is_down(*store));
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::unavailable);
  EXPECT_THAT(store->health().detail,
              ::testing::AnyOf(HasSubstr("protocol"), HasSubstr("took longer")));
}

INSTANTIATE_TEST_SUITE_P(All, NoHelper,
                         ::testing::Values("printf 'HTTP/1.1 400 Bad Request, and so on\\n' >&3",
                                           "head -c 100000 /dev/zero >&3", "true"));

TEST(MooncakeMemory, IsTakenBackFromTheHelperWhenThePoolEnds) {
  const FakeCluster cluster;
  const auto store = make_mooncake_store(cluster.options());
  mooncake::StagingMemory memory(1 << 20);
  auto block = memory.take(1 << 20, std::chrono::steady_clock::time_point::max(), {});
  ASSERT_TRUE(block);
  const MutableBuffer arena = block->bytes();
  const auto mapped = [&] {
    const std::string maps = text_of(proc_of(helper_pid(*store)) / "maps");
    std::size_t count = 0;
    for (auto at = maps.find("vitrove-mooncake "); at != maps.npos;
         at = maps.find("vitrove-mooncake ", at + 1)) {
      ++count;
    }
    return count;
  };
  store->register_shared_buffer(arena, memory.memfd());
  ASSERT_TRUE(put_one(*store, key_number(1), arena.first(5000)).ok());
  EXPECT_EQ(mapped(), 2u);  // and the store's own staging memory
  store->unregister_buffer(arena);
  EXPECT_EQ(mapped(), 1u);
  EXPECT_TRUE(exists(*store, key_number(1)).ok());
  EXPECT_EQ(get_one(*store, key_number(1), arena.first(5000)).status, StoreStatus::ok);
}

TEST(MooncakeMemory, IsBoundedAndSharedByManyThreads) {
  const FakeCluster cluster;
  auto options = cluster.options();
  options.staging_bytes = 1 << 20;
  const auto store = make_mooncake_store(options);
  EXPECT_EQ(store->capabilities().max_value_bytes, 1u << 20);
  EXPECT_EQ(put_one(*store, key_number(1), Bytes((1 << 20) + 1)).status, StoreStatus::too_large);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const Bytes value = pattern(i, 700'000);
      if (!put_one(*store, key_number(i), value).ok()) ++wrong;
      if (read_back(*store, key_number(i)) != value) ++wrong;
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace vitrove::testing
