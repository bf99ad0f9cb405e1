// vitrove serve: the encode server in the foreground.
//
// The port is told by one line on standard output once the server listens; logs go to standard
// error. How it ends is told by stop_signals.h.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/resource.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/serve_options.h"
#include "cli/stop_signals.h"
#include "server/encode_server.h"

namespace vitrove::cli {
namespace {

// The usual soft limit of 1024 is for programs that use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where refused, what there is has to do
}

int serve(const ServerConfig& config) {
  set_up_logging(parse_log_level(config.log_level), config.log_format);
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  // Lives before the server and after it, since both its beginning and its end may take long.
  StopSignals signals(config.drain_delay + config.drain_timeout);
  EncodeServer server(config);
  server.start();
  signals.drain(server);
  const std::string host =
      server.host().find(':') == std::string::npos ? server.host() : "[" + server.host() + "]";
  std::printf("listening on http://%s:%u\n", host.c_str(), unsigned{server.port()});
  std::fflush(stdout);

  if (server.wait()) {
    signals.leaving();
    return exit_ok;
  }
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
