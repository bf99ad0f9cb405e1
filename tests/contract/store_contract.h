// The contract of embedding_store.h as tests: one suite, the same for every backend.
//
// A harness opens stores of one backend:
//
//   struct FileHarness {
//     EmbeddingStore& store();                 // ready, and empty at the start of each test
//     std::unique_ptr<EmbeddingStore> open();  // one more client of the same data, or nullptr
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(File, StoreContract, FileHarness, );
//
// The store must hold at least 256 MiB. What is optional (capabilities()) is skipped where absent.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/recording_observer.h"
#include "contract/store_contract_claims.h"
#include "contract/store_contract_fixture.h"
#include "contract/test_values.h"

namespace vitrove::testing {

TYPED_TEST_P(StoreContract, ReadsBackWhatWasPut) {
  for (const std::size_t size : {1u, 7u, 255u, 256u, 257u, 4096u, 65536u, 1048583u}) {
    const EmbeddingKey key = key_number(size);
    const Bytes value = pattern(size, size);
    this->put_ok(key, value);
    EXPECT_EQ(exists(this->store(), key).size, size);
    Bytes back(size);
    const StoreResult result = get_one(this->store(), key, back);
    EXPECT_TRUE(result.ok()) << size;
    EXPECT_EQ(result.size, size);
    EXPECT_EQ(back, value) << size;
  }
}

TYPED_TEST_P(StoreContract, AnswersAbsentForKeysThatNobodyPut) {
  Bytes buffer(300, this->untouched);
  EXPECT_EQ(get_one(this->store(), key_number(1), buffer).status, StoreStatus::absent);
  EXPECT_EQ(exists(this->store(), key_number(1)).status, StoreStatus::absent);
}

TYPED_TEST_P(StoreContract, AnswersAnEmptyBatchWithNothing) {
  EXPECT_TRUE(this->store().batch_get({}, {}, {}).empty());
  EXPECT_TRUE(this->store().batch_put({}, {}, PutMode::if_absent, {}).empty());
  EXPECT_TRUE(this->store().batch_is_exist({}, {}).empty());
}

TYPED_TEST_P(StoreContract, RefusesListsOfDifferentLengths) {
  const auto keys = key_numbers(3);
  Bytes bytes(300);
  const std::vector<MutableBuffer> targets(2, MutableBuffer(bytes));
  const std::vector<ConstBuffer> sources(4, ConstBuffer(bytes));
  for (const auto& results : {this->store().batch_get(keys, targets, {}),
                              this->store().batch_put(keys, sources, PutMode::if_absent, {})}) {
    ASSERT_EQ(results.size(), keys.size());
    for (const StoreResult& result : results) EXPECT_EQ(result.status, StoreStatus::invalid);
  }
}

TYPED_TEST_P(StoreContract, GivesEachKeyItsOwnAnswerInOrder) {
  const auto keys = key_numbers(5);
  const Bytes value = pattern(9, 1000);
  this->put_ok(keys[0], value);
  this->put_ok(keys[2], value);
  this->put_ok(keys[4], value);

  std::array<Bytes, 5> bytes = {Bytes(1000), Bytes(1000), Bytes(999), Bytes{}, Bytes(1000)};
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  const auto results = this->store().batch_get(keys, buffers, {});
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0].status, StoreStatus::ok);
  EXPECT_EQ(results[1].status, StoreStatus::absent);
  EXPECT_EQ(results[2].status, StoreStatus::size_mismatch);
  EXPECT_EQ(results[2].size, 1000u);
  EXPECT_EQ(results[3].status, StoreStatus::invalid);
  EXPECT_EQ(results[4].status, StoreStatus::ok);
  EXPECT_EQ(bytes[0], value);
  EXPECT_EQ(bytes[4], value);

  const auto found = this->store().batch_is_exist(keys, {});
  ASSERT_EQ(found.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(found[i].ok(), i % 2 == 0) << i;
}

