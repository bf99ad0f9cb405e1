// Stores that hang (field cases B33, B50, B78): bounded by the budget, never a thread of a request.
#include <filesystem>

#include "cache/controller_impl.h"
#include "contract/temporary_directory.h"
#include "support.h"
#include "vitrove/file_store.h"

namespace vitrove::testing {
namespace {

// Not so impatient that a thread which a busy machine stops for a while is taken for a store that
// hangs: it would be a second one.
constexpr auto given_up_after = 1500ms;

ControllerOptions impatient() {
  auto options = small_pool(64);
  options.store_timeout = given_up_after;
  options.put_timeout = given_up_after;
  options.breaker_faults = 3;
  options.breaker_pause = 20ms;
  return options;
}

class Overdue : public ::testing::Test {
 protected:
  void hold(StoreOp op, std::size_t times = std::numeric_limits<std::size_t>::max()) {
    store_->add({.op = op, .fault = Fault::hold_before, .times = times});
  }
  // A request for a planted picture whose get hangs, however long the rest takes on a slow machine.
  Picture hang_a_get(EmbeddingCacheController& controller) {
    hold(StoreOp::get);
    for (int i = 1'000;; ++i) {
      const Picture item = picture(i);
      plant(store_->inner(), item);
      const Served served = serve_one(controller, item);
      EXPECT_EQ(served.source, Source::encoded);
      expect_golden(served.view, item);
      if (store_->gate().wait_for_waiting(1, 0s)) return item;
    }
  }
  static std::uint64_t timeouts(EmbeddingCacheController& controller) {
    const ControllerStats stats = controller.stats();
    std::uint64_t count = 0;
    for (const auto& [reason, keys] : stats.stores[0].get.reasons) {
      count += reason == "timeout" ? keys : 0;
    }
    return count;
  }
  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
};

TEST_F(Overdue, AHangingGetIsAMissAfterTheBudgetAndKeepsItsBuffers) {
  EmbeddingCacheController controller(impatient(), {store_});
  const auto start = Clock::now();
  const Picture a = hang_a_get(controller);
  EXPECT_GE(Clock::now() - start, given_up_after);
  const auto hung = controller.stats();
  EXPECT_EQ(hung.bytes_quarantined, stored_value(a).size());
  EXPECT_EQ(timeouts(controller), 1U);
  EXPECT_EQ(hung.stores[0].get.pending, 1U);
  // Its page is nobody else's, however hard others press.
  const auto pages_left = hung.bytes_free / page;
  EXPECT_LE(pages_left, 62U);
  for (int i = 10; i < 100; ++i) serve_one(controller, picture(i));
  EXPECT_LT(controller.stats().bytes_used + controller.stats().bytes_free,
            controller.stats().pool_bytes + 1);
  for (int i = 95; i < 100; ++i) expect_golden(serve_one(controller, picture(i)).view, picture(i));

  store_->heal();  // writes into the quarantined page now
  controller.check_invariants();
  const auto healed = controller.stats();
  EXPECT_EQ(healed.bytes_quarantined, 0U);
  EXPECT_EQ(timeouts(controller), 1U);  // counted once, late or not
  EXPECT_EQ(healed.stores[0].get.ok, 0U);
}

TEST_F(Overdue, WhenAllLaneThreadsAreStuckLookupsFailAtOnceAndTheBreakerOpens) {
  EmbeddingCacheController controller(impatient(), {store_});
  for (int i = 0; i < 40; ++i) plant(store_->inner(), picture(i));
  hold(StoreOp::exist);
  int asked = 1'000;
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(serve_one(controller, picture(asked++)).source, Source::encoded);
    return controller.stats().stores[0].breaker_open;
  }));
  // Two threads: two calls hang, the rest was refused.
  EXPECT_EQ(store_->calls(StoreOp::exist), 2U);
  EXPECT_EQ(controller.stats().stores[0].get.pending, 2U);

  store_->heal();
  ASSERT_TRUE(eventually([&] { return controller.stats().stores[0].get.pending == 0; }));
  // The trial of the half-open breaker closes it; on a slow machine it may take several.
  int next = 6;
  ASSERT_TRUE(eventually([&] {
    next = next < 39 ? next + 1 : 6;
    controller.remove(picture(next).key(), std::nullopt, request());
    plant(store_->inner(), picture(next));
    return serve_one(controller, picture(next)).source == Source::store;
  }));
  EXPECT_FALSE(controller.stats().stores[0].breaker_open);
  controller.check_invariants();
}

