// Flushing and removing (field cases B32, B38, B76).
#include "contract/forwarding_store.h"
#include "support.h"

namespace vitrove::testing {
namespace {

class Flushing : public ::testing::Test {
 protected:
  Flushing() : controller_(small_pool(64), {store_}) {}

  FlushReport flush(FlushScope scope, std::optional<Digest256> model = std::nullopt) {
    return controller_.flush(scope, model, request());
  }
  bool stored(const Picture& item) { return !read_back(store_->inner(), item.key()).empty(); }

  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller_;
};

Picture of_model(int number, const std::string& model) {
  Picture item = picture(number);
  item.model = model;
  return item;
}

TEST_F(Flushing, LocalDropsThePoolAndLeavesTheStore) {
  for (int i = 0; i < 5; ++i) serve_one(controller_, picture(i));
  settle(controller_);
  const FlushReport report = flush(FlushScope::local);
  ASSERT_EQ(report.tiers.size(), 1U);
  EXPECT_EQ(report.tiers[0].name, "pool");
  EXPECT_EQ(report.tiers[0].removed, 5U);
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  EXPECT_TRUE(stored(picture(1)));
  EXPECT_EQ(controller_.stats().evictions_flush, 5U);
  controller_.check_invariants();
}

TEST_F(Flushing, StoreLeavesThePool) {
  for (int i = 0; i < 5; ++i) serve_one(controller_, picture(i));
  settle(controller_);
  const FlushReport report = flush(FlushScope::store);
  ASSERT_EQ(report.tiers.size(), 1U);
  EXPECT_EQ(report.tiers[0].name, "faulty");
  EXPECT_EQ(report.tiers[0].removed, 5U);
  EXPECT_TRUE(is_cached(controller_, picture(1)));
  EXPECT_FALSE(stored(picture(1)));
}

TEST_F(Flushing, AllDropsBoth) {
  for (int i = 0; i < 3; ++i) serve_one(controller_, picture(i));
  settle(controller_);
  const FlushReport report = flush(FlushScope::all);
  ASSERT_EQ(report.tiers.size(), 2U);
  EXPECT_EQ(report.tiers[0].removed, 3U);
  EXPECT_EQ(report.tiers[1].removed, 3U);
  EXPECT_EQ(serve_one(controller_, picture(1)).source, Source::encoded);
}

TEST_F(Flushing, OfOneModelLeavesTheOthersAlone) {  // B38
  for (int i = 0; i < 3; ++i) {
    serve_one(controller_, of_model(i, "old"));
    serve_one(controller_, of_model(i, "new"));
  }
  settle(controller_);
  ASSERT_TRUE(put_one(store_->inner(), key_number(7), pattern(1, 500)).ok());  // foreign
  const FlushReport report = flush(FlushScope::all, sha256("old"));
  EXPECT_EQ(report.tiers[0].removed, 3U);
  EXPECT_EQ(report.tiers[1].removed, 3U);
  EXPECT_FALSE(is_cached(controller_, of_model(1, "old")));
  EXPECT_TRUE(is_cached(controller_, of_model(1, "new")));
  EXPECT_FALSE(stored(of_model(1, "old")));
  EXPECT_TRUE(stored(of_model(1, "new")));
  EXPECT_FALSE(read_back(store_->inner(), key_number(7)).empty());
}

TEST_F(Flushing, PinnedReadersKeepWhatTheyHave) {
  const EmbeddingView view = serve_one(controller_, picture(1)).view;
  settle(controller_);
  flush(FlushScope::all);
  expect_golden(view, picture(1));
  EXPECT_FALSE(is_cached(controller_, picture(1)));
}

TEST_F(Flushing, AFillThatStartedBeforeIsNotPublishedAfterwards) {
  auto ticket = lead(controller_, picture(1));
  flush(FlushScope::all);
  {
    const auto view = publish(ticket, picture(1));  // whoever asked gets it
    expect_golden(view, picture(1));
  }
  settle(controller_);
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  EXPECT_FALSE(stored(picture(1)));
  controller_.check_invariants();
}

TEST_F(Flushing, ARequestAfterTheFlushDoesNotJoinAFillFromBefore) {
  auto before = lead(controller_, picture(1));
  auto follower = acquire_one(controller_, picture(1));
  ASSERT_TRUE(std::holds_alternative<JoinTicket>(follower));
  flush(FlushScope::local);
  auto after = acquire_one(controller_, picture(1));
  ASSERT_TRUE(std::holds_alternative<FillTicket>(after));
  // The old leader's followers are served by him, and nobody else is.
  publish(before, picture(1));
  auto outcome = std::get<JoinTicket>(follower).wait(request());
  expect_golden(std::get<EmbeddingView>(outcome), picture(1));
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  publish(std::get<FillTicket>(after), picture(1));
  EXPECT_TRUE(is_cached(controller_, picture(1)));
}

TEST_F(Flushing, AFillOfAnotherModelIsPublished) {
  auto ticket = lead(controller_, of_model(1, "new"));
  flush(FlushScope::all, sha256("old"));
  publish(ticket, of_model(1, "new"));
  settle(controller_);
  EXPECT_TRUE(is_cached(controller_, of_model(1, "new")));
  EXPECT_TRUE(stored(of_model(1, "new")));
}

TEST_F(Flushing, AFillIsNotPutAfterAFlushOfTheStore) {
  auto ticket = lead(controller_, picture(1));
  flush(FlushScope::store);
  publish(ticket, picture(1));
  settle(controller_);
  EXPECT_TRUE(is_cached(controller_, picture(1)));
  EXPECT_FALSE(stored(picture(1)));
}

TEST_F(Flushing, QueuedPutsAreForgotten) {
  store_->add({.op = StoreOp::put, .fault = Fault::hold_before, .times = 1});
  serve_one(controller_, picture(0));
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  for (int i = 1; i < 5; ++i) serve_one(controller_, picture(i));
  auto soon = request();
  soon.deadline = Clock::now() + 20ms;  // the running put hangs
  const FlushTier tier = controller_.flush(FlushScope::store, std::nullopt, soon).tiers[0];
  EXPECT_EQ(tier.removed, 0U);
  EXPECT_FALSE(tier.complete);
  store_->heal();
  settle(controller_);
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(stored(picture(i))) << i;
  EXPECT_FALSE(stored(picture(0)));  // slipped through, and was taken back
}

TEST_F(Flushing, APutThatSlipsThroughIsTakenBack) {
  store_->add({.op = StoreOp::put, .fault = Fault::hold_after, .times = 1});
  serve_one(controller_, picture(1));
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  std::jthread flusher([&] { flush(FlushScope::store); });
  store_->heal();
  flusher.join();
  settle(controller_);
  EXPECT_FALSE(stored(picture(1)));
}

TEST_F(Flushing, ALoadThatWasUnderWayIsNotPublished) {
  plant(store_->inner(), picture(1));
  store_->add({.op = StoreOp::get, .fault = Fault::hold_after, .times = 1});
  std::jthread reader([&] {
    const Served served = serve_one(controller_, picture(1));
    EXPECT_EQ(served.source, Source::store);
    expect_golden(served.view, picture(1));
  });
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  flush(FlushScope::local);
  store_->heal();
  reader.join();
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  controller_.check_invariants();
}

TEST_F(Flushing, AnAliasesTargetThatWasUnderWayIsNotPublished) {
  plant(store_->inner(), picture(1));
  ASSERT_TRUE(put_one(*store_, picture(2).key(),
                      alias_value(picture(2).key(), picture(1).key(), picture(1)))
                  .ok());
  store_->add(
      {.op = StoreOp::get, .key = picture(1).key(), .fault = Fault::hold_after, .times = 1});
  std::jthread reader([&] { expect_golden(serve_one(controller_, picture(2)).view, picture(1)); });
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  flush(FlushScope::local);
  store_->heal();
  reader.join();
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  EXPECT_FALSE(is_cached(controller_, picture(2)));
  controller_.check_invariants();
}

TEST_F(Flushing, AStoreThatCannotListIsLeftAlone) {
  struct Incapable final : public ForwardingStore {
    StoreCapabilities capabilities() const override { return {}; }
  };
  EmbeddingCacheController controller(small_pool(8), {std::make_shared<Incapable>()});
  serve_one(controller, picture(1));
  settle(controller);
  const FlushReport report = controller.flush(FlushScope::all, std::nullopt, request());
  EXPECT_EQ(report.tiers[0].removed, 1U);
  EXPECT_EQ(report.tiers[1].removed, std::nullopt);
  EXPECT_EQ(controller.remove(picture(1).key(), std::nullopt, request()).tiers[1].removed,
            std::nullopt);
}

// Cannot list. Puts of two pictures stand at gates.
struct Unlistable final : public ForwardingStore {
  StoreCapabilities capabilities() const override {
    StoreCapabilities can = inner->capabilities();
    can.can_list = false;
    return can;
  }
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> lists,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    if (keys.front() == picture(0).key()) first.pass();
    if (keys.front() == picture(2).key()) last.pass();
    return inner->batch_put_from_multi_buffers(keys, lists, mode, context);
  }
  Gate first{false};
  Gate last{false};
};

// Nobody would find it there any more. Its put has returned, and the call that made it goes on with
// another value.
TEST_F(Flushing, APutThatHasJustReachedAStoreThatCannotListIsTakenBack) {
  const auto store = std::make_shared<Unlistable>();
  EmbeddingCacheController controller(small_pool(8), {store});
  const auto is_stored = [&](int number) {
    return !read_back(*store->inner, picture(number).key()).empty();
  };
  // What replaces something comes last in a call.
  ControllerAccess::impl(controller)
      .tiers.tier(0)
      .mark_bad(picture(2).key(), Tier::Bad::unreadable);
  serve_one(controller, picture(0));
  ASSERT_TRUE(store->first.wait_for_waiting(1));
  serve_one(controller, picture(1));
  serve_one(controller, picture(2));
  store->first.open();
  ASSERT_TRUE(store->last.wait_for_waiting(1));
  ASSERT_TRUE(is_stored(1));
  const FlushReport report = controller.flush(FlushScope::all, std::nullopt, request());
  EXPECT_EQ(report.tiers[1].removed, std::nullopt);
  store->last.open();
  settle(controller);
  EXPECT_TRUE(is_stored(0)) << "it was there before";
  EXPECT_FALSE(is_stored(1));
  EXPECT_FALSE(is_stored(2));
  controller.check_invariants();
}

TEST_F(Flushing, AliasesGoAlongAndAreNotCounted) {
  {
    auto ticket = lead(controller_, picture(1));
    ASSERT_FALSE(ticket.resolve_features(EmbeddingKey{sha256("same tensors")}, request()));
    publish(ticket, picture(1));
  }
  settle(controller_);
  ASSERT_EQ(store_->inner().health().entries, 2U);
  EXPECT_EQ(flush(FlushScope::store).tiers[0].removed, 1U);
  EXPECT_EQ(store_->inner().health().entries, 0U);
}

TEST_F(Flushing, WhatAnIncompleteListingHasShownGoesAllTheSame) {
  for (int i = 0; i < 5; ++i) serve_one(controller_, picture(i));
  settle(controller_);
  // It shows all there is, and then does not say that this was all.
  store_->add({.op = StoreOp::list, .fault = Fault::missing_result});
  const FlushReport report = flush(FlushScope::all);
  EXPECT_TRUE(report.tiers[0].complete);
  EXPECT_EQ(report.tiers[1].removed, 5U);
  EXPECT_FALSE(report.tiers[1].complete);
}

TEST_F(Flushing, FaultsOfTheStoreAreNoSuccess) {
  for (int i = 0; i < 5; ++i) serve_one(controller_, picture(i));
  settle(controller_);
  store_->add({.op = StoreOp::remove, .key = picture(2).key()});
  const FlushReport some = flush(FlushScope::store);
  EXPECT_EQ(some.tiers[0].removed, 4U);
  EXPECT_FALSE(some.tiers[0].complete);
  store_->heal();
  const FlushReport rest = flush(FlushScope::store);
  EXPECT_EQ(rest.tiers[0].removed, 1U);
  EXPECT_TRUE(rest.tiers[0].complete);
}

// The time is the caller's, and not that of a single put.
TEST_F(Flushing, MayTakeLongerThanAPut) {
  ControllerOptions options = small_pool(64);
  options.put_timeout = 0us;
  EmbeddingCacheController controller(options, {store_});
  plant(store_->inner(), picture(1));
  store_->add({.op = StoreOp::list, .fault = Fault::hold_before});
  FlushReport report;
  std::jthread admin(
      [&] { report = controller.flush(FlushScope::store, std::nullopt, request()); });
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  store_->gate().open();
  admin.join();
  EXPECT_EQ(report.tiers[0].removed, 1U);
  EXPECT_TRUE(report.tiers[0].complete);
}

TEST_F(Flushing, DuringTrafficNobodyGetsAnErrorOrWrongRows) {  // B76
  std::atomic<bool> over = false;
  std::vector<std::jthread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      std::minstd_rand random(static_cast<unsigned>(c) + 1);
      while (!over) {
        const Picture item = picture(static_cast<int>(random() % 12));
        expect_golden(serve_one(controller_, item).view, item);
      }
    });
  }
  for (int i = 0; i < 100; ++i) flush(static_cast<FlushScope>(i % 3));
  over = true;
  clients.clear();
  settle(controller_);
  flush(FlushScope::all);
  EXPECT_EQ(serve_one(controller_, picture(1)).source, Source::encoded);
  settle(controller_);
  controller_.check_invariants();
}

