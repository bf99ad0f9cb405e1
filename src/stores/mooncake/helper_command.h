// How a helper is started: which program, with what environment and settings.
#pragma once

#include <string>

#include "stores/mooncake/child_process.h"
#include "vitrove/mooncake_store.h"

namespace vitrove::mooncake {

// Throws Error{unavailable} when there is nothing to start.
Command helper_command(const MooncakeStoreOptions& options);

// The settings that the helper is given when it is told to connect, as JSON.
std::string helper_settings(const MooncakeStoreOptions& options);

}  // namespace vitrove::mooncake
