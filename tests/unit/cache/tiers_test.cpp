// Several stores: nearest first, far hits copied near, puts to all, one budget (design section 5).
#include "cache/tier.h"
#include "contract/forwarding_store.h"
#include "support.h"

namespace vitrove::testing {
namespace {

class Tiers : public ::testing::Test {
 protected:
  EmbeddingCacheController make(ControllerOptions options = small_pool(64)) {
    return EmbeddingCacheController(std::move(options), {near_, far_});
  }
  std::shared_ptr<FaultyStore> near_ = std::make_shared<FaultyStore>(make_memory_store());
  std::shared_ptr<FaultyStore> far_ = std::make_shared<FaultyStore>(make_memory_store());
};

bool has(EmbeddingStore& store, const Picture& item) {
  const Bytes value = read_back(store, item.key());
  return !value.empty() && inspect(value, item.key()) == Reject::none;
}

TEST_F(Tiers, APutGoesToAll) {
  auto controller = make();
  serve_one(controller, picture(1));
  settle(controller);
  EXPECT_TRUE(has(*near_, picture(1)));
  EXPECT_TRUE(has(*far_, picture(1)));
  const auto stats = controller.stats();
  EXPECT_EQ(stats.stores[0].name, "faulty");
  EXPECT_EQ(stats.stores[1].name, "faulty#1");
  controller.check_invariants();
}

TEST_F(Tiers, AHitInAFarTierIsCopiedToTheNearerOne) {
  auto controller = make();
  plant(far_->inner(), picture(1));
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::store);
  settle(controller);
  EXPECT_EQ(read_back(near_->inner(), picture(1).key()),
            read_back(far_->inner(), picture(1).key()));
  EXPECT_EQ(far_->calls(StoreOp::put), 0U);
  controller.flush(FlushScope::local, std::nullopt, request());
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::store);
  EXPECT_EQ(far_->keys(StoreOp::get), 1U);  // the near one answered this time
}

TEST_F(Tiers, OnlyWhatTheNearerTierLacksIsAskedOfTheFartherOne) {
  auto controller = make();
  plant(near_->inner(), picture(0));
  plant(far_->inner(), picture(1));
  const auto served = serve(controller, {picture(0), picture(1), picture(2)});
  EXPECT_EQ(served[0].source, Source::store);
  EXPECT_EQ(served[1].source, Source::store);
  EXPECT_EQ(served[2].source, Source::encoded);
  EXPECT_EQ(far_->keys(StoreOp::exist), 2U);
  EXPECT_EQ(far_->keys(StoreOp::get), 1U);
}

TEST_F(Tiers, WhatTheNearTierSpoilsTheFarOneMakesGood) {
  auto controller = make();
  plant(far_->inner(), picture(1));
  Bytes bad = stored_value(picture(1));
  bad[500] ^= std::byte{4};
  ASSERT_TRUE(put_one(near_->inner(), picture(1).key(), bad).ok());
  const Served served = serve_one(controller, picture(1));
  EXPECT_EQ(served.source, Source::store);
  expect_golden(served.view, picture(1));
  settle(controller);
  EXPECT_TRUE(has(*near_, picture(1)));  // replaced
}

TEST_F(Tiers, AFailingNearTierDoesNotHideTheFarOne) {
  auto controller = make();
  plant(far_->inner(), picture(1));
  near_->add({.op = StoreOp::exist, .status = StoreStatus::unavailable});
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::store);
  near_->add({.op = StoreOp::exist, .fault = Fault::throws});
  plant(far_->inner(), picture(2));
  EXPECT_EQ(serve_one(controller, picture(2)).source, Source::store);
}

TEST_F(Tiers, OneLookupHasOneBudgetOverAllTiers) {
  auto options = small_pool(64);
  options.store_timeout = 1s;
  auto controller = make(options);
  plant(far_->inner(), picture(1));
  near_->add({.op = StoreOp::exist, .fault = Fault::hold_before, .times = 1});
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::encoded);
  EXPECT_EQ(far_->calls(StoreOp::exist), 0U);  // nothing was left for it
  near_->heal();
  controller.check_invariants();
}

