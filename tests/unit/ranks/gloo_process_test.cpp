// Real processes over Gloo (field case B58). Where Vitrove is built without Gloo this file is not.
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "contract/temporary_directory.h"
#include "support/paths.h"
#include "unit/ranks/support.h"
#include "vitrove/gloo_collectives.h"
#include "vitrove/page_pool.h"

extern char** environ;

namespace vitrove::testing {
namespace {

// One process a rank; what is left of them at the end is killed.
class Processes {
 public:
  Processes(int size, const std::string& mode, int rounds, const std::string& end = {}) {
    std::vector<std::string> words{mode, std::to_string(rounds), "11"};
    if (!end.empty()) words.push_back(end);
    start_all(size, words);
  }
  // That fill their shares of a pool.
  static std::unique_ptr<Processes> with_a_pool(int size, const std::string& mode,
                                                std::uint64_t bytes) {
    std::unique_ptr<Processes> processes(new Processes);
    processes->start_all(size, {mode, "fill", std::to_string(bytes)});
    return processes;
  }
  ~Processes() {
    for (const pid_t pid : running_) {
      if (pid <= 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // The exit code; -1 for a process that a signal ended.
  int wait(int rank) {
    int status = 0;
    ::waitpid(std::exchange(running_[static_cast<std::size_t>(rank)], 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::vector<std::string> lines(int rank) const {
    std::ifstream file(path(rank, "out"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  std::string errors(int rank) const {
    std::ostringstream text;
    text << std::ifstream(path(rank, "err")).rdbuf();
    return "rank " + std::to_string(rank) + ": " + text.str();
  }

 private:
  std::string path(int rank, const std::string& kind) const {
    return (directory_.path() / (kind + std::to_string(rank))).string();
  }

  Processes() = default;

  void start_all(int size, const std::vector<std::string>& more) {
    std::filesystem::create_directory(directory_.path() / "group");
    for (int rank = 0; rank < size; ++rank) start(rank, size, more);
  }

  void start(int rank, int size, const std::vector<std::string>& more) {
    std::vector<std::string> words{(test::binary_dir() / "tests" / "rank_process").string(),
                                   std::to_string(rank), std::to_string(size),
                                   directory_.path().string()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    ::posix_spawn_file_actions_addopen(&actions, 1, path(rank, "out").c_str(), flags, 0600);
    ::posix_spawn_file_actions_addopen(&actions, 2, path(rank, "err").c_str(), flags, 0600);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + words[0]);
    running_.push_back(pid);
  }

  TemporaryDirectory directory_;
  std::vector<pid_t> running_;
};

void agree(int size, const std::string& mode) {
  const int count = rounds(200);
  Processes processes(size, mode, count);
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(processes.wait(rank), 0) << processes.errors(rank);
  }
  std::vector<std::vector<std::string>> lines;
  for (int rank = 0; rank < size; ++rank) {
    lines.push_back(processes.lines(rank));
    ASSERT_EQ(lines.back().size(), static_cast<std::size_t>(count)) << rank;
  }
  EXPECT_THAT(disagreements(lines), ::testing::IsEmpty());
}

TEST(RankProcesses, TwoAgreeOnWhatRankZeroHas) { agree(2, "first"); }
TEST(RankProcesses, TwoAgreeOnWhatBothHave) { agree(2, "all"); }
TEST(RankProcesses, FourAgreeOnWhatRankZeroHas) { agree(4, "first"); }
TEST(RankProcesses, FourAgreeOnWhatAllHave) { agree(4, "all"); }

// Field case B72: what the operator asked for is what all ranks take together, and each rank with a
// pool its staging pages and header slots besides, as documented.
void fill_a_pool(int size, const std::string& mode) {
  constexpr std::uint64_t asked = std::uint64_t{96} << 20;
  const PagePoolOptions defaults;
  const std::uint64_t besides = defaults.staging_pages * defaults.page_bytes +
                                defaults.header_slots * PagePool::header_slot_bytes +
                                defaults.page_bytes;
  const auto processes = Processes::with_a_pool(size, mode, asked);
  std::uint64_t data_of_all = 0;
  std::uint64_t resident_of_all = 0;
  const auto with_pool = static_cast<std::uint64_t>(mode == "all" ? size : 1);
  for (int rank = 0; rank < size; ++rank) {
    ASSERT_EQ(processes->wait(rank), 0) << processes->errors(rank);
    const auto lines = processes->lines(rank);
    ASSERT_EQ(lines.size(), 1u);
    std::uint64_t data = 0;
    std::uint64_t arena = 0;
    std::uint64_t resident = 0;
    std::istringstream(lines[0]) >> data >> arena >> resident;
    EXPECT_LE(arena, data + besides) << "rank " << rank;
    EXPECT_EQ(data, mode == "all" ? asked / with_pool : rank == 0 ? asked : 0);
    data_of_all += data;
    resident_of_all += resident;
  }
  EXPECT_EQ(data_of_all, asked);
  EXPECT_LE(resident_of_all, asked + with_pool * besides);
  EXPECT_GT(resident_of_all, asked / 10 * 9) << "the pools were full";
}

TEST(RankProcesses, TwoTakeWhatTheOperatorAskedForTogether) {
  for (const std::string mode : {"first", "all"}) fill_a_pool(2, mode);
}
TEST(RankProcesses, FourTakeWhatTheOperatorAskedForTogether) {
  for (const std::string mode : {"first", "all"}) fill_a_pool(4, mode);
}

TEST(RankProcesses, TheOthersAreToldWhenOneStopsInItsTracksOrIsGone) {
  for (const std::string end : {"freeze", "die"}) {
    Processes processes(3, "all", 20, end);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(processes.wait(rank), 3) << end << ", " << processes.errors(rank);
      EXPECT_NE(processes.errors(rank).find("the rank group has failed"), std::string::npos);
    }
  }
}

TEST(RankProcesses, AGroupThatIsNeverCompleteIsAnError) {
  const TemporaryDirectory directory;
  GlooOptions options;
  options.size = 2;
  options.directory = directory.path();
  options.connect_timeout = 100ms;
  EXPECT_THROW(make_gloo_collectives(options), Error);
  options.rank = 2;
  EXPECT_THROW(make_gloo_collectives(options), Error);
  options.rank = 0;
  options.group.clear();
  EXPECT_THROW(make_gloo_collectives(options), Error);
  options.group = "g";
  options.directory = directory.path() / "missing";
  EXPECT_THROW(make_gloo_collectives(options), Error);
}

}  // namespace
}  // namespace vitrove::testing
