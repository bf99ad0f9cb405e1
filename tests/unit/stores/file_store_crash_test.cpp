// Field case B44: writers are killed at random moments, over and over; nothing wrong is ever read.
//
// VITROVE_CRASH_KILLS sets how many; the default is for every day, hundreds are for `--all`.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "contract/temporary_directory.h"
#include "contract/test_values.h"
#include "support/paths.h"
#include "unit/stores/directory_tree.h"
#include "vitrove/file_store.h"

namespace vitrove::testing {
namespace {

namespace fs = std::filesystem;

int kills() {
  const char* const text = std::getenv("VITROVE_CRASH_KILLS");
  return text == nullptr ? 25 : std::atoi(text);
}

// A process that writes to the store until it is killed.
class Writer {
 public:
  Writer(const fs::path& root, std::uint64_t capacity, unsigned seed) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    progress_.reset(ends[0]);
    const UniqueFd output(ends[1]);
    const std::string program = (test::binary_dir() / "tests" / "crash_writer").string();
    std::string directory = root;
    std::string capacity_text = std::to_string(capacity);
    std::string seed_text = std::to_string(seed);
    std::string name = program;
    char* arguments[] = {name.data(), directory.data(), capacity_text.data(), seed_text.data(),
                         nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
    const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + program);
  }
  ~Writer() { kill(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // False when it ended by itself.
  bool wait_for_puts(int count) const {
    char byte;
    for (int i = 0; i < count; ++i) {
      if (::read(progress_.get(), &byte, 1) != 1) return false;
    }
    return true;
  }

  // True when it was still at work.
  bool kill() {
    if (pid_ <= 0) return false;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd progress_;
};

// Returns how many values there were.
std::size_t check_all_values(EmbeddingStore& store) {
  std::size_t count = 0;
  for (const EmbeddingKey& key : key_numbers(40, "crash")) {
    const Bytes value = read_back(store, key);
    if (value.empty()) continue;
    ++count;
    EXPECT_EQ(to_string(inspect(value, key)), to_string(Reject::none));
  }
  return count;
}

// What a writer may have reserved and not yet written: a 64th of the capacity, or one value.
std::uint64_t share_of(std::uint64_t capacity) {
  constexpr std::uint64_t largest_value = 600 * 1024 * 2 + (64u << 10);
  return std::max(capacity / 64, largest_value);
}

std::size_t count_temporary_files(const fs::path& root) {
  return count_files_named(root, ".vt1-tmp-");
}

// The capacity: for all values, and for a third of them.
class FileStoreCrash : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Capacity, FileStoreCrash, ::testing::Values(24u << 20, 6u << 20));

TEST_P(FileStoreCrash, OfWritersNeverLeadsToAWrongValueNorToAnEmptyOrOverfullStore) {
  const std::uint64_t capacity = GetParam();
  TemporaryDirectory directory;
  const fs::path root = directory.path() / "store";
  std::mt19937 random(1);
  std::vector<std::unique_ptr<Writer>> writers;
  const auto start_one = [&] { return std::make_unique<Writer>(root, capacity, random()); };
  for (int i = 0; i < 3; ++i) writers.push_back(start_one());

  const auto reader = make_file_store({.root = root, .capacity = capacity});
  for (int round = 0; round < kills(); ++round) {
    auto& victim = writers[random() % writers.size()];
    ASSERT_TRUE(victim->wait_for_puts(1 + static_cast<int>(random() % 8))) << "round " << round;
    // Somewhere inside the put after the last of those.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    ASSERT_TRUE(victim->kill()) << "round " << round;
    const std::size_t values = check_all_values(*reader);
    EXPECT_LE(disk_use(root), capacity + writers.size() * share_of(capacity)) << "round " << round;
    if (round >= 20) {
      EXPECT_GE(values, 3u) << "round " << round;
    }
    victim = start_one();
  }
  // Without any leftovers this test has shown nothing.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    for (auto& writer : writers) {
      ASSERT_TRUE(writer->wait_for_puts(1));
      ASSERT_TRUE(writer->kill());
    }
    if (count_temporary_files(root) > 0) break;
    for (auto& writer : writers) writer = start_one();
  }
  EXPECT_GT(count_temporary_files(root), 0u);
  EXPECT_GT(check_all_values(*reader), 0u);

  // A store that comes after them sweeps what they left, and knows what there is.
  const auto successor = make_file_store({.root = root, .capacity = capacity});
  ASSERT_TRUE(put_one(*successor, key_number(0), sealed_value(key_number(0), 1, 1, 1)).ok());
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (count_temporary_files(root) > 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(count_temporary_files(root), 0u);
  EXPECT_LE(*successor->health().bytes, capacity);
  EXPECT_LE(disk_use(root), capacity);
}

}  // namespace
}  // namespace vitrove::testing