TEST_F(Tiers, ADeadTiersPutsDoNotHoldUpTheOthers) {
  auto controller = make();
  near_->add({.op = StoreOp::put, .fault = Fault::hold_before, .times = 1});
  serve_one(controller, picture(1));
  ASSERT_TRUE(near_->gate().wait_for_waiting(1));
  EXPECT_TRUE(eventually([&] { return has(*far_, picture(1)); }));
  near_->heal();
  settle(controller);
  EXPECT_TRUE(has(*near_, picture(1)));
  controller.check_invariants();
}

TEST_F(Tiers, AValueBeyondATiersLimitSkipsThatTier) {  // B52
  struct Narrow final : public EmbeddingStore {
    std::string_view name() const override { return "narrow"; }
    StoreCapabilities capabilities() const override {
      StoreCapabilities can;
      can.max_value_bytes = 1000;
      return can;
    }
    StoreHealth health() const override { return {}; }
    std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                            const StoreContext&) override {
      return std::vector<StoreResult>(keys.size(), StoreResult{StoreStatus::absent});
    }
    std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                          std::span<const MutableBufferList>,
                                                          const StoreContext&) override {
      return std::vector<StoreResult>(keys.size(), StoreResult{StoreStatus::absent});
    }
    std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                          std::span<const ConstBufferList>, PutMode,
                                                          const StoreContext&) override {
      ++puts;
      return std::vector<StoreResult>(keys.size());
    }
    std::atomic<int> puts = 0;
  };
  const auto narrow = std::make_shared<Narrow>();
  EmbeddingCacheController controller(small_pool(64), {narrow, far_});
  serve_one(controller, picture(1));
  serve_one(controller, picture(2, 1));
  settle(controller);
  EXPECT_EQ(narrow->puts, 1);
  EXPECT_TRUE(has(*far_, picture(1)));
  const auto stats = controller.stats().stores[0];
  EXPECT_EQ(stats.put.faults, 1U);
  EXPECT_EQ(stats.put.reasons.at(0).first, "too_large");
  EXPECT_FALSE(stats.put_breaker_open);
}

struct NoReplace final : public ForwardingStore {
  std::atomic<int> gets = 0;
  std::atomic<int> puts = 0;
  std::atomic<int> replaces = 0;
  std::atomic<bool> can_remove = true;
  std::atomic<bool> remove_works = true;
  StoreCapabilities capabilities() const override {
    StoreCapabilities can = inner->capabilities();
    can.can_replace = false;
    can.can_remove = can_remove;
    can.reports_pieces = false;
    return can;
  }
  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> lists,
                                                        const StoreContext& context) override {
    StoreContext blind = context;
    ++gets;
    blind.observer = nullptr;  // and it does not say what it reads
    return inner->batch_get_into_multi_buffers(keys, lists, blind);
  }
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> lists,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    ++puts;
    replaces += mode == PutMode::replace ? 1 : 0;
    return inner->batch_put_from_multi_buffers(keys, lists, mode, context);
  }
  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    if (!remove_works) return {keys.size(), {StoreStatus::io_error}};
    return inner->batch_remove(keys, context);
  }
};

// A picture whose stored value is damaged.
void plant_bad(EmbeddingStore& store, const Picture& item) {
  Bytes bad = stored_value(item);
  bad[400] ^= std::byte{1};
  ASSERT_TRUE(put_one(store, item.key(), bad).ok());
}

// A backend that cannot replace removes and puts again.
TEST(Replacing, WorksWithABackendThatCanOnlyRemove) {
  const auto store = std::make_shared<NoReplace>();
  const Picture a = picture(1);
  plant_bad(*store, a);
  EmbeddingCacheController controller(small_pool(8), {store});
  EXPECT_EQ(serve_one(controller, a).source, Source::encoded);
  settle(controller);
  EXPECT_EQ(store->replaces, 0);
  controller.flush(FlushScope::local, std::nullopt, request());
  EXPECT_EQ(serve_one(controller, a).source, Source::store);
}

