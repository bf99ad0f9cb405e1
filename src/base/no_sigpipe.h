// NoSigpipe: for as long as it lives, writing to a connection that is gone is an error (EPIPE) on
// this thread and no signal, whatever the program thinks of SIGPIPE. For libraries that call
// write() and its kin; threads that they start meanwhile inherit it for good.
//
// SIGPIPE is sent to the thread that writes: so it is blocked there, and what came of it is taken
// back before it is unblocked. Nothing of the program's own handling changes.
#pragma once

#include <csignal>

namespace vitrove {

class NoSigpipe {
 public:
  NoSigpipe() noexcept;
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace vitrove
