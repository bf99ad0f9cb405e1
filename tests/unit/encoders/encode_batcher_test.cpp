#include "vitrove/encode_batcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batcher_fixture.h"
#include "contract/gate.h"
#include "support.h"
#include "support/allocation_faults.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;

TEST_F(EncodeBatcherTest, AnItemAloneIsEncodedAfterTheWait) {
  auto& batcher = start({.max_batch_size = 8, .max_wait = std::chrono::milliseconds(1)});
  EXPECT_EQ(number_of(batcher.submit(item(7)).get()), 7);
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{7}));
}

TEST_F(EncodeBatcherTest, ItemsThatArriveWithinTheWaitRunTogether) {
  auto& batcher = start({.max_batch_size = 3, .max_wait = for_ever});
  auto a = batcher.submit(item(1));
  auto b = batcher.submit(item(2));
  auto c = batcher.submit(item(3));
  EXPECT_EQ(number_of(a.get()), 1);
  EXPECT_EQ(number_of(b.get()), 2);
  EXPECT_EQ(number_of(c.get()), 3);
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{1, 2, 3}));
}

TEST_F(EncodeBatcherTest, ItemsThatArriveWhileTheEncoderIsBusyRunTogetherInOrder) {
  auto& batcher = start({.max_batch_size = 4, .max_wait = no_wait});
  auto running = occupy();
  std::vector<std::future<EncodeResult>> futures;
  for (int i = 1; i <= 6; ++i) futures.push_back(batcher.submit(item(i)));
  EXPECT_EQ(batcher.stats().queued, 6U);
  encoder_->gate.open();
  EXPECT_EQ(number_of(running.get()), 0);
  for (int i = 1; i <= 6; ++i) {
    EXPECT_EQ(number_of(futures[static_cast<std::size_t>(i - 1)].get()), i);
  }
  EXPECT_THAT(encoder_->runs(),
              ElementsAre(std::vector{0}, std::vector{1, 2, 3, 4}, std::vector{5, 6}));
}

TEST_F(EncodeBatcherTest, OnlyItemsOfOneClassRunTogetherAndTheOldestGoesFirst) {
  auto& batcher = start({.max_batch_size = 4, .max_wait = no_wait});
  auto running = occupy();
  std::vector<std::future<EncodeResult>> futures;
  futures.push_back(batcher.submit(item(1, 1)));
  futures.push_back(batcher.submit(item(2, 2)));
  futures.push_back(batcher.submit(item(3, 1)));
  futures.push_back(batcher.submit(item(4, 2)));
  encoder_->gate.open();
  for (auto& future : futures) future.get();
  running.get();
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{0}, std::vector{1, 3}, std::vector{2, 4}));
}

TEST_F(EncodeBatcherTest, ABadItemFailsAloneAndItsNeighboursAreRepeatedOneByOne) {
  encoder_->poison = 2;
  auto& batcher = start({.max_batch_size = 3, .max_wait = for_ever});
  auto a = batcher.submit(item(1));
  auto bad = batcher.submit(item(2));
  auto c = batcher.submit(item(3));
  EXPECT_EQ(number_of(a.get()), 1);
  const Failure failure = failure_of([&] { bad.get(); });
  EXPECT_EQ(failure.code, ErrorCode::internal);
  EXPECT_EQ(failure.detail, "poison");
  EXPECT_EQ(number_of(c.get()), 3);
  EXPECT_THAT(encoder_->runs(),
              ElementsAre(std::vector{1, 2, 3}, std::vector{1}, std::vector{2}, std::vector{3}));
  EXPECT_EQ(batcher.stats().items, 2U);
  EXPECT_EQ(batcher.stats().failures, 1U);
}

TEST_F(EncodeBatcherTest, AnItemThatFailsAloneIsNotRepeated) {
  encoder_->poison = 5;
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  auto bad = batcher.submit(item(5));
  EXPECT_EQ(error_of(bad), ErrorCode::internal);
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{5}));
  EXPECT_EQ(number_of(batcher.submit(item(6)).get()), 6) << "the batcher works on";
}

