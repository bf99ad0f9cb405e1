// Files that differ and preprocess to the same tensors share one embedding (design section 3).
#include "support.h"

namespace vitrove::testing {
namespace {

// The features of a picture; twins (a, b) are different files with the features of one.
EmbeddingKey features(const std::string& name) { return {sha256("features/" + name)}; }

Picture file(const std::string& name) { return {name}; }

// The golden rows of `like` for whatever file holds it.
EmbeddingView encode(FillTicket& ticket, const Picture& like) { return publish(ticket, like); }

std::optional<Served> look_twice(FillTicket& ticket, const std::string& feature) {
  auto found = ticket.resolve_features(features(feature), request());
  if (!found) return std::nullopt;
  return Served{std::move(found->first), found->second};
}

bool is_alias_of(EmbeddingStore& store, const EmbeddingKey& alias, const EmbeddingKey& target) {
  const Bytes value = read_back(store, alias);
  if (value.empty() || inspect(value, alias) != Reject::none) return false;
  const auto side = SideData::decode(std::span(value).subspan(value_header_size));
  return side && side->alias_target == target;
}

class Aliases : public ::testing::Test {
 protected:
  Aliases() : controller_(small_pool(64), {store_}) {}

  // File `name` with features "x" is encoded and published.
  void encode_first(const std::string& name) {
    auto ticket = lead(controller_, file(name));
    ASSERT_FALSE(look_twice(ticket, "x"));
    encode(ticket, file(name));
    settle(controller_);
  }
  // Nothing is left for it of what the item's questions to the stores may take.
  void expect_no_second_look(EmbeddingCacheController& controller, FillTicket& ticket) {
    const auto asked = store_->calls(StoreOp::exist);
    EXPECT_FALSE(look_twice(ticket, "x"));
    EXPECT_EQ(store_->calls(StoreOp::exist), asked);
    encode(ticket, a_);
    store_->heal();
    controller.check_invariants();
  }
  void forget() { controller_.flush(FlushScope::local, std::nullopt, request()); }

  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller_;
  const Picture a_ = file("a");
  const Picture b_ = file("b");
  const Picture c_ = file("c");
};

TEST_F(Aliases, ATwinFindsTheEmbeddingInThePool) {
  encode_first("a");
  auto ticket = lead(controller_, b_);
  const auto twin = look_twice(ticket, "x");
  ASSERT_TRUE(twin);
  EXPECT_EQ(twin->source, Source::local);
  expect_golden(twin->view, a_);
  EXPECT_EQ(twin->view.stored_key(), a_.key());
  // One entry, known under three keys.
  const auto stats = controller_.stats();
  EXPECT_EQ(stats.entries_ready, 1U);
  const auto direct = controller_.try_get(b_.key());
  ASSERT_TRUE(direct);
  EXPECT_EQ(direct.runs()[0].data(), twin->view.runs()[0].data());
  // One stored value, two aliases.
  settle(controller_);
  EXPECT_FALSE(read_back(*store_, a_.key()).empty());
  EXPECT_TRUE(is_alias_of(*store_, features("x"), a_.key()));
  EXPECT_TRUE(is_alias_of(*store_, b_.key(), a_.key()));
}

TEST_F(Aliases, TheValueAndTheAliasThatLeadsToItArePutByOneCall) {
  encode_first("a");
  EXPECT_EQ(store_->calls(StoreOp::put), 1U);
  EXPECT_EQ(exists(*store_, a_.key()).status, StoreStatus::ok);
  EXPECT_TRUE(is_alias_of(*store_, features("x"), a_.key()));
}

TEST_F(Aliases, ATwinsContentKeyIsFollowedThroughTheStore) {
  encode_first("a");
  {
    auto ticket = lead(controller_, b_);
    ASSERT_TRUE(look_twice(ticket, "x"));
  }
  settle(controller_);
  EmbeddingCacheController fresh(small_pool(64), {store_});
  {
    const Served served = serve_one(fresh, b_);
    EXPECT_EQ(served.source, Source::store);
    expect_golden(served.view, a_);
    EXPECT_EQ(served.view.stored_key(), a_.key());
  }
  // The target came into the pool under its own key as well.
  EXPECT_EQ(serve_one(fresh, a_).source, Source::local);
  EXPECT_EQ(fresh.stats().entries_ready, 1U);
  fresh.check_invariants();
}

TEST_F(Aliases, ATwinFindsTheEmbeddingInTheStoreByItsFeatures) {
  encode_first("a");
  EmbeddingCacheController fresh(small_pool(64), {store_});
  auto ticket = lead(fresh, c_);
  const auto twin = look_twice(ticket, "x");
  ASSERT_TRUE(twin);
  EXPECT_EQ(twin->source, Source::store);
  expect_golden(twin->view, a_);
  settle(fresh);
  EXPECT_TRUE(is_alias_of(*store_, c_.key(), a_.key()));
  const auto counts = lookups(fresh);
  EXPECT_EQ(counts.store, 1U);
  EXPECT_EQ(counts.miss, 0U);
}

TEST_F(Aliases, ATargetInThePoolIsUsedWhenOnlyTheAliasIsStored) {
  encode_first("a");
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  const auto gets = store_->keys(StoreOp::get);
  const Served served = serve_one(controller_, b_);
  EXPECT_EQ(served.source, Source::local);
  expect_golden(served.view, a_);
  EXPECT_EQ(store_->keys(StoreOp::get), gets + 1);
}

TEST_F(Aliases, ADanglingAliasIsAMissAndIsReplaced) {
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  const Served served = serve_one(controller_, b_);
  EXPECT_EQ(served.source, Source::encoded);
  expect_golden(served.view, b_);
  EXPECT_EQ(rejected(controller_, "dangling_alias"), 1U);
  settle(controller_);
  EXPECT_EQ(read_back(*store_, b_.key()).size(), stored_value(b_).size());
}

TEST_F(Aliases, ADanglingFeatureAliasIsReplacedByTheNextEncode) {
  ASSERT_TRUE(put_one(*store_, features("x"), alias_value(features("x"), a_.key(), a_)).ok());
  auto ticket = lead(controller_, b_);
  ASSERT_FALSE(look_twice(ticket, "x"));
  encode(ticket, b_);
  settle(controller_);
  EXPECT_TRUE(is_alias_of(*store_, features("x"), b_.key()));
}

TEST_F(Aliases, AnAliasOfAnAliasIsAMiss) {
  plant(*store_, a_);
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  ASSERT_TRUE(put_one(*store_, c_.key(), alias_value(c_.key(), b_.key(), a_)).ok());
  EXPECT_EQ(serve_one(controller_, c_).source, Source::encoded);
  EXPECT_EQ(rejected(controller_, "dangling_alias"), 1U);
}

TEST_F(Aliases, AnAliasOfItselfIsAMiss) {
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), b_.key(), b_)).ok());
  EXPECT_EQ(serve_one(controller_, b_).source, Source::encoded);
  settle(controller_);
  controller_.check_invariants();
  // It was replaced, so that it is no trap for ever.
  forget();
  EXPECT_EQ(serve_one(controller_, b_).source, Source::store);
}

