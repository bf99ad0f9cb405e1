// The signals that tell a command to end.
#pragma once

#include <csignal>

namespace vitrove::cli {

// SIGTERM, SIGINT and SIGHUP, but for what this process was started to ignore: SIGHUP under nohup,
// SIGINT in the background of a script. Blocking a signal would bring it back.
inline sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  for (const int number : {SIGINT, SIGHUP}) {
    struct sigaction now {};
    const bool is_ignored = sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (!is_ignored) sigaddset(&set, number);
  }
  return set;
}

}  // namespace vitrove::cli