TEST_F(EncodeBatcherTest, AnErrorOfTheEncoderReachesTheCallerUnchanged) {
  encoder_->behaviour = [](auto&) {
    throw Error(ErrorCode::unavailable, "no room", "device 3", 4);
  };
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  auto future = batcher.submit(item(1));
  const Failure failure = failure_of([&] { future.get(); });
  EXPECT_EQ(failure.code, ErrorCode::unavailable);
  EXPECT_EQ(failure.message, "no room");
  EXPECT_EQ(failure.detail, "device 3");
}

TEST_F(EncodeBatcherTest, MemoryRunningOutIsNotAFaultOfTheItem) {
  encoder_->behaviour = [](auto&) { throw std::bad_alloc(); };
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  auto future = batcher.submit(item(1));
  EXPECT_EQ(error_of(future), ErrorCode::unavailable);
}

// Every step of the thread's with each of its allocations failing: dropping the cancelled, taking a
// batch, failing together and alone, and for a reason that does not fit in memory.
TEST_F(EncodeBatcherTest, AThreadWithoutMemoryAnswersEveryItemAndLaterWorksOn) {
  auto& batcher = start({.max_batch_size = 4, .max_wait = no_wait});
  const std::runtime_error fault("a reason too long to be kept without an allocation");
  std::atomic<bool> has_memory = false;
  encoder_->behaviour = [&](auto&) { fail_allocations_of_this_thread(!has_memory); };
  encoder_->before = [&](std::span<const PreprocessedItem* const> batch) {
    if (has_memory) fail_allocations_of_this_thread(false);
    if (GatedEncoder::value(*batch.front()) == 5) throw std::runtime_error(fault);
  };
  auto running = occupy();
  std::stop_source leaver;
  auto left = batcher.submit(item(1), leaver.get_token());
  std::vector<std::future<EncodeResult>> starved;
  for (int number = 2; number < 5; ++number) starved.push_back(batcher.submit(item(number)));
  auto faulty = batcher.submit(item(5));
  leaver.request_stop();
  encoder_->gate.open();

  EXPECT_EQ(number_of(running.get()), 0);
  EXPECT_EQ(error_of(left), ErrorCode::cancelled);
  for (auto& future : starved) EXPECT_EQ(error_of(future), ErrorCode::unavailable);
  EXPECT_EQ(error_of(faulty), ErrorCode::internal);
  has_memory = true;
  EXPECT_EQ(number_of(batcher.submit(item(6)).get()), 6);
}

TEST_F(EncodeBatcherTest, WhateverTheEncoderThrowsBecomesAnError) {
  encoder_->behaviour = [](auto&) { throw 42; };
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  auto future = batcher.submit(item(1));
  EXPECT_EQ(error_of(future), ErrorCode::internal);
}

struct BadOutput {
  const char* name;
  GatedEncoder::Behaviour behaviour;
};

class BadOutputTest : public EncodeBatcherTest, public ::testing::WithParamInterface<BadOutput> {};

TEST_P(BadOutputTest, IsAnErrorOfTheItem) {
  encoder_->behaviour = GetParam().behaviour;
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  auto future = batcher.submit(item(1));
  EXPECT_EQ(error_of(future), ErrorCode::internal);
  EXPECT_EQ(batcher.stats().failures, 1U);
  EXPECT_EQ(batcher.stats().items, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Encoders, BadOutputTest,
    ::testing::Values(
        BadOutput{"NoOutputs", [](auto& outputs) { outputs.clear(); }},
        BadOutput{"TooManyOutputs", [](auto& outputs) { outputs.push_back(outputs.front()); }},
        BadOutput{"NoRows", [](auto& outputs) { outputs.front() = {}; }},
        BadOutput{"AnotherRowCount",
                  [](auto& outputs) {
                    outputs.front().rows = 2;
                    outputs.front().bytes.resize(8);
                  }},
        BadOutput{"BytesMissing", [](auto& outputs) { outputs.front().bytes.resize(3); }}),
    [](const auto& test) { return test.param.name; });

TEST_F(EncodeBatcherTest, OneBadOutputInABatchFailsOneItem) {
  encoder_->behaviour = [](auto& outputs) { outputs.at(1).rows = 0; };
  auto& batcher = start({.max_batch_size = 3, .max_wait = for_ever});
  auto a = batcher.submit(item(1));
  auto bad = batcher.submit(item(2));
  auto c = batcher.submit(item(3));
  EXPECT_EQ(number_of(a.get()), 1);
  EXPECT_EQ(error_of(bad), ErrorCode::internal);
  EXPECT_EQ(number_of(c.get()), 3);
  EXPECT_EQ(encoder_->runs().size(), 1U) << "the neighbours' rows were good the first time";
}

TEST_F(EncodeBatcherTest, ACancelledItemIsDroppedBeforeItRuns) {
  auto& batcher = start({.max_batch_size = 4, .max_wait = no_wait});
  auto running = occupy();
  std::stop_source leaver;
  auto left = batcher.submit(item(1), leaver.get_token());
  auto stayed = batcher.submit(item(2));
  leaver.request_stop();
  encoder_->gate.open();
  EXPECT_EQ(error_of(left), ErrorCode::cancelled);
  EXPECT_EQ(number_of(stayed.get()), 2);
  running.get();
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{0}, std::vector{2}));
}

