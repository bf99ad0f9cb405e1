// Large values come in parts, and a server is never asked for more at a time than keeps it busy.
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/recording_observer.h"
#include "contract/test_values.h"
#include "redis_server.h"
#include "stores/redis/get_plan.h"
#include "stores/redis/sender.h"
#include "stores/redis/window.h"

namespace vitrove::testing {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t large = 4 * 1024 * kib + 300 * kib + 17;

std::int64_t calls_of(RedisServer& server, const std::string& command) {
  const std::string stats = server.ask({"INFO", "commandstats"}).text;
  const std::string name = "cmdstat_" + command + ":calls=";
  const std::size_t at = stats.find(name);
  return at == stats.npos ? 0 : std::stoll(stats.substr(at + name.size()));
}

// --- with a real server ---

TEST(RedisLargeValues, ComePieceByPieceIntoBuffersOfAnySize) {
  RedisServer server;
  const auto store = make_redis_store(server.options());
  const Bytes value = pattern(7, large);
  ASSERT_TRUE(put_one(*store, key_number(1), value).ok());

  Bytes back(large);
  std::vector<MutableBuffer> buffers;
  std::size_t at = 0;
  for (std::size_t size = 1; at < large; size = size * 3 + 1) {
    buffers.push_back(MutableBuffer(back).subspan(at, std::min(size, large - at)));
    buffers.emplace_back();
    at += buffers[buffers.size() - 2].size();
  }
  const EmbeddingKey key = key_number(1);
  const MutableBufferList list(buffers);
  RecordingObserver observer({list});
  StoreContext context;
  context.observer = &observer;
  const auto results = store->batch_get_into_multi_buffers({&key, 1}, {&list, 1}, context);
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(0).size, large);
  EXPECT_EQ(back, value);
  EXPECT_EQ(observer.seen(0), large);
  EXPECT_EQ(observer.complaints(), 0);
  EXPECT_EQ(calls_of(server, "get"), 0);
  EXPECT_EQ(calls_of(server, "getrange"), 8);  // the last one takes the rest, 812 KiB
}

TEST(RedisLargeValues, OfAMebibyteAreTwoPartsWithTheirHeaderOrWithoutIt) {
  RedisServer server;
  const auto store = make_redis_store(server.options());
  std::int64_t ranges = 0;
  for (const std::size_t size : {1024 * kib, 1024 * kib + 192, 1024 * kib + 256 * kib}) {
    const Bytes value = pattern(3, size);
    ASSERT_TRUE(put_one(*store, key_number(size), value).ok());
    Bytes back(size);
    EXPECT_TRUE(get_one(*store, key_number(size), back).ok());
    EXPECT_EQ(back, value);
    EXPECT_EQ(calls_of(server, "getrange"), ranges += 2) << size;
  }
  const Bytes whole = pattern(4, 768 * kib + value_header_size + 300);  // with side data
  ASSERT_TRUE(put_one(*store, key_number(1), whole).ok());
  Bytes back(whole.size());
  EXPECT_TRUE(get_one(*store, key_number(1), back).ok());
  EXPECT_EQ(back, whole);
  EXPECT_EQ(calls_of(server, "getrange"), ranges);
  EXPECT_EQ(calls_of(server, "get"), 1);
}

TEST(RedisLargeValues, AreAbsentOrOfAnotherSizeAsSmallOnesAre) {
  RedisServer server;
  const auto store = make_redis_store(server.options());
  const std::vector<EmbeddingKey> keys = key_numbers(5);
  const Bytes value = pattern(1, large);
  const Bytes small = pattern(2, 1000);
  ASSERT_TRUE(put_one(*store, keys[1], value).ok());
  ASSERT_TRUE(put_one(*store, keys[2], small).ok());
  ASSERT_TRUE(put_one(*store, keys[3], small).ok());
  ASSERT_TRUE(put_one(*store, keys[4], value).ok());
  std::vector<Bytes> bytes = {Bytes(large), Bytes(large - 1), Bytes(large), Bytes(1000),
                              Bytes(large)};
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  const auto results = store->batch_get(keys, buffers, {});
  EXPECT_EQ(results.at(0).status, StoreStatus::absent);
  EXPECT_EQ(results.at(1).status, StoreStatus::size_mismatch);
  EXPECT_EQ(results.at(1).size, large);
  EXPECT_EQ(results.at(2).status, StoreStatus::size_mismatch);
  EXPECT_EQ(results.at(2).size, 1000u);
  EXPECT_EQ(bytes.at(3), small);
  EXPECT_EQ(bytes.at(4), value);
}

TEST(RedisLargeValues, AreNoneWhereSomethingElseStands) {
  RedisServer server;
  const auto store = make_redis_store(server.options());
  server.ask({"LPUSH", store->get_key(key_number(1)), "x"});
  Bytes back(large);
  EXPECT_EQ(get_one(*store, key_number(1), back).status, StoreStatus::io_error);
}

