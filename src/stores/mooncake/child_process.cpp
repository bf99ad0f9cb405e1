#include "stores/mooncake/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/environment.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(ErrorCode::unavailable, "mooncake store: " + what + ": " + errno_text(error));
}

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

Pair make_socket_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    fail("no socket", errno);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Pair make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) fail("no pipe", errno);
  Pair pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
  ::fcntl(pair.ours.get(), F_SETFL, O_NONBLOCK);  // the helper's end blocks, as programs expect
  return pair;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void give(int fd, int as) { posix_spawn_file_actions_adddup2(&actions_, fd, as); }
  void open_null(int as) {
    posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDONLY, 0);
  }
  void close_from(int fd) { posix_spawn_file_actions_addclosefrom_np(&actions_, fd); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

// Above the numbers that the child gets, so that one dup2 does not overwrite the next one's source.
UniqueFd moved_up(const UniqueFd& fd) {
  UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 16));
  if (!high) fail("no descriptor", errno);
  return high;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigdescr_np(WTERMSIG(status));
    return "signal " + std::to_string(WTERMSIG(status)) +
           (name == nullptr ? "" : " (" + std::string(name) + ")");
  }
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

ChildProcess::ChildProcess(Command command) {
  Pair link = make_socket_pair();
  Pair words = make_pipe();
  const UniqueFd their_socket = moved_up(link.theirs);
  const UniqueFd their_words = moved_up(words.theirs);
  UniqueFd their_script;

  FileActions actions;
  actions.open_null(0);
  actions.give(their_words.get(), 1);
  actions.give(their_words.get(), 2);
  actions.give(their_socket.get(), 3);
  if (command.script) {
    their_script = moved_up(command.script);
    actions.give(their_script.get(), 4);
  }
  actions.close_from(command.script ? 5 : 4);

  const Attributes attributes;
  const auto arguments = pointers_to(command.arguments);
  const auto environment = pointers_to(command.environment);
  const int error = ::posix_spawnp(&pid_, arguments[0], actions.get(), attributes.get(),
                                   arguments.data(), environment.data());
  if (error != 0) fail("cannot start " + command.arguments.front(), error);
  socket_ = std::move(link.ours);
  words_ = std::move(words.ours);
}

ChildProcess::~ChildProcess() {
  kill();
  reap();
}

void ChildProcess::hang_up() const { ::shutdown(socket_.get(), SHUT_WR); }

void ChildProcess::kill() const {
  if (!reaped_) ::kill(-pid_, SIGKILL);
}

std::string ChildProcess::reap() {
  if (reaped_) return "reaped before";
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  reaped_ = true;
  return reaped < 0 ? "an unknown end" : describe(status);
}

}  // namespace vitrove::mooncake
