// When what was encoded reaches the stores, and when it never does.
#include "contract/forwarding_store.h"
#include "support.h"

namespace vitrove::testing {
namespace {

class Writing : public ::testing::Test {
 protected:
  EmbeddingCacheController make(ControllerOptions options) {
    return EmbeddingCacheController(std::move(options), {store_});
  }
  static ControllerOptions behind(std::chrono::microseconds delay) {
    auto options = small_pool(64);
    options.write_policy = WritePolicy::behind;
    options.write_behind_delay = delay;
    return options;
  }
  bool is_stored(const Picture& item) { return !read_back(store_->inner(), item.key()).empty(); }

  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
};

TEST_F(Writing, NeverMeansThatStoresAreOnlyRead) {
  auto options = small_pool(64);
  options.write_policy = WritePolicy::never;
  auto controller = make(options);
  plant(store_->inner(), picture(1));
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::store);
  EXPECT_EQ(serve_one(controller, picture(2)).source, Source::encoded);
  settle(controller);
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
  EXPECT_EQ(controller.stats().puts_dropped, 0U);
  EXPECT_TRUE(is_cached(controller, picture(2)));
  controller.check_invariants();
}

TEST_F(Writing, BehindWaitsForItsTime) {
  auto controller = make(behind(1h));
  serve_one(controller, picture(1));
  EXPECT_EQ(controller.stats().stores[0].put.pending, 1U);
  EXPECT_FALSE(is_stored(picture(1)));
  settle(controller);  // and whoever waits for puts has them sent
  EXPECT_TRUE(is_stored(picture(1)));
  controller.check_invariants();
}

TEST_F(Writing, BehindComesByItself) {
  auto controller = make(behind(1ms));
  for (int i = 0; i < 5; ++i) serve_one(controller, picture(i));
  EXPECT_TRUE(eventually([&] { return is_stored(picture(4)); }));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(is_stored(picture(i))) << i;
}

TEST_F(Writing, BehindHoldsBackNoMoreThanHalfOfTheBound) {
  auto options = behind(1h);
  options.max_pending_put_bytes = 10 * page;
  auto controller = make(options);
  for (int i = 0; i < 8; ++i) {
    serve_one(controller, picture(i));
    ASSERT_TRUE(eventually([&] { return controller.stats().stores[0].put.pending <= 5; })) << i;
  }
  EXPECT_TRUE(is_stored(picture(0)));
  EXPECT_FALSE(is_stored(picture(7)));
  EXPECT_EQ(controller.stats().puts_dropped, 0U);
}

// What is put from staging does not wait there: it would keep everybody from reading.
TEST_F(Writing, BehindHoldsBackNothingInStaging) {
  auto options = small_pool(0);
  options.write_policy = WritePolicy::behind;
  options.write_behind_delay = 1h;
  options.pool.staging_pages = 4;
  auto controller = make(options);
  plant(store_->inner(), picture(3));
  serve_one(controller, picture(1));
  serve_one(controller, picture(2));
  EXPECT_TRUE(eventually([&] { return controller.stats().stores[0].put.pending == 0; }));
  EXPECT_TRUE(is_stored(picture(2)));
  EXPECT_EQ(serve_one(controller, picture(3)).source, Source::store);
}

TEST_F(Writing, WhatFindsNoRoomToBeReadIntoIsCounted) {
  auto options = small_pool(0);
  options.pool.staging_pages = 0;
  auto controller = make(options);
  plant(store_->inner(), picture(1));
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::encoded);
  EXPECT_THAT(controller.stats().stores[0].get.reasons,
              ::testing::Contains(std::pair<std::string, std::uint64_t>("no_room", 1)));
}