// --- answers that only a race makes ---

class PlannedParts : public ::testing::Test {
 protected:
  PlannedParts() {
    plan_.add(0, "name", {&buffer_, 1});
    for (redis::Command& command : plan_.commands()) {
      command.answered = true;
      command.reply.type = redis::ReplyType::bulk;
      command.reply.number = static_cast<std::int64_t>(command.target_bytes);
    }
    redis::Reply& size = plan_.commands().front().reply;
    size.type = redis::ReplyType::integer;
    size.number = static_cast<std::int64_t>(large);
  }
  StoreResult settle() {
    StoreResult result{StoreStatus::invalid};
    plan_.settle({&result, 1});
    return result;
  }

  Bytes bytes_ = Bytes(large);
  const MutableBuffer buffer_{bytes_};
  redis::GetPlan plan_{redis::GetPlan::Large::in_parts};
};

TEST_F(PlannedParts, AreTheValueWhenAllAreThere) {
  EXPECT_TRUE(settle().ok());
  EXPECT_EQ(settle().size, large);
}

TEST_F(PlannedParts, AreAMissWhenTheValueWentAwayMeanwhile) {
  plan_.commands().back().reply.number = 0;
  EXPECT_EQ(settle().status, StoreStatus::absent);
}

TEST_F(PlannedParts, AreAFaultWhenOneIsMissing) {
  redis::Command& part = plan_.commands()[3];
  part.answered = false;
  part.fault = {StoreStatus::timeout, 0, "late"};
  EXPECT_EQ(settle().status, StoreStatus::timeout);
}

// --- how much is asked for at a time ---

// Takes all that it is given, and counts the commands in it.
class CountingStream final : public redis::Stream {
 public:
  redis::IoResult read(std::span<const iovec>) override {
    return {redis::IoResult::Kind::wants_read};
  }
  redis::IoResult write(std::span<const iovec> pieces) override {
    std::size_t bytes = 0;
    for (const iovec& piece : pieces) bytes += piece.iov_len;
    commands += bytes;
    ++writes;
    return {redis::IoResult::Kind::moved, bytes};
  }
  int fd() const override { return -1; }
  bool ends_with_short_read() const override { return true; }

  std::size_t commands = 0;  // of one byte each
  std::size_t writes = 0;
};

class RedisSender : public ::testing::Test {
 protected:
  void prepare(std::size_t count, std::uint64_t bytes) {
    prepare(std::vector<std::uint64_t>(count, bytes));
  }
  void prepare(const std::vector<std::uint64_t>& bytes) {
    commands_.resize(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      commands_[i].head = "x";
      commands_[i].target_bytes = bytes[i];
      list_.push_back(&commands_[i]);
    }
    sender_ = std::make_unique<redis::Sender>(list_, 512 * kib);
  }
  std::size_t asked_for_after(std::size_t answers) {
    for (; answers > 0; --answers) sender_->note_answered(commands_[answered_++]);
    while (sender_->has_work()) sender_->send(stream_);
    return stream_.commands;
  }

  std::vector<redis::Command> commands_;
  std::vector<redis::Command*> list_;
  std::unique_ptr<redis::Sender> sender_;
  CountingStream stream_;
  std::size_t answered_ = 0;
};

TEST_F(RedisSender, AsksForMoreWhenHalfOfTheWindowHasCome) {
  prepare(100, 64 * kib);
  EXPECT_EQ(asked_for_after(0), 8u);
  EXPECT_EQ(asked_for_after(3), 8u);
  EXPECT_EQ(asked_for_after(1), 12u);
  EXPECT_EQ(stream_.writes, 2u);
}

TEST_F(RedisSender, KeepsTwoLargeValuesOnTheWay) {
  prepare(4, 3 << 20);
  EXPECT_EQ(asked_for_after(0), 2u);
  EXPECT_EQ(asked_for_after(1), 3u);
  EXPECT_EQ(asked_for_after(1), 4u);
}

TEST_F(RedisSender, KeepsTwoPartsOnTheWayThoughASizeStandsBetweenThem) {
  constexpr std::uint64_t size = 0, part = 512 * kib;
  prepare({size, part, part, size, part, part});
  EXPECT_EQ(asked_for_after(0), 3u);
  EXPECT_EQ(asked_for_after(1), 3u);  // the size has come
  EXPECT_EQ(asked_for_after(1), 5u);  // a part: the next one goes with its size
  EXPECT_EQ(asked_for_after(1), 6u);
}

TEST_F(RedisSender, AsksForEverythingThatBringsNoValue) {
  prepare(500, 0);
  EXPECT_EQ(asked_for_after(0), 500u);
}

TEST(RedisWindow, IsTheSmallestOnThisMachineAndWhereNothingIsKnown) {
  const std::uint64_t least = redis::owed_bytes_window(-1);
  EXPECT_GE(least, 256 * kib);
  EXPECT_LE(least, kib * kib);
}

}  // namespace
}  // namespace vitrove::testing
