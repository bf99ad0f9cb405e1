#include "server/decode_turns.h"

#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>

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
    const auto turn = turns.enter(pixels, Clock::now() + 1ms, {});
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(DecodeTurns, LargePicturesLeaveTurnsForSmallOnes) {
  DecodeTurns turns(4);
  const auto first = turns.enter(large, Clock::now() + 60s, {});
  const auto second = turns.enter(large, Clock::now() + 60s, {});
  EXPECT_EQ(refusal_of(turns, large), ErrorCode::deadline_exceeded);
  const auto third = turns.enter(small, Clock::now() + 60s, {});
  const auto fourth = turns.enter(small, Clock::now() + 60s, {});
  EXPECT_EQ(refusal_of(turns, small), ErrorCode::deadline_exceeded);
}

TEST(DecodeTurns, SmallPicturesMayHaveAllTurns) {
  DecodeTurns turns(2);
  const auto first = turns.enter(small, Clock::now() + 60s, {});
  const auto second = turns.enter(small, Clock::now() + 60s, {});
  EXPECT_EQ(refusal_of(turns, large), ErrorCode::deadline_exceeded);
}

TEST(DecodeTurns, AReturnedTurnGoesToWhoeverWaits) {
  DecodeTurns turns(1);
  std::optional<DecodeTurns::Turn> held(turns.enter(large, Clock::now() + 60s, {}));
  std::jthread waiter([&] { const auto turn = turns.enter(large, Clock::now() + 60s, {}); });
  held.reset();
  waiter.join();
  EXPECT_NO_THROW(turns.enter(large, Clock::now() + 60s, {}));
}

TEST(DecodeTurns, WaitingEndsWithTheRequest) {
  DecodeTurns turns(1);
  const auto held = turns.enter(small, Clock::now() + 60s, {});
  std::stop_source gone;
  std::jthread client([&] { gone.request_stop(); });
  try {
    const auto turn = turns.enter(large, Clock::now() + 60s, gone.get_token());
    ADD_FAILURE() << "there was no turn to have";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace vitrove