TEST_F(Aliases, ASecondLookOfAServedTicketOrAtItsOwnKeyFindsNothing) {
  auto ticket = lead(controller_, a_);
  EXPECT_FALSE(ticket.resolve_features(a_.key(), request()));
  EXPECT_FALSE(look_twice(ticket, "x"));
  encode(ticket, a_);
  EXPECT_FALSE(look_twice(ticket, "x"));
  settle(controller_);
  controller_.check_invariants();
}

TEST_F(Aliases, AnAliasToAnotherTenantsValueIsAMiss) {
  Picture theirs = a_;
  theirs.tenant = "them";
  plant(*store_, theirs);
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), theirs.key(), b_)).ok());
  EXPECT_EQ(serve_one(controller_, b_).source, Source::encoded);
  // Nor when the target is in the pool.
  ASSERT_TRUE(put_one(*store_, c_.key(), alias_value(c_.key(), theirs.key(), c_)).ok());
  serve_one(controller_, theirs);
  EXPECT_EQ(serve_one(controller_, c_).source, Source::encoded);
}

TEST_F(Aliases, TheAliasMayLieNearAndTheValueFar) {
  const auto far = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {store_, far});
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  plant(*far, a_);
  const Served served = serve_one(controller, b_);
  EXPECT_EQ(served.source, Source::store);
  expect_golden(served.view, a_);
  settle(controller);
  EXPECT_FALSE(read_back(*store_, a_.key()).empty());  // copied near
}

TEST_F(Aliases, TheAliasMayLieFarAndTheValueNear) {
  const auto far = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {store_, far});
  ASSERT_TRUE(put_one(*far, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  plant(*store_, a_);
  EXPECT_EQ(serve_one(controller, b_).source, Source::store);
  settle(controller);
  EXPECT_TRUE(is_alias_of(*store_, b_.key(), a_.key()));  // copied near
}

TEST_F(Aliases, ADanglingAliasInTheNearTierDoesNotHideTheValueInTheFarOne) {
  const auto far = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {store_, far});
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  plant(*far, b_);
  const Served served = serve_one(controller, b_);
  EXPECT_EQ(served.source, Source::store);
  expect_golden(served.view, b_);
  settle(controller);
  EXPECT_EQ(read_back(*store_, b_.key()), read_back(*far, b_.key()));
}

