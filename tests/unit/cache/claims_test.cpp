// One encode in a cluster: two controllers that share a store (design section 5).
#include <future>

#include "support.h"

namespace vitrove::testing {
namespace {

using Claim = FillTicket::Claim;

class Claims : public ::testing::Test {
 protected:
  EmbeddingCacheController make(ControllerOptions options = small_pool(64)) {
    return EmbeddingCacheController(std::move(options), {store_});
  }
  // Held by somebody who is none of the controllers.
  ClaimToken claim_for_stranger(const Picture& item, std::chrono::milliseconds ttl) {
    ClaimToken token;
    EXPECT_TRUE(store_->inner().claim(item.key(), ttl, token, {}).ok());
    return token;
  }
  bool is_free(const Picture& item) {
    ClaimToken token;
    if (!store_->inner().claim(item.key(), 1h, token, {}).ok()) return false;
    return store_->inner().release(item.key(), token, ClaimOutcome::not_stored, {}).ok();
  }
  std::size_t claims_asked() const { return store_->calls(StoreOp::claim); }
  // That a claim which was begun is held now: whoever wins looks once more. A stranger who tried
  // to claim as well, to see whether it is free, might win, and be in the way.
  bool begin_and_hold(FillTicket& ticket) {
    const std::size_t looks = store_->calls(StoreOp::exist);
    ticket.begin_claim(request());
    return eventually([&] { return store_->calls(StoreOp::exist) > looks; });
  }

  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
  const Picture a_ = picture(1);
};

TEST_F(Claims, TheLoserWaitsForTheValueOfTheWinner) {
  auto one = make();
  auto two = make();
  FillTicket winner = lead(one, a_);
  ASSERT_EQ(winner.claim(request()).outcome, Claim::encode_it);
  auto loser = std::async(std::launch::async, [&] { return lead(two, a_).claim(request()); });
  ASSERT_TRUE(eventually([&] { return claims_asked() >= 2; }));
  publish(winner, a_);
  auto result = loser.get();
  ASSERT_EQ(result.outcome, Claim::served);
  EXPECT_EQ(result.source, Source::store);
  expect_golden(result.view, a_);
  result.view.release();
  EXPECT_EQ(one.stats().claims.won, 1U);
  EXPECT_EQ(two.stats().claims.waited, 1U);
  EXPECT_EQ(two.stats().claims.won, 0U);
  EXPECT_EQ(lookups(two).store, 1U);
  EXPECT_EQ(lookups(two).miss, 0U);
  EXPECT_TRUE(is_cached(two, a_));
  one.check_invariants();
  two.check_invariants();
  EXPECT_TRUE(is_free(a_));
}

TEST_F(Claims, WithoutPatienceTheTicketIsAsItWas) {
  auto one = make();
  auto two = make();
  FillTicket winner = lead(one, a_);
  ASSERT_EQ(winner.claim(request()).outcome, Claim::encode_it);
  FillTicket loser = lead(two, a_);
  EXPECT_EQ(loser.claim(request(), false).outcome, Claim::claimed_elsewhere);
  publish(winner, a_);
  settle(one);
  EXPECT_EQ(loser.claim(request(), true).outcome, Claim::served);
  EXPECT_EQ(two.stats().claims.won, 0U);
}

TEST_F(Claims, AColdBurstOnTwoServersIsOneEncode) {
  auto one = make();
  auto two = make();
  std::atomic<int> encodes{0};
  const auto ask = [&](EmbeddingCacheController& controller) {
    auto answer = acquire_one(controller, a_);
    if (auto* join = std::get_if<JoinTicket>(&answer)) {
      auto outcome = join->wait(request());
      expect_golden(std::get<EmbeddingView>(outcome), a_);
      return;
    }
    if (auto* hit = std::get_if<Hit>(&answer)) return expect_golden(hit->view, a_);
    auto& ticket = std::get<FillTicket>(answer);
    auto claim = ticket.claim(request());
    if (claim.outcome == Claim::served) return expect_golden(claim.view, a_);
    ++encodes;
    expect_golden(publish(ticket, a_), a_);
  };
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 8; ++i) clients.emplace_back([&, i] { ask(i % 2 == 0 ? one : two); });
  }
  EXPECT_EQ(encodes, 1);
  one.check_invariants();
  two.check_invariants();
}

TEST_F(Claims, ATicketThatIsGivenUpLetsItsClaimGo) {
  auto one = make();
  {
    FillTicket ticket = lead(one, a_);
    ASSERT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
    EXPECT_FALSE(is_free(a_));
  }
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
  FillTicket failing = lead(one, a_);
  ASSERT_EQ(failing.claim(request()).outcome, Claim::encode_it);
  failing.fail(Error(ErrorCode::invalid_argument, "no picture"));
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
  one.check_invariants();
}

