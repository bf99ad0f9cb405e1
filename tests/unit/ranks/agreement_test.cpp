#include <optional>
#include <sstream>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "unit/ranks/support.h"

namespace vitrove::testing {
namespace {

using ::testing::HasSubstr;

TEST(RankAgreement, ASingleRankAgreesWithItself) {
  const std::shared_ptr<EmbeddingStore> store = make_memory_store();
  RankCache cache(store);
  serve(cache.controller, {picture(1)});
  plant(*store, picture(2));
  RankAgreement agreement(make_single_rank(), std::move(cache.source), patient_options(false));
  agreement.prefetch(
      "r", {picture(1).expectation(), picture(2).expectation(), picture(3).expectation()});
  const auto outcome = agreement.wait("r");
  EXPECT_EQ(outcome.hits, (Hits{true, true, false}));
  EXPECT_FALSE(outcome.aborted);
  expect_golden(outcome.views[0], picture(1));
  expect_golden(outcome.views[1], picture(2));
  EXPECT_FALSE(outcome.views[2]);
  EXPECT_EQ(lookups(cache.controller).local, 1U);
  EXPECT_EQ(lookups(cache.controller).store, 1U);
}

TEST(RankAgreement, RanksWithoutAnArenaLearnWhatRankZeroHas) {
  Ranks ranks(3, patient_options(false));
  plant(ranks.store(), picture(1));
  const auto outcomes = ranks.ask("r", {picture(1), picture(2)});
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.hits, (Hits{true, false}));
    EXPECT_EQ(outcome.sequence, 1U);
    EXPECT_EQ(outcome.views.size(), 2U);
  }
  expect_golden(outcomes[0].views[0], picture(1));
  EXPECT_FALSE(outcomes[1].views[0]);
}

TEST(RankAgreement, RanksMayAskInAnyOrderAndAtAnyTime) {
  Ranks ranks(2, patient_options(false));
  plant(ranks.store(), picture(1));
  ranks.prefetch(1, "b", {picture(2)});
  ranks.prefetch(0, "a", {picture(1)});
  ranks.prefetch(0, "b", {picture(2)});
  EXPECT_EQ(ranks[1].wait("b").hits, Hits{false});
  EXPECT_EQ(ranks[0].wait("a").hits, Hits{true});
  ranks.prefetch(1, "a", {picture(1)});
  EXPECT_EQ(ranks[1].wait("a").hits, Hits{true});
  EXPECT_EQ(ranks[0].wait("b").hits, Hits{false});
}

TEST(RankAgreement, AnIdIsUsedAgainInTheSameOrderOnAllRanks) {
  Ranks ranks(2, patient_options(false));
  plant(ranks.store(), picture(2));
  for (int rank = 1; rank >= 0; --rank) {
    ranks.prefetch(rank, "r", {picture(1)});
    ranks.prefetch(rank, "r", {picture(2)});
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank].wait("r").hits, Hits{false});
    EXPECT_EQ(ranks[rank].wait("r").hits, Hits{true});
  }
}

TEST(RankAgreement, RequestsOfOneIdAreToldInOrderThoughTheSecondIsReadyFirst) {
  Ranks ranks(2, patient_options(false));
  plant(ranks.store(), picture(2));
  ranks.trouble(0).gate().close();
  ranks.trouble(0).hold_next_lookup();
  for (int rank = 1; rank >= 0; --rank) ranks.prefetch(rank, "r", {picture(1)});
  ASSERT_TRUE(ranks.trouble(0).gate().wait_for_waiting(1));
  for (int rank = 1; rank >= 0; --rank) ranks.prefetch(rank, "r", {picture(2)});
  // Whoever looked for this one had looked for the second before.
  for (const auto& outcome : ranks.ask("s", {picture(2)})) EXPECT_EQ(outcome.hits, Hits{true});
  ranks.trouble(0).gate().open();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank].wait("r").hits, Hits{false});
    EXPECT_EQ(ranks[rank].wait("r").hits, Hits{true});
  }
}

