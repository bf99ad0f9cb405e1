// The contract suite over stores that lie (field case B56): short reads, wrong lengths, missing
// results, success without data, late answers. What a cache shows above them keeps the contract.
#include "cache_as_store.h"
#include "contract/store_contract.h"

namespace vitrove::testing {
namespace {

// Every call of one kind is a lie of one kind.
template <StoreOp op, Fault fault, std::uint64_t bytes = 1>
class LiarHarness {
 public:
  // `store_timeout`: of one that is late.
  explicit LiarHarness(std::chrono::microseconds store_timeout = 5ms)
      : cache_(options(store_timeout), liar_) {
    liar_->add({.op = op, .fault = fault, .status = StoreStatus::no_space, .bytes = bytes});
  }
  ~LiarHarness() {
    liar_->heal();  // whoever is late may answer now
    cache_.controller().check_invariants();
  }
  LiarHarness(const LiarHarness&) = delete;
  LiarHarness& operator=(const LiarHarness&) = delete;

  EmbeddingStore& store() { return cache_; }
  std::unique_ptr<EmbeddingStore> open() { return nullptr; }
  std::size_t lies() const { return liar_->calls(op); }

 private:
  static ControllerOptions options([[maybe_unused]] std::chrono::microseconds store_timeout) {
    ControllerOptions options;
    options.pool.pool_bytes = std::uint64_t{192} << 20;
    options.pool.poison_on_free = false;  // what a lie leaves unwritten shows another value
    options.shutdown_timeout = patience;
    if constexpr (fault == Fault::hold_after || fault == Fault::hold_before) {
      options.store_timeout = store_timeout;
      options.breaker_pause = std::chrono::hours(1);
    } else {
      options.store_timeout = patience;
      options.breaker_faults = 1'000'000;  // never tired of believing it
    }
    return options;
  }

  std::shared_ptr<FaultyStore> liar_ = std::make_shared<FaultyStore>(make_memory_store());
  CacheAsStore cache_;
};

// Under sanitizers one of each kind has to do.
using SomeLiars = ::testing::Types<
    LiarHarness<StoreOp::get, Fault::short_read, 7>,
    LiarHarness<StoreOp::get, Fault::wrong_size, 77>,
    LiarHarness<StoreOp::get, Fault::missing_result>, LiarHarness<StoreOp::get, Fault::no_effect>,
    LiarHarness<StoreOp::get, Fault::hold_after>, LiarHarness<StoreOp::put, Fault::no_effect>>;
using AllLiars = ::testing::Types<
    LiarHarness<StoreOp::get, Fault::short_read, 7>,
    LiarHarness<StoreOp::get, Fault::wrong_bytes, 257>,
    LiarHarness<StoreOp::get, Fault::wrong_size, 77>, LiarHarness<StoreOp::get, Fault::no_effect>,
    LiarHarness<StoreOp::get, Fault::zero_size>, LiarHarness<StoreOp::get, Fault::missing_result>,
    LiarHarness<StoreOp::get, Fault::extra_result>, LiarHarness<StoreOp::get, Fault::odd_status>,
    LiarHarness<StoreOp::get, Fault::throws>, LiarHarness<StoreOp::get, Fault::hold_after>,
    LiarHarness<StoreOp::exist, Fault::wrong_size, 300>,
    LiarHarness<StoreOp::exist, Fault::no_effect>, LiarHarness<StoreOp::exist, Fault::vanish>,
    LiarHarness<StoreOp::exist, Fault::missing_result>, LiarHarness<StoreOp::put, Fault::no_effect>,
    LiarHarness<StoreOp::put, Fault::error>, LiarHarness<StoreOp::put, Fault::missing_result>,
    LiarHarness<StoreOp::put, Fault::throws>>;
using Liars = std::conditional_t<is_sanitized, SomeLiars, AllLiars>;
INSTANTIATE_TYPED_TEST_SUITE_P(Liar, StoreContract, Liars, );

// Else its lies would show nothing.
template <typename Harness>
class ALiar : public ::testing::Test {};
TYPED_TEST_SUITE(ALiar, Liars);

TYPED_TEST(ALiar, IsAskedAndNotBelieved) {
  TypeParam harness(3s);
  const Bytes value = pattern(1, 1000);
  ASSERT_TRUE(put_one(harness.store(), key_number(1), value).ok());
  EXPECT_EQ(read_back(harness.store(), key_number(1)), value);
  EXPECT_GT(harness.lies(), 0U);
}

// The cache does ask the store below, and believes what holds: else nothing would be shown above.
TEST(CacheAsStore, IsServedByAStoreThatTellsTheTruth) {
  const auto honest = std::make_shared<FaultyStore>(make_memory_store());
  ControllerOptions options;
  options.pool.pool_bytes = std::uint64_t{16} << 20;
  options.store_timeout = patience;
  CacheAsStore cache(options, honest);
  const Bytes value = pattern(1, 1000);
  ASSERT_TRUE(put_one(cache, key_number(1), value).ok());
  EXPECT_EQ(read_back(cache, key_number(1)), value);
  EXPECT_EQ(honest->calls(StoreOp::get), 1u);
  EXPECT_EQ(lookups(cache.controller()).store, 1u);
}

}  // namespace
}  // namespace vitrove::testing
