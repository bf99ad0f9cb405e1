// Batches of items with grids, which are as large as they like.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batcher_fixture.h"
#include "vitrove/encode_batcher.h"

namespace vitrove::test {
namespace {

using ::testing::ElementsAre;

TEST_F(EncodeBatcherTest, AnItemOfManyRowsBearsMoreOfTheCost) {
  encoder_->behaviour = [](auto&) { std::this_thread::sleep_for(std::chrono::milliseconds(4)); };
  auto& batcher = start({.max_batch_size = 2, .max_wait = for_ever});
  auto small = batcher.submit(item_of(1, {1, 1, 4}));
  auto large = batcher.submit(item_of(2, {1, 3, 4}));
  const auto cost = small.get().cost.count();
  EXPECT_GT(cost, 0);
  EXPECT_NEAR(static_cast<double>(large.get().cost.count()), 3.0 * static_cast<double>(cost), 3.0);
}

TEST_F(EncodeBatcherTest, ABatchHoldsNoMorePatchesThanItMay) {
  auto& batcher = start({.max_batch_size = 8, .max_batch_patches = 10, .max_wait = no_wait});
  auto running = occupy();
  auto first = batcher.submit(item_of(1, {1, 2, 3}));
  auto too_much = batcher.submit(item_of(2, {2, 1, 3}));
  auto fits = batcher.submit(item_of(3, {1, 2, 2}));
  encoder_->gate.open();
  EXPECT_EQ(number_of(first.get()), 1);
  EXPECT_EQ(number_of(too_much.get()), 2);
  EXPECT_EQ(number_of(fits.get()), 3);
  EXPECT_THAT(encoder_->runs(), ElementsAre(ElementsAre(0), ElementsAre(1, 3), ElementsAre(2)));
}

TEST_F(EncodeBatcherTest, AnItemOfMorePatchesThanABatchMayHoldRunsAlone) {
  auto& batcher = start({.max_batch_size = 8, .max_batch_patches = 10, .max_wait = no_wait});
  auto running = occupy();
  auto huge = batcher.submit(item_of(1, {3, 2, 2}));
  auto small = batcher.submit(item_of(2, {1, 1, 1}));
  encoder_->gate.open();
  EXPECT_EQ(number_of(huge.get()), 1);
  EXPECT_EQ(number_of(small.get()), 2);
  EXPECT_THAT(encoder_->runs(), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_F(EncodeBatcherTest, ABatchThatHoldsAllItsPatchesWaitsForNothing) {
  auto& batcher = start({.max_batch_size = 8, .max_batch_patches = 10, .max_wait = for_ever});
  auto exact = batcher.submit(item_of(1, {1, 2, 5}));
  EXPECT_EQ(number_of(exact.get()), 1);
  auto first = batcher.submit(item_of(2, {1, 1, 6}));
  auto beyond = batcher.submit(item_of(3, {1, 2, 5}));
  EXPECT_EQ(number_of(first.get()), 2) << "with no room for the next one, it goes";
  EXPECT_EQ(number_of(beyond.get()), 3);
}

}  // namespace
}  // namespace vitrove::test