// B40: one that can do neither keeps its bad value, which is not read over and over.
TEST(Replacing, AKeyThatCanBeNeitherReplacedNorRemovedIsLeftAloneForAWhile) {
  for (const bool can_remove : {false, true}) {
    const auto store = std::make_shared<NoReplace>();
    store->can_remove = can_remove;
    store->remove_works = false;
    const Picture a = picture(1);
    plant_bad(*store, a);
    const int puts_before = store->puts;
    EmbeddingCacheController controller(small_pool(8), {store});
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(serve_one(controller, a).source, Source::encoded);
      settle(controller);
      controller.flush(FlushScope::local, std::nullopt, request());
    }
    EXPECT_EQ(store->gets, 1) << "can_remove: " << can_remove;
    EXPECT_EQ(rejected(controller), 1U);
    EXPECT_EQ(store->puts, puts_before) << "its good answer would mean the bad value";
    EXPECT_EQ(controller.stats().puts_dropped, 5U);
    EXPECT_EQ(serve_one(controller, picture(2)).source, Source::encoded);
    settle(controller);
    EXPECT_EQ(store->puts, puts_before + 1) << "others go on";
  }
}

// Which values of a tier are not to be believed.
class Marks : public ::testing::Test {
 protected:
  static constexpr std::size_t most = 65'536;
  Tier tier_{make_memory_store(), "tier", {}};
  const EmbeddingKey key_ = key_number(0);
};

TEST_F(Marks, OfWhatCouldNotBeReadGoWhenItCan) {
  tier_.mark_bad(key_, Tier::Bad::unreadable);
  EXPECT_TRUE(tier_.is_bad(key_));
  EXPECT_FALSE(tier_.is_avoided(key_)) << "it may be readable the next time";
  tier_.mark_readable(key_);
  EXPECT_FALSE(tier_.is_bad(key_));
}

TEST_F(Marks, OfWhatIsNotBelievedOutliveReadsThatBeganBefore) {
  tier_.mark_bad(key_, Tier::Bad::not_believed);
  tier_.mark_bad(key_, Tier::Bad::unreadable);
  tier_.mark_readable(key_);
  EXPECT_TRUE(tier_.is_bad(key_));
  EXPECT_TRUE(tier_.is_avoided(key_));
  tier_.mark_renewed(key_);
  EXPECT_FALSE(tier_.is_bad(key_));
  EXPECT_FALSE(tier_.is_avoided(key_));
}

TEST_F(Marks, BeyondTheirNumberMeanThatNothingIsBelieved) {
  for (std::size_t i = 1; i <= most; ++i) tier_.mark_bad(key_number(i), Tier::Bad::not_believed);
  EXPECT_FALSE(tier_.is_avoided(key_));
  tier_.mark_bad(key_number(most + 1), Tier::Bad::not_believed);
  for (std::size_t i = 0; i <= most + 1; ++i) ASSERT_TRUE(tier_.is_avoided(key_number(i))) << i;
  EXPECT_TRUE(tier_.is_bad(key_));
}

TEST_F(Marks, OfWhatCouldNotBeReadPushOutNoneOfWhatIsNotBelieved) {
  for (std::size_t i = 1; i <= most; ++i) tier_.mark_bad(key_number(i), Tier::Bad::not_believed);
  tier_.mark_bad(key_, Tier::Bad::unreadable);
  for (std::size_t i = 1; i <= most; ++i) ASSERT_TRUE(tier_.is_avoided(key_number(i))) << i;
}

TEST_F(Marks, BeyondTheirNumberOfWhatCouldNotBeReadKeepNobodyFromReading) {
  for (std::size_t i = 0; i <= most; ++i) tier_.mark_bad(key_number(i), Tier::Bad::unreadable);
  for (std::size_t i = 0; i <= most; ++i) ASSERT_FALSE(tier_.is_avoided(key_number(i))) << i;
  tier_.mark_bad(key_, Tier::Bad::not_believed);
  EXPECT_TRUE(tier_.is_avoided(key_));
  EXPECT_FALSE(tier_.is_avoided(key_number(1)));
}

}  // namespace
}  // namespace vitrove::testing
