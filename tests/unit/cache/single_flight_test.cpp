// One fill a key (field case B30).
#include <barrier>

#include "support.h"

namespace vitrove::testing {
namespace {

// Threads that start together.
template <typename Body>
void together(int count, Body body) {
  Gate start(false);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.pass();
      body(i);
    });
  }
  ASSERT_TRUE(start.wait_for_waiting(static_cast<std::size_t>(count)));
  start.open();
}

TEST(SingleFlight, SixtyFourRequestsForOneNewPictureAreOneEncode) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  std::atomic<int> encodes = 0;
  together(64, [&](int) { expect_golden(serve_one(controller, a, &encodes).view, a); });
  EXPECT_EQ(encodes, 1);
  const auto counts = lookups(controller);
  EXPECT_EQ(counts.miss, 1U);
  EXPECT_EQ(counts.local + counts.joined, 63U);
  controller.check_invariants();
}

TEST(SingleFlight, FollowersOfASlowLeaderAllJoin) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  std::atomic<int> joined = 0;
  std::vector<std::jthread> followers;
  for (int i = 0; i < 8; ++i) {
    followers.emplace_back([&] {
      const Served served = serve_one(controller, a);
      expect_golden(served.view, a);
      joined += served.source == Source::joined ? 1 : 0;
    });
  }
  ASSERT_TRUE(eventually([&] { return followers_of(controller, a.key()) == 8; }));
  publish(ticket, a);
  followers.clear();
  EXPECT_EQ(joined, 8);
  EXPECT_EQ(lookups(controller).joined, 8U);
  controller.check_invariants();
}

TEST(SingleFlight, WhenTheLeaderFailsExactlyOneFollowerTakesOver) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  std::atomic<int> encodes = 0;
  std::vector<std::jthread> followers;
  for (int i = 0; i < 8; ++i) {
    followers.emplace_back([&] { expect_golden(serve_one(controller, a, &encodes).view, a); });
  }
  ASSERT_TRUE(eventually([&] { return followers_of(controller, a.key()) == 8; }));
  ticket.fail(Error(ErrorCode::internal, "out of accelerator memory"));
  followers.clear();
  EXPECT_EQ(encodes, 1);
  EXPECT_EQ(lookups(controller).miss, 2U);  // the leader's and the follower's who encoded
  EXPECT_EQ(lookups(controller).joined + lookups(controller).local, 7U);
  controller.check_invariants();
}

TEST(SingleFlight, WhenTheLeaderLeavesAFollowerTakesOver) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  std::optional<FillTicket> ticket = lead(controller, a);
  std::atomic<int> encodes = 0;
  std::jthread follower([&] { expect_golden(serve_one(controller, a, &encodes).view, a); });
  ASSERT_TRUE(eventually([&] { return followers_of(controller, a.key()) == 1; }));
  ticket.reset();
  follower.join();
  EXPECT_EQ(encodes, 1);
  controller.check_invariants();
}

TEST(SingleFlight, TheLeadGoesFromHandToHandUntilOneSucceeds) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  std::optional<FillTicket> ticket = lead(controller, a);
  std::atomic<int> tries = 0;
  std::atomic<int> views = 0;
  std::vector<std::jthread> followers;
  for (int i = 0; i < 8; ++i) {
    followers.emplace_back([&] {
      auto answer = acquire_one(controller, a);
      auto outcome = std::get<JoinTicket>(answer).wait(request());
      if (auto* fill = std::get_if<FillTicket>(&outcome)) {
        if (++tries == 5) {
          publish(*fill, a);
        } else {
          fill->fail(Error(ErrorCode::internal, "no luck"));
        }
      } else {
        expect_golden(std::get<EmbeddingView>(outcome), a);
        ++views;
      }
    });
  }
  ASSERT_TRUE(eventually([&] { return followers_of(controller, a.key()) == 8; }));
  ticket.reset();
  followers.clear();
  EXPECT_EQ(tries, 5);
  EXPECT_EQ(views, 3);
  controller.check_invariants();
}

TEST(SingleFlight, AnErrorOfTheItemIsSharedByTheFollowersOfThatMoment) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  for (const auto code :
       {ErrorCode::invalid_argument, ErrorCode::too_large, ErrorCode::unsupported_format}) {
    auto ticket = lead(controller, a);
    auto answer = acquire_one(controller, a);
    ticket.fail(Error(code, "not a picture"));
    auto& join = std::get<JoinTicket>(answer);
    try {
      join.wait(request());
      ADD_FAILURE() << "the follower got something else";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_STREQ(error.what(), "not a picture");
    }
    // Not remembered: the next request starts anew.
    EXPECT_TRUE(std::holds_alternative<FillTicket>(acquire_one(controller, a)));
  }
  controller.check_invariants();
}

