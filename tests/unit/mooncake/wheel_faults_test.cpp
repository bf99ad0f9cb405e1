// Provider (a) on a real cluster: the arena's memory without a copy, and masters, holders and
// helpers that die (field cases B49, B50, B54, B60).
#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "contract/test_values.h"
#include "unit/mooncake/helper_facts.h"
#include "unit/mooncake/mooncake_cluster.h"
#include "unit/mooncake/waiting.h"
#include "vitrove/page_pool.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

StoreContext within(milliseconds time) {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + time;
  return context;
}

bool is_in_state(const EmbeddingStore& store, StoreState state) {
  return eventually([&] { return store.health().state == state; });
}

// Bytes that passed through the staging memory of this process's only store.
std::uint64_t staged_bytes() {
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(fd.path(), error).string();
    struct stat status {};
    if (target.find("memfd:vitrove-mooncake ") == target.npos) continue;
    if (::stat(fd.path().c_str(), &status) == 0) {
      return static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
  }
  return 0;
}

// A store of the shared cluster that knows a pool's arena.
class WheelArena : public ::testing::Test {
 protected:
  void SetUp() override {
    store_->register_shared_buffer(pool_.arena(), pool_.memfd());
    ASSERT_TRUE(is_in_state(*store_, StoreState::ready)) << store_->health().detail;
  }
  void TearDown() override { store_->unregister_buffer(pool_.arena()); }

  MutableBuffer arena(std::size_t at, std::size_t size) { return pool_.arena().subspan(at, size); }
  void fill(std::size_t at, const Bytes& bytes) {
    std::ranges::copy(bytes, arena(at, bytes.size()).begin());
  }
  bool holds(std::size_t at, const Bytes& bytes) {
    return std::ranges::equal(arena(at, bytes.size()), bytes);
  }
  static MooncakeStoreOptions options() {
    auto options = shared_cluster().options();
    options.hang_timeout = milliseconds(300);
    return options;
  }

  PagePool pool_{{.pool_bytes = 32u << 20}};
  std::unique_ptr<EmbeddingStore> store_ = make_mooncake_store(options());
};