TEST_F(Overdue, AnOpenBreakerAsksNothing) {
  auto options = impatient();
  options.store_timeout = patience;
  options.breaker_pause = 1h;
  EmbeddingCacheController controller(options, {store_});
  store_->add({.op = StoreOp::exist, .status = StoreStatus::unavailable});
  for (int i = 0; i < 20; ++i) serve_one(controller, picture(i));
  EXPECT_EQ(store_->calls(StoreOp::exist), 3U);
  EXPECT_TRUE(controller.stats().stores[0].breaker_open);
  EXPECT_FALSE(controller.stats().stores[0].put_breaker_open);
}

// Its breaker is open, and trials are due nearly all the time.
class Paused : public Overdue {
 protected:
  static ControllerOptions options() {
    auto options = small_pool(64);
    options.breaker_faults = 1;
    options.breaker_pause = 1ms;
    return options;
  }
  void pause() {
    store_->add({.op = StoreOp::exist, .status = StoreStatus::unavailable, .times = 1});
    EXPECT_EQ(serve_one(controller_, picture(0)).source, Source::encoded);
    ASSERT_TRUE(is_paused());
  }
  bool is_paused() const { return controller_.stats().stores[0].breaker_open; }
  // Requests go on; what they ask for is nowhere.
  bool serve_until(const std::function<bool()>& reached) {
    return eventually([&] {
      EXPECT_EQ(serve_one(controller_, picture(next_++)).source, Source::encoded);
      return reached();
    });
  }

  EmbeddingCacheController controller_{options(), {store_}};
  int next_ = 1;
};

TEST_F(Paused, NobodyWaitsForTheTrial) {
  pause();
  hold(StoreOp::exist);
  // Whoever waited would do so for the whole budget, and then without an answer.
  EXPECT_TRUE(serve_until([&] { return store_->gate().wait_for_waiting(1, 0s); }));
  EXPECT_GE(controller_.stats().stores[0].get.pending, 1U) << "it hangs, and nobody with it";
  store_->heal();
  EXPECT_TRUE(serve_until([&] { return !is_paused(); })) << "the trial's verdict counts";
  plant(store_->inner(), picture(-1));
  EXPECT_EQ(serve_one(controller_, picture(-1)).source, Source::store);
  controller_.check_invariants();
}

TEST_F(Paused, AStoreThatSaysHereAndCannotGiveStaysPaused) {
  pause();
  store_->add({.op = StoreOp::get, .status = StoreStatus::unavailable});
  const auto ask_for_what_is_there = [&](const std::function<bool()>& reached) {
    return eventually([&] {
      const Picture item = picture(next_++);
      plant(store_->inner(), item);
      EXPECT_EQ(serve_one(controller_, item).source, Source::encoded);
      return reached();
    });
  };
  EXPECT_TRUE(ask_for_what_is_there([&] { return store_->calls(StoreOp::get) >= 3; }));
  EXPECT_TRUE(is_paused());
  store_->heal();
  EXPECT_TRUE(serve_until([&] { return !is_paused(); }));
  controller_.check_invariants();
}

TEST_F(Paused, ATrialThatComesBackLateIsAFault) {
  auto options = this->options();
  options.store_timeout = 20ms;
  EmbeddingCacheController impatient_one(options, {store_});
  store_->add({.op = StoreOp::exist, .status = StoreStatus::unavailable, .times = 1});
  serve_one(impatient_one, picture(0));
  hold(StoreOp::exist, 1);
  store_->add({.op = StoreOp::exist, .status = StoreStatus::unavailable});
  ASSERT_TRUE(eventually([&] {
    serve_one(impatient_one, picture(next_++));
    return store_->gate().wait_for_waiting(1, 0s);
  }));
  const auto overdue = Clock::now() + 20ms;
  ASSERT_TRUE(eventually([&] { return Clock::now() > overdue; }));
  store_->gate().open();  // and the one that was held has a proper answer, too late
  ASSERT_TRUE(eventually([&] { return impatient_one.stats().stores[0].get.pending == 0; }));
  EXPECT_TRUE(impatient_one.stats().stores[0].breaker_open);
}

