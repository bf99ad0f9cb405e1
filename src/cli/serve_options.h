// The options of `vitrove serve`, bound to a ServerConfig. `vitrove encode` without a server takes
// the subset that says what an embedding is and where it is kept.
#pragma once

#include <CLI/CLI.hpp>

#include "server/server_config.h"

namespace vitrove::cli {

void add_model_options(CLI::App& app, ServerConfig& config);
void add_cache_options(CLI::App& app, ServerConfig& config);
void add_media_options(CLI::App& app, ServerConfig& config);
void add_server_options(CLI::App& app, ServerConfig& config);
void add_log_options(CLI::App& app, ServerConfig& config);

}  // namespace vitrove::cli