TEST(SingleFlight, ANewRequestTakesOverFromALeaderWhoLeftWhileNobodyWaited) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  std::optional<FillTicket> ticket = lead(controller, a);
  auto idle = acquire_one(controller, a);  // holds a seat and never looks
  ASSERT_TRUE(std::holds_alternative<JoinTicket>(idle));
  ticket.reset();
  auto third = acquire_one(controller, a);
  ASSERT_TRUE(std::holds_alternative<FillTicket>(third));
  publish(std::get<FillTicket>(third), a);
  auto outcome = std::get<JoinTicket>(idle).wait(request());
  expect_golden(std::get<EmbeddingView>(outcome), a);
}

TEST(SingleFlight, AFollowerWhoLeavesTakesNobodysTurn) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  std::optional<FillTicket> ticket = lead(controller, a);
  std::optional<Acquired> leaver = acquire_one(controller, a);
  auto stayer = acquire_one(controller, a);
  ticket.reset();
  leaver.reset();
  auto outcome = std::get<JoinTicket>(stayer).wait(request());
  EXPECT_TRUE(std::holds_alternative<FillTicket>(outcome));
  outcome = EmbeddingView();
  controller.check_invariants();
}

TEST(SingleFlight, WaitingEndsWithTheDeadlineAndWithCancellation) {
  EmbeddingCacheController controller(small_pool(8));
  const Picture a = picture(1);
  auto ticket = lead(controller, a);
  auto answer = acquire_one(controller, a);
  auto& join = std::get<JoinTicket>(answer);
  auto late = request();
  late.deadline = Clock::now() - 1s;
  try {
    join.wait(late);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  }

  std::stop_source stop;
  auto cancelled = request();
  cancelled.cancel = stop.get_token();
  std::jthread canceller([&] { stop.request_stop(); });
  try {
    join.wait(cancelled);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  // The seat is still good.
  publish(ticket, a);
  auto outcome = join.wait(request());
  expect_golden(std::get<EmbeddingView>(outcome), a);
  EXPECT_EQ(lookups(controller).joined, 1U);
}

TEST(SingleFlight, ALeaderWhoLoadsFromAStoreIsJoinedToo) {
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(8), {store});
  const Picture a = picture(1);
  plant(*store, a);
  store->add({.op = StoreOp::get, .fault = Fault::hold_after});
  std::jthread leader([&] { EXPECT_EQ(serve_one(controller, a).source, Source::store); });
  ASSERT_TRUE(store->gate().wait_for_waiting(1));
  auto answer = acquire_one(controller, a);
  ASSERT_TRUE(std::holds_alternative<JoinTicket>(answer));
  store->heal();
  auto outcome = std::get<JoinTicket>(answer).wait(request());
  expect_golden(std::get<EmbeddingView>(outcome), a);
  leader.join();
  EXPECT_EQ(store->keys(StoreOp::get), 1U);
}