TEST_F(Writing, NoDelayIsTooLong) {
  auto controller = make(behind(std::chrono::hours(24 * 110'000)));
  serve_one(controller, picture(1));
  serve_one(controller, picture(2));
  EXPECT_EQ(controller.stats().stores[0].put.pending, 2U);
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
}

TEST_F(Writing, WhatIsFlushedWhileItWaitsIsNeverWritten) {
  auto controller = make(behind(1h));
  serve_one(controller, picture(1));
  controller.flush(FlushScope::all, std::nullopt, request());
  serve_one(controller, picture(2));
  controller.remove(picture(2).key(), std::nullopt, request());
  serve_one(controller, picture(3));
  settle(controller);
  EXPECT_FALSE(is_stored(picture(1)));
  EXPECT_FALSE(is_stored(picture(2)));
  EXPECT_TRUE(is_stored(picture(3)));
  controller.check_invariants();
}

TEST_F(Writing, WhatWaitsWhenTheControllerEndsIsDropped) {
  {
    auto controller = make(behind(1h));
    serve_one(controller, picture(1));
  }
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
}

TEST_F(Writing, AfterUsesPutsWhatIsUsedAgain) {
  auto options = small_pool(64);
  options.put_after_uses = 3;
  auto controller = make(options);
  serve_one(controller, picture(1));
  serve_one(controller, picture(2));
  serve_one(controller, picture(1));
  settle(controller);
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
  serve_one(controller, picture(1));
  settle(controller);
  EXPECT_TRUE(is_stored(picture(1)));
  EXPECT_FALSE(is_stored(picture(2)));
  for (int i = 0; i < 5; ++i) serve_one(controller, picture(1));
  settle(controller);
  EXPECT_EQ(store_->keys(StoreOp::put), 1U) << "once is enough";
  controller.check_invariants();
}

TEST_F(Writing, AfterUsesPutsTheAliasesToo) {
  auto options = small_pool(64);
  options.put_after_uses = 2;
  auto controller = make(options);
  const EmbeddingKey feature{sha256("the same tensors")};
  FillTicket first = lead(controller, picture(1));
  ASSERT_FALSE(first.resolve_features(feature, request()));
  publish(first, picture(1));
  settle(controller);
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
  FillTicket twin = lead(controller, picture(2));
  ASSERT_TRUE(twin.resolve_features(feature, request()));  // the second use
  settle(controller);
  EXPECT_TRUE(is_stored(picture(1)));
  EXPECT_TRUE(is_stored(picture(2)));
  EXPECT_FALSE(read_back(store_->inner(), feature).empty());
  controller.flush(FlushScope::local, std::nullopt, request());
  auto answer = acquire_one(controller, picture(2));
  EXPECT_EQ(rows_of(std::get<Hit>(answer).view), golden_bytes(picture(1)));
}

TEST_F(Writing, WhatCameFromAStoreIsNotPutThereForItsUses) {
  auto options = small_pool(64);
  options.put_after_uses = 2;
  auto controller = make(options);
  plant(store_->inner(), picture(1));
  for (int i = 0; i < 4; ++i) serve_one(controller, picture(1));
  settle(controller);
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
}

TEST_F(Writing, WhatWasFlushedBeforeItsLastUseIsNotPut) {
  auto options = small_pool(64);
  options.put_after_uses = 2;
  auto controller = make(options);
  const EmbeddingView view = serve_one(controller, picture(1)).view;
  controller.flush(FlushScope::all, std::nullopt, request());
  controller.count_hit(view);
  settle(controller);
  EXPECT_EQ(store_->calls(StoreOp::put), 0U);
}

// A store across a network, with a latency that cannot be beaten.
struct FarStore final : public ForwardingStore {
  explicit FarStore(std::chrono::milliseconds time) : latency(time) {}
  StoreCapabilities capabilities() const override {
    StoreCapabilities can = inner->capabilities();
    can.is_local = false;
    return can;
  }
  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> lists,
                                                        const StoreContext& context) override {
    std::this_thread::sleep_for(latency);
    return inner->batch_get_into_multi_buffers(keys, lists, context);
  }
  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override {
    ++claims;
    return inner->claim(key, ttl, token, context);
  }
  std::atomic<int> claims{0};
  const std::chrono::milliseconds latency;
};

TEST(CheapPuts, AreSkippedOnceGetsHaveShownWhatTheyCost) {
  const auto far = std::make_shared<FarStore>(20ms);
  auto options = small_pool(256);
  options.skip_cheap_puts = true;
  EmbeddingCacheController controller(options, {far});
  const auto encode = [&](int number, std::chrono::microseconds cost) {
    FillTicket ticket = lead(controller, picture(number));
    publish(ticket, picture(number), cost);
  };
  encode(1, 1us);
  settle(controller);
  EXPECT_FALSE(read_back(*far->inner, picture(1).key()).empty()) << "nothing is known yet";
  controller.flush(FlushScope::local, std::nullopt, request());
  ASSERT_EQ(serve_one(controller, picture(1)).source, Source::store);

  for (int i = 100; i < 200; ++i) encode(i, 1us);
  for (int i = 200; i < 220; ++i) encode(i, 1h);
  settle(controller);
  const auto skipped = controller.stats().puts_skipped;
  EXPECT_GT(skipped, 50U);
  EXPECT_LT(skipped, 100U) << "some go there to keep the measure fresh";
  for (int i = 200; i < 220; ++i) {
    EXPECT_FALSE(read_back(*far->inner, picture(i).key()).empty()) << i;
  }
  controller.check_invariants();
}

TEST(CheapPuts, GoToStoresOfTheSameHost) {
  const auto near = std::make_shared<FaultyStore>(make_memory_store());
  auto options = small_pool(64);
  options.skip_cheap_puts = true;
  EmbeddingCacheController controller(options, {near});
  plant(near->inner(), picture(1));
  ASSERT_EQ(serve_one(controller, picture(1)).source, Source::store);
  FillTicket ticket = lead(controller, picture(2));
  publish(ticket, picture(2), 0us);
  settle(controller);
  EXPECT_FALSE(read_back(near->inner(), picture(2).key()).empty());
  EXPECT_EQ(controller.stats().puts_skipped, 0U);
}

// Servers over the store would wait for a value that is never put.
TEST(CheapPuts, AreNotClaimed) {
  const auto far = std::make_shared<FarStore>(0ms);
  const auto near = std::make_shared<FaultyStore>(make_memory_store());
  for (const bool skip : {true, false}) {
    auto options = small_pool(64);
    options.skip_cheap_puts = skip;
    far->claims = 0;
    EmbeddingCacheController controller(options, {far});
    FillTicket ticket = lead(controller, picture(1));
    EXPECT_EQ(ticket.claim(request()).outcome, FillTicket::Claim::encode_it);
    EXPECT_EQ(far->claims, skip ? 0 : 1);
    EmbeddingCacheController local(options, {near});
    FillTicket local_ticket = lead(local, picture(1));
    EXPECT_EQ(local_ticket.claim(request()).outcome, FillTicket::Claim::encode_it);
  }
  EXPECT_EQ(near->calls(StoreOp::claim), 2U) << "here every put follows";
}

}  // namespace
}  // namespace vitrove::testing