TEST_F(Overdue, AbsentKeysAndOddSizesNeverOpenTheBreaker) {
  auto options = impatient();
  options.store_timeout = patience;
  EmbeddingCacheController controller(options, {store_});
  for (int i = 0; i < 10; ++i) serve_one(controller, picture(i));
  for (int i = 20; i < 30; ++i) {
    plant(store_->inner(), picture(i));
    store_->add(
        {.op = StoreOp::get, .key = picture(i).key(), .status = StoreStatus::size_mismatch});
    serve_one(controller, picture(i));
  }
  EXPECT_FALSE(controller.stats().stores[0].breaker_open);
  EXPECT_FALSE(controller.stats().stores[0].put_breaker_open);
}

TEST_F(Overdue, WhatIsInTheWayOfSingleKeysNeverOpensTheBreaker) {
  auto options = impatient();
  options.store_timeout = patience;
  EmbeddingCacheController controller(options, {store_});
  plant(store_->inner(), picture(100));
  for (const StoreOp op : {StoreOp::exist, StoreOp::put}) {
    for (int i = 0; i < 10; ++i) {
      store_->add({.op = op,
                   .key = picture(i).key(),
                   .status = StoreStatus::conflict,
                   .error_number = ENOTEMPTY});
    }
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(serve_one(controller, picture(i)).source, Source::encoded);
    settle(controller);
  }
  const auto stats = controller.stats();
  EXPECT_FALSE(stats.stores[0].breaker_open);
  EXPECT_FALSE(stats.stores[0].put_breaker_open);
  EXPECT_EQ(stats.stores[0].put.faults, 10U);
  EXPECT_EQ(serve_one(controller, picture(100)).source, Source::store);
}

// A file store whose directory is a loop of links, or whose own files are something else.
TEST_F(Overdue, ADirectoryThatCannotBeUsedOpensTheBreaker) {
  for (const int error : {ELOOP, EISDIR, ENOTDIR}) {
    store_->heal();
    auto options = impatient();
    options.store_timeout = patience;
    options.breaker_pause = 1h;
    EmbeddingCacheController controller(options, {store_});
    for (const StoreOp op : {StoreOp::exist, StoreOp::put}) {
      store_->add({.op = op, .status = StoreStatus::io_error, .error_number = error});
    }
    for (int i = 0; i < 10; ++i) {
      serve_one(controller, picture(i));
      settle(controller);
    }
    EXPECT_TRUE(controller.stats().stores[0].breaker_open) << error;
    EXPECT_TRUE(controller.stats().stores[0].put_breaker_open) << error;
  }
}

TEST_F(Overdue, ALoopOfLinksInTheFileStoresPlaceOpensTheBreaker) {
  const TemporaryDirectory directory;
  const auto loop = directory.path() / "store";
  std::filesystem::create_symlink(loop, loop);
  auto options = impatient();
  options.store_timeout = patience;
  options.breaker_pause = 1h;
  EmbeddingCacheController controller(options, {std::shared_ptr(make_file_store({.root = loop}))});
  for (int i = 0; i < 10; ++i) {
    serve_one(controller, picture(i));
    settle(controller);
  }
  EXPECT_TRUE(controller.stats().stores[0].breaker_open);
  EXPECT_TRUE(controller.stats().stores[0].put_breaker_open);
}