TEST_F(EncodeBatcherTest, AQueueOfCancelledItemsOnlyLeavesTheEncoderAlone) {
  auto& batcher = start({.max_batch_size = 4, .max_wait = no_wait});
  auto running = occupy();
  std::stop_source leaver;
  auto left = batcher.submit(item(1), leaver.get_token());
  leaver.request_stop();
  encoder_->gate.open();
  EXPECT_EQ(error_of(left), ErrorCode::cancelled);
  running.get();
  EXPECT_EQ(number_of(batcher.submit(item(3)).get()), 3);
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{0}, std::vector{3}));
}

TEST_F(EncodeBatcherTest, BeyondItsBoundTheQueueRefusesItems) {
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait, .max_queue = 2});
  auto running = occupy();
  auto a = batcher.submit(item(1));
  auto b = batcher.submit(item(2));
  EXPECT_EQ(failure_of([&] { batcher.submit(item(3)); }).code, ErrorCode::queue_full);
  encoder_->gate.open();
  EXPECT_EQ(number_of(a.get()), 1);
  EXPECT_EQ(number_of(b.get()), 2);
  EXPECT_EQ(number_of(batcher.submit(item(4)).get()), 4) << "room again";
  running.get();
}

TEST_F(EncodeBatcherTest, CancelledItemsMakeRoomInAFullQueue) {
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait, .max_queue = 1});
  auto running = occupy();
  std::stop_source leaver;
  auto left = batcher.submit(item(1), leaver.get_token());
  leaver.request_stop();
  auto next = batcher.submit(item(2));
  EXPECT_EQ(error_of(left), ErrorCode::cancelled);
  encoder_->gate.open();
  EXPECT_EQ(number_of(next.get()), 2);
  running.get();
}

TEST_F(EncodeBatcherTest, AllWaitingItemsMayBeCancelledWhileABatchForms) {
  auto& batcher = start({.max_batch_size = 2, .max_wait = for_ever, .max_queue = 1});
  std::stop_source leaver;
  auto left = batcher.submit(item(1), leaver.get_token());
  leaver.request_stop();
  auto next = batcher.submit(item(2));  // finds the queue full and purges it
  EXPECT_EQ(error_of(left), ErrorCode::cancelled);
  batcher_.reset();
  EXPECT_EQ(error_of(next), ErrorCode::unavailable);
}

TEST_F(EncodeBatcherTest, TheDestructorFinishesWhatRunsAndAnswersTheRest) {
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  auto running = occupy();
  auto waiting = batcher.submit(item(1));
  std::thread destroyer([&] { batcher_.reset(); });
  EXPECT_EQ(error_of(waiting), ErrorCode::unavailable) << "answered before the running batch ends";
  encoder_->gate.open();
  destroyer.join();
  EXPECT_EQ(number_of(running.get()), 0);
  EXPECT_THAT(encoder_->runs(), ElementsAre(std::vector{0}));
}