TEST(RankAgreement, TheMaskIsToldBeforeTheLoadHasEnded) {
  Ranks ranks(2, patient_options(false));
  plant(ranks.store(), picture(1));
  ranks.trouble(0).gate().close();
  ranks.trouble(0).prepare(Trouble::hold);
  for (int rank = 0; rank < 2; ++rank) ranks.prefetch(rank, "r", {picture(1), picture(2)});
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(eventually([&] { return ranks[rank].mask("r").has_value(); }));
    EXPECT_EQ(*ranks[rank].mask("r"), (Hits{true, false}));
    EXPECT_FALSE(ranks[rank].check_prefetch_progress("r"));
  }
  ranks.trouble(0).gate().open();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(eventually([&] { return ranks[rank].check_prefetch_progress("r"); }));
    EXPECT_EQ(ranks[rank].take("r").hits, (Hits{true, false}));
  }
}

TEST(RankAgreement, PrefetchByKeysFillsInWhatTheModalityIs) {
  const std::shared_ptr<EmbeddingStore> store = make_memory_store();
  RankCache cache(store);
  plant(*store, picture(1));
  auto options = patient_options(false);
  options.modalities.push_back(picture(0).expectation());
  RankAgreement agreement(make_single_rank(), std::move(cache.source), options);
  const std::vector<EmbeddingKey> keys{picture(1).key(), picture(2).key()};
  const std::vector<std::uint32_t> tokens{picture(1).rows, picture(2).rows};
  agreement.prefetch("r", keys, tokens, Modality::image);
  EXPECT_EQ(agreement.wait("r").hits, (Hits{true, false}));
  EXPECT_THROW(agreement.prefetch("s", keys, tokens, Modality::audio), Error);
  EXPECT_THROW(agreement.prefetch("s", keys, {}, Modality::image), Error);
}

TEST(RankAgreement, WhatNobodyAskedForIsDoneAndCannotBeTaken) {
  Ranks ranks(1, patient_options(false));
  EXPECT_TRUE(ranks[0].check_prefetch_progress("never"));
  EXPECT_THROW(ranks[0].take("never"), Error);
  EXPECT_THROW(ranks[0].wait("never"), Error);
  EXPECT_FALSE(ranks[0].abort("never"));
  EXPECT_FALSE(ranks[0].mask("never"));
  ranks.ask("r", {picture(1)});
  EXPECT_THROW(ranks[0].take("r"), Error) << "taken twice";
}

TEST(RankAgreement, AnItemIsAHitWhereAllRanksHaveIt) {
  Ranks ranks(2, patient_options(true));
  for (int rank = 0; rank < 2; ++rank) serve(ranks.controller(rank), {picture(1), picture(2)});
  for (int rank = 0; rank < 2; ++rank) settle(ranks.controller(rank));
  ranks.trouble(1).prepare(Trouble::empty);
  for (const auto& outcome : ranks.ask("r", {picture(1)})) {
    EXPECT_EQ(outcome.hits, Hits{false});
    EXPECT_FALSE(outcome.views[0]) << "what one rank lacks is given back on the others";
  }
  for (const auto& outcome : ranks.ask("s", {picture(1), picture(2), picture(3)})) {
    EXPECT_EQ(outcome.hits, (Hits{true, true, false}));
    expect_golden(outcome.views[0], picture(1));
    expect_golden(outcome.views[1], picture(2));
  }
  for (int rank = 0; rank < 2; ++rank) ranks.controller(rank).check_invariants();
}

TEST(RankAgreement, ARankLoadsForARequestThatItsHostAsksForLater) {
  Ranks ranks(2, patient_options(true));
  plant(ranks.store(), picture(1));
  ranks.prefetch(0, "r", {picture(1)});
  EXPECT_EQ(ranks[0].wait("r").hits, Hits{true});
  ranks.prefetch(1, "r", {picture(1)});
  const auto outcome = ranks[1].wait("r");
  EXPECT_EQ(outcome.hits, Hits{true});
  expect_golden(outcome.views[0], picture(1));
}