// --- removing ---

TEST_F(Flushing, RemoveTakesAKeyFromThePoolAndEveryTier) {
  serve_one(controller_, picture(1));
  serve_one(controller_, picture(2));
  settle(controller_);
  const FlushReport report = controller_.remove(picture(1).key(), std::nullopt, request());
  ASSERT_EQ(report.tiers.size(), 2U);
  EXPECT_EQ(report.tiers[0].removed, 1U);
  EXPECT_EQ(report.tiers[1].removed, 1U);
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  EXPECT_TRUE(is_cached(controller_, picture(2)));
  EXPECT_FALSE(stored(picture(1)));
  EXPECT_EQ(controller_.stats().evictions_removed, 1U);
  const FlushReport again = controller_.remove(picture(1).key(), std::nullopt, request());
  EXPECT_EQ(again.tiers[0].removed, 0U);
  EXPECT_EQ(again.tiers[1].removed, 0U);
}

TEST_F(Flushing, RemoveOfAnotherTenantsKeyRemovesNothing) {
  Picture mine = picture(1);
  mine.tenant = "me";
  serve_one(controller_, mine);
  settle(controller_);
  const auto theirs = controller_.remove(mine.key(), tenant_digest("them"), request());
  EXPECT_EQ(theirs.tiers[0].removed, 0U);
  EXPECT_EQ(theirs.tiers[1].removed, 0U);
  EXPECT_TRUE(stored(mine));
  const auto own = controller_.remove(mine.key(), tenant_digest("me"), request());
  EXPECT_EQ(own.tiers[0].removed, 1U);
  EXPECT_EQ(own.tiers[1].removed, 1U);
  EXPECT_FALSE(stored(mine));
}

