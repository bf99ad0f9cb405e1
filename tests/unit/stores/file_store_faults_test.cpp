// The file store while the disk, the directory or the file system lets it down (field cases B32,
// B43, B46, B57, B69).
#include <array>

#include "unit/stores/file_store_directory.h"
#include "unit/stores/syscall_faults.h"

namespace vitrove::testing {
namespace {

class FileStoreFaults : public FileStoreDirectory {};

TEST_F(FileStoreFaults, IsCountedAnewWhenTheStateFileIsDamagedOrLost) {
  const auto store = open(4 * mib);
  for (std::uint64_t i = 0; i < 30; ++i) {
    if (i == 10) std::ofstream(state_path()) << "garbage";
    if (i == 20) fs::remove(state_path());
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 300'000)).ok()) << i;
    ASSERT_LE(disk_use(), 4 * mib) << i;
  }
}

TEST_F(FileStoreFaults, AnswersWhenTheStateFileCannotBeUsed) {
  fs::create_directories(state_path());
  const auto store = open(4 * mib);
  const StoreResult result = put_one(*store, key_number(1), pattern(1, 1000));
  EXPECT_EQ(result.status, StoreStatus::io_error);
  EXPECT_EQ(result.error_number, EISDIR);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  fs::remove(state_path());
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
}

TEST_F(FileStoreFaults, ConstructsAtOnceAndReadsWhileASlowCountIsRunning) {
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

// A get that finds something else than a lookup said, or loses it while it reads.
TEST_F(FileStoreFaults, ThatHappenBetweenLookupAndGetAreAMissOrASizeButNeverAWrongValue) {
  const auto store = open(8 * mib);
  const EmbeddingKey key = key_number(1);
  const Bytes value = pattern(1, 50'000);
  Bytes bytes(value.size());

  ASSERT_TRUE(put_one(*store, key, value).ok());
  ASSERT_TRUE(exists(*store, key).ok());
  fs::remove(path_of(key));
  EXPECT_EQ(get_one(*store, key, bytes).status, StoreStatus::absent);

  ASSERT_TRUE(put_one(*store, key, value).ok());
  ASSERT_TRUE(exists(*store, key).ok());
  ASSERT_TRUE(put_one(*store, key, pattern(2, 40'000), PutMode::replace).ok());
  const StoreResult replaced = get_one(*store, key, bytes);
  EXPECT_EQ(replaced.status, StoreStatus::size_mismatch);
  EXPECT_EQ(replaced.size, 40'000u);

  ASSERT_TRUE(put_one(*store, key, value, PutMode::replace).ok());
  Gate gate(false);
  const ScopedFault slow(Syscall::preadv, {.times = 1, .gate = &gate});
  std::jthread reader([&] { EXPECT_TRUE(get_one(*store, key, bytes).ok()); });
  ASSERT_TRUE(gate.wait_for_waiting(1));
  ASSERT_TRUE(put_one(*store, key, pattern(3, value.size()), PutMode::replace).ok());
  EXPECT_TRUE(remove_one(*store, key).ok());
  gate.open();
  reader.join();
  EXPECT_EQ(bytes, value);
}

TEST_F(FileStoreFaults, NeverLetTheEvictorRemoveWhatWasUsedOrWrittenAfterItWasCounted) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    plant(key_number(i), 300'000, std::chrono::hours(1) - std::chrono::minutes(i));
  }
  Gate gate(false);
  // Locked for beginning; and, here it stops, for trimming what it has counted.
  const ScopedFault before_trimming(Syscall::flock, {.skip = 1, .times = 1, .gate = &gate});
  const auto store = open(2 * mib);
  ASSERT_TRUE(gate.wait_for_waiting(1));
  Bytes bytes(300'000);
  EXPECT_TRUE(get_one(*store, key_number(0), bytes).ok());
  fs::remove(path_of(key_number(1)));
  plant(key_number(1), 5000, 0s);
  gate.open();
  ASSERT_TRUE(eventually([&] { return disk_use() <= 2 * mib; }));
  EXPECT_TRUE(exists(*store, key_number(0)).ok());
  EXPECT_EQ(exists(*store, key_number(1)).size, 5000u);
  EXPECT_EQ(exists(*store, key_number(2)).status, StoreStatus::absent);
}

TEST_F(FileStoreFaults, DoNotEndACountWhoseDirectoryIsRemoved) {
  for (std::uint64_t i = 0; i < 5; ++i) plant(key_number(i), 1000, 1h);
  Gate gate(false);
  const ScopedFault slow(Syscall::fstatat, {.times = 1, .gate = &gate});
  const auto store = open(4 * mib);
  ASSERT_TRUE(gate.wait_for_waiting(1));
  fs::remove_all(root());
  gate.open();
  EXPECT_EQ(to_string(put_one(*store, key_number(9), pattern(9, 1000)).status), "ok");
  EXPECT_TRUE(eventually([&] { return store->health().entries.has_value(); }));
  EXPECT_EQ(store->health().state, StoreState::ready);
  EXPECT_EQ(count_values(), 1u);
}

TEST_F(FileStoreFaults, EndAPutWhenNothingCanBeRemovedForIt) {
  for (std::uint64_t i = 0; i < 13; ++i) plant(key_number(i), 290'000, 1h);
  const auto store = open(4 * mib);
  ASSERT_TRUE(eventually([&] { return store->health().entries.has_value(); }));
  {
    const ScopedFault stuck(Syscall::unlink, {.error = EACCES});
    // A time out, should the deadline come before the first look at what there is.
    EXPECT_TRUE(eventually([&] {
      StoreContext hurried;
      hurried.deadline = std::chrono::steady_clock::now() + 300ms;
      const Bytes value = pattern(99, mib);
      return put_one(*store, key_number(99), value, PutMode::if_absent, hurried).error_number ==
             ENOSPC;
    }));
    EXPECT_GT(stuck.hits(), 0);
    EXPECT_EQ(count_values(), 13u);
  }
  EXPECT_EQ(to_string(put_one(*store, key_number(99), pattern(99, mib)).status), "ok");
}

struct FailingCall {
  Syscall call;
  int error;
  StoreStatus status;
};
class PutWithAFailingCall : public FileStoreFaults,
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

TEST_F(FileStoreFaults, MakesRoomOnAFullDiskThoughTheCapacityIsNotReached) {
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

class GetWithAFailingCall : public FileStoreFaults {};

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

TEST_F(FileStoreFaults, NeedsNoRenameThatRefusesToReplace) {
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

TEST_F(FileStoreFaults, NeedsNoLocks) {
  const ScopedFault no_locks(Syscall::flock, {.error = ENOLCK});
  const auto store = open(2 * mib);
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 300'000)).ok());
    ASSERT_LE(disk_use(), 2 * mib);
  }
}

}  // namespace
}  // namespace vitrove::testing