TEST_F(EncodeBatcherTest, WhoeverAskedIsToldOnceHoweverHisItemEnds) {
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait, .max_queue = 3});
  encoder_->poison = 2;
  std::atomic<int> told{0};
  const auto note = [&] { ++told; };
  auto running = occupy();
  std::stop_source leaver;
  std::vector<std::future<EncodeResult>> futures;
  futures.push_back(batcher.submit(item(1), {}, note));
  futures.push_back(batcher.submit(item(2), {}, note));
  futures.push_back(batcher.submit(item(3), leaver.get_token(), note));
  EXPECT_THROW(batcher.submit(item(4), {}, note), Error);
  EXPECT_EQ(told, 0);
  leaver.request_stop();
  auto waiting = batcher.submit(item(5), {}, note);  // in place of the one that left
  EXPECT_EQ(told, 1);
  EXPECT_EQ(error_of(futures[2]), ErrorCode::cancelled);
  encoder_->gate.open();
  EXPECT_EQ(number_of(futures[0].get()), 1);
  EXPECT_EQ(error_of(futures[1]), ErrorCode::internal);
  EXPECT_EQ(number_of(waiting.get()), 5);
  running.get();
  encoder_->gate.close();
  auto last = batcher.submit(item(6), {}, note);
  ASSERT_TRUE(encoder_->gate.wait_for_waiting(1));
  auto dropped = batcher.submit(item(7), {}, note);
  std::thread destroyer([&] { batcher_.reset(); });
  EXPECT_EQ(error_of(dropped), ErrorCode::unavailable);
  encoder_->gate.open();
  destroyer.join();
  EXPECT_EQ(told, 6);
}

TEST_F(EncodeBatcherTest, AShapeThatTheEncoderRefusesNeverEntersTheQueue) {
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  EXPECT_EQ(failure_of([&] { batcher.submit(item(-5)); }).code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure_of([&] { batcher.submit(nullptr); }).code, ErrorCode::invalid_argument);
  EXPECT_EQ(batcher.stats().queued, 0U);
}

TEST_F(EncodeBatcherTest, AHangingEncoderShowsInTheStatistics) {
  auto& batcher = start({.max_batch_size = 1, .max_wait = no_wait});
  EXPECT_EQ(batcher.stats().running_since_us, 0U);
  auto running = occupy();
  const auto first = batcher.stats().running_since_us;
  EXPECT_GE(first, 1U);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (batcher.stats().running_since_us <= first && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  EXPECT_GT(batcher.stats().running_since_us, first);
  encoder_->gate.open();
  running.get();
  EXPECT_EQ(batcher.stats().running_since_us, 0U);
}

TEST_F(EncodeBatcherTest, TheCostOfABatchIsSharedByItsItems) {
  constexpr auto batch_time = std::chrono::milliseconds(40);
  encoder_->behaviour = [&](auto&) { std::this_thread::sleep_for(batch_time); };
  auto& batcher = start({.max_batch_size = 2, .max_wait = for_ever});
  auto a = batcher.submit(item(1));
  auto b = batcher.submit(item(2));
  const auto cost = a.get().cost;
  EXPECT_EQ(b.get().cost, cost);
  EXPECT_GE(cost, batch_time / 2);
  const BatcherStats stats = batcher.stats();
  EXPECT_EQ(stats.items, 2U);
  EXPECT_EQ(stats.batches, 1U);
  EXPECT_GE(stats.busy_us, 40'000U);
}

TEST_F(EncodeBatcherTest, LimitsOfZeroAreRefused) {
  const auto code = [&](BatcherOptions options) {
    return failure_of([&] { EncodeBatcher(encoder_, options); }).code;
  };
  EXPECT_EQ(code({.max_batch_size = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.max_batch_patches = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.max_queue = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(failure_of([] { EncodeBatcher(nullptr, {}); }).code, ErrorCode::invalid_argument);
}

TEST_F(EncodeBatcherTest, ManyThreadsEachGetTheirOwnRows) {
  auto& batcher = start({.max_batch_size = 5, .max_wait = std::chrono::microseconds(50)});
  encoder_->poison = 13;
  constexpr int threads = 4;
  constexpr int rounds = 200;
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        const int number = (t * rounds + i) % 100;
        auto future = batcher.submit(item(number, 1 + static_cast<std::size_t>(i % 2)));
        try {
          if (number_of(future.get()) != number) ++wrong;
        } catch (const Error&) {
          if (number != 13) ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(batcher.stats().items + batcher.stats().failures, unsigned{threads * rounds});
  EXPECT_EQ(batcher.stats().failures, 8U) << "13 comes up once in each hundred of the 800";
}

}  // namespace
}  // namespace vitrove::test