TEST(RankAgreement, AShareOfThePoolIsWhatTheOperatorAskedFor) {
  EXPECT_EQ(rank_pool_bytes(1000, 0, 4, false), 1000U);
  EXPECT_EQ(rank_pool_bytes(1000, 3, 4, false), 0U);
  EXPECT_EQ(rank_pool_bytes(1000, 3, 4, true), 250U);
}

// Else four ranks would take four times what the operator asked for, each by its own flag.
TEST(RankAgreement, ARankWhosePoolIsLargerThanItsShareIsRefused) {  // B72
  const auto join = [](int rank, bool all_rank_get, std::uint64_t asked) {
    ThreadGroup group(4);
    const std::shared_ptr<EmbeddingStore> store = make_memory_store();
    RankCache cache(store);  // of 12 pages
    auto options = patient_options(all_rank_get);
    options.pool_bytes = asked;
    const RankAgreement agreement(group.member(rank), std::move(cache.source), options);
  };
  EXPECT_THROW(join(0, true, 12 * page), Error);
  EXPECT_THROW(join(3, true, 4 * 12 * page - 1), Error);
  EXPECT_THROW(join(0, false, 12 * page - 1), Error);
  EXPECT_THROW(join(1, false, 12 * page), Error);
}

// What is logged meanwhile.
std::string words_of(const std::function<void()>& action) {
  std::ostringstream words;
  const auto logger = std::make_shared<spdlog::logger>(
      "vitrove", std::make_shared<spdlog::sinks::ostream_sink_mt>(words));
  logger->set_level(spdlog::level::warn);
  spdlog::register_logger(logger);
  action();
  spdlog::drop("vitrove");
  return words.str();
}

TEST(RankAgreement, WhatCannotBeCheckedIsSaidByEachRankWithAPool) {  // B72
  const auto join = [](int size, bool all_rank_get, std::optional<std::uint64_t> asked) {
    auto options = patient_options(all_rank_get);
    options.pool_bytes = asked;
    return words_of([&] { const Ranks ranks(size, options); });
  };
  const std::string of_all = join(4, true, std::nullopt);
  EXPECT_THAT(of_all, HasSubstr("rank 0 of 4 has a pool"));
  EXPECT_THAT(of_all, HasSubstr("rank 3 of 4 has a pool"));
  EXPECT_THAT(of_all, HasSubstr("RankOptions::pool_bytes"));
  const std::string of_one = join(2, false, std::nullopt);
  EXPECT_THAT(of_one, HasSubstr("rank 0 of 2"));
  EXPECT_THAT(of_one, ::testing::Not(HasSubstr("rank 1 of 2")));
  EXPECT_EQ(join(4, true, 4 * 12 * page), "");
  EXPECT_EQ(join(1, false, std::nullopt), "");
}

TEST(RankAgreement, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](const std::function<void(RankOptions&)>& change) {
    const std::shared_ptr<EmbeddingStore> store = make_memory_store();
    RankCache cache(store);
    auto options = patient_options(false);
    change(options);
    EXPECT_THROW(RankAgreement(make_single_rank(), std::move(cache.source), options), Error);
  };
  refused([](auto& o) { o.load_timeout = o.timeout; });
  refused([](auto& o) { o.load_timeout = 0ms; });
  refused([](auto& o) { o.heartbeat = o.timeout; });
  refused([](auto& o) { o.heartbeat = 0ms; });
  refused([](auto& o) { o.load_threads = 0; });
  refused([](auto& o) { o.pool_bytes = 12 * page - 1; });
  EXPECT_THROW(RankAgreement(make_single_rank(), nullptr, patient_options(false)), Error);
  const std::shared_ptr<EmbeddingStore> store = make_memory_store();
  RankCache cache(store);
  auto just_so = patient_options(false);
  just_so.pool_bytes = 12 * page;
  EXPECT_NO_THROW(RankAgreement(make_single_rank(), std::move(cache.source), just_so));
}

}  // namespace
}  // namespace vitrove::testing
