// Publication is all or nothing, and space is never waited for (field cases B36, B37, B64, B69).
#include "support.h"

namespace vitrove::testing {
namespace {

struct BadOutput {
  const char* what;
  std::function<void(std::vector<float>& rows, EncodedRows& encoded)> spoil;
};

class RefusedOutput : public ::testing::TestWithParam<BadOutput> {};

TEST_P(RefusedOutput, IsNotCachedAndDoesNotPoisonTheNextRequest) {  // B37
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(16), {store});
  const Picture a = picture(1, 2 * rows_per_page + 1);
  const auto free_before = controller.stats().bytes_free;
  {
    auto ticket = lead(controller, a);
    auto rows = a.golden();
    EncodedRows encoded{bytes_of(rows), a.rows, a.side(), 1ms};
    GetParam().spoil(rows, encoded);
    try {
      ticket.publish(encoded);
      ADD_FAILURE() << GetParam().what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
    }
  }
  settle(controller);
  EXPECT_FALSE(is_cached(controller, a));
  EXPECT_EQ(store->calls(StoreOp::put), 0U);
  EXPECT_EQ(controller.stats().entries_filling, 0U);
  EXPECT_EQ(controller.stats().bytes_free, free_before);
  controller.check_invariants();
  expect_golden(serve_one(controller, a).view, a);
}

INSTANTIATE_TEST_SUITE_P(
    Encoder, RefusedOutput,
    ::testing::Values(
        BadOutput{"NaN",
                  [](auto& rows, auto&) { rows[7] = std::numeric_limits<float>::quiet_NaN(); }},
        BadOutput{
            "NaN at the end",
            [](auto& rows, auto&) { rows.back() = std::numeric_limits<float>::signaling_NaN(); }},
        BadOutput{"infinity",
                  [](auto& rows, auto&) { rows[1] = -std::numeric_limits<float>::infinity(); }},
        BadOutput{"a row too few",
                  [](auto& rows, auto& encoded) {
                    rows.resize(rows.size() - dim);
                    encoded.bytes = bytes_of(rows);
                    --encoded.rows;
                  }},
        BadOutput{"a row too many",
                  [](auto& rows, auto& encoded) {
                    rows.resize(rows.size() + dim);
                    encoded.bytes = bytes_of(rows);
                    ++encoded.rows;
                  }},
        BadOutput{"half of the bytes",
                  [](auto&, auto& encoded) {
                    encoded.bytes = encoded.bytes.first(encoded.bytes.size() / 2);
                  }},
        BadOutput{"no rows",
                  [](auto&, auto& encoded) {
                    encoded.bytes = {};
                    encoded.rows = 0;
                  }},
        BadOutput{"side data of an alias",
                  [](auto&, auto& encoded) { encoded.side.alias_target = key_number(1); }},
        BadOutput{"side data beyond all measure",
                  [](auto&, auto& encoded) { encoded.side.timestamps.resize(100'000); }}),
    [](const auto& test) {
      std::string name = test.param.what;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

TEST(Publish, AFollowerTakesOverFromARefusedResult) {
  EmbeddingCacheController controller(small_pool(16));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  auto follower = acquire_one(controller, a);
  auto rows = a.golden();
  rows[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(ticket.publish({bytes_of(rows), a.rows, a.side(), 1ms}), Error);
  auto outcome = std::get<JoinTicket>(follower).wait(request());
  ASSERT_TRUE(std::holds_alternative<FillTicket>(outcome));
  expect_golden(publish(std::get<FillTicket>(outcome), a), a);
}

TEST(Publish, ATicketIsServedOnce) {
  EmbeddingCacheController controller(small_pool(16));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  publish(ticket, a);
  EXPECT_THROW(publish(ticket, a), Error);
  ticket.fail(Error(ErrorCode::invalid_argument, "too late"));
  EXPECT_TRUE(is_cached(controller, a));
  EXPECT_EQ(lookups(controller).miss, 1U);
}

TEST(Publish, ADroppedTicketLeavesNothingBehind) {  // B36
  EmbeddingCacheController controller(small_pool(16));
  const auto free_before = controller.stats().bytes_free;
  { const auto ticket = lead(controller, picture(1)); }
  EXPECT_EQ(controller.stats().entries_filling, 0U);
  EXPECT_EQ(controller.stats().bytes_free, free_before);
  EXPECT_EQ(lookups(controller).miss, 1U);
  controller.check_invariants();
  serve_one(controller, picture(1));
}

// --- space ---

TEST(Space, AnItemThatCanNeverFitIsReturnedUncachedAndEvictsNobody) {  // B64
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  auto options = small_pool(64);
  options.pool.staging_pages = 80;
  EmbeddingCacheController controller(options, {store});
  for (int i = 0; i < 8; ++i) serve_one(controller, picture(i));
  settle(controller);
  const Picture huge = picture(100, in_pages(65));
  {
    const Served served = serve_one(controller, huge);
    expect_golden(served.view, huge);
    EXPECT_FALSE(served.view.pooled());
  }
  const auto stats = controller.stats();
  EXPECT_EQ(stats.evictions_space, 0U);
  EXPECT_EQ(stats.entries_ready, 8U);
  EXPECT_EQ(stats.uncached_too_large, 1U);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(is_cached(controller, picture(i)));
  // It was put all the same, through staging, and is a store hit from now on.
  settle(controller);
  EXPECT_EQ(inspect(read_back(*store, huge.key()), huge.key()), Reject::none);
  const Served again = serve_one(controller, huge);
  EXPECT_EQ(again.source, Source::store);
  expect_golden(again.view, huge);
  EXPECT_EQ(controller.stats().evictions_space, 0U);
}

TEST(Space, AnItemOfExactlyThePoolFits) {  // B64
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  auto options = small_pool(64);
  options.pool.staging_pages = 80;
  EmbeddingCacheController controller(options, {store});
  const Picture exact = picture(1, exactly_in_pages(64));
  // Encoded, and out of a store: with its side data it comes through staging.
  for (const Source source : {Source::encoded, Source::store}) {
    serve_one(controller, picture(2));
    settle(controller);  // it is not pinned any more
    const Served served = serve_one(controller, exact);
    EXPECT_EQ(served.source, source);
    EXPECT_TRUE(served.view.pooled());
    expect_golden(served.view, exact);
    settle(controller);
    controller.flush(FlushScope::local, std::nullopt, request());
  }
}

TEST(Space, TwoItemsThatTogetherExceedThePoolAreBothServed) {  // B64
  EmbeddingCacheController controller(small_pool(64));
  const Picture a = picture(1, in_pages(38));
  const Picture b = picture(2, in_pages(38));
  std::vector<std::jthread> clients;
  for (int i = 0; i < 10; ++i) {
    clients.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        const auto served = serve(controller, {a, b});
        expect_golden(served[0].view, a);
        expect_golden(served[1].view, b);
      }
    });
  }
  clients.clear();
  controller.check_invariants();
}

TEST(Space, WithEverythingPinnedAnItemIsReturnedUncached) {  // B69
  EmbeddingCacheController controller(small_pool(16));
  std::vector<EmbeddingView> pinned;
  for (int i = 0; i < 16; ++i) pinned.push_back(serve_one(controller, picture(i)).view);
  for (int i = 100; i < 120; ++i) {
    const Served served = serve_one(controller, picture(i));
    EXPECT_FALSE(served.view.pooled());
    expect_golden(served.view, picture(i));
  }
  EXPECT_EQ(controller.stats().uncached_no_space, 20U);
  EXPECT_EQ(controller.stats().evictions_space, 0U);
  for (int i = 0; i < 16; ++i) expect_golden(pinned[static_cast<std::size_t>(i)], picture(i));
  pinned.clear();
  EXPECT_TRUE(serve_one(controller, picture(200)).view.pooled());
  controller.check_invariants();
}

TEST(Space, FollowersShareAnUncachedResult) {
  EmbeddingCacheController controller(small_pool(0));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  auto follower = acquire_one(controller, a);
  publish(ticket, a);
  auto outcome = std::get<JoinTicket>(follower).wait(request());
  expect_golden(std::get<EmbeddingView>(outcome), a);
}

TEST(Space, ALargeItemIsNotMadeRoomForInVain) {  // B69: half of the pool is pinned
  EmbeddingCacheController controller(small_pool(64));
  std::vector<EmbeddingView> pinned;
  for (int i = 0; i < 64; ++i) {
    EmbeddingView view = serve_one(controller, picture(i)).view;
    if (i % 2 == 0) pinned.push_back(std::move(view));
  }
  const Served large = serve_one(controller, picture(100, in_pages(40)));
  EXPECT_FALSE(large.view.pooled());
  EXPECT_EQ(controller.stats().evictions_space, 0U);
  // What eviction can make room for, it does.
  const Served fits = serve_one(controller, picture(101, in_pages(20)));
  EXPECT_TRUE(fits.view.pooled());
  EXPECT_LE(controller.stats().evictions_space, 32U);
}

TEST(Space, WithoutEvictionTheFirstStay) {
  auto options = small_pool(8);
  options.enable_eviction = false;
  EmbeddingCacheController controller(options);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(serve_one(controller, picture(i)).view.pooled(), i < 8) << i;
  }
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(is_cached(controller, picture(i)));
  EXPECT_EQ(controller.stats().uncached_no_space, 4U);
}

TEST(Space, TheEvictionBatchBreaksTheLockAndNotTheAllocation) {
  auto options = small_pool(64);
  options.max_eviction_batch = 1;
  EmbeddingCacheController controller(options);
  for (int i = 0; i < 64; ++i) serve_one(controller, picture(i));
  const Picture large = picture(100, in_pages(60));
  const Served served = serve_one(controller, large);
  EXPECT_TRUE(served.view.pooled());
  expect_golden(served.view, large);
  EXPECT_GE(controller.stats().evictions_space, 60U);
}

TEST(Space, EvictionIsDirectedAtNeighboursWhenARowIsLargerThanAPage) {
  EmbeddingCacheController controller(small_pool(32));
  const auto wide = [](int number) {
    Picture item = picture(number, 2);
    return item;
  };
  std::vector<EmbeddingView> pinned;
  // Every fourth page is pinned: a row of three pages fits exactly between two of them.
  for (int i = 0; i < 32; ++i) {
    EmbeddingView view = serve_one(controller, picture(i)).view;
    if (i % 4 == 3) pinned.push_back(std::move(view));
  }
  ValueExpectation expected = wide(100).expectation();
  expected.dim = 3 * page / 4;
  expected.rows = 2;
  const std::vector<float> rows(std::size_t{2} * expected.dim, 0.5F);
  auto answer = std::move(controller.acquire({&expected, 1}, request())[0]);
  const EmbeddingView view = std::get<FillTicket>(answer).publish({bytes_of(rows), 2, {}, 1ms});
  EXPECT_TRUE(view.pooled());
  EXPECT_EQ(view.runs().size(), 2U);
  EXPECT_EQ(controller.stats().evictions_space, 6U);  // two gaps, and nobody else
}

// A pool full of entries of one page, every other of which was removed: holes of one page.
class TornPool : public ::testing::Test {
 protected:
  TornPool() {
    for (int i = 0; i < 32; ++i) kept_.push_back(serve_one(controller_, picture(i)).view);
    for (int i = 0; i < 32; i += 2) {
      kept_[static_cast<std::size_t>(i)].release();
      controller_.remove(picture(i).key(), std::nullopt, request());
    }
  }
  EmbeddingCacheController controller_{small_pool(32)};
  std::vector<EmbeddingView> kept_;
};

TEST_F(TornPool, IsMadeWholeByEvictionBeforeAnEntryIsTorn) {
  kept_.clear();
  const Served served = serve_one(controller_, picture(100, exactly_in_pages(8)));
  ASSERT_TRUE(served.view.pooled());
  EXPECT_LE(served.view.runs().size(), PagePool::preferred_runs);
  EXPECT_GT(controller_.stats().evictions_space, 0U);
  EXPECT_LE(controller_.stats().evictions_space, 16U);
}

TEST_F(TornPool, EveryHoleIsUsedWhenNobodyIsLeftToEvict) {
  const Picture torn = picture(100, exactly_in_pages(16));
  const Served served = serve_one(controller_, torn);
  ASSERT_TRUE(served.view.pooled());
  EXPECT_EQ(served.view.runs().size(), 16U);
  expect_golden(served.view, torn);
  EXPECT_EQ(controller_.stats().evictions_space, 0U);
  EXPECT_FALSE(serve_one(controller_, picture(101)).view.pooled());
}

TEST(Space, EveryHoleIsUsedWhenEvictionIsOff) {
  auto options = small_pool(8);
  options.enable_eviction = false;
  EmbeddingCacheController controller(options);
  for (int i = 0; i < 8; ++i) serve_one(controller, picture(i));
  for (int i = 0; i < 8; i += 2) controller.remove(picture(i).key(), std::nullopt, request());
  const Served served = serve_one(controller, picture(100, exactly_in_pages(4)));
  ASSERT_TRUE(served.view.pooled());
  EXPECT_EQ(served.view.runs().size(), 4U);
}

// Whatever is free, pinned or evictable, and however large the rows are.
TEST(Space, AnAllocationSucceedsExactlyWhenFreeAndEvictableRunsCanHoldIt) {
  constexpr std::uint32_t pages = 24;
  std::mt19937 random(33);
  int succeeded = 0;
  constexpr int trials = rounds(1'500);
  for (int trial = 0; trial < trials; ++trial) {
    CacheCore core(small_pool(pages), {});
    FlightBoard board(core);
    std::vector<EntryPin> pinned;
    std::vector<PageRun> evictable;
    for (std::uint64_t i = 0; i < 16 && core.pool().free_pages() > 0; ++i) {
      ValueHeader header;
      header.key = key_number(i);
      header.dim = dim;
      const auto most = std::min<std::uint64_t>(3, core.pool().longest_free_run());
      header.rows = rows_per_page * static_cast<std::uint32_t>(1 + random() % most);
      auto runs = core.pool().allocate(header.rows, header.row_bytes());
      auto claim = board.claim(header.key, {});
      EntryPin entry = board.complete(std::move(std::get<FlightLead>(claim)),
                                      core.make_pooled(header, {}, std::move(*runs)), [] {});
      const auto fate = random() % 4;
      if (fate == 0) {
        ASSERT_TRUE(core.drop(*entry, DropReason::removed));
      } else if (fate == 1) {
        pinned.push_back(std::move(entry));
      } else {
        evictable.push_back(entry->details->pages.segments.front().run);
      }
    }
    const std::uint64_t row_bytes = page / 4 * (1 + random() % 12);
    const std::uint64_t bytes = page * (1 + random() % pages);
    const std::uint64_t rows = std::max<std::uint64_t>(1, bytes / row_bytes);
    const std::uint64_t tail = random() % row_bytes;
    const bool fits = core.pool().would_fit(rows, row_bytes, tail, evictable);
    auto runs = core.allocate(rows * row_bytes + tail, row_bytes);
    ASSERT_EQ(runs.has_value(), fits) << "trial " << trial;
    if (!runs) continue;
    ++succeeded;
    core.pool().release(*runs);
    pinned.clear();
    core.check_invariants();
  }
  EXPECT_GT(succeeded, trials / 10);
  EXPECT_LT(succeeded, trials * 9 / 10);
}

TEST(Space, APoolOfZeroStillUsesTheStores) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(0), {store});
  const Picture a = picture(1);
  {
    const Served served = serve_one(controller, a);
    EXPECT_FALSE(served.view.pooled());
    expect_golden(served.view, a);
  }
  settle(controller);
  {
    const Served again = serve_one(controller, a);
    EXPECT_EQ(again.source, Source::store);
    EXPECT_FALSE(again.view.pooled());
    expect_golden(again.view, a);
  }
  EXPECT_EQ(controller.stats().pool_bytes, 0U);
  EXPECT_EQ(controller.stats().entries_ready, 0U);
  controller.check_invariants();
}

TEST(Space, AnUncachedItemBeyondStagingIsServedAndItsPutCounted) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  auto options = small_pool(4);
  options.pool.staging_pages = 2;
  EmbeddingCacheController controller(options, {store});
  const Picture huge = picture(1, in_pages(5));
  expect_golden(serve_one(controller, huge).view, huge);
  settle(controller);
  EXPECT_EQ(store->calls(StoreOp::put), 0U);
  EXPECT_EQ(controller.stats().puts_dropped, 1U);
  // Nor can it be read: a miss, every time, and nobody is evicted for it.
  plant(*store, huge);
  EXPECT_EQ(serve_one(controller, huge).source, Source::encoded);
  EXPECT_EQ(store->calls(StoreOp::get), 0U);
  controller.check_invariants();
}

TEST(Space, OptionsThatMakeNoSenseAreRefused) {
  auto options = small_pool(4);
  options.eviction_policy = "mru";
  EXPECT_THROW(EmbeddingCacheController{options}, Error);
  options = small_pool(4);
  options.pool.page_bytes = 1000;
  EXPECT_THROW(EmbeddingCacheController{options}, Error);
}

}  // namespace
}  // namespace vitrove::testing
