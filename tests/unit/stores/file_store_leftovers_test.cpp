// What writers that died leave in a directory: halves of values, reservations, leases (field cases
// B44, B46).
#include "unit/stores/file_store_directory.h"

namespace vitrove::testing {
namespace {

class Leftovers : public FileStoreDirectory {
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

// --- Leases ---

class ForeignLease : public FileStoreDirectory {
 protected:
  void write_lease(const file::ProcessIdentity& holder, std::chrono::milliseconds expires_in) {
    change_state([&](file::DirectoryState& state) {
      state.evictor = file::EvictorLease{holder, file::wall_clock_ms() + expires_in.count()};
    });
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
  change_state([](file::DirectoryState& state) {
    state.evictor.reset();
    state.counted = true;
    ++state.generation;
  });
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

}  // namespace
}  // namespace vitrove::testing
