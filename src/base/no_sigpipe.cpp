#include "base/no_sigpipe.h"

#include <cerrno>
#include <ctime>

namespace vitrove {
namespace {

sigset_t only_sigpipe() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

NoSigpipe::NoSigpipe() noexcept {
  sigset_t pending;
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
  const sigset_t set = only_sigpipe();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

NoSigpipe::~NoSigpipe() {
  if (!was_pending_) {
    const sigset_t set = only_sigpipe();
    const timespec at_once{};
    while (::sigtimedwait(&set, nullptr, &at_once) == -1 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace vitrove
