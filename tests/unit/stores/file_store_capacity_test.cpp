// The file store's capacity: held across restarts, writers and accidents (field cases B46, B62).
#include <atomic>
#include <fstream>
#include <thread>

#include <sys/stat.h>

#include "contract/store_contract.h"
#include "contract/temporary_directory.h"
#include "stores/file/directory_state.h"
#include "stores/file/layout.h"
#include "unit/stores/directory_tree.h"
#include "unit/stores/syscall_faults.h"
#include "vitrove/file_store.h"

namespace vitrove::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class FileStoreCapacity : public ::testing::Test {
 protected:
  std::unique_ptr<EmbeddingStore> open(std::uint64_t capacity) const {
    return make_file_store({.root = root(), .capacity = capacity});
  }
  fs::path root() const { return directory_.path() / "store"; }
  fs::path path_of(const EmbeddingKey& key) const { return file::Layout(root()).path_of(key); }
  fs::path state_path() const { return file::Layout(root()).state_path(); }

  std::uint64_t disk_use() const { return testing::disk_use(root()); }
  std::size_t count_values() const { return count_files_named(root(), "vt1-"); }
  std::size_t count_temporary_files() const { return count_files_named(root(), ".vt1-tmp-"); }

  // Puts a file where a value belongs, as another program would.
  void plant(const EmbeddingKey& key, std::size_t size, std::chrono::seconds age) const {
    fs::create_directories(path_of(key).parent_path());
    const Bytes bytes = pattern(1, size);
    std::ofstream(path_of(key), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    make_old(path_of(key), age);
  }
  static void make_old(const fs::path& path, std::chrono::seconds age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }

  template <typename Condition>
  static bool eventually(Condition condition) {
    const auto patience = std::chrono::steady_clock::now() + 120s;
    while (std::chrono::steady_clock::now() < patience) {
      if (condition()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  TemporaryDirectory directory_;
};

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
  ASSERT_EQ(file::StateFile(state_path())
                .update(std::chrono::steady_clock::now() + 60s, 0600,
                        [](file::DirectoryState& state) {
                          ++state.generation;
                          state.base = 4 * mib - 500'000;
                          state.reserved = 0;
                        }),
            0);
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

// --- Leftovers ---

class Leftovers : public FileStoreCapacity {
 protected:
  // A temporary file as its writer leaves it that dies half way: the size is that of the whole.
  fs::path leave(const file::ProcessIdentity& writer, std::uint64_t number, std::size_t written,
                 std::uintmax_t whole) const {
    const fs::path path = file::Layout(root()).temporary_path(key_number(number), writer, number);
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(written, 'x');
    fs::resize_file(path, whole);
    return path;
  }
  void sign_in(const file::ProcessIdentity& writer) const {
    change_state([&](file::DirectoryState& state) {
      state.sign_in(writer, 100 * mib, file::wall_clock_ms());
    });
  }
  void change_state(const std::function<void(file::DirectoryState&)>& change) const {
    fs::create_directories(root() / "v1");
    ASSERT_EQ(
        file::StateFile(state_path()).update(std::chrono::steady_clock::now() + 60s, 0600, change),
        0);
  }
  static file::ProcessIdentity dead_neighbour() {
    file::ProcessIdentity dead = file::make_identity();
    dead.pid = (std::int64_t{1} << 22) + 1;  // beyond any pid
    return dead;
  }
  const file::ProcessIdentity stranger_{"00000000deadbeef", "bbbbbbbbbbbbbbbb", 1};
  const file::ProcessIdentity slow_stranger_{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", 1};
};

TEST_F(Leftovers, OfOtherHostsAreSweptWhenTheyAreOldAndNobodyIsKnownToGoOnWithThem) {
  const EmbeddingKey key = key_number(1);
  plant(key, 100, 1h);
  const fs::path orphan = leave(stranger_, 1, 10, 20);
  const fs::path young = leave(stranger_, 2, 10, 20);
  const fs::path in_use = leave(slow_stranger_, 3, 10, 20);
  make_old(orphan, 1h);
  make_old(in_use, 1h);
  sign_in(slow_stranger_);
  const auto store = open(4 * mib);
  EXPECT_TRUE(eventually([&] { return !fs::exists(orphan); }));
  ASSERT_TRUE(put_one(*store, key_number(2), pattern(2, 100)).ok());
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(in_use));
  EXPECT_TRUE(fs::exists(path_of(key)));
}

TEST_F(Leftovers, OfTheDeadOfThisHostAreSweptAtOnce) {
  const file::ProcessIdentity living = file::make_identity();
  const fs::path at_work = leave(living, 1, 1000, 400'000);
  for (std::uint64_t i = 2; i < 12; ++i) leave(dead_neighbour(), i, 1000, 400'000);
  const file::ProcessIdentity known = dead_neighbour();
  sign_in(known);
  leave(known, 12, 1000, 400'000);
  const auto store = open(8 * mib);
  EXPECT_TRUE(eventually([&] { return count_temporary_files() == 1; }));
  EXPECT_TRUE(fs::exists(at_work));
}

// What crashes leave behind, and what the dead had reserved, must not push out whole values.
TEST_F(Leftovers, TakeNoRoomFromValues) {
  for (std::uint64_t i = 0; i < 8; ++i) plant(key_number(i), 200'000, 1h);
  for (std::uint64_t i = 20; i < 40; ++i) leave(dead_neighbour(), i, 1000, 400'000);
  for (std::uint64_t i = 40; i < 60; ++i) leave(stranger_, i, 1000, 400'000);
  change_state([](file::DirectoryState& state) {
    state.counted = true;
    state.reserved = 500 * mib;
  });
  const auto store = open(4 * mib);
  ASSERT_TRUE(put_one(*store, key_number(99), pattern(99, 200'000)).ok());
  EXPECT_EQ(count_values(), 9u);
  EXPECT_EQ(count_temporary_files(), 20u);
}

TEST_F(Leftovers, ThatFillTheDirectoryMakeAPutFailAndAreNoReasonToEvict) {
  plant(key_number(0), 200'000, 1h);
  const fs::path large = leave(stranger_, 1, 3 * mib, 3 * mib);
  const auto store = open(4 * mib);
  const auto put_hurriedly = [&] {
    StoreContext hurried;
    hurried.deadline = std::chrono::steady_clock::now() + 300ms;
    return put_one(*store, key_number(2), pattern(2, mib), PutMode::if_absent, hurried);
  };
  // A time out, should the deadline come before the first look at what there is.
  EXPECT_TRUE(eventually([&] { return put_hurriedly().error_number == ENOSPC; }));
  EXPECT_TRUE(exists(*store, key_number(0)).ok());
  EXPECT_TRUE(put_one(*store, key_number(3), pattern(3, 100'000)).ok());
  EXPECT_TRUE(exists(*store, key_number(0)).ok());
  fs::remove(large);
  EXPECT_TRUE(put_one(*store, key_number(2), pattern(2, mib)).ok());
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

// --- Leases ---

class ForeignLease : public FileStoreCapacity {
 protected:
  void write_lease(const file::ProcessIdentity& holder, std::chrono::milliseconds expires_in) {
    fs::create_directories(root() / "v1");
    ASSERT_EQ(file::StateFile(state_path())
                  .update(std::chrono::steady_clock::now() + 60s, 0600,
                          [&](file::DirectoryState& state) {
                            state.evictor = file::EvictorLease{
                                holder, file::wall_clock_ms() + expires_in.count()};
                          }),
              0);
  }
  const file::ProcessIdentity stranger_{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", 1};
};

TEST_F(ForeignLease, IsWaitedForWhileItsHolderMayBeAlive) {
  write_lease(stranger_, 1h);
  const auto store = make_file_store({.root = root(), .capacity = 4 * mib, .lease = 1h});
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + 100ms;
  EXPECT_EQ(put_one(*store, key_number(1), pattern(1, 1000), PutMode::if_absent, context).status,
            StoreStatus::timeout);
  // Its count, when it comes, is as good as ours.
  ASSERT_EQ(file::StateFile(state_path())
                .update(std::chrono::steady_clock::now() + 60s, 0600,
                        [&](file::DirectoryState& state) {
                          state.evictor.reset();
                          state.counted = true;
                          ++state.generation;
                        }),
            0);
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
}

TEST_F(ForeignLease, IsTakenOverWhenItIsNotRenewed) {
  write_lease(stranger_, 1h);
  const auto store = make_file_store({.root = root(), .capacity = 4 * mib, .lease = 50ms});
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
}

TEST_F(ForeignLease, IsTakenOverAtOnceWhenItRanOutLongAgo) {
  write_lease(stranger_, -2h);
  const auto store = make_file_store({.root = root(), .capacity = 4 * mib, .lease = 1h});
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
}

TEST_F(ForeignLease, IsTakenOverAtOnceWhenItsHolderDiedOnThisHost) {
  file::ProcessIdentity dead = file::make_identity();
  dead.pid = (std::int64_t{1} << 22) + 1;
  write_lease(dead, 1h);
  const auto store = make_file_store({.root = root(), .capacity = 4 * mib, .lease = 1h});
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
}

// --- Accidents ---

TEST_F(FileStoreCapacity, IsCountedAnewWhenTheStateFileIsDamagedOrLost) {
  const auto store = open(4 * mib);
  for (std::uint64_t i = 0; i < 30; ++i) {
    if (i == 10) std::ofstream(state_path()) << "garbage";
    if (i == 20) fs::remove(state_path());
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 300'000)).ok()) << i;
    ASSERT_LE(disk_use(), 4 * mib) << i;
  }
}

TEST_F(FileStoreCapacity, AnswersWhenTheStateFileCannotBeUsed) {
  fs::create_directories(state_path());
  const auto store = open(4 * mib);
  const StoreResult result = put_one(*store, key_number(1), pattern(1, 1000));
  EXPECT_EQ(result.status, StoreStatus::io_error);
  EXPECT_EQ(result.error_number, EISDIR);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  fs::remove(state_path());
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
}

TEST_F(FileStoreCapacity, ConstructsAtOnceAndReadsWhileASlowCountIsRunning) {
  plant(key_number(1), 1000, 1h);
  Gate gate(false);
  const ScopedFault slow(Syscall::fstatat, {.gate = &gate});
  const auto store = open(4 * mib);
  ASSERT_TRUE(gate.wait_for_waiting(1));
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 1000));
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + 50ms;
  EXPECT_EQ(put_one(*store, key_number(2), pattern(2, 1000), PutMode::if_absent, context).status,
            StoreStatus::timeout);
  std::stop_source leaver;
  StoreContext leaving;
  leaving.cancel = leaver.get_token();
  std::jthread leave([&] { leaver.request_stop(); });
  EXPECT_EQ(put_one(*store, key_number(2), pattern(2, 1000), PutMode::if_absent, leaving).status,
            StoreStatus::cancelled);
  gate.open();
  EXPECT_TRUE(put_one(*store, key_number(2), pattern(2, 1000)).ok());
}

struct FailingCall {
  Syscall call;
  int error;
  StoreStatus status;
};
class PutWithAFailingCall : public FileStoreCapacity,
                            public ::testing::WithParamInterface<FailingCall> {};

TEST_P(PutWithAFailingCall, LeavesNothingBehindAndWorksAgainAfterwards) {
  const auto store = make_file_store({.root = root(), .capacity = 8 * mib, .fsync = true});
  ASSERT_TRUE(put_one(*store, key_number(0), pattern(0, 1000)).ok());
  {
    const ScopedFault fault(GetParam().call, {.error = GetParam().error});
    for (std::uint64_t i = 1; i < 4; ++i) {
      const StoreResult result = put_one(*store, key_number(i), pattern(i, 400'000));
      EXPECT_EQ(to_string(result.status), to_string(GetParam().status));
      EXPECT_EQ(result.error_number, GetParam().error);
      EXPECT_EQ(exists(*store, key_number(i)).status, StoreStatus::absent);
    }
    EXPECT_GT(fault.hits(), 0);
    EXPECT_EQ(store->health().state, StoreState::degraded);
    EXPECT_FALSE(store->health().detail.empty());
  }
  EXPECT_EQ(count_temporary_files(), 0u);
  for (std::uint64_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 400'000)).ok());
  }
  EXPECT_EQ(read_back(*store, key_number(3)), pattern(3, 400'000));
  EXPECT_EQ(store->health().state, StoreState::ready);
}

INSTANTIATE_TEST_SUITE_P(
    Errors, PutWithAFailingCall,
    ::testing::Values(FailingCall{Syscall::pwritev, ENOSPC, StoreStatus::no_space},
                      FailingCall{Syscall::pwritev, EDQUOT, StoreStatus::no_space},
                      FailingCall{Syscall::pwritev, EIO, StoreStatus::io_error},
                      FailingCall{Syscall::mkdir, EROFS, StoreStatus::denied},
                      FailingCall{Syscall::mkdir, EACCES, StoreStatus::denied},
                      FailingCall{Syscall::mkdir, ENOSPC, StoreStatus::no_space},
                      FailingCall{Syscall::fdatasync, EIO, StoreStatus::io_error},
                      FailingCall{Syscall::renameat2, ENOSPC, StoreStatus::no_space},
                      FailingCall{Syscall::renameat2, EACCES, StoreStatus::denied}));

TEST_F(FileStoreCapacity, MakesRoomOnAFullDiskThoughTheCapacityIsNotReached) {
  const auto store = open(100 * mib);
  for (std::uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 100'000)).ok());
    make_old(path_of(key_number(i)), 1h - std::chrono::minutes(i));
  }
  const ScopedFault full(Syscall::pwritev, {.error = ENOSPC});
  EXPECT_EQ(put_one(*store, key_number(99), pattern(99, 1000)).status, StoreStatus::no_space);
  EXPECT_TRUE(eventually([&] { return !fs::exists(path_of(key_number(0))); }));
  EXPECT_TRUE(exists(*store, key_number(15)).ok());
}

class GetWithAFailingCall : public FileStoreCapacity {};

TEST_F(GetWithAFailingCall, IsAnIoErrorOfThatKeyOnly) {
  const auto store = open(8 * mib);
  const auto keys = key_numbers(4);
  for (const EmbeddingKey& key : keys) {
    ASSERT_TRUE(put_one(*store, key, pattern(1, 50'000)).ok());
  }
  const ScopedFault fault(Syscall::preadv, {.error = EIO, .skip = 1, .times = 1});
  std::array<Bytes, 4> bytes = {Bytes(50'000), Bytes(50'000), Bytes(50'000), Bytes(50'000)};
  const std::vector<MutableBuffer> buffers(bytes.begin(), bytes.end());
  const auto results = store->batch_get(keys, buffers, {});
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].status, StoreStatus::io_error);
  EXPECT_EQ(results[1].error_number, EIO);
  EXPECT_TRUE(results[2].ok());
  EXPECT_TRUE(results[3].ok());
}

TEST_F(GetWithAFailingCall, TriesAgainWhenInterrupted) {
  const auto store = open(8 * mib);
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 50'000)).ok());
  const ScopedFault fault(Syscall::preadv, {.error = EINTR, .times = 3});
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 50'000));
  EXPECT_EQ(fault.hits(), 3);
}

// --- File systems that lack something ---

TEST_F(FileStoreCapacity, NeedsNoRenameThatRefusesToReplace) {
  const auto store = open(8 * mib);
  const ScopedFault no_such_rename(Syscall::renameat2, {.error = EINVAL});
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(2, 1000)).ok());
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 1000));
  EXPECT_EQ(count_values(), 1u);
  const ScopedFault no_links(Syscall::link, {.error = EPERM});
  ASSERT_TRUE(put_one(*store, key_number(2), pattern(2, 1000)).ok());
  EXPECT_EQ(read_back(*store, key_number(2)), pattern(2, 1000));
  EXPECT_EQ(count_temporary_files(), 0u);
}

TEST_F(FileStoreCapacity, NeedsNoLocks) {
  const ScopedFault no_locks(Syscall::flock, {.error = ENOLCK});
  const auto store = open(2 * mib);
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 300'000)).ok());
    ASSERT_LE(disk_use(), 2 * mib);
  }
}

}  // namespace
}  // namespace vitrove::testing