TEST_F(Claims, TheClaimOfTheDeadEndsWithItsTime) {
  auto two = make();
  claim_for_stranger(a_, 50ms);
  FillTicket ticket = lead(two, a_);
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(two.stats().claims.won, 1U);
  publish(ticket, a_);
  settle(two);
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

TEST_F(Claims, WaitingHasABoundAndLeavesTimeToEncode) {
  auto two = make();
  claim_for_stranger(a_, 1h);
  RequestContext context = request();
  context.deadline = Clock::now() + (is_sanitized ? 20s : 6s);
  FillTicket ticket = lead(two, a_);
  EXPECT_EQ(ticket.claim(context).outcome, Claim::encode_it);
  EXPECT_LT(Clock::now(), context.deadline);
  EXPECT_EQ(two.stats().claims.expired, 1U);
  expect_golden(publish(ticket, a_), a_);
  EXPECT_FALSE(is_free(a_)) << "it was the stranger's";
}

TEST_F(Claims, AHeldClaimIsRenewed) {
  auto options = small_pool(64);
  options.claim_ttl = 3s;  // so that a machine that stops for a second does not end it
  auto one = make(options);
  FillTicket ticket = lead(one, a_);
  ASSERT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_TRUE(eventually([&] { return store_->calls(StoreOp::renew) >= 4; }));
  EXPECT_FALSE(is_free(a_)) << "it has lasted longer than one that is not renewed";
  publish(ticket, a_);
  one.check_invariants();
  EXPECT_TRUE(is_free(a_));
}

TEST_F(Claims, AClaimAfterAQuietTimeIsRenewedToo) {
  auto options = small_pool(64);
  options.claim_ttl = 30ms;
  auto one = make(options);
  for (int number = 1; number <= 3; ++number) {
    FillTicket ticket = lead(one, picture(number));
    ASSERT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
    const std::size_t before = store_->calls(StoreOp::renew);
    EXPECT_TRUE(eventually([&] { return store_->calls(StoreOp::renew) >= before + 2; }));
    publish(ticket, picture(number));
    one.check_invariants();  // nothing is held: the keeper sleeps
  }
}

TEST_F(Claims, AStoreThatCanOnlyBeReadIsReadOn) {
  auto options = small_pool(64);
  options.breaker_faults = 2;
  options.breaker_pause = std::chrono::hours(1);
  auto one = make(options);
  store_->add({.op = StoreOp::claim, .status = StoreStatus::denied});
  std::vector<FillTicket> tickets;
  for (int number = 0; number < 5; ++number) tickets.push_back(lead(one, picture(number)));
  for (FillTicket& ticket : tickets) {
    EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  }
  EXPECT_EQ(claims_asked(), 2U) << "then nobody asks: no put would follow";
  EXPECT_FALSE(one.stats().stores[0].breaker_open);
  EXPECT_TRUE(one.stats().stores[0].put_breaker_open);
}

// The threads of lookups are not those of claims.
TEST_F(Claims, ClaimsThatHangLeaveTheStoreReadable) {
  auto options = small_pool(64);
  options.store_timeout = 30s;
  auto one = make(options);
  plant(store_->inner(), picture(9));
  store_->add({.op = StoreOp::claim, .fault = Fault::hold_before});
  std::vector<FillTicket> tickets;
  for (int number = 0; number < 5; ++number) tickets.push_back(lead(one, picture(number)));
  std::vector<std::future<void>> asking;
  for (FillTicket& ticket : tickets) {
    asking.push_back(std::async(std::launch::async, [&] { ticket.claim(request()); }));
  }
  ASSERT_TRUE(store_->gate().wait_for_waiting(2));
  EXPECT_EQ(serve_one(one, picture(9)).source, Source::store);
  store_->heal();
  for (auto& asked : asking) asked.get();
  EXPECT_FALSE(one.stats().stores[0].breaker_open);
}

TEST_F(Claims, ThatComeTooLateAreFaultsOfWriting) {
  auto options = small_pool(64);
  options.store_timeout = 2s;
  options.breaker_faults = 2;
  options.breaker_pause = std::chrono::hours(1);
  auto one = make(options);
  FillTicket first = lead(one, picture(1));
  FillTicket second = lead(one, picture(2));
  store_->add({.op = StoreOp::claim, .fault = Fault::hold_before});
  auto asking = std::async(std::launch::async, [&] { first.claim(request()); });
  second.claim(request());
  asking.get();
  EXPECT_FALSE(one.stats().stores[0].breaker_open);
  EXPECT_TRUE(one.stats().stores[0].put_breaker_open);
  store_->heal();
}

TEST_F(Claims, ThatWorkSayNothingAboutReads) {
  auto options = small_pool(64);
  options.breaker_faults = 5;
  options.breaker_pause = std::chrono::hours(1);
  auto one = make(options);
  store_->add({.op = StoreOp::get});
  for (int number = 0; number < 5; ++number) {
    plant(store_->inner(), picture(number));
    FillTicket ticket = lead(one, picture(number));
    EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  }
  EXPECT_TRUE(one.stats().stores[0].breaker_open);
}

TEST_F(Claims, TheClaimLastsUntilThePutHasEnded) {
  auto one = make();
  store_->add({.op = StoreOp::put, .fault = Fault::hold_before, .times = 1});
  FillTicket ticket = lead(one, a_);
  ASSERT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  publish(ticket, a_);
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  EXPECT_FALSE(is_free(a_));
  EXPECT_EQ(store_->calls(StoreOp::release), 0U);
  store_->heal();
  settle(one);
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

TEST_F(Claims, WhoeverWinsLooksOnceMore) {
  auto two = make();
  FillTicket ticket = lead(two, a_);
  plant(store_->inner(), a_);
  auto result = ticket.claim(request());
  ASSERT_EQ(result.outcome, Claim::served);
  EXPECT_EQ(result.source, Source::store);
  expect_golden(result.view, a_);
  EXPECT_EQ(two.stats().claims.won, 0U);
  EXPECT_EQ(lookups(two).miss, 0U);
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

TEST_F(Claims, AStoreThatDiesMeanwhileCostsNoMore) {
  auto two = make();
  claim_for_stranger(a_, 1h);
  store_->add({.op = StoreOp::claim, .status = StoreStatus::unavailable, .skip = 2});
  FillTicket ticket = lead(two, a_);
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(two.stats().claims.failed, 1U);
  EXPECT_EQ(claims_asked(), 3U);
}

TEST_F(Claims, AnAnswerThatComesTooLateIsNotKept) {
  auto options = small_pool(64);
  options.store_timeout = 200ms;
  auto two = make(options);
  FillTicket ticket = lead(two, a_);
  store_->add({.op = StoreOp::claim, .fault = Fault::hold_before, .times = 1});
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(two.stats().claims.failed, 1U);
  store_->heal();
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
  publish(ticket, a_);
  two.check_invariants();
}

TEST_F(Claims, IsAskedForWhileOneDecodes) {
  auto one = make();
  FillTicket ticket = lead(one, a_);
  ASSERT_TRUE(begin_and_hold(ticket)) << "nobody waits for it yet";
  EXPECT_FALSE(is_free(a_));
  ticket.begin_claim(request());
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(claims_asked(), 1U);
  EXPECT_EQ(one.stats().claims.won, 1U);
  publish(ticket, a_);
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

TEST_F(Claims, WhatWasBegunAndIsNotWantedIsLetGo) {
  auto one = make();
  {
    FillTicket ticket = lead(one, a_);
    ASSERT_TRUE(begin_and_hold(ticket));
    EXPECT_FALSE(is_free(a_));
  }
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
  FillTicket failing = lead(one, a_);
  failing.begin_claim(request());
  failing.fail(Error(ErrorCode::invalid_argument, "no picture"));
  settle(one);
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
  EXPECT_EQ(one.stats().claims.won, 0U);
}

TEST_F(Claims, AFlushMeanwhileUndoesWhatWasBegun) {
  auto one = make();
  FillTicket ticket = lead(one, a_);
  ticket.begin_claim(request());
  one.flush(FlushScope::all, std::nullopt, request());
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(one.stats().claims.won, 0U);
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

TEST_F(Claims, WhoeverLeavesWhileItWaitsHandsTheFillOver) {
  auto two = make();
  claim_for_stranger(a_, 1h);
  std::stop_source gone;
  RequestContext context = request();
  context.cancel = gone.get_token();
  auto waiting = std::async(std::launch::async, [&] { lead(two, a_).claim(context); });
  ASSERT_TRUE(eventually([&] { return claims_asked() >= 2; }));
  auto follower = std::get<JoinTicket>(acquire_one(two, a_));
  gone.request_stop();
  try {
    waiting.get();
    ADD_FAILURE() << "it left";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_TRUE(std::holds_alternative<FillTicket>(follower.wait(request())));
}

TEST_F(Claims, AFlushLetsThemGo) {
  auto one = make();
  FillTicket before = lead(one, a_);
  ASSERT_EQ(before.claim(request()).outcome, Claim::encode_it);
  one.flush(FlushScope::all, std::nullopt, request());
  FillTicket after = lead(one, a_);
  EXPECT_EQ(after.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(one.stats().claims.won, 2U);
  publish(before, a_);
  EXPECT_FALSE(is_free(a_)) << "the old fill has no claim any more";
  publish(after, a_);
  one.check_invariants();
  EXPECT_FALSE(read_back(store_->inner(), a_.key()).empty());
}

TEST_F(Claims, AFlushOfThePoolKeepsThem) {
  auto one = make();
  FillTicket ticket = lead(one, a_);
  ASSERT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  one.flush(FlushScope::local, std::nullopt, request());
  FillTicket other = lead(one, picture(2));  // whose claim comes after what was let go
  ASSERT_EQ(other.claim(request()).outcome, Claim::encode_it);
  { const FillTicket given_up = std::move(other); }
  EXPECT_TRUE(eventually([&] { return is_free(picture(2)); }));
  EXPECT_FALSE(is_free(a_)) << "its put still comes";
  publish(ticket, a_);
  one.check_invariants();
  EXPECT_FALSE(read_back(store_->inner(), a_.key()).empty());
}

TEST_F(Claims, ARemovalLetsThemGo) {
  auto one = make();
  FillTicket before = lead(one, a_);
  ASSERT_EQ(before.claim(request()).outcome, Claim::encode_it);
  one.remove(a_.key(), std::nullopt, request());
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

TEST_F(Claims, AFillFromBeforeAFlushOfTheStoresClaimsNothing) {
  auto one = make();
  FillTicket before = lead(one, a_);
  one.flush(FlushScope::store, std::nullopt, request());
  EXPECT_EQ(before.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(claims_asked(), 0U);
}

TEST_F(Claims, NobodyClaimsUnlessAPutFollows) {
  const auto claims_nothing = [&](const ControllerOptions& options) {
    auto one = make(options);
    FillTicket ticket = lead(one, a_);
    EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
    EXPECT_EQ(claims_asked(), 0U);
  };
  auto options = small_pool(64);
  options.claims = false;
  claims_nothing(options);
  options = small_pool(64);
  options.write_policy = WritePolicy::never;
  claims_nothing(options);
  options.write_policy = WritePolicy::behind;
  claims_nothing(options);
  options = small_pool(64);
  options.put_after_uses = 2;
  claims_nothing(options);
  // Neither the pool nor staging would hold it.
  options = small_pool(0);
  options.pool.staging_pages = 0;
  claims_nothing(options);
}

TEST_F(Claims, NobodyClaimsWhilePutsPause) {
  auto options = small_pool(64);
  options.breaker_faults = 1;
  options.breaker_pause = std::chrono::hours(1);
  auto one = make(options);
  store_->add({.op = StoreOp::put, .status = StoreStatus::no_space});
  serve_one(one, picture(2));
  settle(one);
  ASSERT_TRUE(one.stats().stores[0].put_breaker_open);
  FillTicket ticket = lead(one, a_);
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(claims_asked(), 0U);
}

TEST_F(Claims, TheFarthestTierIsAsked) {
  const auto near = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController one(small_pool(64), {near, store_});
  FillTicket ticket = lead(one, a_);
  EXPECT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
  EXPECT_EQ(near->calls(StoreOp::claim), 0U);
  EXPECT_EQ(claims_asked(), 1U);
}

TEST_F(Claims, ATwinsAliasServesThoseWhoWaitForIt) {
  auto one = make();
  auto two = make();
  const Picture twin = picture(2);
  const EmbeddingKey feature{sha256("the same tensors")};
  FillTicket first = lead(one, a_);
  ASSERT_FALSE(first.resolve_features(feature, request()));
  publish(first, a_);
  settle(one);
  FillTicket second = lead(one, twin);
  ASSERT_EQ(second.claim(request()).outcome, Claim::encode_it);
  auto waiting = std::async(std::launch::async, [&] { return lead(two, twin).claim(request()); });
  ASSERT_TRUE(eventually([&] { return claims_asked() >= 2; }));
  ASSERT_TRUE(second.resolve_features(feature, request()));
  const auto result = waiting.get();
  ASSERT_EQ(result.outcome, Claim::served);
  EXPECT_EQ(rows_of(result.view), golden_bytes(a_));
  EXPECT_TRUE(eventually([&] { return is_free(twin); }));
}

TEST_F(Claims, AnEndingControllerReleasesWhatItHolds) {
  {
    auto one = make();
    store_->add({.op = StoreOp::put, .status = StoreStatus::unavailable});
    FillTicket ticket = lead(one, a_);
    ASSERT_EQ(ticket.claim(request()).outcome, Claim::encode_it);
    publish(ticket, a_);
  }
  EXPECT_TRUE(eventually([&] { return is_free(a_); }));
}

}  // namespace
}  // namespace vitrove::testing