TYPED_TEST_P(StoreContract, StoresTheGoodValuesOfABatchWithABadOne) {
  const auto keys = key_numbers(3);
  const Bytes value = pattern(1, 700);
  const std::vector<ConstBuffer> buffers = {value, {}, value};
  const auto results = this->store().batch_put(keys, buffers, PutMode::if_absent, {});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].status, StoreStatus::invalid);
  EXPECT_TRUE(results[2].ok());
  EXPECT_EQ(read_back(this->store(), keys[0]), value);
  EXPECT_EQ(exists(this->store(), keys[1]).status, StoreStatus::absent);
  EXPECT_EQ(read_back(this->store(), keys[2]), value);
}

TYPED_TEST_P(StoreContract, FillsTheBufferOfEveryPositionOfARepeatedKey) {
  const EmbeddingKey a = key_number(1);
  const EmbeddingKey b = key_number(2);
  const Bytes value_a = pattern(1, 5000);
  const Bytes value_b = pattern(2, 3000);
  const std::vector<EmbeddingKey> put_keys = {a, b, a};
  const std::vector<ConstBuffer> sources = {value_a, value_b, value_a};
  for (const auto& result : this->store().batch_put(put_keys, sources, PutMode::if_absent, {})) {
    EXPECT_TRUE(result.ok());
  }

  const std::vector<EmbeddingKey> keys = {a, b, a, b, a};
  std::array<Bytes, 5> bytes = {Bytes(5000), Bytes(3000), Bytes(5000), Bytes(2999), Bytes(5000)};
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  const auto results = this->store().batch_get(keys, buffers, {});
  ASSERT_EQ(results.size(), 5u);
  for (const std::size_t i : {0u, 2u, 4u}) {
    EXPECT_TRUE(results[i].ok()) << i;
    EXPECT_EQ(bytes[i], value_a) << i;
  }
  EXPECT_EQ(bytes[1], value_b);
  EXPECT_EQ(results[3].status, StoreStatus::size_mismatch);
  EXPECT_EQ(results[3].size, 3000u);

  const auto found = this->store().batch_is_exist(keys, {});
  ASSERT_EQ(found.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(found[i].size, i % 2 == 0 ? 5000u : 3000u);
}

TYPED_TEST_P(StoreContract, TellsTheRealSizeWhenBuffersDoNotAddUpToIt) {
  const EmbeddingKey key = key_number(1);
  this->put_ok(key, pattern(1, 100'000));
  for (const std::size_t size : {1u, 256u, 99'999u, 100'001u, 200'000u}) {
    Bytes bytes(size);
    const StoreResult result = get_one(this->store(), key, bytes);
    EXPECT_EQ(result.status, StoreStatus::size_mismatch) << size;
    EXPECT_EQ(result.size, 100'000u) << size;
  }
}

TYPED_TEST_P(StoreContract, RefusesZeroBytes) {
  const EmbeddingKey key = key_number(1);
  EXPECT_EQ(put_one(this->store(), key, {}).status, StoreStatus::invalid);
  EXPECT_EQ(get_one(this->store(), key, {}).status, StoreStatus::invalid);
  const std::vector<ConstBuffer> empty_buffers(3);
  const ConstBufferList list(empty_buffers);
  EXPECT_EQ(this->store()
                .batch_put_from_multi_buffers({&key, 1}, {&list, 1}, PutMode::replace, {})
                .at(0)
                .status,
            StoreStatus::invalid);
  EXPECT_EQ(exists(this->store(), key).status, StoreStatus::absent);
}

TYPED_TEST_P(StoreContract, RefusesValuesBeyondItsLimitBeforeReadingThem) {
  const std::uint64_t limit = this->store().capabilities().max_value_bytes;
  Bytes part(std::uint64_t{64} << 20);
  const std::vector<ConstBuffer> buffers(limit / part.size() + 1, ConstBuffer(part));
  const ConstBufferList list(buffers);
  const EmbeddingKey key = key_number(1);
  const auto results =
      this->store().batch_put_from_multi_buffers({&key, 1}, {&list, 1}, PutMode::if_absent, {});
  EXPECT_EQ(to_string(results.at(0).status), "too_large");
  EXPECT_EQ(exists(this->store(), key).status, StoreStatus::absent);
}

TYPED_TEST_P(StoreContract, KeepsVeryLargeValues) {
  const EmbeddingKey key = key_number(1);
  const Bytes value = pattern(1, (std::size_t{64} << 20) + 12'345);
  this->put_ok(key, value);
  EXPECT_TRUE(read_back(this->store(), key) == value);
}

TYPED_TEST_P(StoreContract, GathersAndScattersValuesOfManyRuns) {
  const EmbeddingKey key = key_number(1);
  const Bytes value = pattern(1, 3'000'000);
  const auto sources = cut(ConstBuffer(value), {256, 1, 4097, 0, 333});
  ASSERT_GT(sources.size(), 3000u);  // beyond what one system call takes
  const ConstBufferList source_list(sources);
  const auto put = this->store().batch_put_from_multi_buffers({&key, 1}, {&source_list, 1},
                                                              PutMode::if_absent, {});
  ASSERT_TRUE(put.at(0).ok());

  Bytes back(value.size());
  const auto targets = cut(MutableBuffer(back), {1, 65'536, 2, 0, 1'000'000, 17});
  const MutableBufferList target_list(targets);
  const auto got = this->store().batch_get_into_multi_buffers({&key, 1}, {&target_list, 1}, {});
  ASSERT_TRUE(got.at(0).ok());
  EXPECT_EQ(got.at(0).size, value.size());
  EXPECT_TRUE(back == value);

  std::ranges::fill(back, std::byte{0});
  const auto crumbs = cut(MutableBuffer(back), {511});
  const MutableBufferList crumb_list(crumbs);
  ASSERT_TRUE(
      this->store().batch_get_into_multi_buffers({&key, 1}, {&crumb_list, 1}, {}).at(0).ok());
  EXPECT_TRUE(back == value);
}

TYPED_TEST_P(StoreContract, WritesNothingOutsideTheBuffers) {
  const EmbeddingKey key = key_number(1);
  const Bytes value = pattern(1, 10'000);
  this->put_ok(key, value);
  Bytes arena(10'000 + 3 * 64, this->untouched);
  const std::vector<MutableBuffer> runs = {MutableBuffer(arena).subspan(64, 6000),
                                           MutableBuffer(arena).subspan(6128, 4000)};
  const MutableBufferList list(runs);
  ASSERT_TRUE(this->store().batch_get_into_multi_buffers({&key, 1}, {&list, 1}, {}).at(0).ok());
  for (const std::size_t gap : {0u, 6064u, 10'128u}) {
    const auto margin = std::span(arena).subspan(gap, 64);
    EXPECT_THAT(margin, ::testing::Each(this->untouched)) << gap;
  }
}

TYPED_TEST_P(StoreContract, KeepsThousandsOfKeys) {
  const auto keys = key_numbers(2000);
  std::vector<Bytes> values;
  for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(pattern(i, 300 + i % 50));
  const std::vector<ConstBuffer> sources(values.begin(), values.end());
  for (const auto& result : this->store().batch_put(keys, sources, PutMode::if_absent, {})) {
    ASSERT_TRUE(result.ok());
  }
  std::vector<Bytes> back;
  for (const Bytes& value : values) back.emplace_back(value.size());
  const std::vector<MutableBuffer> targets(back.begin(), back.end());
  for (const auto& result : this->store().batch_get(keys, targets, {})) ASSERT_TRUE(result.ok());
  EXPECT_TRUE(back == values);
  const auto found = this->store().batch_is_exist(keys, {});
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(found[i].size, values[i].size());
}

TYPED_TEST_P(StoreContract, KeepsWhatIsThereWhenPutIfAbsent) {
  const EmbeddingKey key = key_number(1);
  const Bytes first = pattern(1, 1000);
  this->put_ok(key, first);
  EXPECT_TRUE(put_one(this->store(), key, pattern(2, 1000)).ok());
  EXPECT_TRUE(put_one(this->store(), key, pattern(3, 50)).ok());
  EXPECT_EQ(read_back(this->store(), key), first);
}

TYPED_TEST_P(StoreContract, OverwritesWhatIsThereWhenPutToReplace) {
  if (!this->store().capabilities().can_replace) return;  // cannot replace
  const EmbeddingKey key = key_number(1);
  this->put_ok(key, pattern(1, 1000));
  for (const std::size_t size : {1000u, 50u, 70'000u}) {
    const Bytes value = pattern(size + 7, size);
    this->put_ok(key, value, PutMode::replace);
    EXPECT_EQ(read_back(this->store(), key), value);
  }
  const EmbeddingKey fresh = key_number(2);
  this->put_ok(fresh, pattern(5, 40), PutMode::replace);
  EXPECT_EQ(read_back(this->store(), fresh), pattern(5, 40));
}

TYPED_TEST_P(StoreContract, GivesHostileBytesBackUnchanged) {
  const std::vector<std::string> texts = {std::string(256, '\0'),
                                          std::string(300, '\xFF'),
                                          "\r\nDEL x\r\n$-1\r\n*3\r\n",
                                          std::string("../../etc/passwd\0\n%s%n", 22),
                                          "OK",
                                          "-ERR",
                                          "(nil)"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(texts[i]));
    this->put_ok(key_number(i), bytes);
    EXPECT_EQ(read_back(this->store(), key_number(i)), Bytes(bytes.begin(), bytes.end())) << i;
  }
}

TYPED_TEST_P(StoreContract, NeverShowsATornValueToReadersOfAKeyThatManyWrite) {
  constexpr int writers = 16;
  constexpr int rounds = 60;
  const bool can_replace = this->store().capabilities().can_replace;
  const bool can_remove = this->store().capabilities().can_remove;
  std::array<Bytes, writers> values;
  for (int i = 0; i < writers; ++i) {
    values[static_cast<std::size_t>(i)] =
        pattern(static_cast<std::uint64_t>(i), 40'000 + 1000 * static_cast<std::size_t>(i % 4));
  }
  const std::set<Bytes> good(values.begin(), values.end());

  for (int round = 0; round < rounds; ++round) {
    const EmbeddingKey key = key_number(static_cast<std::uint64_t>(round / 2));
    const PutMode mode = can_replace && round % 2 == 1 ? PutMode::replace : PutMode::if_absent;
    if (round % 2 == 1 && can_remove && round % 4 == 3) remove_one(this->store(), key);
    std::atomic<int> failed{0};
    std::atomic<bool> torn{false};
    std::vector<std::jthread> threads;
    for (const Bytes& value : values) {
      threads.emplace_back([&, mode] {
        if (!put_one(this->store(), key, value, mode).ok()) ++failed;
        const Bytes back = read_back(this->store(), key);
        if (!back.empty() && !good.contains(back)) torn = true;
      });
    }
    threads.clear();
    ASSERT_EQ(failed, 0) << "round " << round;
    ASSERT_FALSE(torn) << "round " << round;
    ASSERT_TRUE(good.contains(read_back(this->store(), key))) << "round " << round;
  }
}

TYPED_TEST_P(StoreContract, ServesManyThreadsAtOnce) {
  constexpr std::size_t workers = 8;
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      const auto keys = key_numbers(40, "worker" + std::to_string(worker % (workers / 2)));
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const Bytes value = pattern(i, 10'000 + i);
        if (!put_one(this->store(), keys[i], value).ok()) ++wrong;
        if (read_back(this->store(), keys[i]) != value) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST_P(StoreContract, AnswersTimeoutWhenTheDeadlineHasPassed) {
  const auto keys = key_numbers(3);
  this->put_ok(keys[0], pattern(1, 500));
  StoreContext overdue;
  overdue.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  Bytes bytes(500);
  const std::vector<MutableBuffer> targets(3, MutableBuffer(bytes));
  const std::vector<ConstBuffer> sources(3, ConstBuffer(bytes));
  for (const auto& results : {this->store().batch_get(keys, targets, overdue),
                              this->store().batch_put(keys, sources, PutMode::if_absent, overdue),
                              this->store().batch_is_exist(keys, overdue)}) {
    ASSERT_EQ(results.size(), 3u);
    for (const StoreResult& result : results) EXPECT_EQ(result.status, StoreStatus::timeout);
  }
  EXPECT_EQ(exists(this->store(), keys[1]).status, StoreStatus::absent);
}

TYPED_TEST_P(StoreContract, AnswersCancelledWhenTheCallerHasLeft) {
  const auto keys = key_numbers(3);
  std::stop_source source;
  source.request_stop();
  StoreContext cancelled;
  cancelled.cancel = source.get_token();
  Bytes bytes(500);
  const std::vector<MutableBuffer> targets(3, MutableBuffer(bytes));
  const std::vector<ConstBuffer> sources(3, ConstBuffer(bytes));
  for (const auto& results : {this->store().batch_get(keys, targets, cancelled),
                              this->store().batch_put(keys, sources, PutMode::if_absent, cancelled),
                              this->store().batch_is_exist(keys, cancelled)}) {
    ASSERT_EQ(results.size(), 3u);
    for (const StoreResult& result : results) EXPECT_EQ(result.status, StoreStatus::cancelled);
  }
  EXPECT_EQ(exists(this->store(), keys[1]).status, StoreStatus::absent);
}

TYPED_TEST_P(StoreContract, KeepsADeadlineThatIsFarAway) {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  std::stop_source source;
  context.cancel = source.get_token();
  context.trace_id = "req-1";
  const EmbeddingKey key = key_number(1);
  const Bytes value = pattern(1, 500);
  EXPECT_TRUE(put_one(this->store(), key, value, PutMode::if_absent, context).ok());
  EXPECT_TRUE(exists(this->store(), key, context).ok());
  Bytes back(500);
  EXPECT_TRUE(get_one(this->store(), key, back, context).ok());
  EXPECT_EQ(back, value);
}

TYPED_TEST_P(StoreContract, ReportsEveryByteOfAGetInOrder) {
  if (!this->store().capabilities().reports_pieces) return;  // does not report pieces
  const EmbeddingKey small = key_number(1);
  const EmbeddingKey large = key_number(2);
  this->put_ok(small, pattern(1, 300));
  const Bytes value = pattern(2, 3'000'001);
  this->put_ok(large, value);

  const std::vector<EmbeddingKey> keys = {large, key_number(3), small, large, small};
  std::array<Bytes, 5> bytes = {Bytes(3'000'001), Bytes(10), Bytes(300), Bytes(3'000'001),
                                Bytes(299)};
  std::vector<std::vector<MutableBuffer>> runs;
  for (Bytes& one : bytes) runs.push_back(cut(MutableBuffer(one), {256, 700'000, 0, 65'536}));
  const std::vector<MutableBufferList> lists(runs.begin(), runs.end());
  RecordingObserver observer(lists);
  StoreContext context;
  context.observer = &observer;
  const auto results = this->store().batch_get_into_multi_buffers(keys, lists, context);
  EXPECT_EQ(observer.complaints(), 0);
  for (const std::size_t i : {0u, 2u, 3u}) {
    ASSERT_TRUE(results[i].ok()) << i;
    EXPECT_EQ(observer.seen(i), results[i].size) << i;
  }
  EXPECT_TRUE(bytes[3] == value);
}

TYPED_TEST_P(StoreContract, StopsInTheMiddleOfABatchWhenCancelled) {
  if (!this->store().capabilities().reports_pieces) return;  // does not report pieces
  const auto keys = key_numbers(50);
  std::vector<Bytes> bytes;
  for (const EmbeddingKey& key : keys) {
    this->put_ok(key, pattern(1, 1000));
    bytes.emplace_back(1000);
  }
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  std::vector<MutableBufferList> lists;
  for (const MutableBuffer& buffer : buffers) lists.emplace_back(&buffer, 1);
  std::stop_source source;
  RecordingObserver observer(lists);
  observer.on_first_piece = [&] { source.request_stop(); };
  StoreContext context;
  context.cancel = source.get_token();
  context.observer = &observer;
  const auto results = this->store().batch_get_into_multi_buffers(keys, lists, context);
  ASSERT_EQ(results.size(), keys.size());
  EXPECT_EQ(results.back().status, StoreStatus::cancelled);
}

TYPED_TEST_P(StoreContract, RemovesWhatItIsToldTo) {
  if (!this->store().capabilities().can_remove) return;  // cannot remove
  const auto keys = key_numbers(3);
  const Bytes value = pattern(1, 1000);
  this->put_ok(keys[0], value);
  this->put_ok(keys[1], value);
  const std::vector<EmbeddingKey> victims = {keys[0], keys[2], keys[0]};
  const auto results = this->store().batch_remove(victims, {});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status, StoreStatus::ok);
  EXPECT_EQ(results[1].status, StoreStatus::absent);
  EXPECT_EQ(results[2].status, StoreStatus::absent);
  EXPECT_EQ(exists(this->store(), keys[0]).status, StoreStatus::absent);
  EXPECT_EQ(read_back(this->store(), keys[1]), value);
  this->put_ok(keys[0], pattern(4, 20));
  EXPECT_EQ(read_back(this->store(), keys[0]), pattern(4, 20));
}

TYPED_TEST_P(StoreContract, ListsWhatItHolds) {
  if (!this->store().capabilities().can_list) return;  // cannot list
  std::map<EmbeddingKey, Bytes> values;
  for (std::uint64_t i = 0; i < 40; ++i) {
    values[key_number(i)] = pattern(i, i == 0 ? 10 : 300 + i);
    this->put_ok(key_number(i), values[key_number(i)]);
  }
  for (const bool with_header : {false, true}) {
    std::map<EmbeddingKey, ListedValue> listed;
    const StoreResult result = this->store().list({with_header},
                                                  [&](const ListedValue& value) {
                                                    listed[value.key] = value;
                                                    return true;
                                                  },
                                                  {});
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(listed.size(), values.size());
    for (const auto& [key, value] : values) {
      EXPECT_EQ(listed[key].size, value.size());
      const bool has_header = with_header && value.size() >= value_header_size;
      ASSERT_EQ(listed[key].header.has_value(), has_header);
      if (has_header) {
        EXPECT_TRUE(
            std::ranges::equal(*listed[key].header, std::span(value).first(value_header_size)));
      }
    }
  }
}

TYPED_TEST_P(StoreContract, StopsListingWhenToldOrOverdue) {
  if (!this->store().capabilities().can_list) return;  // cannot list
  for (std::uint64_t i = 0; i < 20; ++i) this->put_ok(key_number(i), pattern(i, 300));
  int visits = 0;
  const auto one_visit = [&](const ListedValue&) {
    ++visits;
    return false;
  };
  EXPECT_TRUE(this->store().list({}, one_visit, {}).ok());
  EXPECT_EQ(visits, 1);
  StoreContext overdue;
  overdue.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(this->store().list({}, one_visit, overdue).status, StoreStatus::timeout);
}

TYPED_TEST_P(StoreContract, LetsTheGetDecideWhenAValueVanishesAfterItWasSeen) {
  if (!this->store().capabilities().can_remove) return;  // cannot remove
  const EmbeddingKey key = key_number(1);
  this->put_ok(key, pattern(1, 1000));
  ASSERT_TRUE(exists(this->store(), key).ok());
  remove_one(this->store(), key);
  Bytes bytes(1000);
  EXPECT_EQ(get_one(this->store(), key, bytes).status, StoreStatus::absent);
}

TYPED_TEST_P(StoreContract, SharesValuesBetweenItsClients) {
  const auto other = this->harness().open();
  if (!other) return;  // one client only
  const EmbeddingKey mine = key_number(1);
  const EmbeddingKey theirs = key_number(2);
  this->put_ok(mine, pattern(1, 5000));
  EXPECT_EQ(read_back(*other, mine), pattern(1, 5000));
  ASSERT_TRUE(put_one(*other, theirs, pattern(2, 600)).ok());
  EXPECT_EQ(read_back(this->store(), theirs), pattern(2, 600));
  EXPECT_EQ(other->get_key(mine), this->store().get_key(mine));
}

TYPED_TEST_P(StoreContract, SpellsEveryKeyDifferently) {
  std::set<std::string> spelled;
  for (const EmbeddingKey& key : key_numbers(100)) spelled.insert(this->store().get_key(key));
  EXPECT_EQ(spelled.size(), 100u);
  EXPECT_THAT(spelled, ::testing::Each(::testing::HasSubstr("vt1-")));
}

TYPED_TEST_P(StoreContract, SaysWhoAndHowItIs) {
  EXPECT_FALSE(this->store().name().empty());
  this->put_ok(key_number(1), pattern(1, 5000));
  const StoreHealth health = this->store().health();
  EXPECT_EQ(health.state, StoreState::ready) << health.detail;
  if (health.bytes) {
    EXPECT_GE(*health.bytes, 5000u);
  }
  if (health.bytes && health.capacity) {
    EXPECT_LE(*health.bytes, *health.capacity);
  }
  if (health.entries) {
    EXPECT_EQ(*health.entries, 1u);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    StoreContract, ReadsBackWhatWasPut, AnswersAbsentForKeysThatNobodyPut,
    AnswersAnEmptyBatchWithNothing, RefusesListsOfDifferentLengths, GivesEachKeyItsOwnAnswerInOrder,
    StoresTheGoodValuesOfABatchWithABadOne, FillsTheBufferOfEveryPositionOfARepeatedKey,
    TellsTheRealSizeWhenBuffersDoNotAddUpToIt, RefusesZeroBytes,
    RefusesValuesBeyondItsLimitBeforeReadingThem, KeepsVeryLargeValues,
    GathersAndScattersValuesOfManyRuns, WritesNothingOutsideTheBuffers, KeepsThousandsOfKeys,
    KeepsWhatIsThereWhenPutIfAbsent, OverwritesWhatIsThereWhenPutToReplace,
    GivesHostileBytesBackUnchanged, NeverShowsATornValueToReadersOfAKeyThatManyWrite,
    ServesManyThreadsAtOnce, AnswersTimeoutWhenTheDeadlineHasPassed,
    AnswersCancelledWhenTheCallerHasLeft, KeepsADeadlineThatIsFarAway,
    ReportsEveryByteOfAGetInOrder, StopsInTheMiddleOfABatchWhenCancelled, RemovesWhatItIsToldTo,
    ListsWhatItHolds, StopsListingWhenToldOrOverdue,
    LetsTheGetDecideWhenAValueVanishesAfterItWasSeen, GivesAClaimToOneUntilItIsReleased,
    LetsAClaimGoWhoseTimeIsOver, KeepsClaimsApartFromValues, LetsExactlyOneOfManyWinAClaim,
    SharesValuesBetweenItsClients, SpellsEveryKeyDifferently, SaysWhoAndHowItIs);

}  // namespace vitrove::testing
