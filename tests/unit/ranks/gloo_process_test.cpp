// Real processes over Gloo (field case B58). Where Vitrove is built without Gloo this file is not.
#include <csignal>
#include <fstream>
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

extern char** environ;

namespace vitrove::testing {
namespace {

// One process a rank; what is left of them at the end is killed.
class Processes {
 public:
  Processes(int size, const std::string& mode, int rounds, const std::string& end = {}) {
    std::filesystem::create_directory(directory_.path() / "group");
    for (int rank = 0; rank < size; ++rank) start(rank, size, mode, rounds, end);
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

  void start(int rank, int size, const std::string& mode, int rounds, const std::string& end) {
    std::vector<std::string> words{(test::binary_dir() / "tests" / "rank_process").string(),
                                   std::to_string(rank),
                                   std::to_string(size),
                                   directory_.path().string(),
                                   mode,
                                   std::to_string(rounds),
                                   "11"};
    if (!end.empty()) words.push_back(end);
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
  const auto first = processes.lines(0);
  ASSERT_EQ(first.size(), static_cast<std::size_t>(count));
  for (int rank = 1; rank < size; ++rank) {
    const auto lines = processes.lines(rank);
    ASSERT_EQ(lines.size(), first.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].empty() || first[i].empty()) continue;  // this rank had aborted
      EXPECT_EQ(lines[i], first[i]) << "rank " << rank << ", round " << i;
    }
  }
}

TEST(RankProcesses, TwoAgreeOnWhatRankZeroHas) { agree(2, "first"); }
TEST(RankProcesses, TwoAgreeOnWhatBothHave) { agree(2, "all"); }
TEST(RankProcesses, FourAgreeOnWhatRankZeroHas) { agree(4, "first"); }
TEST(RankProcesses, FourAgreeOnWhatAllHave) { agree(4, "all"); }

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
