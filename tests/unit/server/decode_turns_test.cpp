#include "server/decode_turns.h"

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint64_t small = 1'000'000;
constexpr std::uint64_t large = DecodeTurns::large_picture + 1;

ErrorCode refusal_of(DecodeTurns& turns, std::uint64_t pixels) {
  try {
    const auto turn = turns.enter(turns.draw(), pixels, Clock::now() + 1ms, {});
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(DecodeTurns, LargePicturesLeaveTurnsForSmallOnes) {
  DecodeTurns turns(4);
  const auto first = turns.enter(turns.draw(), large, Clock::now() + 60s, {});
  const auto second = turns.enter(turns.draw(), large, Clock::now() + 60s, {});
  EXPECT_EQ(refusal_of(turns, large), ErrorCode::deadline_exceeded);
  const auto third = turns.enter(turns.draw(), small, Clock::now() + 60s, {});
  const auto fourth = turns.enter(turns.draw(), small, Clock::now() + 60s, {});
  EXPECT_EQ(refusal_of(turns, small), ErrorCode::deadline_exceeded);
}

TEST(DecodeTurns, SmallPicturesMayHaveAllTurns) {
  DecodeTurns turns(2);
  const auto first = turns.enter(turns.draw(), small, Clock::now() + 60s, {});
  const auto second = turns.enter(turns.draw(), small, Clock::now() + 60s, {});
  EXPECT_EQ(refusal_of(turns, large), ErrorCode::deadline_exceeded);
}

TEST(DecodeTurns, AReturnedTurnGoesToWhoeverWaits) {
  DecodeTurns turns(1);
  std::optional<DecodeTurns::Turn> held(turns.enter(turns.draw(), large, Clock::now() + 60s, {}));
  std::jthread waiter(
      [&] { const auto turn = turns.enter(turns.draw(), large, Clock::now() + 60s, {}); });
  held.reset();
  waiter.join();
  EXPECT_NO_THROW(turns.enter(turns.draw(), large, Clock::now() + 60s, {}));
}

TEST(DecodeTurns, WaitingEndsWithTheRequest) {
  DecodeTurns turns(1);
  const auto held = turns.enter(turns.draw(), small, Clock::now() + 60s, {});
  std::stop_source gone;
  std::jthread client([&] { gone.request_stop(); });
  try {
    const auto turn = turns.enter(turns.draw(), large, Clock::now() + 60s, gone.get_token());
    ADD_FAILURE() << "there was no turn to have";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

// A clip whose first look, with a turn of any kind, has shown that it is large work.
TEST(DecodeTurns, WhoeverAsksAgainComesBeforeThoseWhoCameLater) {
  DecodeTurns turns(1);
  std::mutex mutex;
  std::vector<int> order;
  const auto wait_as = [&](int name, SlotGate::Rank place, std::uint64_t pixels) {
    const std::size_t before = turns.waiting();
    auto done = std::async(std::launch::async, [=, &turns, &mutex, &order] {
      const auto turn = turns.enter(place, pixels, Clock::now() + 60s, {});
      const std::lock_guard lock(mutex);
      order.push_back(name);
    });
    const auto end = Clock::now() + 60s;
    while (turns.waiting() == before && Clock::now() < end) std::this_thread::yield();
    return done;
  };
  const auto clip = turns.draw();
  std::optional<DecodeTurns::Turn> first_look(turns.enter(clip, 0, Clock::now() + 60s, {}));
  EXPECT_TRUE(first_look->is_good_for(small));
  EXPECT_FALSE(first_look->is_good_for(large));
  const auto newcomer = turns.draw();
  auto small_one = wait_as(2, newcomer, small);
  auto again = wait_as(1, clip, large);
  first_look.reset();
  small_one.get();
  again.get();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(DecodeTurns, ATurnForLargeWorkIsGoodForAll) {
  DecodeTurns turns(2);
  const auto turn = turns.enter(turns.draw(), large, Clock::now() + 60s, {});
  EXPECT_TRUE(turn.is_good_for(small));
  EXPECT_TRUE(turn.is_good_for(large));
}

}  // namespace
}  // namespace vitrove