TEST_F(Flushing, AFillThatStartedBeforeARemovalIsNotPublished) {
  auto ticket = lead(controller_, picture(1));
  controller_.remove(picture(1).key(), std::nullopt, request());
  publish(ticket, picture(1));
  settle(controller_);
  EXPECT_FALSE(is_cached(controller_, picture(1)));
  EXPECT_FALSE(stored(picture(1)));
  controller_.check_invariants();
}

TEST_F(Flushing, APutOfARemovedKeyIsTakenBack) {
  store_->add({.op = StoreOp::put, .fault = Fault::hold_after, .times = 1});
  serve_one(controller_, picture(1));
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  std::jthread remover([&] { controller_.remove(picture(1).key(), std::nullopt, request()); });
  store_->heal();
  remover.join();
  settle(controller_);
  EXPECT_FALSE(stored(picture(1)));
}

// A late notice about an old entry must not touch the new one of the same key.
TEST_F(Flushing, RemovingAndInsertingTheSameKeyNeverLosesTheNewEntry) {  // B32
  auto options = small_pool(16);
  options.pool.poison_on_free = true;
  EmbeddingCacheController controller(options);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Picture mine = picture(t % 2);
      for (int i = 0; i < rounds(300); ++i) {
        expect_golden(serve_one(controller, mine).view, mine);
        if (i % 3 == t % 3) controller.remove(mine.key(), std::nullopt, request());
      }
    });
  }
  threads.clear();
  controller.check_invariants();
  serve_one(controller, picture(0));
  EXPECT_TRUE(is_cached(controller, picture(0)));
}

}  // namespace
}  // namespace vitrove::testing
