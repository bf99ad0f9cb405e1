// The file store's capacity: held across restarts and writers (field cases B46, B62, B64, B69).
#include <atomic>

#include "unit/stores/file_store_directory.h"
#include "unit/stores/syscall_faults.h"

namespace vitrove::testing {
namespace {

class FileStoreCapacity : public FileStoreDirectory {};

TEST_F(FileStoreCapacity, IsNeverExceededByASingleWriter) {
  const auto store = open(4 * mib);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const StoreResult result = put_one(*store, key_number(i), pattern(i, 100'000 + i * 7000));
    ASSERT_EQ(to_string(result.status), "ok") << i;
    ASSERT_LE(disk_use(), 4 * mib) << i;
  }
  EXPECT_GT(disk_use(), 2 * mib);  // and it is used
  EXPECT_TRUE(exists(*store, key_number(59)).ok());
}

TEST_F(FileStoreCapacity, IsNotExceededByManyThreads) {
  const auto store = open(4 * mib);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> most{0};
  std::jthread watcher([&] {
    while (!done) most = std::max(most.load(), disk_use());
  });
  std::vector<std::jthread> threads;
  for (std::uint64_t worker = 0; worker < 6; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::uint64_t i = 0; i < 25; ++i) {
        const StoreResult result =
            put_one(*store, key_number(100 * worker + i), pattern(i, 90'000));
        EXPECT_EQ(to_string(result.status), "ok");
      }
    });
  }
  threads.clear();
  done = true;
  watcher.join();
  EXPECT_LE(most.load(), 4 * mib);
}

TEST_F(FileStoreCapacity, EvictsWhatWasUsedLongestAgo) {
  const auto store = open(4 * mib);
  for (std::uint64_t i = 0; i < 7; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 500'000)).ok());
    make_old(path_of(key_number(i)), 1h - std::chrono::minutes(i));
  }
  Bytes bytes(500'000);
  ASSERT_TRUE(get_one(*store, key_number(0), bytes).ok());  // the oldest is used
  ASSERT_TRUE(put_one(*store, key_number(7), pattern(7, 500'000)).ok());
  ASSERT_TRUE(put_one(*store, key_number(8), pattern(8, 500'000)).ok());
  EXPECT_TRUE(exists(*store, key_number(0)).ok());
  EXPECT_EQ(exists(*store, key_number(1)).status, StoreStatus::absent);
  EXPECT_TRUE(exists(*store, key_number(8)).ok());
}

TEST_F(FileStoreCapacity, HoldsOneLargeValueInPlaceOfManySmallOnes) {
  const auto store = open(4 * mib);
  for (std::uint64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 100'000)).ok());
  }
  const std::uint64_t limit = store->capabilities().max_value_bytes;
  ASSERT_GT(limit, 3 * mib);
  const Bytes large = pattern(99, 3 * mib + 500'000);
  const StoreResult result = put_one(*store, key_number(99), large);
  EXPECT_EQ(to_string(result.status), "ok");
  EXPECT_TRUE(read_back(*store, key_number(99)) == large);
  EXPECT_LE(disk_use(), 4 * mib);
  EXPECT_EQ(put_one(*store, key_number(100), Bytes(limit + 1)).status, StoreStatus::too_large);
}

TEST_F(FileStoreCapacity, IsNotEmptiedForAValueThatCanNeverFit) {
  for (std::uint64_t i = 0; i < 12; ++i) plant(key_number(i), 300'000, 1h);
  const auto store = open(4 * mib);
  EXPECT_EQ(put_one(*store, key_number(98), Bytes(4 * mib)).status, StoreStatus::too_large);
  EXPECT_EQ(put_one(*store, key_number(99), Bytes(9 * mib)).status, StoreStatus::too_large);
  ASSERT_TRUE(eventually([&] { return store->health().entries.has_value(); }));
  EXPECT_EQ(count_values(), 12u);
}

TEST_F(FileStoreCapacity, IsHeldAfterARestartWithASmallerOne) {
  {
    const auto store = open(8 * mib);
    for (std::uint64_t i = 0; i < 14; ++i) {
      ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 500'000)).ok());
    }
  }
  ASSERT_GT(disk_use(), 6 * mib);
  const auto store = open(2 * mib);
  ASSERT_TRUE(put_one(*store, key_number(99), pattern(99, 500'000)).ok());
  EXPECT_LE(disk_use(), 2 * mib);
  EXPECT_TRUE(exists(*store, key_number(99)).ok());
}

TEST_F(FileStoreCapacity, CountsAndTrimsTheFilesThatItFinds) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    plant(key_number(i), 300'000, std::chrono::hours(1) - std::chrono::minutes(i));
  }
  const auto store = open(2 * mib);
  ASSERT_TRUE(eventually([&] { return disk_use() <= 2 * mib; }));  // without any put
  EXPECT_TRUE(exists(*store, key_number(19)).ok());
  EXPECT_EQ(exists(*store, key_number(0)).status, StoreStatus::absent);
  EXPECT_GT(count_values(), 3u);
  ASSERT_TRUE(eventually([&] { return store->health().entries == count_values(); }));
  EXPECT_LE(*store->health().bytes, 2 * mib);
  EXPECT_GE(*store->health().bytes, 300'000 * count_values());
}

TEST_F(FileStoreCapacity, IsRightBeforeTheFirstPutInADirectoryThatWasFilledByOthers) {
  for (std::uint64_t i = 0; i < 20; ++i) plant(key_number(i), 300'000, 1h);
  const auto store = open(2 * mib);
  ASSERT_TRUE(put_one(*store, key_number(99), pattern(99, 300'000)).ok());
  EXPECT_LE(disk_use(), 2 * mib);
}

TEST_F(FileStoreCapacity, LeavesForeignFilesAloneAndUncounted) {
  plant(key_number(0), 100'000, 2h);
  const fs::path leaf = path_of(key_number(0)).parent_path();
  const std::string big(300'000, 'x');
  const std::vector<fs::path> foreign = {
      root() / "notes.txt",        root() / "v1" / "README", root() / "v1" / "zz" / "file",
      leaf.parent_path() / "file", leaf / "photo.jpg",       leaf / (key_number(0).text() + ".bak"),
      leaf / key_number(1).text(),  // a value's name in the wrong place
      leaf / ".vt1-tmp-notours"};
  for (const fs::path& path : foreign) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << big;
    make_old(path, 48h);
  }
  const auto store = open(2 * mib);
  for (std::uint64_t i = 10; i < 30; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 300'000)).ok());
  }
  EXPECT_FALSE(fs::exists(path_of(key_number(0))));
  for (const fs::path& path : foreign) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_GE(count_values(), 4u);  // they did not take the room of values
}

TEST_F(FileStoreCapacity, IsSharedByWritersOfOneDirectory) {
  const auto first = open(8 * mib);
  const auto second = open(8 * mib);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> most{0};
  std::jthread watcher([&] {
    while (!done) most = std::max(most.load(), disk_use());
  });
  std::vector<std::jthread> threads;
  for (const auto* store : {&first, &second}) {
    threads.emplace_back([&, store] {
      const std::uint64_t base = store == &first ? 0 : 1000;
      for (std::uint64_t i = 0; i < 60; ++i) {
        const StoreResult result = put_one(**store, key_number(base + i), pattern(i, 200'000));
        EXPECT_EQ(to_string(result.status), "ok");
        const Bytes back = read_back(**store, key_number(base + i / 2));
        if (!back.empty()) {  // else it was evicted
          EXPECT_EQ(back, pattern(i / 2, 200'000));
        }
      }
    });
  }
  threads.clear();
  done = true;
  watcher.join();
  // Each writer's share is a 64th of the capacity, or one value.
  EXPECT_LE(most.load(), 8 * mib + 2 * 220'000);
}

TEST_F(FileStoreCapacity, IsTheSmallestOfThoseWhoWrite) {
  const auto large = open(100 * mib);
  auto small = open(2 * mib);
  ASSERT_TRUE(put_one(*small, key_number(0), pattern(0, 1000)).ok());
  for (std::uint64_t i = 1; i < 20; ++i) {
    ASSERT_TRUE(put_one(*large, key_number(i), pattern(i, 300'000)).ok());
    ASSERT_LE(disk_use(), 2 * mib + 300'000);
  }
  EXPECT_EQ(large->health().capacity, 2 * mib);
  EXPECT_EQ(put_one(*large, key_number(90), pattern(1, 3 * mib)).status, StoreStatus::too_large);
  small.reset();
  ASSERT_TRUE(put_one(*large, key_number(91), pattern(1, 3 * mib)).ok());
  EXPECT_EQ(large->health().capacity, 100 * mib);
}

TEST_F(FileStoreCapacity, GetsRoomBackWhenValuesAreRemovedOrReplaced) {
  const auto store = open(4 * mib);
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 6; ++i) {
      ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 500'000), PutMode::replace).ok());
    }
  }
  // Replacing is no reason to evict in the long run: the newest are all there.
  EXPECT_TRUE(exists(*store, key_number(5)).ok());
  for (std::uint64_t i = 0; i < 6; ++i) remove_one(*store, key_number(i));
  EXPECT_TRUE(eventually([&] { return *store->health().bytes < mib; }));
  EXPECT_EQ(store->health().entries, 0u);
}

// A put that others keep outrunning is not told that the disk is full while there is something to
// evict.
TEST_F(FileStoreCapacity, MakesRoomOnceMoreWhenOthersTookItBeforeItWasGivenOut) {
  for (std::uint64_t i = 0; i < 13; ++i) plant(key_number(i), 290'000, 1h);
  // One after the other, or one may leave the count to the other.
  const auto store = open(4 * mib);
  ASSERT_TRUE(eventually([&] { return store->health().entries.has_value(); }));
  const auto other = open(4 * mib);
  ASSERT_TRUE(eventually([&] { return other->health().entries.has_value(); }));
  // Room for what the other puts, not for what the first does.
  change_state([](file::DirectoryState& state) {
    ++state.generation;
    state.base = 4 * mib - 500'000;
    state.reserved = 0;
  });
  Gate gate(false);
  // Locked for: looking for room, beginning, trimming; and, here it stops, publishing.
  const ScopedFault before_publishing(Syscall::flock, {.skip = 3, .times = 1, .gate = &gate});
  std::jthread put([&] {
    EXPECT_EQ(to_string(put_one(*store, key_number(99), pattern(99, 600'000)).status), "ok");
  });
  ASSERT_TRUE(gate.wait_for_waiting(1));
  for (std::uint64_t i = 100; i < 104; ++i) {
    EXPECT_EQ(to_string(put_one(*other, key_number(i), pattern(i, 100'000)).status), "ok");
  }
  gate.open();
  put.join();
  EXPECT_LE(disk_use(), 4 * mib + 600'000);
}

TEST_F(FileStoreCapacity, WaitsForPutsUnderWayToEndBeforeItIsCalledFull) {
  const auto store = open(4 * mib);
  Gate gate(false);
  std::jthread slow;
  {
    const ScopedFault waiting(Syscall::pwritev, {.times = 1, .gate = &gate});
    slow = std::jthread(
        [&] { EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 3 * mib)).ok()); });
    ASSERT_TRUE(gate.wait_for_waiting(1));
    // While the slow one stands in the way, nothing can be evicted for this one.
    StoreContext hurried;
    hurried.deadline = std::chrono::steady_clock::now() + 100ms;
    EXPECT_FALSE(
        put_one(*store, key_number(2), pattern(2, 3 * mib), PutMode::if_absent, hurried).ok());
    std::jthread opener([&] { gate.open(); });
    EXPECT_EQ(to_string(put_one(*store, key_number(2), pattern(2, 3 * mib)).status), "ok");
  }
  EXPECT_LE(disk_use(), 4 * mib);
}

}  // namespace
}  // namespace vitrove::testing