TEST_F(Aliases, TwoAliasesOfOneValueInOneRequestLoadItOnce) {
  plant(*store_, a_);
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  ASSERT_TRUE(put_one(*store_, c_.key(), alias_value(c_.key(), a_.key(), a_)).ok());
  std::vector<ValueExpectation> expected{b_.expectation(), c_.expectation()};
  auto answers = controller_.acquire(expected, request());
  expect_golden(std::get<Hit>(answers[0]).view, a_);
  expect_golden(std::get<Hit>(answers[1]).view, a_);
  EXPECT_EQ(store_->keys(StoreOp::get), 3U);
  EXPECT_EQ(controller_.stats().entries_ready, 1U);
}

TEST_F(Aliases, ATwinWaitsForTheFillOfItsFeatures) {
  auto first = lead(controller_, a_);
  ASSERT_FALSE(look_twice(first, "x"));
  std::optional<Served> twin;
  std::jthread other([&] {
    auto ticket = lead(controller_, b_);
    twin = look_twice(ticket, "x");
  });
  ASSERT_TRUE(eventually([&] { return followers_of(controller_, features("x")) == 1; }));
  encode(first, a_);
  other.join();
  ASSERT_TRUE(twin);
  EXPECT_EQ(twin->source, Source::joined);
  expect_golden(twin->view, a_);
  EXPECT_EQ(twin->view.stored_key(), a_.key());
  EXPECT_EQ(lookups(controller_).joined, 1U);
  EXPECT_EQ(lookups(controller_).miss, 1U);
}

TEST_F(Aliases, WhenTheFeaturesLeaderLeavesTheTwinEncodes) {
  std::optional<FillTicket> first = lead(controller_, a_);
  ASSERT_FALSE(look_twice(*first, "x"));
  std::jthread other([&] {
    auto ticket = lead(controller_, b_);
    EXPECT_FALSE(look_twice(ticket, "x"));
    encode(ticket, b_);
  });
  ASSERT_TRUE(eventually([&] { return followers_of(controller_, features("x")) == 1; }));
  first.reset();
  other.join();
  settle(controller_);
  EXPECT_TRUE(is_alias_of(*store_, features("x"), b_.key()));
  controller_.check_invariants();
}

TEST_F(Aliases, TwinsOfOneRequestShareOneEntryWhicheverIsEncodedFirst) {
  for (const bool in_order : {true, false}) {
    auto first = lead(controller_, a_);
    auto second = lead(controller_, b_);
    // One thread looks all items up and encodes then: it must not wait for itself.
    EXPECT_FALSE(look_twice(first, "x"));
    EXPECT_FALSE(look_twice(second, "x"));
    FillTicket& sooner = in_order ? first : second;
    FillTicket& later = in_order ? second : first;
    const Picture& kept = in_order ? a_ : b_;
    {
      const auto one = encode(sooner, kept);
      const auto two = encode(later, kept);
      EXPECT_EQ(one.runs()[0].data(), two.runs()[0].data());
      EXPECT_EQ(two.stored_key(), kept.key());
    }
    EXPECT_EQ(controller_.stats().entries_ready, 1U);
    settle(controller_);
    EXPECT_TRUE(is_alias_of(*store_, features("x"), kept.key()));
    controller_.check_invariants();
    controller_.flush(FlushScope::all, std::nullopt, request());
  }
}

// Two requests with the same two pictures, looked up in opposite order by one thread each.
TEST_F(Aliases, CrossedRequestsDoNotWaitForEachOther) {
  const Picture a2 = file("a, wrapped anew");
  const Picture b2 = file("b, wrapped anew");
  auto r1a = lead(controller_, a_);
  auto r1b = lead(controller_, b_);
  EXPECT_FALSE(look_twice(r1a, "x"));
  std::jthread other([&] {
    auto r2b = lead(controller_, b2);
    auto r2a = lead(controller_, a2);
    EXPECT_FALSE(look_twice(r2b, "y"));
    EXPECT_FALSE(look_twice(r2a, "x"));  // leads "y": goes without waiting
    encode(r2b, b2);
    encode(r2a, a2);
  });
  other.join();
  EXPECT_TRUE(look_twice(r1b, "y"));
  encode(r1a, a_);
  settle(controller_);
  controller_.check_invariants();
}

