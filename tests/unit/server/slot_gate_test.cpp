#include "server/slot_gate.h"

#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include <gtest/gtest.h>

#include "support.h"

namespace vitrove::test {
namespace {

using Clock = std::chrono::steady_clock;

// Some who wait at a gate, each begun when the one before is in line.
class SlotLine : public ::testing::Test {
 protected:
  // Tells `name` once it is let in, and goes at once.
  std::future<ErrorCode> wait_as(int name, SlotGate::Rank rank, std::stop_token cancel = {}) {
    const std::size_t before = gate_.waiting();
    auto done = std::async(std::launch::async, [=, this] {
      try {
        const auto slot = gate_.enter(rank, Clock::now() + patience, cancel);
        const std::lock_guard lock(mutex_);
        order_.push_back(name);
      } catch (const Error& error) {
        return error.code();
      }
      return ErrorCode::internal;  // none
    });
    EXPECT_TRUE(eventually([&] { return gate_.waiting() > before; }));
    return done;
  }

  SlotGate gate_{1};
  std::optional<SlotGate::Slot> held_{gate_.enter(0, Clock::now() + patience, {})};
  std::mutex mutex_;
  std::vector<int> order_;
};

TEST(SlotGate, LetsInAsManyAsItHasSlots) {
  SlotGate gate(2);
  const auto late = Clock::now() + patience;
  std::optional<SlotGate::Slot> first(gate.enter(0, late, {}));
  const auto second = gate.enter(0, late, {});
  const auto third = [&] { gate.enter(0, Clock::now(), {}); };
  EXPECT_EQ(failure_of(third).code, ErrorCode::deadline_exceeded);
  first.reset();
  EXPECT_NO_THROW(third());
}

TEST(SlotGate, IsLeftByWhoIsCancelled) {
  SlotGate gate(0);
  std::stop_source stop;
  std::jthread canceller([&] { stop.request_stop(); });
  const auto never = Clock::time_point::max();
  EXPECT_EQ(failure_of([&] { gate.enter(0, never, stop.get_token()); }).code, ErrorCode::cancelled);
  EXPECT_EQ(gate.waiting(), 0U);
}

TEST(SlotGate, WhoIsCancelledBeforeTakesNoSlot) {
  SlotGate gate(1);
  std::stop_source stop;
  stop.request_stop();
  const auto late = Clock::now() + patience;
  EXPECT_EQ(failure_of([&] { gate.enter(0, late, stop.get_token()); }).code, ErrorCode::cancelled);
  EXPECT_NO_THROW(gate.enter(0, late, {}));
}

TEST_F(SlotLine, IsServedFirstComeFirstServed) {
  std::vector<std::future<ErrorCode>> all;
  for (int name = 0; name < 8; ++name) all.push_back(wait_as(name, 5));
  held_.reset();
  for (auto& one : all) EXPECT_EQ(one.get(), ErrorCode::internal);
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(SlotLine, IsPassedByWhoHasALowerRank) {
  auto newcomer = wait_as(9, 9);
  auto another = wait_as(8, 8);
  auto returned = wait_as(1, 1);
  held_.reset();
  for (auto* one : {&newcomer, &another, &returned}) EXPECT_EQ(one->get(), ErrorCode::internal);
  EXPECT_EQ(order_, (std::vector<int>{1, 8, 9}));
}

// The slot is the waiter's when it is given back, and not of whoever asks before the waiter is
// awake.
TEST_F(SlotLine, LetsNobodyBarge) {
  auto waiter = wait_as(1, 1);
  held_.reset();
  { const auto slot = gate_.enter(0, Clock::now() + patience, {}); }
  EXPECT_EQ(order_, std::vector<int>{1});
  EXPECT_EQ(waiter.get(), ErrorCode::internal);
}

TEST_F(SlotLine, IsLeftByWhoHasNoTimeAndTheNextMovesUp) {
  auto next = wait_as(2, 2);
  EXPECT_EQ(failure_of([&] { gate_.enter(1, Clock::now(), {}); }).code,
            ErrorCode::deadline_exceeded);
  held_.reset();
  EXPECT_EQ(next.get(), ErrorCode::internal);
  EXPECT_EQ(order_, std::vector<int>{2});
}

// Given a slot and cancelled, in either order: the slot goes on.
TEST_F(SlotLine, NoSlotIsLostToWhoIsCancelled) {
  for (int round = 0; round < 200; ++round) {
    std::stop_source stop;
    auto gone = wait_as(1, 1, stop.get_token());
    auto next = wait_as(2, 2);
    std::jthread canceller([&] { stop.request_stop(); });
    held_.reset();
    ASSERT_EQ(next.get(), ErrorCode::internal);
    gone.get();
    ASSERT_NO_THROW(held_.emplace(gate_.enter(0, Clock::now() + patience, {})));
  }
}

}  // namespace
}  // namespace vitrove::test
