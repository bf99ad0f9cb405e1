#include "cli/admin_access.h"

namespace vitrove::cli {

void add_admin_options(CLI::App& command, AdminAccess& access) {
  command.add_option("--server", access.server, "the server's address")
      ->type_name("URL")
      ->check(server_address)
      ->capture_default_str();
  command.add_option("--admin-key,--api-key", access.key, "the server's admin key");
  command.add_flag("--json", access.as_json, "one JSON object, as the server gives it");
}

}  // namespace vitrove::cli
