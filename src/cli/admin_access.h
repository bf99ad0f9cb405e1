// Admin routes of a running server, as `flush` and `stats` ask for them.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/http_client.h"

namespace vitrove::cli {

struct AdminAccess {
  std::string server = "http://127.0.0.1:8090";
  std::string key;
  bool as_json = false;
};

// Gives --server.
CLI::Option* add_admin_options(CLI::App& command, AdminAccess& access);

// The exit code of command(client). What the reply of a server of ours does not look like, no
// server of ours has sent.
template <typename Command>
int with_server(const AdminAccess& access, const Command& command) {
  HttpClient client(access.server, access.key);
  try {
    return command(client);
  } catch (const nlohmann::json::exception&) {
    throw not_vitrove(access.server, "with JSON of its own");
  }
}

}  // namespace vitrove::cli