TEST_F(WheelArena, IsReadAndWrittenByTheHelperWithoutACopy) {
  const Bytes value = pattern(1, 3'000'000);
  fill(0, value);
  const std::vector<ConstBuffer> sources = {arena(0, 256), arena(256, 999'744),
                                            arena(1'000'000, 2'000'000)};
  const ConstBufferList source_list(sources);
  const EmbeddingKey key = key_number(1);
  ASSERT_TRUE(
      store_->batch_put_from_multi_buffers({&key, 1}, {&source_list, 1}, PutMode::if_absent, {})
          .at(0)
          .ok());
  const std::vector<MutableBuffer> targets = {arena(20'000'000, 256), arena(10'000'000, 2'000'000),
                                              arena(15'000'000, 999'744)};
  const MutableBufferList target_list(targets);
  const StoreResult got =
      store_->batch_get_into_multi_buffers({&key, 1}, {&target_list, 1}, {}).at(0);
  EXPECT_TRUE(got.ok()) << to_string(got.status);
  EXPECT_EQ(got.size, value.size());
  const auto part = [&](std::size_t at, std::size_t size) {
    return Bytes(value.begin() + static_cast<std::ptrdiff_t>(at),
                 value.begin() + static_cast<std::ptrdiff_t>(at + size));
  };
  EXPECT_TRUE(holds(20'000'000, part(0, 256)));
  EXPECT_TRUE(holds(10'000'000, part(256, 2'000'000)));
  EXPECT_TRUE(holds(15'000'000, part(2'000'256, 999'744)));
  EXPECT_EQ(staged_bytes(), 0u);
}

TEST_F(WheelArena, GivesEveryPositionOfABatchItsOwnAnswer) {
  const Bytes value = pattern(2, 5000);
  ASSERT_TRUE(put_one(*store_, key_number(1), value).ok());
  const std::vector<EmbeddingKey> keys = {key_number(1), key_number(2), key_number(1),
                                          key_number(1), key_number(1)};
  Bytes elsewhere(5000);
  const std::vector<MutableBuffer> buffers = {arena(0, 5000), arena(10'000, 5000),
                                              arena(20'000, 5000), arena(30'000, 5001), elsewhere};
  const auto results = store_->batch_get(keys, buffers, {});
  EXPECT_TRUE(results[0].ok() && results[2].ok() && results[4].ok());
  EXPECT_EQ(results[1].status, StoreStatus::absent);
  EXPECT_EQ(results[3].status, StoreStatus::size_mismatch);
  EXPECT_EQ(results[3].size, 5000u);
  EXPECT_TRUE(holds(0, value) && holds(20'000, value));
  EXPECT_EQ(elsewhere, value);
}

TEST_F(WheelArena, TakesBatchesOfMoreRunsThanOneTransferDoes) {
  std::vector<std::vector<ConstBuffer>> runs;
  std::vector<std::vector<MutableBuffer>> back;
  for (std::size_t i = 0; i < 200; ++i) {
    const Bytes value = pattern(i, 20 * 500);
    fill(i * 20'000, value);
    auto& source = runs.emplace_back();
    auto& target = back.emplace_back();
    for (std::size_t n = 0; n < 20; ++n) {
      source.push_back(arena(i * 20'000 + n * 500, 499));  // gaps, so that no two are one
      target.push_back(arena(8'000'000 + i * 20'000 + n * 500, 499));
    }
  }
  const std::vector<ConstBufferList> sources(runs.begin(), runs.end());
  const std::vector<MutableBufferList> targets(back.begin(), back.end());
  const auto keys = key_numbers(200);
  for (const auto& result :
       store_->batch_put_from_multi_buffers(keys, sources, PutMode::if_absent, {})) {
    ASSERT_EQ(to_string(result.status), "ok");
  }
  for (const auto& result : store_->batch_get_into_multi_buffers(keys, targets, {})) {
    ASSERT_EQ(to_string(result.status), "ok");
  }
  for (std::size_t i = 0; i < 200; ++i) {
    for (std::size_t n = 0; n < 20; ++n) {
      ASSERT_TRUE(std::ranges::equal(runs[i][n], back[i][n])) << i << " " << n;
    }
  }
}

TEST_F(WheelArena, IsGivenBackOnlyWhenAStoppedHelperIsGone) {
  fill(0, pattern(1, 5000));
  ASSERT_TRUE(put_one(*store_, key_number(1), arena(0, 5000)).ok());
  const pid_t pid = helper_pid(*store_);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  EXPECT_EQ(get_one(*store_, key_number(1), arena(10'000, 5000), within(milliseconds(50))).status,
            StoreStatus::unavailable);
  EXPECT_FALSE(exists_process(pid));
  EXPECT_TRUE(eventually([&] { return get_one(*store_, key_number(1), arena(10'000, 5000)).ok(); }))
      << "another helper knows the arena";
  EXPECT_TRUE(holds(10'000, pattern(1, 5000)));
}

TEST_F(WheelArena, IsForgottenByTheHelperWhenThePoolEnds) {
  const auto maps = [&] { return text_of(proc_of(helper_pid(*store_)) / "maps"); };
  EXPECT_THAT(maps(), HasSubstr("vitrove-pool"));
  store_->unregister_buffer(pool_.arena());
  EXPECT_EQ(maps().find("vitrove-pool"), std::string::npos);
  Bytes bytes = pattern(3, 100);
  EXPECT_TRUE(put_one(*store_, key_number(3), bytes).ok());
}

TEST(WheelStart, TellsThatThePythonHasNoMooncake) {
  auto options = shared_cluster().options();
  options.python = "/usr/bin/python3";
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(is_in_state(*store, StoreState::down));
  EXPECT_THAT(store->health().detail, HasSubstr("has no Mooncake: install mooncake-transfer"));
}

TEST(WheelStart, TellsWhichPackageIsInUse) {
  const auto store = make_mooncake_store(shared_cluster().options());
  ASSERT_TRUE(is_in_state(*store, StoreState::ready));
  EXPECT_THAT(store->health().detail, HasSubstr("mooncake-transfer-engine-non-cuda 0."));
  // Every thread; one that is just being made has all of them blocked for a moment.
  const std::set<std::string> none = {"0000000000000000"};
  EXPECT_TRUE(eventually([&] { return blocked_signals(helper_pid(*store)) == none; }));
}

TEST(WheelCluster, PinsAndReplicatesAsItIsTold) {
  for (const bool hard : {false, true}) {
    auto options = shared_cluster().options();
    options.soft_pin = !hard;
    options.hard_pin = hard;
    const auto store = make_mooncake_store(options);
    EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 500)).ok());
    EXPECT_TRUE(remove_one(*store, key_number(1)).ok());
  }
}

TEST(WheelCluster, IsLostAndFoundAgain) {
  MooncakeCluster cluster;
  const auto store = make_mooncake_store(cluster.options());
  ASSERT_TRUE(is_in_state(*store, StoreState::down)) << "nobody is there yet";
  EXPECT_THAT(store->health().detail, HasSubstr("no master answers"));
  cluster.start_master();
  ASSERT_TRUE(is_in_state(*store, StoreState::ready));
  EXPECT_EQ(put_one(*store, key_number(1), pattern(1, 100)).status, StoreStatus::no_space)
      << "nobody lends memory yet";
  cluster.start_holder();
  const Bytes value = pattern(1, 100'000);
  ASSERT_TRUE(put_one(*store, key_number(1), value).ok());
  EXPECT_EQ(read_back(*store, key_number(1)), value);
  const pid_t pid = helper_pid(*store);

  cluster.master().kill();
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::unavailable);
  ASSERT_TRUE(is_in_state(*store, StoreState::down));
  cluster.start_master();
  ASSERT_TRUE(is_in_state(*store, StoreState::ready));
  EXPECT_TRUE(eventually([&] {
    return exists(*store, key_number(1)).status == StoreStatus::absent;
  })) << "a new master knows no key";
  ASSERT_TRUE(takes_values(*store)) << "the holder has found the new master";
  ASSERT_TRUE(put_one(*store, key_number(1), value).ok());
  EXPECT_EQ(read_back(*store, key_number(1)), value);
  EXPECT_EQ(helper_pid(*store), pid);

  cluster.holder().kill();
  Bytes bytes(value.size());
  EXPECT_FALSE(get_one(*store, key_number(1), bytes).ok());
  EXPECT_TRUE(eventually([&] {
    return exists(*store, key_number(1)).status == StoreStatus::absent;
  })) << "the master has noticed";
  cluster.start_holder();
  EXPECT_TRUE(put_one(*store, key_number(2), value).ok());
}

TEST(WheelCluster, LosesALeaseWithoutHarm) {
  MooncakeCluster cluster(1);  // one millisecond
  cluster.start_master();
  cluster.start_holder();
  const auto store = make_mooncake_store(cluster.options());
  const Bytes value = pattern(1, 30'000'000);
  ASSERT_TRUE(put_one(*store, key_number(1), value).ok());
  Bytes bytes(value.size());
  int lost = 0;
  for (int round = 0; round < 5; ++round) {
    const StoreResult result = get_one(*store, key_number(1), bytes);
    if (result.ok()) {
      EXPECT_TRUE(bytes == value);
    } else {
      EXPECT_EQ(to_string(result.status), "absent");
      ++lost;
    }
  }
  EXPECT_GT(lost, 0) << "thirty megabytes take more than a millisecond";
}

}  // namespace
}  // namespace vitrove::testing