TEST_F(Overdue, AFullDiskDoesNotKeepAnybodyFromReadingIt) {
  auto options = impatient();
  options.store_timeout = patience;
  options.breaker_pause = 1h;
  EmbeddingCacheController controller(options, {store_});
  plant(store_->inner(), picture(100));
  store_->add({.op = StoreOp::put, .status = StoreStatus::no_space, .error_number = ENOSPC});
  for (int i = 0; i < 10; ++i) {
    serve_one(controller, picture(i));
    settle(controller);
  }
  const auto stats = controller.stats();
  EXPECT_TRUE(stats.stores[0].put_breaker_open);
  EXPECT_FALSE(stats.stores[0].breaker_open);
  EXPECT_EQ(store_->calls(StoreOp::put), 3U);
  EXPECT_EQ(stats.puts_dropped, 7U);
  EXPECT_EQ(serve_one(controller, picture(100)).source, Source::store);
}

TEST_F(Overdue, AHangingPutDelaysNoGet) {
  auto options = small_pool(64);
  EmbeddingCacheController controller(options, {store_});
  plant(store_->inner(), picture(1));
  hold(StoreOp::put);
  serve_one(controller, picture(2));
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  EXPECT_EQ(serve_one(controller, picture(1)).source, Source::store);
  EXPECT_FALSE(controller.wait_for_puts(Clock::now()));
  store_->heal();
  settle(controller);
  controller.check_invariants();
}

TEST_F(Overdue, APutThatHangsPinsItsEntryAndNothingMore) {
  auto options = impatient();
  EmbeddingCacheController controller(options, {store_});
  hold(StoreOp::put);
  const Picture a = picture(1);
  serve_one(controller, a);
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  ASSERT_TRUE(eventually([&] { return controller.stats().bytes_quarantined > 0; }));
  EXPECT_EQ(controller.stats().bytes_pinned, page);
  // The one put thread is stuck: what comes now is dropped and not pinned.
  for (int i = 10; i < 200; ++i) serve_one(controller, picture(i));
  EXPECT_TRUE(is_cached(controller, a));
  EXPECT_GE(controller.stats().puts_dropped, 189U);
  EXPECT_EQ(controller.stats().bytes_pinned, page);
  store_->heal();
  controller.check_invariants();
}

TEST_F(Overdue, QueuedPutsAreBoundedInBytesAndTheNewestIsDropped) {
  auto options = small_pool(64);
  options.max_pending_put_bytes = 3 * stored_value(picture(1)).size();
  EmbeddingCacheController controller(options, {store_});
  hold(StoreOp::put, 1);
  serve_one(controller, picture(0));
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  for (int i = 1; i <= 10; ++i) serve_one(controller, picture(i));
  EXPECT_EQ(controller.stats().puts_dropped, 7U);
  EXPECT_EQ(controller.stats().stores[0].put.pending, 4U);
  store_->heal();
  settle(controller);
  for (int i = 0; i <= 10; ++i) {
    EXPECT_EQ(read_back(*store_, picture(i).key()).empty(), i > 3) << i;
  }
}

TEST_F(Overdue, ACancelledRequestLeavesItsCallBehind) {
  EmbeddingCacheController controller(small_pool(64), {store_});
  const Picture a = picture(1);
  plant(store_->inner(), a);
  hold(StoreOp::get);
  std::stop_source stop;
  auto context = request();
  context.cancel = stop.get_token();
  std::jthread canceller([&] {
    EXPECT_TRUE(store_->gate().wait_for_waiting(1));
    stop.request_stop();
  });
  auto answer = acquire_one(controller, a, context);
  EXPECT_TRUE(std::holds_alternative<FillTicket>(answer));
  answer = Hit{};
  store_->heal();
  controller.check_invariants();
  const StoreStats store = controller.stats().stores[0];
  EXPECT_FALSE(store.breaker_open);
  EXPECT_EQ(store.get.cancelled + store.exist.cancelled, 1U);
  EXPECT_EQ(store.get.faults + store.exist.faults, 0U) << "it was the request that was over";
}

TEST_F(Overdue, ARequestsDeadlineEndsItsLookupAndIsNoFaultOfTheStore) {
  auto options = small_pool(64);
  options.breaker_faults = 1;
  EmbeddingCacheController controller(options, {store_});
  plant(store_->inner(), picture(1));
  hold(StoreOp::get);
  auto context = request();
  context.deadline = Clock::now() + 30ms;
  EXPECT_TRUE(std::holds_alternative<FillTicket>(acquire_one(controller, picture(1), context)));
  EXPECT_FALSE(controller.stats().stores[0].breaker_open);
  store_->heal();
  controller.check_invariants();
}

