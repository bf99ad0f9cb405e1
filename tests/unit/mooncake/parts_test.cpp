// The parts between the store and its helper: staging memory, the table of calls, the cutting of
// batches.
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "stores/mooncake/batch_plan.h"
#include "stores/mooncake/call_table.h"
#include "stores/mooncake/staging.h"

namespace vitrove::mooncake {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::key_number;

Clock::time_point in(milliseconds time) { return Clock::now() + time; }

TEST(Staging, GivesDisjointBlocksAndJoinsThemAgain) {
  StagingMemory memory(1 << 20);
  {
    auto a = memory.take(1, in(milliseconds(0)), {});
    auto b = memory.take(500'000, in(milliseconds(0)), {});
    auto c = memory.take(300'000, in(milliseconds(0)), {});
    ASSERT_TRUE(a && b && c);
    EXPECT_GE(b->bytes().data(), a->bytes().data() + a->bytes().size());
    EXPECT_GE(c->bytes().data(), b->bytes().data() + b->bytes().size());
    EXPECT_GE(memory.in_use(), 800'001u);
    b.reset();
    EXPECT_TRUE(memory.take(500'000, in(milliseconds(0)), {})) << "the hole fits";
  }
  EXPECT_EQ(memory.in_use(), 0u);
  EXPECT_TRUE(memory.take(1 << 20, in(milliseconds(0)), {})) << "all holes are one again";
}

TEST(Staging, RefusesWhatCanNeverFitAndWaitsForTheRest) {
  StagingMemory memory(1 << 20);
  EXPECT_FALSE(memory.take(0, Clock::time_point::max(), {}));
  EXPECT_FALSE(memory.take((1 << 20) + 1, Clock::time_point::max(), {}));
  auto all = memory.take(1 << 20, in(milliseconds(0)), {});
  ASSERT_TRUE(all);
  EXPECT_FALSE(memory.take(1, in(milliseconds(10)), {}));
  std::stop_source cancelled;
  cancelled.request_stop();
  EXPECT_FALSE(memory.take(1, Clock::time_point::max(), cancelled.get_token()));
  auto later = std::async(std::launch::async,
                          [&] { return memory.take(1, Clock::time_point::max(), {}).has_value(); });
  all.reset();
  EXPECT_TRUE(later.get());
}

CallTable::Terms terms(StagingMemory::Block block = {}) {
  CallTable::Terms terms;
  terms.answers = 1;
  terms.deadline = in(milliseconds(0));
  terms.may_leave = true;
  terms.given_up = Clock::time_point::max();
  terms.block = std::move(block);
  return terms;
}

TEST(CallTable, HandsAnAnswerToItsCallAlone) {
  CallTable table;
  const auto a = table.add(terms());
  const auto b = table.add(terms());
  EXPECT_NE(a, b);
  EXPECT_TRUE(table.answer(b, {{7, 0}}));
  const CallResult result = table.wait(b);
  EXPECT_EQ(result.end, CallEnd::answered);
  EXPECT_EQ(result.answers.at(0).code, 7);
  EXPECT_EQ(table.wait(a).end, CallEnd::timed_out);
  EXPECT_TRUE(table.answer(b, {{8, 0}})) << "a second answer is let go";
  EXPECT_TRUE(table.answer(12345, {})) << "so is one that nobody asked for";
}

TEST(CallTable, LetsCallersLeaveWithoutWhatTheyLent) {
  StagingMemory memory(1 << 20);
  CallTable table;
  auto lent = terms(*memory.take(1000, in(milliseconds(0)), {}));
  lent.deadline = Clock::time_point::max();
  const auto call = table.add(std::move(lent));
  table.let_leave();
  EXPECT_EQ(table.wait(call).end, CallEnd::lost);
  EXPECT_GT(memory.in_use(), 0u) << "something may still write to it";
  table.lose_all();
  EXPECT_EQ(memory.in_use(), 0u);
}

TEST(CallTable, KeepsWhatACallLendsUntilTheLateAnswer) {
  StagingMemory memory(1 << 20);
  CallTable table;
  const auto call = table.add(terms(*memory.take(100, in(milliseconds(0)), {})));
  EXPECT_EQ(table.wait(call).end, CallEnd::timed_out);
  EXPECT_GT(memory.in_use(), 0u);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_TRUE(table.answer(call, {{0, 0}}));
  EXPECT_EQ(memory.in_use(), 0u);
  EXPECT_EQ(table.size(), 0u);
}

TEST(CallTable, KeepsWhatACallLendsUntilTheHelperIsGone) {
  StagingMemory memory(1 << 20);
  CallTable table;
  const auto call = table.add(terms(*memory.take(100, in(milliseconds(0)), {})));
  EXPECT_EQ(table.wait(call).end, CallEnd::timed_out);
  table.lose_all();
  EXPECT_EQ(memory.in_use(), 0u);
}

TEST(CallTable, HoldsACallerWhoMayNotLeaveUntilTheHelperIsGone) {
  CallTable table;
  auto own = terms();
  own.may_leave = false;
  std::stop_source cancelled;
  cancelled.request_stop();
  own.cancel = cancelled.get_token();
  const auto call = table.add(std::move(own));
  auto waiting = std::async(std::launch::async, [&] { return table.wait(call).end; });
  EXPECT_EQ(waiting.wait_for(milliseconds(50)), std::future_status::timeout);
  table.lose_all();
  EXPECT_EQ(waiting.get(), CallEnd::lost);
}

TEST(CallTable, RefusesAnAnswerOfAnotherLength) {
  CallTable table;
  const auto call = table.add(terms());
  EXPECT_FALSE(table.answer(call, {}));
  EXPECT_FALSE(table.answer(call, {{1, 0}, {2, 0}}));
  EXPECT_TRUE(table.answer(call, {{1, 0}}));
  EXPECT_EQ(table.wait(call).end, CallEnd::answered);
}

TEST(CallTable, KnowsWhichCallCountsAsHungFirst) {
  CallTable table;
  EXPECT_FALSE(table.first_given_up());
  const auto soon = in(milliseconds(500));
  auto first = terms();
  first.given_up = soon;
  const auto call = table.add(std::move(first));
  table.add(terms());
  EXPECT_EQ(table.first_given_up(), soon);
  table.answer(call, {{0, 0}});
  EXPECT_EQ(table.first_given_up(), Clock::time_point::max());
}

TEST(BatchPlan, PutsNoKeyTwiceIntoARound) {
  const auto a = key_number(1);
  const auto b = key_number(2);
  using Rounds = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(rounds_of({}), Rounds{});
  EXPECT_EQ(rounds_of(std::vector{a, b}), (Rounds{{0, 1}}));
  EXPECT_EQ(rounds_of(std::vector{a, b, a, a, b}), (Rounds{{0, 1}, {2, 4}, {3}}));
}

TEST(BatchPlan, SendsRunsOfTheArenaAsTheyAre) {
  testing::Bytes memory(10'000);
  const ArenaView arena{1, memory.data(), memory.size()};
  const auto buffer = [&](std::size_t at, std::size_t size) {
    return ConstBuffer(memory).subspan(at, size);
  };
  const std::vector<ConstBuffer> apart = {buffer(0, 256), {}, buffer(4096, 100)};
  EXPECT_EQ(runs_in_arena(arena, std::span<const ConstBuffer>(apart)),
            (std::vector<wire::Run>{{1, 0, 256}, {1, 4096, 100}}));
  const std::vector<ConstBuffer> adjacent = {buffer(0, 256), buffer(256, 44)};
  EXPECT_EQ(runs_in_arena(arena, std::span<const ConstBuffer>(adjacent)),
            (std::vector<wire::Run>{{1, 0, 300}}));
}

TEST(BatchPlan, StagesWhatLiesElsewhereOrInTooManyPieces) {
  testing::Bytes memory(10'000);
  testing::Bytes elsewhere(100);
  const ArenaView arena{1, memory.data() + 1000, 5000};
  const auto is_staged = [&](std::vector<ConstBuffer> buffers) {
    return !runs_in_arena(arena, std::span<const ConstBuffer>(buffers)).has_value();
  };
  const ConstBuffer all(memory);
  EXPECT_FALSE(is_staged({all.subspan(1000, 5000)}));
  EXPECT_TRUE(is_staged({all.subspan(999, 2)}));
  EXPECT_TRUE(is_staged({all.subspan(5999, 2)}));
  EXPECT_TRUE(is_staged({all.subspan(1000, 10), ConstBuffer(elsewhere)}));
  std::vector<ConstBuffer> crumbs;
  for (std::size_t i = 0; i < max_runs_in_value; ++i)
    crumbs.push_back(all.subspan(1000 + 2 * i, 1));
  EXPECT_FALSE(is_staged(crumbs));
  crumbs.push_back(all.subspan(5000, 1));
  EXPECT_TRUE(is_staged(crumbs));
  EXPECT_FALSE(runs_in_arena(ArenaView{}, std::span<const ConstBuffer>(crumbs)));
}

}  // namespace
}  // namespace vitrove::mooncake
