#include "vitrove/memory_store.h"

#include "contract/store_contract.h"
#include "vitrove/error.h"

namespace vitrove::testing {
namespace {

class MemoryHarness {
 public:
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return nullptr; }

 private:
  std::unique_ptr<EmbeddingStore> store_ = make_memory_store({.capacity = 512u << 20});
};

TEST(MemoryStore, RefusesACapacityOfZero) {
  EXPECT_THROW(make_memory_store({.capacity = 0}), Error);
}

TEST(MemoryStore, NeverHoldsMoreThanItsCapacity) {
  const auto store = make_memory_store({.capacity = 10'000});
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 900 + i)).ok());
    ASSERT_LE(*store->health().bytes, 10'000u);
  }
  EXPECT_TRUE(exists(*store, key_number(99)).ok());
  EXPECT_EQ(exists(*store, key_number(0)).status, StoreStatus::absent);
}

TEST(MemoryStore, EvictsTheLeastRecentlyUsed) {
  const auto store = make_memory_store({.capacity = 10'000});
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 1000)).ok());
  }
  Bytes bytes(1000);
  ASSERT_TRUE(get_one(*store, key_number(0), bytes).ok());
  ASSERT_TRUE(put_one(*store, key_number(10), pattern(10, 1000)).ok());
  EXPECT_TRUE(exists(*store, key_number(0)).ok());
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::absent);
  EXPECT_TRUE(exists(*store, key_number(2)).ok());
}

TEST(MemoryStore, HoldsAValueAsLargeAsItsCapacityAndNoLarger) {
  const auto store = make_memory_store({.capacity = 1000});
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
  EXPECT_EQ(put_one(*store, key_number(2), pattern(2, 1001)).status, StoreStatus::too_large);
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 1000));
}

TEST(MemoryStore, StaysWithinItsCapacityUnderManyWriters) {
  const auto store = make_memory_store({.capacity = 1 << 20});
  std::vector<std::jthread> threads;
  for (std::uint64_t worker = 0; worker < 8; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const EmbeddingKey key = key_number(i % 60 + worker * 40);
        put_one(*store, key, pattern(i % 60 + worker * 40, 10'000),
                i % 3 == 0 ? PutMode::replace : PutMode::if_absent);
        if (i % 5 == 0) remove_one(*store, key);
      }
    });
  }
  threads.clear();
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  store->list({},
              [&](const ListedValue& value) {
                bytes += value.size;
                ++entries;
                return true;
              },
              {});
  EXPECT_EQ(store->health().bytes, bytes);
  EXPECT_EQ(store->health().entries, entries);
  EXPECT_LE(bytes, 1u << 20);
}

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreContract, MemoryHarness, );

}  // namespace
}  // namespace vitrove::testing
