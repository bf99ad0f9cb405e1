// The liar has to lie as it is told, or the tests that use it show nothing.
#include "contract/faulty_store.h"

#include <thread>

#include <gtest/gtest.h>

#include "contract/recording_observer.h"
#include "contract/test_values.h"
#include "vitrove/memory_store.h"

namespace vitrove::testing {
namespace {

class FaultyStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(put_one(store_, key_, value_).ok()); }

  const EmbeddingKey key_ = key_number(1);
  const Bytes value_ = pattern(1, 1000);
  FaultyStore store_{make_memory_store()};
  Bytes buffer_ = Bytes(1000, std::byte{0xA5});
};

TEST_F(FaultyStoreTest, IsHonestWithoutRules) {
  EXPECT_EQ(read_back(store_, key_), value_);
  EXPECT_EQ(store_.calls(StoreOp::get), 1u);
  EXPECT_EQ(store_.keys(StoreOp::put), 1u);
}

TEST_F(FaultyStoreTest, FailsOneKeyAsOftenAsToldAndNoOther) {
  store_.add({.op = StoreOp::get,
              .key = key_,
              .fault = Fault::error,
              .status = StoreStatus::unavailable,
              .error_number = ECONNREFUSED,
              .skip = 1,
              .times = 2});
  ASSERT_TRUE(put_one(store_, key_number(2), value_).ok());
  EXPECT_TRUE(get_one(store_, key_, buffer_).ok());
  for (int i = 0; i < 2; ++i) {
    const StoreResult result = get_one(store_, key_, buffer_);
    EXPECT_EQ(result.status, StoreStatus::unavailable);
    EXPECT_EQ(result.error_number, ECONNREFUSED);
    EXPECT_TRUE(get_one(store_, key_number(2), buffer_).ok());
  }
  EXPECT_TRUE(get_one(store_, key_, buffer_).ok());
}

TEST_F(FaultyStoreTest, SaysOkThoughItWroteNothing) {
  store_.add({.op = StoreOp::get, .fault = Fault::no_effect});
  EXPECT_TRUE(get_one(store_, key_, buffer_).ok());
  EXPECT_EQ(buffer_, Bytes(1000, std::byte{0xA5}));
  store_.add({.op = StoreOp::put, .fault = Fault::no_effect});
  EXPECT_TRUE(put_one(store_, key_number(2), value_).ok());
  EXPECT_EQ(exists(store_, key_number(2)).status, StoreStatus::absent);
}

TEST_F(FaultyStoreTest, ReadsTooLittleAndReportsNoMoreThanThat) {
  store_.add({.op = StoreOp::get, .fault = Fault::short_read, .bytes = 10});
  const MutableBuffer buffer(buffer_);
  RecordingObserver observer({MutableBufferList(&buffer, 1)});
  StoreContext context;
  context.observer = &observer;
  const StoreResult result = get_one(store_, key_, buffer_, context);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.size, 1000u);
  EXPECT_EQ(observer.seen(0), 990u);
  EXPECT_EQ(buffer_[989], value_[989]);
  EXPECT_EQ(buffer_[990], std::byte{0xA5});
}

TEST_F(FaultyStoreTest, DamagesWhatItReads) {
  store_.add({.op = StoreOp::get, .fault = Fault::wrong_bytes, .bytes = 500});
  EXPECT_TRUE(get_one(store_, key_, buffer_).ok());
  EXPECT_NE(buffer_[500], value_[500]);
  buffer_[500] = value_[500];
  EXPECT_EQ(buffer_, value_);
}

TEST_F(FaultyStoreTest, AnswersOddlyAndTooFewOrTooMany) {
  store_.add({.op = StoreOp::exist, .fault = Fault::odd_status, .times = 1});
  EXPECT_EQ(to_string(exists(store_, key_).status), "unknown");
  store_.add({.op = StoreOp::exist, .fault = Fault::missing_result, .times = 1});
  EXPECT_TRUE(store_.batch_is_exist({&key_, 1}, {}).empty());
  store_.add({.op = StoreOp::exist, .fault = Fault::extra_result, .times = 1});
  EXPECT_EQ(store_.batch_is_exist({&key_, 1}, {}).size(), 2u);
  store_.add({.op = StoreOp::exist, .fault = Fault::wrong_size, .bytes = 7, .times = 1});
  EXPECT_EQ(exists(store_, key_).size, 7u);
  store_.add({.op = StoreOp::exist, .fault = Fault::throws, .times = 1});
  EXPECT_THROW(exists(store_, key_), std::runtime_error);
  store_.add({.op = StoreOp::exist, .fault = Fault::vanish, .times = 1});
  EXPECT_TRUE(exists(store_, key_).ok());
  EXPECT_EQ(exists(store_, key_).status, StoreStatus::absent);
}

TEST_F(FaultyStoreTest, HangsUntilItIsReleased) {
  store_.add({.op = StoreOp::get, .fault = Fault::hold_before});
  std::jthread reader([&] { EXPECT_TRUE(get_one(store_, key_, buffer_).ok()); });
  ASSERT_TRUE(store_.gate().wait_for_waiting(1));
  EXPECT_EQ(buffer_, Bytes(1000, std::byte{0xA5}));
  store_.heal();
  reader.join();
  EXPECT_EQ(buffer_, value_);
}

TEST_F(FaultyStoreTest, AnswersLateThoughTheWorkIsDone) {
  store_.add({.op = StoreOp::put, .fault = Fault::hold_after});
  std::jthread writer([&] { EXPECT_TRUE(put_one(store_, key_number(2), value_).ok()); });
  ASSERT_TRUE(store_.gate().wait_for_waiting(1));
  EXPECT_EQ(read_back(store_.inner(), key_number(2)), value_);
  store_.gate().open();
}

}  // namespace
}  // namespace vitrove::testing
