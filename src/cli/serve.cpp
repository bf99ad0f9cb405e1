// vitrove serve: the encode server in the foreground.
//
// The port is told by one line on standard output once the server listens; logs go to standard
// error. SIGTERM and SIGINT drain, a second one ends at once.

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "cli/commands.h"
#include "cli/serve_options.h"
#include "server/encode_server.h"

namespace vitrove::cli {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

// Runs on a thread of its own, since draining takes locks that a signal handler may not take.
void watch_signals(const std::stop_token& stop, EncodeServer& server) {
  const sigset_t set = stop_signals();
  const UniqueFd signals(signalfd(-1, &set, SFD_CLOEXEC));
  const UniqueFd end(eventfd(0, EFD_CLOEXEC));
  const std::stop_callback wake(stop, [&end] { eventfd_write(end.get(), 1); });
  bool draining = false;
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> ready{pollfd{signals.get(), POLLIN, 0}, pollfd{end.get(), POLLIN, 0}};
    if (poll(ready.data(), ready.size(), -1) < 0 || ready[0].revents == 0) continue;
    signalfd_siginfo signal{};
    if (read(signals.get(), &signal, sizeof signal) != sizeof signal) continue;
    if (draining) {
      logger()->warn("second signal: ending at once");
      server.force_stop();
      return;
    }
    draining = true;
    logger()->info("signal {}: draining", signal.ssi_signo);
    server.begin_drain();
  }
}

// The usual soft limit of 1024 is for programs that use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where refused, what there is has to do
}

int serve(const ServerConfig& config) {
  set_up_logging(parse_log_level(config.log_level), config.log_format);
  // Before any thread exists: all of them inherit the mask, so that only the watcher sees these.
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  raise_descriptor_limit();
  EncodeServer server(config);
  server.start();
  const std::string host =
      server.host().find(':') == std::string::npos ? server.host() : "[" + server.host() + "]";
  std::printf("listening on http://%s:%u\n", host.c_str(), unsigned{server.port()});
  std::fflush(stdout);

  std::jthread watcher([&server](const std::stop_token& stop) { watch_signals(stop, server); });
  if (server.wait()) return exit_ok;
  // Something is stuck, an encoder's run perhaps, and cannot be waited for. Stores never show a
  // half-written value, so leaving without destructors loses nothing but what was unfinished.
  logger()->warn("ended with requests or puts unfinished");
  logger()->flush();
  std::_Exit(exit_failed);
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto config = std::make_shared<ServerConfig>();
  CLI::App* command = app.add_subcommand("serve", "run the encode server");
  add_server_options(*command, *config);
  add_model_options(*command, *config);
  add_cache_options(*command, *config);
  add_media_options(*command, *config);
  add_log_options(*command, *config);
  command->callback([config, &exit_code] { exit_code = serve(*config); });
}

}  // namespace vitrove::cli
