// Field case B58: what happens when one rank is slow, fails, aborts, errs or is gone.
#include "unit/ranks/support.h"

namespace vitrove::testing {
namespace {

using ::testing::HasSubstr;

RankOptions short_loads(bool all_rank_get) {
  auto options = patient_options(all_rank_get);
  options.load_timeout = 50ms;
  return options;
}

RankOptions short_timeouts() {
  auto options = patient_options(false);
  options.timeout = 300ms;
  options.load_timeout = 100ms;
  return options;
}

TEST(RankFailures, ALoadThatComesLateIsAMissForAllAndGivenBack) {
  for (const int slow : {0, 1}) {
    Ranks ranks(2, short_loads(true));
    plant(ranks.store(), picture(1));
    ranks.trouble(slow).gate().close();
    ranks.trouble(slow).prepare(Trouble::hold);
    for (const auto& outcome : ranks.ask("r", {picture(1)})) {
      EXPECT_EQ(outcome.hits, Hits{false});
      EXPECT_FALSE(outcome.aborted);
    }
    ranks.trouble(slow).gate().open();
    ASSERT_TRUE(eventually([&] { return is_cached(ranks.controller(slow), picture(1)); }));
    for (const int rank : {0, 1}) ranks.leave(rank);
    EXPECT_EQ(ranks.controller(slow).stats().bytes_pinned, 0U);
    ranks.controller(slow).check_invariants();
  }
}

TEST(RankFailures, WhatIsInThePoolIsAHitThoughTheRestComesLate) {
  Ranks ranks(2, short_loads(false));
  serve(ranks.controller(0), {picture(1)});
  plant(ranks.store(), picture(2));
  ranks.trouble(0).gate().close();
  ranks.trouble(0).prepare(Trouble::hold);
  for (const auto& outcome : ranks.ask("r", {picture(1), picture(2)})) {
    EXPECT_EQ(outcome.hits, (Hits{true, false}));
  }
  ranks.trouble(0).gate().open();
}

TEST(RankFailures, LoadsThatFailAreMissesForAll) {
  for (const auto trouble : {Trouble::empty, Trouble::throws, Trouble::wrong_count}) {
    for (const int bad : {0, 1}) {
      Ranks ranks(2, patient_options(true));
      plant(ranks.store(), picture(1));
      ranks.trouble(bad).prepare(trouble);
      for (const auto& outcome : ranks.ask("r", {picture(1)})) {
        EXPECT_EQ(outcome.hits, Hits{false});
      }
      for (const auto& outcome : ranks.ask("s", {picture(1)})) {
        EXPECT_EQ(outcome.hits, Hits{true}) << "the next request is served";
      }
    }
  }
}

TEST(RankFailures, ALookupThatFailsFindsNothing) {
  Ranks ranks(2, patient_options(false));
  plant(ranks.store(), picture(1));
  ranks.trouble(0).fail_lookups(true);
  for (const auto& outcome : ranks.ask("r", {picture(1)})) EXPECT_EQ(outcome.hits, Hits{false});
}

TEST(RankFailures, AnAbortOnRankZeroIsAMissForAll) {
  Ranks ranks(2, patient_options(false));
  plant(ranks.store(), picture(1));
  ranks.trouble(0).gate().close();
  ranks.trouble(0).prepare(Trouble::hold);
  for (const int rank : {0, 1}) ranks.prefetch(rank, "r", {picture(1)});
  EXPECT_TRUE(ranks[0].abort("r"));
  const auto outcome = ranks[1].wait("r");
  EXPECT_TRUE(outcome.aborted);
  EXPECT_EQ(outcome.hits, Hits{false});
  EXPECT_THROW(ranks[0].take("r"), Error);
  ranks.trouble(0).gate().open();
}

TEST(RankFailures, AnAbortElsewhereHoldsNobodyUp) {
  for (const bool all : {false, true}) {
    Ranks ranks(2, patient_options(all));
    plant(ranks.store(), picture(1));
    ranks.prefetch(1, "r", {picture(1)});
    EXPECT_TRUE(ranks[1].abort("r"));
    ranks.prefetch(0, "r", {picture(1)});
    const auto outcome = ranks[0].wait("r");
    EXPECT_FALSE(outcome.aborted);
    EXPECT_EQ(outcome.hits, Hits{!all}) << "what this rank would have loaded is missing";
    for (const auto& next : ranks.ask("s", {picture(1)})) EXPECT_EQ(next.hits, Hits{true});
  }
}

TEST(RankFailures, ARequestThatRankZeroRefusesIsAMissForWhoeverAsked) {
  for (const bool all : {false, true}) {
    Ranks ranks(3, patient_options(all));
    ranks.prefetch(1, "r", {picture(1), picture(2)});
    ranks[0].refuse("r");
    auto outcome = ranks[1].wait("r");
    EXPECT_TRUE(outcome.aborted);
    EXPECT_EQ(outcome.hits, (Hits{false, false}));
    EXPECT_EQ(outcome.views.size(), 2U);
    ranks.prefetch(2, "r", {picture(1)});
    EXPECT_EQ(ranks[2].wait("r").hits, Hits{false});
    EXPECT_THROW(ranks[1].refuse("x"), Error);
    EXPECT_TRUE(ranks[0].check_prefetch_progress("r"));
  }
}

TEST(RankFailures, RanksThatMeanOtherItemsByOneRequestAreAllTold) {
  for (const bool early : {true, false}) {
    Ranks ranks(2, patient_options(false));
    if (early) ranks.prefetch(1, "r", {picture(2)});
    ranks.prefetch(0, "r", {picture(1)});
    EXPECT_THAT(reason_of([&] {
                  if (!early) {
                    ranks[0].wait("r");
                    // Rank 1 knows the request when it knows the next one.
                    ranks.ask("next", {picture(3)});
                    ranks.prefetch(1, "r", {picture(2)});
                  }
                  ranks[1].wait("r");
                }),
                HasSubstr("other items"));
    ASSERT_TRUE(eventually([&] { return ranks[0].failure().has_value(); }));
    EXPECT_NE(reason_of([&] { ranks.prefetch(0, "s", {picture(1)}); }), "");
  }
}

TEST(RankFailures, ARequestThatRankZeroNeverTakesOnEndsTheGroup) {
  Ranks ranks(2, short_timeouts());
  ranks.prefetch(1, "r", {picture(1)});
  EXPECT_THAT(reason_of([&] { ranks[1].wait("r"); }), HasSubstr("failed"));
  EXPECT_THAT(reason_of([&] { ranks[1].check_prefetch_progress("r"); }), HasSubstr("failed"));
  ASSERT_TRUE(eventually([&] { return ranks[0].failure().has_value(); }));
}

TEST(RankFailures, ARankThatLeavesEndsTheGroupForTheOthers) {
  Ranks ranks(3, patient_options(true));
  ranks.leave(2);
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(eventually([&] { return ranks[rank].failure().has_value(); }));
    EXPECT_THAT(reason_of([&] { ranks[rank].wait("r"); }), HasSubstr("rank 2 has ended the group"));
  }
}

TEST(RankFailures, WhatWasAgreedBeforeARankLeftHoldsForHostsThatAskAfterIt) {
  for (const bool all : {false, true}) {
    Ranks ranks(3, patient_options(all));
    plant(ranks.store(), picture(1));
    for (const int rank : {0, 2}) ranks.prefetch(rank, "r", {picture(1), picture(2)});
    EXPECT_EQ(ranks[2].wait("r").hits, (Hits{true, false}));
    ranks.leave(2);
    EXPECT_EQ(ranks[0].wait("r").hits, (Hits{true, false}));
    ranks.prefetch(1, "r", {picture(1), picture(2)});
    EXPECT_EQ(ranks[1].wait("r").hits, (Hits{true, false}));
    EXPECT_NE(reason_of([&] { ranks.prefetch(1, "s", {picture(1)}); }), "");
  }
}

TEST(RankFailures, RankZeroThatGoesSaysSo) {
  Ranks ranks(2, patient_options(false));
  ranks.prefetch(1, "r", {picture(1)});
  ranks.leave(0);
  EXPECT_THAT(reason_of([&] { ranks[1].wait("r"); }), HasSubstr("rank 0 has ended the group"));
}

TEST(RankFailures, ARankThatNeverAnswersEndsTheGroupInTime) {
  const std::shared_ptr<EmbeddingStore> store = make_memory_store();
  RankCache cache(store);
  const ThreadGroup group(2);  // rank 1 is not there
  RankAgreement agreement(group.member(0), std::move(cache.source), short_timeouts());
  ASSERT_TRUE(eventually([&] { return agreement.failure().has_value(); }));
  EXPECT_THAT(reason_of([&] { agreement.prefetch("r", {}); }), HasSubstr("in time"));
}

TEST(RankFailures, RanksThatLoadInDifferentWaysAreAllTold) {
  const std::shared_ptr<EmbeddingStore> store = make_memory_store();
  RankCache first(store);
  RankCache second(store);
  const ThreadGroup group(2);
  RankAgreement zero(group.member(0), std::move(first.source), patient_options(false));
  RankAgreement one(group.member(1), std::move(second.source), patient_options(true));
  ASSERT_TRUE(eventually([&] { return zero.failure() && one.failure(); }));
  EXPECT_THAT(*one.failure(), HasSubstr("all_rank_get"));
}

TEST(RankFailures, OutcomesThatNobodyAsksForAreForgotten) {
  Ranks ranks(2, patient_options(true));
  plant(ranks.store(), picture(1));
  for (int i = 0; i < 400; ++i) {
    const std::string id = std::to_string(i);
    ranks.prefetch(0, id, {picture(1)});
    ranks[0].wait(id);
  }
  ranks.prefetch(1, "399", {picture(1)});
  EXPECT_EQ(ranks[1].wait("399").hits, Hits{true});
  ranks.prefetch(1, "0", {picture(1)});
  EXPECT_FALSE(ranks[1].mask("0")) << "long forgotten";
  ranks[1].abort("0");
}

}  // namespace
}  // namespace vitrove::testing
