// Several callers of provider (a), over a fake wheel (tests/mooncake/python): values lie in the
// arena, so that each caller may be the one who reads the answers of all, and the helper may join
// their gets.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "unit/mooncake/fake_cluster.h"
#include "unit/mooncake/helper_facts.h"
#include "unit/mooncake/waiting.h"
#include "vitrove/page_pool.h"

namespace vitrove::testing {
namespace {

constexpr std::size_t callers = 6;
constexpr std::size_t value_bytes = 5000;
constexpr std::size_t place_bytes = 1 << 20;  // of each caller

// What a helper is started with.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

class MooncakeCallers : public ::testing::Test {
 protected:
  void SetUp() override {
    store_->register_shared_buffer(pool_.arena(), pool_.memfd());
    ASSERT_TRUE(eventually([&] { return is_ready(); })) << store_->health().detail;
  }
  void TearDown() override { store_->unregister_buffer(pool_.arena()); }

  MooncakeStoreOptions options() const {
    auto options = cluster_.options();
    options.library.clear();
    options.python = "python3";
    return options;
  }
  bool is_ready() const { return store_->health().state == StoreState::ready; }

  // Puts and gets in a place of its own until told to end; counts what went well.
  void call(std::size_t caller) {
    const auto place = pool_.arena().subspan(caller * place_bytes, place_bytes);
    const auto source = place.first(value_bytes);
    const auto target = place.subspan(place_bytes / 2, value_bytes);
    for (std::size_t round = 0; !ends_; ++round) {
      const EmbeddingKey key = key_number(round, "caller " + std::to_string(caller));
      const Bytes value = pattern(callers * round + caller, value_bytes);
      std::ranges::copy(value, source.begin());
      std::ranges::fill(target, std::byte{0});
      if (!put_one(*store_, key, source).ok()) continue;
      const StoreResult got = get_one(*store_, key, target);
      if (!got.ok()) continue;
      if (!std::ranges::equal(target, value)) ++wrong_;
      ++good_;
    }
  }
  void start() {
    for (std::size_t i = 0; i < callers; ++i) threads_.emplace_back([this, i] { call(i); });
  }
  // Waits until so many more went well.
  bool more(int count) {
    const int aim = good_ + count;
    return eventually([&] { return good_ >= aim; });
  }
  void finish() {
    ends_ = true;
    threads_.clear();
    EXPECT_EQ(wrong_, 0);
  }

  const Setting path_{"PYTHONPATH", test::source_dir() / "tests" / "mooncake" / "python"};
  const Setting no_caches_{"PYTHONDONTWRITEBYTECODE", "1"};
  FakeCluster cluster_;
  PagePool pool_{{.pool_bytes = callers * place_bytes}};
  std::unique_ptr<EmbeddingStore> store_ = make_mooncake_store(options());
  std::atomic<bool> ends_{false};
  std::atomic<int> good_{0};
  std::atomic<int> wrong_{0};
  std::vector<std::jthread> threads_;
};

TEST_F(MooncakeCallers, GetEachTheirOwnAnswers) {
  start();
  EXPECT_TRUE(more(300));
  finish();
}

TEST_F(MooncakeCallers, AreAllToldWhenTheHelperDies) {
  start();
  for (int death = 0; death < 2; ++death) {
    pid_t helper = -1;
    ASSERT_TRUE(eventually([&] { return is_ready() && (helper = helper_pid(*store_)) > 0; }));
    EXPECT_TRUE(more(20));
    ::kill(helper, SIGKILL);
  }
  EXPECT_TRUE(more(20)) << "with yet another helper";
  finish();
}

// It answers calls that nobody has made, without end: neither a caller nor the end waits for it.
TEST(MooncakeCaller, IsNotKeptByAHelperThatNeverStopsTalking) {
  const FakeCluster cluster;
  MooncakeStoreOptions options = cluster.options();
  options.library.clear();
  options.python = test::source_dir() / "tests" / "mooncake" / "babbling_helper.py";
  options.hang_timeout = std::chrono::milliseconds(200);
  PagePool pool({.pool_bytes = 2 * place_bytes});
  const auto store = make_mooncake_store(options);
  store->register_shared_buffer(pool.arena(), pool.memfd());
  ASSERT_TRUE(eventually([&] { return store->health().state == StoreState::ready; }))
      << store->health().detail;
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  const auto target = pool.arena().first(value_bytes);
  EXPECT_FALSE(get_one(*store, key_number(1), target, context).ok());
  store->unregister_buffer(pool.arena());
}

}  // namespace
}  // namespace vitrove::testing
