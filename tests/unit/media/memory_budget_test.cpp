#include "vitrove/memory_budget.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto for_ever = Clock::time_point::max();

ErrorCode code_of(auto action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(MemoryBudget, CountsWhatIsHeldAndRemembersThePeak) {
  MemoryBudget budget(100);
  {
    MemoryLease first = budget.acquire(60, for_ever);
    const MemoryLease second = budget.acquire(40, for_ever);
    EXPECT_EQ(budget.used(), 100u);
    first.shrink_to(10);
    EXPECT_EQ(budget.used(), 50u);
    first.shrink_to(90);  // never grows
    EXPECT_EQ(first.bytes(), 10u);
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(MemoryBudget, ALeaseMovesWithoutBeingCountedTwice) {
  MemoryBudget budget(100);
  MemoryLease first = budget.acquire(30, for_ever);
  MemoryLease second(std::move(first));
  EXPECT_EQ(budget.used(), 30u);
  {
    MemoryLease third;
    third = std::move(second);
    EXPECT_EQ(budget.used(), 30u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MemoryBudget, WhatCanNeverFitIsTooLarge) {
  MemoryBudget budget(100);
  EXPECT_EQ(code_of([&] { budget.acquire(101, for_ever); }), ErrorCode::too_large);
}

TEST(MemoryBudget, WhatDoesNotFitInTimeIsUnavailable) {
  MemoryBudget budget(100);
  const MemoryLease all = budget.acquire(100, for_ever);
  EXPECT_EQ(code_of([&] { budget.acquire(1, Clock::now() + std::chrono::milliseconds(5)); }),
            ErrorCode::unavailable);
}

TEST(MemoryBudget, AStoppedWaiterLeaves) {
  MemoryBudget budget(100);
  const MemoryLease all = budget.acquire(100, for_ever);
  std::atomic<bool> was_cancelled = false;
  std::jthread waiter([&](std::stop_token stop) {
    was_cancelled = code_of([&] { budget.acquire(1, for_ever, stop); }) == ErrorCode::cancelled;
  });
  waiter.request_stop();
  waiter.join();
  EXPECT_TRUE(was_cancelled);
}

TEST(MemoryBudget, AWaiterGetsWhatOthersGiveBack) {
  MemoryBudget budget(100);
  auto all = std::make_unique<MemoryLease>(budget.acquire(100, for_ever));
  std::jthread waiter([&] { budget.acquire(80, for_ever); });
  all.reset();
  waiter.join();
  EXPECT_EQ(budget.used(), 0u);
}

// Small needs that would fit do not overtake a large one for ever.
TEST(MemoryBudget, ServesInOrderOfArrival) {
  MemoryBudget budget(100);
  auto half = std::make_unique<MemoryLease>(budget.acquire(50, for_ever));
  std::atomic<bool> has_large = false;
  std::jthread large([&] {
    const MemoryLease lease = budget.acquire(100, for_ever);
    has_large = true;
  });
  // Fails to get anything as soon as the large one stands in line before it.
  while (code_of([&] { budget.acquire(1, Clock::now()); }) != ErrorCode::unavailable) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(has_large);
  half.reset();
  large.join();
  EXPECT_TRUE(has_large);
}

}  // namespace
}  // namespace vitrove