TEST_F(Aliases, NoneIsMadeOfAFillThatWasRemovedMeanwhile) {
  auto ticket = lead(controller_, a_);
  ASSERT_FALSE(look_twice(ticket, "x"));
  controller_.remove(a_.key(), std::nullopt, request());
  expect_golden(encode(ticket, a_), a_);
  settle(controller_);
  EXPECT_TRUE(read_back(*store_, a_.key()).empty());
  EXPECT_TRUE(read_back(*store_, features("x")).empty());
  EXPECT_FALSE(controller_.try_get(features("x")));
  controller_.check_invariants();
}

// Whose it is becomes known only when it has been read.
TEST_F(Aliases, ATargetThatIsRemovedForItsTenantMeanwhileDoesNotComeBack) {
  encode_first("a");
  forget();
  auto ticket = lead(controller_, b_);
  store_->add({.op = StoreOp::get, .key = a_.key(), .fault = Fault::hold_after, .times = 1});
  std::jthread twin([&] { look_twice(ticket, "x"); });
  ASSERT_TRUE(store_->gate().wait_for_waiting(1));
  const auto tenant = tenant_digest(a_.tenant);
  EXPECT_TRUE(controller_.remove(a_.key(), tenant, request()).tiers[1].complete);
  store_->gate().open();
  twin.join();
  EXPECT_FALSE(controller_.try_get(a_.key()));
  settle(controller_);
  controller_.check_invariants();
}

TEST_F(Aliases, AnEvictedEntryIsGoneUnderAllItsKeys) {
  EmbeddingCacheController controller(small_pool(2), {store_});
  {
    auto ticket = lead(controller, a_);
    ASSERT_FALSE(look_twice(ticket, "x"));
    encode(ticket, a_);
    auto twin = lead(controller, b_);
    ASSERT_TRUE(look_twice(twin, "x"));
  }
  settle(controller);
  serve(controller, {picture(1), picture(2)});
  settle(controller);
  EXPECT_FALSE(is_cached(controller, a_));
  EXPECT_FALSE(is_cached(controller, b_));
  EXPECT_FALSE(controller.try_get(features("x")));
  controller.check_invariants();
}

TEST_F(Aliases, ManyTwinsDoNotGrowAnEntryWithoutBound) {
  encode_first("a");
  for (int i = 0; i < 100; ++i) {
    auto ticket = lead(controller_, file("twin " + std::to_string(i)));
    ASSERT_TRUE(look_twice(ticket, "x")) << i;
  }
  settle(controller_);
  controller_.check_invariants();
  // Those beyond the bound find it through the store.
  const auto served = serve_one(controller_, file("twin 99"));
  expect_golden(served.view, a_);
}

TEST_F(Aliases, FindFollowsAnAlias) {
  plant(*store_, a_);
  ASSERT_TRUE(put_one(*store_, b_.key(), alias_value(b_.key(), a_.key(), a_)).ok());
  auto hit = controller_.find(b_.key(), std::nullopt, request());
  ASSERT_TRUE(hit);
  expect_golden(hit->view, a_);
}

TEST_F(Aliases, AllLookupsOfAnItemShareOneBudget) {
  auto options = small_pool(64);
  options.store_timeout = 1s;
  options.get_threads = 3;
  EmbeddingCacheController controller(options, {store_});
  plant(store_->inner(), a_);
  store_->add({.op = StoreOp::get, .key = a_.key(), .fault = Fault::hold_before, .times = 1});
  auto ticket = lead(controller, a_);  // the content key used all of it up
  expect_no_second_look(controller, ticket);
}

// B50: whatever an item asks of its stores takes one deadline in all.
TEST_F(Aliases, AClaimThatIsNotAnsweredLeavesNothingForTheSecondLook) {
  auto options = small_pool(64);
  options.store_timeout = 1s;
  EmbeddingCacheController controller(options, {store_});
  store_->add({.op = StoreOp::claim, .fault = Fault::hold_before, .times = 1});
  auto ticket = lead(controller, a_);
  EXPECT_EQ(ticket.claim(request()).outcome, FillTicket::Claim::encode_it);
  expect_no_second_look(controller, ticket);
}

TEST_F(Aliases, ALookupThatIsNotAnsweredLeavesNothingForAClaim) {
  auto options = small_pool(64);
  options.store_timeout = 1s;
  EmbeddingCacheController controller(options, {store_});
  store_->add({.op = StoreOp::exist, .fault = Fault::hold_before, .times = 1});
  auto ticket = lead(controller, a_);
  EXPECT_EQ(ticket.claim(request()).outcome, FillTicket::Claim::encode_it);
  EXPECT_EQ(store_->calls(StoreOp::claim), 0U);
  encode(ticket, a_);
  store_->heal();
  controller.check_invariants();
}

}  // namespace
}  // namespace vitrove::testing