TEST_F(Overdue, AHangInOneBatchCostsOnlyItsOwnItems) {
  auto options = small_pool(4096);
  options.get_threads = 4;
  EmbeddingCacheController controller(options, {store_});
  // Values of 4 MiB: a batch each, on a thread each.
  std::vector<Picture> pictures;
  std::vector<ValueExpectation> expected;
  for (int i = 0; i < 3; ++i) {
    pictures.push_back(picture(i, in_pages(1024)));
    plant(store_->inner(), pictures.back());
    expected.push_back(pictures.back().expectation());
  }
  store_->add({.op = StoreOp::get, .key = pictures[1].key(), .fault = Fault::hold_before});
  std::stop_source stop;
  auto context = request();
  context.cancel = stop.get_token();
  std::jthread impatience([&] {
    EXPECT_TRUE(eventually([&] { return controller.stats().stores[0].get.ok == 2; }));
    stop.request_stop();
  });
  auto answers = controller.acquire(expected, context);
  impatience.join();
  EXPECT_TRUE(std::holds_alternative<FillTicket>(answers[1]));
  expect_golden(std::get<Hit>(answers[2]).view, pictures[2]);
  expect_golden(std::get<Hit>(answers[0]).view, pictures[0]);
  store_->heal();
}

TEST_F(Overdue, ADestroyedControllerLeavesAHangingCallItsMemory) {  // B78
  auto options = small_pool(8);
  options.shutdown_timeout = 30ms;
  std::weak_ptr<CacheCore> core;
  {
    EmbeddingCacheController controller(options, {store_});
    core = ControllerAccess::impl(controller).core;
    plant(store_->inner(), picture(1));
    hold(StoreOp::get);
    std::stop_source stop;
    auto context = request();
    context.cancel = stop.get_token();
    std::jthread impatience([&] {
      EXPECT_TRUE(store_->gate().wait_for_waiting(1));
      stop.request_stop();
    });
    const auto answer = acquire_one(controller, picture(1), context);
  }
  EXPECT_FALSE(core.expired());  // the get may still write into the arena
  store_->heal();
  EXPECT_TRUE(eventually([&] { return core.expired(); }));
}

TEST_F(Overdue, TheDestructorWaitsForPutsThatAreOnTheirWay) {
  const Picture a = picture(1);
  hold(StoreOp::put);
  std::jthread opener;
  {
    EmbeddingCacheController controller(small_pool(8), {store_});
    serve_one(controller, a);
    ASSERT_TRUE(store_->gate().wait_for_waiting(1));
    opener = std::jthread([&] { store_->heal(); });
  }
  EXPECT_EQ(store_->calls(StoreOp::put), 1U);
}

TEST(Lanes, ACallThatMovesBytesIsNoCallWithoutProgress) {
  const auto core =
      std::make_shared<CacheCore>(small_pool(8), std::vector<std::shared_ptr<EmbeddingStore>>{});
  // The verdict is made of when the last piece came.
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  const auto tier = std::make_shared<Tier>(store, "store", TierOptions{});
  const auto group = std::make_shared<CallGroup>();
  const Picture a = picture(1);
  plant(*store, a);
  auto landing = Landing::in_pages(*core, stored_value(a).size() - value_header_size, dim * 4);
  ASSERT_TRUE(landing);
  std::vector<GetCall::Item> items;
  items.push_back({WantedValue::of(a.expectation()), std::move(*landing)});
  GetCall call({core, tier, group, "test"}, 0, std::move(items));
  const auto before = Clock::now();
  EXPECT_FALSE(call.moved_since(before));
  call.run({});
  EXPECT_TRUE(call.moved_since(before));
  EXPECT_EQ(call.values().at(0).reject, Reject::none);
}

}  // namespace
}  // namespace vitrove::testing
