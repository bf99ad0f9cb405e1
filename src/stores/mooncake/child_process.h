// ChildProcess: one run of a helper program, with a socket to it and a pipe from its standard
// error.
//
// The child leads a process group of its own, starts with no signal blocked, and has five
// descriptors: 0 is /dev/null, 1 and 2 the pipe, 3 the socket, 4 the script where there is one.
// kill() ends the whole group. Whoever destroys the object has the child killed and reaped first:
// it leaves no zombie. That nobody of the group is left shows in the socket: it ends when its last
// holder is gone, memory mappings before.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/unique_fd.h"

namespace vitrove::mooncake {

struct Command {
  std::vector<std::string> arguments;    // the first is the program, looked up on PATH
  std::vector<std::string> environment;  // all of it, as NAME=value
  UniqueFd script;
};

class ChildProcess {
 public:
  // Throws Error{unavailable} when the program cannot be started.
  explicit ChildProcess(Command command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }
  int words() const { return words_.get(); }  // its standard output and error; does not block

  // No more questions: the helper sees the end of its socket and leaves by itself.
  void hang_up() const;
  void kill() const;
  // How it ended ("signal 6 (Aborted)", "exit code 3"); waits for it.
  std::string reap();

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
  UniqueFd socket_;
  UniqueFd words_;
};

}  // namespace vitrove::mooncake