// The gap: between the leader's insert and the end of its registration nobody may find neither.
TEST(SingleFlight, ThereIsNoGapBetweenTheEntryAndItsFlight) {
  constexpr int keys = rounds(1'500);
  EmbeddingCacheController controller(small_pool(2 * keys));  // nobody is evicted
  std::atomic<int> encodes = 0;
  together(4, [&](int) {
    for (int i = 0; i < keys; ++i) serve_one(controller, picture(i, 1), &encodes);
  });
  EXPECT_EQ(encodes, keys);
  controller.check_invariants();
}

// --- the board by itself ---

class Board : public ::testing::Test {
 protected:
  EntryPin make(const EmbeddingKey& key) {
    ValueHeader header;
    header.key = key;
    header.rows = 1;
    header.dim = dim;
    auto runs = core_.allocate(header.payload_bytes(), header.row_bytes());
    return core_.make_pooled(header, {}, std::move(runs.value()));
  }
  FlightLead lead_of(const EmbeddingKey& key) {
    auto claim = board_.claim(key, {});
    return std::move(std::get<FlightLead>(claim));
  }
  EntryPin complete(const EmbeddingKey& key, const EntryPin& entry) {
    return board_.complete(lead_of(key), entry.another(), [] {});
  }
  bool is_found(const EmbeddingKey& key) {
    return static_cast<bool>(core_.table().find_surely(key));
  }

  CacheCore core_{small_pool(64), {}};
  FlightBoard board_{core_};
  const EmbeddingKey key_ = key_number(1);
  const EmbeddingKey twin_ = key_number(2);
};

TEST_F(Board, ATwinOfAnEntryThatWasRemovedMeanwhileDoesNotBringItBack) {
  {
    const EntryPin entry = complete(key_, make(key_));
    FlightLead twin = lead_of(twin_);
    ASSERT_TRUE(core_.drop(*entry, DropReason::removed));
    const EntryPin served = board_.complete(std::move(twin), entry.another(), [] {});
    EXPECT_EQ(served.get(), entry.get());  // whoever asked is served all the same
    EXPECT_FALSE(is_found(key_));
    EXPECT_FALSE(is_found(twin_));
  }
  core_.check_invariants();
  EXPECT_EQ(core_.pool().free_pages(), core_.pool().total_pages());
}

TEST_F(Board, AnEntryHasOneChanceToGoLive) {
  const EntryPin entry = make(key_);
  {
    const EntryAdmission first(core_, entry);
    EXPECT_TRUE(first);
    EXPECT_FALSE(EntryAdmission(core_, entry));
    complete(twin_, entry);  // while the first is still at it
    EXPECT_FALSE(is_found(twin_));
  }
  EXPECT_FALSE(EntryAdmission(core_, entry));
}

TEST_F(Board, AFillThatWasDetachedIsNotPublishedUnderItsTwinsKeyEither) {
  FlightLead lead = lead_of(key_);
  board_.detach(key_, std::nullopt);
  const EntryPin entry = board_.complete(std::move(lead), make(key_), [] {});
  complete(twin_, entry);
  EXPECT_FALSE(is_found(key_));
  EXPECT_FALSE(is_found(twin_));
}

// Two flights may end with one private entry at once: one of them makes it live, the other joins in
// or leaves it.
TEST_F(Board, AnEntryThatTwoKeysPublishAtOnceGoesLiveOnce) {
  std::barrier start(2);
  EntryPin entry;
  const auto publish_all = [&](std::uint64_t side) {
    for (int i = 0; i < rounds(500); ++i) {
      const EmbeddingKey key = key_number(side);
      FlightLead lead = lead_of(key);
      if (side == 1) entry = make(key_);
      start.arrive_and_wait();
      board_.complete(std::move(lead), entry.another(), [] {});
      start.arrive_and_wait();
      if (side == 1) {
        EXPECT_TRUE(core_.drop(*entry, DropReason::removed));
        entry.reset();
      }
      start.arrive_and_wait();
    }
  };
  {
    std::jthread other([&] { publish_all(2); });
    publish_all(1);
  }
  core_.check_invariants();
  EXPECT_EQ(core_.pool().free_pages(), core_.pool().total_pages());
}

TEST(SingleFlight, TheBoardHasExactlyOneLeaderAKey) {
  ControllerOptions options = small_pool(64);
  CacheCore core(options, {});
  FlightBoard board(core);
  constexpr int keys = rounds(2'000);
  std::atomic<int> leads = 0;
  std::atomic<int> served = 0;
  std::barrier round_start(4);
  const auto publish_one = [&](FlightLead lead_of, const EmbeddingKey& key) {
    ValueHeader header;
    header.key = key;
    header.rows = 1;
    header.dim = dim;
    auto runs = core.allocate(header.payload_bytes(), header.row_bytes());
    ASSERT_TRUE(runs);
    board.complete(std::move(lead_of), core.make_pooled(header, {}, std::move(*runs)), [] {});
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < keys; ++i) {
        const EmbeddingKey key = key_number(static_cast<std::uint64_t>(i));
        round_start.arrive_and_wait();
        auto claim = board.claim(key, {});
        if (auto* led = std::get_if<FlightLead>(&claim)) {
          ++leads;
          publish_one(std::move(*led), key);
          ++served;
        } else if (auto* seat = std::get_if<FlightSeat>(&claim)) {
          auto outcome = board.wait(*seat, Clock::time_point::max(), {});
          served += std::holds_alternative<EntryPin>(outcome) ? 1 : 0;
        } else {
          served += std::get<EntryPin>(claim) ? 1 : 0;
        }
        claim = EntryPin();
        round_start.arrive_and_wait();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(leads, keys);
  EXPECT_EQ(served, 4 * keys);
  EXPECT_EQ(board.under_way(), 0U);
  core.check_invariants();
}

}  // namespace
}  // namespace vitrove::testing
