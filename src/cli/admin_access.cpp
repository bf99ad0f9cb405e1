#include "cli/admin_access.h"

namespace vitrove::cli {

CLI::Option* add_admin_options(CLI::App& command, AdminAccess& access) {
  CLI::Option* server = command.add_option("--server", access.server, "the server's address")
                            ->type_name("URL")
                            ->check(server_address)
                            ->capture_default_str();
  command.add_option("--admin-key,--api-key", access.key, "the server's admin key");
  command.add_flag("--json", access.as_json, "one JSON object, as the server gives it");
  return server;
}

}  // namespace vitrove::cli
