// Where the settings of a Mooncake store come from: its URL, and the JSON file of
// MOONCAKE_CONFIG_PATH.
#pragma once

#include <filesystem>

#include "vitrove/embedding_store_factory.h"
#include "vitrove/mooncake_store.h"

namespace vitrove::mooncake {

// Throws Error{invalid_argument} for anything wrong or unknown in the URL or its options.
MooncakeStoreOptions read_options(const StoreUrl& url, StoreOptions& options);

// Takes over what the file says. Throws Error{invalid_argument} when it cannot be read or is not
// what it should be.
void read_config_file(const std::filesystem::path& path, MooncakeStoreOptions& options);

// Throws Error{invalid_argument}.
void check(const MooncakeStoreOptions& options);

}  // namespace vitrove::mooncake
