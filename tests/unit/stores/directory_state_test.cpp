#include "stores/file/directory_state.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "contract/temporary_directory.h"
#include "unit/stores/syscall_faults.h"

namespace vitrove::file {
namespace {

using testing::ScopedFault;
using testing::Syscall;
using testing::TemporaryDirectory;

constexpr auto soon = std::chrono::seconds(60);

ProcessIdentity identity(char letter, std::int64_t pid = 1) {
  return {std::string(16, letter), std::string(16, letter), pid};
}

DirectoryState sample() {
  DirectoryState state;
  state.counted = true;
  state.generation = 7;
  state.base = 123456;
  state.reserved = 4096;
  state.evictor = EvictorLease{identity('a', 42), 1700000000000};
  state.writers = {{identity('b', 43), 1u << 30, 1700000000001},
                   {identity('c', 44), 5u << 20, 1700000000002}};
  return state;
}

TEST(DirectoryState, ReadsBackWhatItWrote) {
  EXPECT_EQ(parse_state(to_text(sample())), sample());
  EXPECT_EQ(parse_state(to_text(DirectoryState{})), DirectoryState{});
}

TEST(DirectoryState, BelievesNothingThatIsDamaged) {
  const std::string text = to_text(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(parse_state(damaged)) << i;
    EXPECT_FALSE(parse_state(text.substr(0, i))) << i;
  }
}

// The longer text's writer was killed between writing the shorter one and cutting off the rest.
TEST(DirectoryState, IsReadThoughTheEndOfALongerTextFollows) {
  const std::string text = to_text(DirectoryState{});
  const std::string longer = to_text(sample());
  ASSERT_GT(longer.size(), text.size());
  EXPECT_EQ(parse_state(text + longer.substr(text.size())), DirectoryState{});
  EXPECT_EQ(parse_state(longer + text), sample());
}

TEST(DirectoryState, TakesTheSmallestCapacityOfItsWriters) {
  EXPECT_EQ(sample().capacity(), 5u << 20);
}

TEST(DirectoryState, ForgetsWritersThatAreSilentOrDead) {
  DirectoryState state;
  const ProcessIdentity self = make_identity();
  const std::int64_t now = 1'700'000'000'000;
  ProcessIdentity dead = make_identity();
  dead.pid = (std::int64_t{1} << 22) + 1;  // beyond any pid
  state.writers = {{identity('a'), 1, now - 1000},
                   {identity('b'), 2, now - 6 * 60'000},
                   {identity('c'), 3, now + 6 * 60'000},
                   {dead, 4, now}};
  state.sign_in(self, 50, now);
  state.sign_in(self, 60, now);
  ASSERT_EQ(state.writers.size(), 2u);
  EXPECT_TRUE(state.has_writer(identity('a').token));
  EXPECT_TRUE(state.has_writer(self.token));
  EXPECT_EQ(state.writers.back().capacity, 60u);
  state.sign_out(self);
  EXPECT_FALSE(state.has_writer(self.token));
}

TEST(ProcessIdentity, KnowsTheDeadOnlyWhereItCan) {
  const ProcessIdentity self = make_identity();
  EXPECT_NE(self.token, make_identity().token);
  EXPECT_FALSE(is_certainly_dead(self, self));
  ProcessIdentity dead = self;
  dead.pid = (std::int64_t{1} << 22) + 1;
  EXPECT_TRUE(is_certainly_dead(dead, self));
  dead.host = std::string(16, '0');
  EXPECT_FALSE(is_certainly_dead(dead, self));
}

class StateFileTest : public ::testing::Test {
 protected:
  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + soon;
  }
  int add(std::uint64_t bytes) {
    return file_.update(deadline(), 0600, [&](DirectoryState& state) { state.reserved += bytes; });
  }
  std::uint64_t reserved() {
    std::uint64_t seen = 0;
    EXPECT_EQ(file_.update(deadline(), 0600, [&](DirectoryState& state) { seen = state.reserved; }),
              0);
    return seen;
  }
  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() / "state";
  const StateFile file_{path_};
};

TEST_F(StateFileTest, LosesNoUpdateOfManyThreads) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) EXPECT_EQ(add(1), 0);
    });
  }
  threads.clear();
  EXPECT_EQ(reserved(), 400u);
}

TEST_F(StateFileTest, StartsAnewWhenTheFileIsGarbage) {
  ASSERT_EQ(add(5), 0);
  std::ofstream(path_) << "garbage";
  EXPECT_EQ(reserved(), 0u);
  ASSERT_EQ(add(6), 0);
  EXPECT_EQ(reserved(), 6u);
}

TEST_F(StateFileTest, LeavesNothingOfALongerText) {
  ASSERT_EQ(file_.update(deadline(), 0600, [](DirectoryState& state) { state = sample(); }), 0);
  ASSERT_EQ(file_.update(deadline(), 0600, [](DirectoryState& state) { state = {}; }), 0);
  ASSERT_EQ(add(3), 0);
  EXPECT_EQ(reserved(), 3u);
}

TEST_F(StateFileTest, AnswersErrnoWhenThereIsNoDirectoryOrNoFile) {
  EXPECT_EQ(StateFile(directory_.path() / "no" / "state")
                .update(deadline(), 0600, [](DirectoryState&) {}),
            ENOENT);
  EXPECT_EQ(StateFile(directory_.path()).update(deadline(), 0600, [](DirectoryState&) {}), EISDIR);
  std::filesystem::create_symlink("/nonexistent", directory_.path() / "link");
  EXPECT_EQ(StateFile(directory_.path() / "link").update(deadline(), 0600, [](DirectoryState&) {}),
            ELOOP);
}

TEST_F(StateFileTest, GivesUpAtTheDeadlineWhenOthersHoldTheLock) {
  const ScopedFault locked(Syscall::flock, {.error = EWOULDBLOCK});
  const auto overdue = std::chrono::steady_clock::now();
  EXPECT_EQ(file_.update(overdue, 0600, [](DirectoryState&) {}), ETIMEDOUT);
}

TEST_F(StateFileTest, DoesWithoutLocksWhereTheFileSystemHasNone) {
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    const ScopedFault none(Syscall::flock, {.error = error});
    EXPECT_EQ(add(1), 0);
  }
  EXPECT_EQ(reserved(), 3u);
}

}  // namespace
}  // namespace vitrove::file
